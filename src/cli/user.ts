import { found } from "../api/administration.ts";
import { isId } from "../base/id.ts";
import type { Members } from "../base/plain_object.ts";
import { conflict } from "../base/problem.ts";
import { newPassword } from "../base/secret.ts";
import { parseShape, record } from "../base/shape.ts";
import { BACKEND_SCOPE, CONSUMER_SCOPE } from "../oauth/principal.ts";
import { checkPassword, NewUser, UserChange } from "../oauth/user.ts";
import { findUser, findUserByName, USER_LIST } from "../store/users.ts";
import type { Command, CommandContext, Option, Values } from "./command.ts";
import { Failure } from "./failure.ts";
import { listCommand, type Resource, sendCommand, showCommand, splitNames } from "./resource.ts";

const USER: Resource = {
  noun: "user",
  argument: { name: "NAME", meaning: "the user's name or id", example: "alice" },
  find: findUserId,
  label: "username",
  columns: ["username*=name", "id", "status", "scopes*", "created_at"],
  shown: ["*"],
};
const SESSION = { ...USER, columns: ["id", "created_at", "seen_at", "address", "agent*"] };

/** The option `--password-stdin`, by which a script passes a password. */
const PASSWORD_OPTION: Option = {
  meaning: "read the password from standard input; one line break at its end is removed",
};
const TRIES = 3;

export const USER_COMMANDS: readonly Command[] = [
  sendCommand(USER, "add", "Add a user who can log in", {
    details: [
      "Without --password-stdin, the password is asked for twice and hidden. If standard input " +
        "is no terminal, one is generated and shown once, with --json on standard error.",
    ],
    examples: [
      "gatepost user add alice",
      'gatepost user add bob --scope "consumer orders"',
      "printf %s \"$PASSWORD\" | gatepost user add ops --admin --password-stdin",
    ],
    body: NewUser,
    members: {
      username: { argument: "NAME", meaning: "1 to 64 of A-Z a-z 0-9 . _ @ + -" },
      password: { flag: "password-stdin", ...PASSWORD_OPTION, read: readNewPassword },
      scopes: {
        meaning: "what the user may do",
        also: {
          admin: { meaning: `add the scopes ${BACKEND_SCOPE} and ${CONSUMER_SCOPE}` },
        },
        read: readScopes,
      },
    },
    made: generatedPassword,
  }),
  listCommand(USER, "List users, newest first", {
    query: USER_LIST.filters,
    examples: ["gatepost user list", "gatepost user list --limit 200 --json"],
  }),
  showCommand(USER, "Show a user"),
  listCommand(SESSION, "List a user's browser sessions", {
    item: { verb: "sessions", of: USER, below: "/session" },
  }),
  sendCommand(USER, "set", "Change a user's password, scopes, rate or status", {
    details: [
      "A new password ends the user's browser sessions, login tokens and grants. Removing a " +
        "scope revokes the grants with that scope. A running server follows within a second.",
    ],
    examples: [
      "gatepost user set alice --rate 100/1m",
      "gatepost user set alice --password",
      'gatepost user set alice --scope "consumer backend"',
      "gatepost user set alice --status active",
    ],
    body: UserChange,
    members: {
      password: {
        flag: "password",
        meaning: "ask for a new password, or generate one if there is no terminal",
        also: { "password-stdin": PASSWORD_OPTION },
        read: (values, context) =>
          values.flag("password") || values.flag("password-stdin")
            ? obtainPassword(context, values.argument("NAME"))
            : undefined,
      },
      scopes: { meaning: "all that the user may do; replaces the previous scopes" },
    },
    made: generatedPassword,
  }),
  sendCommand(USER, "disable", "Disable a user", {
    details: [
      "The user's browser sessions, tokens and grants are revoked, and their subscriptions " +
        "disabled; a running server follows within a second. `user set NAME --status active` " +
        "lets the user log in again; what was revoked stays revoked.",
    ],
  }),
  sendCommand(USER, "delete", "Delete a user permanently", {
    details: ["`user disable` also shuts the user out, and can be undone."],
  }),
];

/** Returns the id of the user with this id or name; throws Problem 404. */
export async function findUserId(context: CommandContext, nameOrId: string): Promise<string> {
  const { database } = await context.openBackend();
  // The id first, since a user's name may equal another user's id.
  const known = isId("u", nameOrId) ? await findUser(database, nameOrId) : undefined;
  return found(known ?? await findUserByName(database, nameOrId), "user").id;
}

/** Returns the id of any principal: a given id as it is, or the id of the user with a name. */
export function findPrincipalId(context: CommandContext, given: string): string | Promise<string> {
  return ["u", "a", "x"].some((kind) => isId(kind, given)) ? given : findUserId(context, given);
}

/** Checks the name first, before a person types a password twice. Throws Problem. */
async function readNewPassword(values: Values, context: CommandContext): Promise<string> {
  const username = values.argument("NAME");
  if (context.terminal.canAsk) {
    parseShape(record({ username: NewUser.members.username }), { username }, "user");
    const { database } = await context.openBackend();
    if (await findUserByName(database, username)) throw conflict("The user name is taken.");
  }
  return obtainPassword(context, username);
}

/** Returns the given scopes; undefined leaves the default to the backend. */
function readScopes(values: Values): readonly string[] | undefined {
  const named = splitNames(values.list("scope"));
  return values.flag("admin")
    ? [...new Set([BACKEND_SCOPE, CONSUMER_SCOPE, ...named ?? []])]
    : named;
}

/** The sources of a password. */
type PasswordSource = Pick<CommandContext, "terminal"> & { readonly values: Pick<Values, "flag"> };

/** Returns a password: typed at a terminal, read from stdin, or generated. Throws Failure. */
export async function obtainPassword(source: PasswordSource, username: string): Promise<string> {
  const { terminal } = source;
  if (isGenerated(source)) return newPassword();
  if (!terminal.canAsk) return (await terminal.readStdin()).replace(/\r?\n$/, "");
  return terminal.askHidden(async (ask) => {
    for (let tries = 0; tries < TRIES; tries++) {
      const password = await ask(`Password for ${username}: `);
      const wrong = checkPassword(password);
      if (wrong !== undefined) terminal.note(wrong);
      else if (await ask("Repeat the password: ") === password) return password;
      else terminal.note("The passwords differ.");
    }
    throw new Failure("No password was given; nothing was changed.");
  });
}

/** Whether the password is generated, because nobody gives one; it must then be shown once. */
function isGenerated({ terminal, values }: PasswordSource): boolean {
  return !terminal.canAsk && !values.flag("password-stdin");
}

function generatedPassword({ password }: Members, context: CommandContext): Members {
  return password !== undefined && isGenerated(context) ? { password } : {};
}
