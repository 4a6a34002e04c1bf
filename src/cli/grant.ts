import { GRANT_FILTERS } from "../api/backend/grant.ts";
import type { Command, CommandContext } from "./command.ts";
import { UsageError } from "./failure.ts";
import { givenMembers, itemPath, listCommand, type Resource } from "./resource.ts";
import { findUserId } from "./user.ts";

const GRANT: Resource = {
  noun: "grant",
  argument: {
    name: "ID",
    meaning: "one grant, as grant list shows it",
    example: "g0mhc…",
    isOptional: true,
  },
  columns: ["id", "user", "app", "type", "status", "scopes*", "created_at", "expires_at"],
};
const WORDS = {
  user: { value: "NAME", meaning: "the user's name or id", find: findUserId },
  app: {
    value: "CLIENT_ID",
    meaning: "the app's client_id; login or personal for tokens that users make",
  },
};
const FILTERS = givenMembers(GRANT_FILTERS, WORDS);

export const GRANT_COMMANDS: readonly Command[] = [
  listCommand(GRANT, "List what has been authorized, newest first", {
    details: [
      "A grant is one authorization, from which access tokens and a chain of refresh tokens " +
        "come. It is listed until the last token of it has expired; USER is empty for an app " +
        "that acts for itself.",
    ],
    examples: ["gatepost grant list", "gatepost grant list --user alice --app a0mhc…"],
    query: GRANT_FILTERS,
    members: WORDS,
  }),
  {
    words: ["grant", "revoke"],
    purpose: "End a grant, or every grant of a user or an app",
    arguments: [GRANT.argument],
    options: FILTERS.options,
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
  const isMany = values.text("user") !== undefined || values.text("app") !== undefined;
  if (isMany === (id !== "")) {
    throw new UsageError("grant revoke needs either ID, or --user NAME or --app CLIENT_ID");
  }
  const response = isMany
    ? await context.call("POST", "/backend/grant/revoke", await FILTERS.read(context))
    : await context.call("DELETE", await itemPath(GRANT, context));
  context.print(response, () => isMany
    ? "The grants have ended, and every token that came from them."
    : `Grant ${id} has ended, and every token that came from it.`
  );
}
