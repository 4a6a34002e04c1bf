import { randomBytes } from "../base/secret.ts";
import { checkPassword } from "../oauth/user.ts";
import type { CommandContext, Option } from "./command.ts";
import { Failure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** A password for a user, and whether it was made up here and must be shown once. */
export interface GivenPassword {
  readonly password: string;
  readonly isGenerated: boolean;
}

/** How a script hands a password over. */
export const PASSWORD_OPTION: Option = {
  meaning: "read the password from standard input; one line break at its end is no part of it",
};

const TRIES = 3;

/**
 * A password from standard input, or asked for twice where somebody sits at a terminal, else a
 * generated one. Throws Failure where nobody gives a good one.
 */
export async function obtainPassword(
  terminal: Terminal,
  fromStdin: boolean,
  username: string,
): Promise<GivenPassword> {
  if (terminal.canAsk) {
    return { password: await askPassword(terminal, username), isGenerated: false };
  }
  if (fromStdin) {
    const text = await terminal.readStdin();
    return { password: text.replace(/\r?\n$/, ""), isGenerated: false };
  }
  return { password: randomBytes(18).toString("base64url"), isGenerated: true };
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

/** Prints a generated password beside an answer in JSON, where it has no place. */
export function printBeside({ isJson, terminal }: CommandContext, given: GivenPassword): void {
  if (isJson && given.isGenerated) terminal.note(`password: ${given.password}`);
}
