import { GRANT_QUERY } from "../api/backend/grant.ts";
import type { Command, CommandContext, Option } from "./command.ts";
import { UsageError } from "./failure.ts";
import { itemPath, listCommand, type Resource } from "./resource.ts";
import { findUserId } from "./user.ts";

const GRANT: Resource = {
  noun: "grant",
  path: "/backend/grant",
  argument: { name: "ID", meaning: "one grant, as grant list shows it", isOptional: true },
  columns: ["id", "user", "app", "type", "status", "scopes*", "created_at", "expires_at"],
  shown: [],
};
const USER: Option = { value: "NAME", meaning: "the user's name or id" };
const APP: Option = {
  value: "CLIENT_ID",
  meaning: "the app's client_id; login for tokens of the login endpoint",
};

/** The commands of `gatepost grant`. */
export const GRANT_COMMANDS: readonly Command[] = [
  listCommand(GRANT, {
    purpose: "List what has been authorized, newest first",
    details: [
      "A grant is one authorization, from which access tokens and a chain of refresh tokens " +
        "come. It is listed until the last token of it has expired; USER is empty for an app " +
        "that acts for itself.",
    ],
    examples: ["gatepost grant list", "gatepost grant list --user alice --app a0mhc…"],
  }, GRANT_QUERY, { user: { ...USER, read: (_values, context) => readUser(context) }, app: APP }),
  {
    words: ["grant", "revoke"],
    purpose: "End a grant, or every grant of a user or an app",
    arguments: [GRANT.argument],
    options: { user: USER, app: APP },
    details: [
      "Every token and subscription that came from them ends too. With --user and --app, the " +
        "grants that this user gave to this app. A running server refuses the tokens within a " +
        "second. Who they belonged to may log in again: see user disable, app disable.",
    ],
    confirm(values) {
      const who = [values.text("user"), values.text("app")].filter((each) => each !== undefined);
      return who.length > 0 ? `End every grant of ${who.join(" and ")}?` : undefined;
    },
    examples: [
      "gatepost grant revoke --user alice",
      "gatepost grant revoke --app a0mhc…",
      "gatepost grant revoke --user alice --app a0mhc…",
      "gatepost grant revoke g0mhc…",
    ],
    run: revoke,
  },
];

async function revoke(context: CommandContext): Promise<void> {
  const { values } = context;
  const id = values.argument("ID");
  const app = values.text("app");
  const isMany = values.text("user") !== undefined || app !== undefined;
  if (isMany === (id !== "")) {
    throw new UsageError("grant revoke needs either ID, or --user NAME or --app CLIENT_ID");
  }
  const user = await readUser(context);
  const backend = await context.openBackend();
  const response = isMany
    ? await backend.call("POST", `${GRANT.path}/revoke`, JSON.stringify({ user, app }))
    : await backend.call("DELETE", await itemPath(GRANT, context));
  context.print(response, () => isMany
    ? "The grants have ended, and every token that came from them."
    : `Grant ${id} has ended, and every token that came from it.`
  );
}

/** The id of the user that --user names; undefined without it. Throws Problem 404. */
async function readUser(context: CommandContext): Promise<string | undefined> {
  const name = context.values.text("user");
  return name === undefined ? undefined : findUserId(await context.openBackend(), name);
}
