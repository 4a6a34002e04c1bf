import { isId } from "../base/id.ts";
import { parseShape, record } from "../base/shape.ts";
import { Problem } from "../base/problem.ts";
import { BACKEND_SCOPE, CONSUMER_SCOPE } from "../oauth/principal.ts";
import { NewUser } from "../oauth/user.ts";
import { findUser, findUserByName } from "../store/users.ts";
import type { Backend } from "./backend.ts";
import type { Command, CommandContext } from "./command.ts";
import { UsageError } from "./failure.ts";
import { type GivenPassword, obtainPassword, PASSWORD_OPTION, printBeside } from "./password.ts";
import {
  itemPath,
  listCommand,
  type Resource,
  sendCommand,
  showCommand,
  showDone,
  splitNames,
} from "./resource.ts";
import { formatValue, type Members, visible } from "./table.ts";

const USER: Resource = {
  noun: "user",
  path: "/backend/user",
  argument: { name: "NAME", meaning: "the user's name or id" },
  find: async (context, given) => findUserId(await context.openBackend(), given),
  columns: ["username*=name", "id", "status", "scopes*", "created_at"],
  shown: ["id", "scopes", "status", "password"],
};
const SCOPE = { value: '"A B"', isRepeatable: true } as const;

/** The commands of `gatepost user`. */
export const USER_COMMANDS: readonly Command[] = [
  {
    words: ["user", "add"],
    purpose: "Add a user who can log in",
    arguments: [{ name: "NAME", meaning: "1 to 64 of A-Z a-z 0-9 . _ @ + -" }],
    options: {
      "password-stdin": PASSWORD_OPTION,
      scope: { ...SCOPE, meaning: "what the user may do", default: CONSUMER_SCOPE },
      admin: { meaning: `scopes ${BACKEND_SCOPE} and ${CONSUMER_SCOPE}, beside those given` },
    },
    details: [
      "Without --password-stdin the password is asked for, hidden and twice. Where standard " +
        "input is no terminal one is generated and shown once, with --json on standard error.",
    ],
    examples: [
      "gatepost user add alice",
      'gatepost user add bob --scope "consumer orders"',
      "printf %s \"$PASSWORD\" | gatepost user add ops --admin --password-stdin",
    ],
    run: addUser,
  },
  listCommand(USER, {
    purpose: "List users, newest first",
    examples: ["gatepost user list", "gatepost user list --limit 200 --json"],
  }),
  showCommand(USER, { purpose: "Show a user", examples: ["gatepost user show alice"] }),
  {
    words: ["user", "set"],
    purpose: "Change a user's password, scopes or status",
    arguments: [USER.argument],
    options: {
      password: { meaning: "ask for a new password; generate one where there is no terminal" },
      "password-stdin": PASSWORD_OPTION,
      scope: { ...SCOPE, meaning: "all that the user may do from now on" },
      status: { value: "STATUS", meaning: "active or disabled" },
    },
    details: [
      "A new password ends the user's browser sessions, login tokens and grants; a scope that " +
        "is removed revokes the grants that carry it. A running server follows within a second.",
    ],
    examples: [
      "gatepost user set alice --password",
      'gatepost user set alice --scope "consumer backend"',
      "gatepost user set alice --status active",
    ],
    run: setUser,
  },
  sendCommand(USER, {
    verb: "disable",
    purpose: "Shut a user out",
    details: [
      "The user's browser sessions, tokens and grants are revoked, and their subscriptions " +
        "disabled; a running server follows within a second. `user set NAME --status active` " +
        "lets the user log in again; what was revoked stays so.",
    ],
    examples: ["gatepost user disable alice"],
  }, {
    method: "PATCH",
    fixed: { status: "disabled" },
    done: (_given, user) => `User ${nameOf(user)} has been disabled.`,
  }),
  sendCommand(USER, {
    verb: "delete",
    purpose: "Remove a user for good",
    details: ["`user disable` shuts a user out as well, and can be undone."],
    examples: ["gatepost user delete alice"],
    confirm: (given) => `Remove user ${given} for good?`,
  }, { method: "DELETE", done: (given) => `User ${visible(given)} has been removed.` }),
];

/** The id of the user with this id or name; throws Problem 404. */
export async function findUserId(backend: Backend, nameOrId: string): Promise<string> {
  // An id first: a user might be named like another's id.
  const known = isId("u", nameOrId) ? await findUser(backend.database, nameOrId) : undefined;
  const user = known ?? await findUserByName(backend.database, nameOrId);
  if (user === undefined) throw new Problem(404, "not_found", "There is no such user.");
  return user.id;
}

async function addUser(context: CommandContext): Promise<void> {
  const { values, terminal } = context;
  const username = values.argument("NAME");
  const named = splitNames(values.list("scope"));
  const scopes = values.flag("admin")
    ? [...new Set([BACKEND_SCOPE, CONSUMER_SCOPE, ...named ?? []])]
    : named; // undefined leaves them to the backend's default
  const backend = await context.openBackend();
  if (terminal.canAsk) await checkName(backend, username);
  const given = await obtainPassword(terminal, values.flag("password-stdin") ?? false, username);
  const body = JSON.stringify({ username, password: given.password, scopes });
  const response = await backend.call("POST", USER.path, body);
  context.print(response, (user) => showUser(user, "added", given));
  printBeside(context, given);
}

/** Nobody should type a password twice for a name that is refused then. Throws Problem. */
async function checkName(backend: Backend, username: string): Promise<void> {
  parseShape(record({ username: NewUser.members.username }), { username }, "user");
  if (await findUserByName(backend.database, username)) {
    throw new Problem(409, "conflict", "The user name is taken.");
  }
}

async function setUser(context: CommandContext): Promise<void> {
  const { values, terminal } = context;
  const fromStdin = values.flag("password-stdin") ?? false;
  const scopes = splitNames(values.list("scope"));
  const status = values.text("status");
  const isPassword = fromStdin || values.flag("password") === true;
  if (!isPassword && scopes === undefined && status === undefined) {
    throw new UsageError("user set needs --password, --password-stdin, --scope or --status");
  }
  const name = values.argument("NAME");
  const given = isPassword ? await obtainPassword(terminal, fromStdin, name) : undefined;
  const path = await itemPath(USER, context);
  const body = JSON.stringify({ password: given?.password, scopes, status });
  const response = await (await context.openBackend()).call("PATCH", path, body);
  context.print(response, (user) =>
    showUser(user, status === "disabled" ? "disabled" : "changed", given)
  );
  if (given) printBeside(context, given);
}

function showUser(user: Members, done: string, given: GivenPassword | undefined): string {
  const once = given?.isGenerated ? " The password is shown here only." : "";
  const shown = given?.isGenerated ? { ...user, password: given.password } : user;
  return showDone(USER, `User ${nameOf(user)} has been ${done}.${once}`, shown);
}

function nameOf(user: Members): string {
  return visible(formatValue(user["username"]));
}
