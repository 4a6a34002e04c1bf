import type { Command, CommandContext, Option } from "./command.ts";
import { UsageError } from "./failure.ts";
import { column, itemPath, LIST_OPTIONS, printList } from "./listing.ts";
import { findUserId } from "./user.ts";

const RESOURCE = "/backend/grant";
const USER: Option = { value: "NAME", meaning: "the user's name or id" };
const APP: Option = {
  value: "CLIENT_ID",
  meaning: "the app's client_id; login for tokens of the login endpoint",
};

/** The commands of `gatepost grant`. */
export const GRANT_COMMANDS: readonly Command[] = [
  {
    words: ["grant", "list"],
    purpose: "List what has been authorized, newest first",
    arguments: [],
    options: { user: USER, app: APP, ...LIST_OPTIONS },
    details: [
      "A grant is one authorization, from which access tokens and a chain of refresh tokens " +
        "come. It is listed until the last token of it has expired; USER is empty for an app that acts " +
        "for itself.",
    ],
    examples: [
      "gatepost grant list",
      "gatepost grant list --user alice --app a0mhc…",
    ],
    async run(context) {
      const { values } = context;
      const filters = { user: await readUser(context), app: values.text("app") };
      await printList(context, RESOURCE, filters, [
        column("ID", "id"),
        column("USER", "user"),
        column("APP", "app"),
        column("TYPE", "type"),
        column("STATUS", "status"),
        column("SCOPES", "scopes", true),
        column("CREATED", "created_at"),
        column("EXPIRES", "expires_at"),
      ]);
    },
  },
  {
    words: ["grant", "revoke"],
    purpose: "End a grant, or every grant of a user or an app",
    arguments: [
      { name: "ID", meaning: "one grant, as grant list shows it", isOptional: true },
    ],
    options: { user: USER, app: APP },
    details: [
      "Every token that came from them ends too. With --user and --app, the grants that this " +
        "user gave to this app. A running server refuses the tokens within a second. Who they " +
        "belonged to may log in again: see user disable, app disable.",
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
  const answer = isMany
    ? await backend.call("POST", `${RESOURCE}/revoke`, JSON.stringify({ user, app }))
    : await backend.call("DELETE", itemPath(RESOURCE, id));
  context.print(answer, () =>
    isMany
      ? "The grants have ended, and every token that came from them."
      : `Grant ${id} has ended, and every token that came from it.`
  );
}

/** The id of the user that --user names; undefined without it. Throws Problem 404. */
async function readUser(context: CommandContext): Promise<string | undefined> {
  const name = context.values.text("user");
  return name === undefined ? undefined : findUserId(await context.openBackend(), name);
}
