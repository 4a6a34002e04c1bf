import { newPassword } from "../base/secret.ts";
import { checkPassword } from "../oauth/user.ts";
import type { CommandContext, Option, Values } from "./command.ts";
import { Failure } from "./failure.ts";

/** How a script hands a password over: `--password-stdin`. */
export const PASSWORD_OPTION: Option = {
  meaning: "read the password from standard input; one line break at its end is no part of it",
};

const TRIES = 3;

/** Where a password can come from. */
type Source = Pick<CommandContext, "terminal"> & { readonly values: Pick<Values, "flag"> };

/** A password: typed at a terminal, from standard input, or generated. Throws Failure. */
export async function obtainPassword(source: Source, username: string): Promise<string> {
  const { terminal } = source;
  if (isGenerated(source)) return newPassword();
  if (!terminal.canAsk) return (await terminal.readStdin()).replace(/\r?\n$/, "");
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

/** Whether nobody gives a password, so that one is generated and must be shown once. */
export function isGenerated({ terminal, values }: Source): boolean {
  return !terminal.canAsk && !values.flag("password-stdin");
}
