import { isId } from "../base/id.ts";
import { checkErrors, Problem } from "../base/problem.ts";
import { BACKEND_SCOPE, CONSUMER_SCOPE } from "../oauth/principal.ts";
import { checkUsername } from "../oauth/user.ts";
import { findUserByName } from "../store/users.ts";
import type { Backend } from "./backend.ts";
import type { Argument, Command, CommandContext } from "./command.ts";
import { UsageError } from "./failure.ts";
import { column, itemPath, LIST_OPTIONS, printList, printOne, splitNames } from "./listing.ts";
import { type GivenPassword, obtainPassword, PASSWORD_OPTION, tellBeside } from "./password.ts";
import { formatPairs, formatValue, type Members, visible } from "./table.ts";

const RESOURCE = "/backend/user";
const NAME: Argument = { name: "NAME", meaning: "the user's name or id" };

/** The commands of `gatepost user`. */
export const USER_COMMANDS: readonly Command[] = [
  {
    words: ["user", "add"],
    purpose: "Add a user who can log in",
    arguments: [{ name: "NAME", meaning: "1 to 64 of A-Z a-z 0-9 . _ @ + -" }],
    options: {
      "password-stdin": PASSWORD_OPTION,
      scope: {
        value: '"A B"',
        meaning: "what the user may do",
        default: CONSUMER_SCOPE,
        isRepeatable: true,
      },
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
  {
    words: ["user", "list"],
    purpose: "List users, newest first",
    arguments: [],
    options: LIST_OPTIONS,
    details: [],
    examples: ["gatepost user list", "gatepost user list --limit 200 --json"],
    run: (context) =>
      printList(context, RESOURCE, {}, [
        column("NAME", "username", true),
        column("ID", "id"),
        column("STATUS", "status"),
        column("SCOPES", "scopes", true),
        column("CREATED", "created_at"),
      ]),
  },
  {
    words: ["user", "show"],
    purpose: "Show a user",
    arguments: [NAME],
    options: {},
    details: [],
    examples: ["gatepost user show alice"],
    async run(context) {
      const id = await findUserId(await context.openBackend(), context.values.argument("NAME"));
      await printOne(context, itemPath(RESOURCE, id));
    },
  },
  {
    words: ["user", "set"],
    purpose: "Change a user's password, scopes or status",
    arguments: [NAME],
    options: {
      password: { meaning: "ask for a new password; generate one where there is no terminal" },
      "password-stdin": PASSWORD_OPTION,
      scope: {
        value: '"A B"',
        meaning: "all that the user may do from now on",
        isRepeatable: true,
      },
      status: { value: "STATUS", meaning: "active or disabled" },
    },
    details: [
      "A new password ends the user's browser sessions, login tokens and grants; a scope that " +
        "is taken away ends the grants that carry it. A running server obeys within a second.",
    ],
    examples: [
      "gatepost user set alice --password",
      'gatepost user set alice --scope "consumer backend"',
      "gatepost user set alice --status active",
    ],
    run: setUser,
  },
  {
    words: ["user", "disable"],
    purpose: "Shut a user out",
    arguments: [NAME],
    options: {},
    details: [
      "The user's browser sessions, tokens and grants end, and their subscriptions are disabled; " +
        "a running server obeys within a second. `user set NAME --status active` lets the user " +
        "log in again; what has ended stays ended.",
    ],
    examples: ["gatepost user disable alice"],
    run: (context) => changeUser(context, { status: "disabled" }),
  },
  {
    words: ["user", "delete"],
    purpose: "Remove a user for good",
    arguments: [NAME],
    options: {},
    confirm: (values) => `Remove user ${values.argument("NAME")} for good?`,
    details: ["`user disable` shuts a user out as well, and can be undone."],
    examples: ["gatepost user delete alice"],
    async run(context) {
      const backend = await context.openBackend();
      const id = await findUserId(backend, context.values.argument("NAME"));
      const answer = await backend.call("DELETE", itemPath(RESOURCE, id));
      context.print(answer, () => `User ${id} has been removed.`);
    },
  },
];

/** The id of the user with this id or name; throws Problem 404. */
export async function findUserId(backend: Backend, nameOrId: string): Promise<string> {
  // An id first: a user might be named like another's id.
  if (isId("u", nameOrId)) {
    const known = await backend.call("GET", itemPath(RESOURCE, nameOrId)).catch(undefinedFor404);
    if (known !== undefined) return nameOrId;
  }
  const user = await findUserByName(backend.database, nameOrId);
  if (user === undefined) throw new Problem(404, "not_found", "There is no such user.");
  return user.id;
}

function undefinedFor404(error: unknown): undefined {
  if (error instanceof Problem && error.status === 404) return undefined;
  throw error;
}

async function addUser(context: CommandContext): Promise<void> {
  const { values, terminal } = context;
  const username = values.argument("NAME");
  const scopes = readScopes(values.list("scope"), values.flag("admin") ?? false);
  const backend = await context.openBackend();
  if (terminal.canAsk) await checkName(backend, username);
  const fromStdin = values.flag("password-stdin") ?? false;
  const given = await obtainPassword(terminal, fromStdin, username);
  const body = { username, password: given.password, ...scopes && { scopes } };
  const answer = await backend.call("POST", RESOURCE, JSON.stringify(body));
  context.print(answer, (user) =>
    `User ${username} has been added.${onceNote(given)}\n\n${showUser(user, given)}`
  );
  tellBeside(context, given);
}

/** Nobody should type a password twice for a name that cannot be had. Throws Problem. */
async function checkName(backend: Backend, username: string): Promise<void> {
  const wrong = checkUsername(username);
  checkErrors(wrong === undefined ? [] : [{ pointer: "/username", detail: wrong }], "user");
  if (await findUserByName(backend.database, username)) {
    throw new Problem(409, "conflict", "The user name is taken.");
  }
}

async function setUser(context: CommandContext): Promise<void> {
  const { values, terminal } = context;
  const nameOrId = values.argument("NAME");
  const fromStdin = values.flag("password-stdin") ?? false;
  const scopes = splitNames(values.list("scope"));
  const status = values.text("status");
  const isPassword = fromStdin || values.flag("password") === true;
  if (!isPassword && scopes === undefined && status === undefined) {
    throw new UsageError("user set needs --password, --password-stdin, --scope or --status");
  }
  const given = isPassword ? await obtainPassword(terminal, fromStdin, nameOrId) : undefined;
  await changeUser(context, {
    ...given && { password: given.password },
    ...scopes && { scopes },
    ...status && { status },
  }, given);
}

async function changeUser(
  context: CommandContext,
  change: Members,
  given?: GivenPassword,
): Promise<void> {
  const backend = await context.openBackend();
  const id = await findUserId(backend, context.values.argument("NAME"));
  const answer = await backend.call("PATCH", itemPath(RESOURCE, id), JSON.stringify(change));
  context.print(answer, (user) => {
    const what = change["status"] === "disabled" ? "disabled" : "changed";
    const name = visible(formatValue(user["username"]));
    return `User ${name} has been ${what}.${onceNote(given)}\n\n${showUser(user, given)}`;
  });
  if (given) tellBeside(context, given);
}

/** The scopes to send; undefined leaves them to the backend's default. */
function readScopes(
  given: readonly string[] | undefined,
  isAdmin: boolean,
): readonly string[] | undefined {
  const named = splitNames(given);
  if (!isAdmin) return named;
  return [...new Set([BACKEND_SCOPE, CONSUMER_SCOPE, ...named ?? []])];
}

function onceNote(given: GivenPassword | undefined): string {
  return given?.isGenerated ? " The password is shown here only." : "";
}

function showUser(user: Members, given?: GivenPassword): string {
  return formatPairs([
    ["id", user["id"]],
    ["scopes", user["scopes"]],
    ["status", user["status"]],
    ...given?.isGenerated ? [["password", given.password] as const] : [],
  ]);
}
