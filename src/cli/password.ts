import { randomBytes } from "../base/secret.ts";
import { checkPassword } from "../oauth/user.ts";
import type { CommandContext, Option } from "./command.ts";
import { Failure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** A password for a user, and whether it was generated here and must be shown once. */
export interface GivenPassword {
  readonly password: string;
  readonly isGenerated: boolean;
}

/** How a script hands a password over. */
export const PASSWORD_OPTION: Option = {
  meaning: "read the password from standard input; one line break at its end is no part of it",
};

const TRIES = 3;

/** A password: typed at a terminal, from standard input, or generated. Throws Failure. */
export async function obtainPassword(
  terminal: Terminal,
  fromStdin: boolean,
  username: string,
): Promise<GivenPassword> {
  const isGenerated = !terminal.canAsk && !fromStdin;
  const password = isGenerated
    ? randomBytes(18).toString("base64url")
    : terminal.canAsk
    ? await askPassword(terminal, username)
    : (await terminal.readStdin()).replace(/\r?\n$/, "");
  return { password, isGenerated };
}

function askPassword(terminal: Terminal, username: string): Promise<string> {
  return terminal.askHidden(async (ask) => {
    for (let tries = 0; tries < TRIES; tries++) {
      const password = await ask(`Password for ${username}: `);
      const wrong = checkPassword(password);
      if (wrong !== undefined) terminal.note(wrong);
      else if (await ask("The same again: ") === password) return password;
      else terminal.note("The two differ.");
    }
    throw new Failure("No password was given; nothing was changed.");
  });
}

/** Prints a generated password beside a response in JSON, which does not have it. */
export function printBeside({ isJson, terminal }: CommandContext, given: GivenPassword): void {
  if (isJson && given.isGenerated) terminal.note(`password: ${given.password}`);
}
