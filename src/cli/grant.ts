import { GRANT_FILTERS } from "../api/backend/grant.ts";
import type { Command, CommandContext } from "./command.ts";
import { UsageError } from "./failure.ts";
import { givenMembers, itemPath, listCommand, type Resource } from "./resource.ts";
import { findUserId } from "./user.ts";

const GRANT: Resource = {
  noun: "grant",
  argument: {
    name: "ID",
    meaning: "its id, as grant list shows it",
    example: "g0mhc…",
    isOptional: true,
  },
  columns: ["id", "user", "app", "type", "status", "scopes*", "created_at", "expires_at"],
};
const WORDS = {
  user: { value: "NAME", meaning: "the user's name or id", find: findUserId },
  app: {
    value: "CLIENT_ID",
    meaning: "the app's client_id, or login or personal for tokens of that kind",
  },
};
const FILTERS = givenMembers(GRANT_FILTERS, WORDS);

export const GRANT_COMMANDS: readonly Command[] = [
  listCommand(GRANT, "List grants, newest first", {
    details: [
      "A grant is one authorization; its access tokens and its chain of refresh tokens come " +
        "from it. It is listed until its last token has expired. USER is - for an app that acts " +
        "for itself.",
    ],
    examples: ["gatepost grant list", "gatepost grant list --user alice --app a0mhc…"],
    query: GRANT_FILTERS,
    members: WORDS,
  }),
  {
    words: ["grant", "revoke"],
    purpose: "Revoke a grant, or every grant of a user or an app",
    arguments: [GRANT.argument],
    options: FILTERS.options,
    details: [
      "Their tokens and subscriptions end too; a running server refuses the tokens within a " +
        "second. With --user and --app, only the grants of this user to this app are revoked. " +
        "The user or app can get new tokens; user disable and app disable prevent that.",
    ],
    confirm(values) {
      const who = [values.text("user"), values.text("app")].filter((each) => each !== undefined);
      return who.length > 0 ? `Revoke every grant of ${who.join(" and ")}?` : undefined;
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
    ? "The grants have been revoked, with all their tokens."
    : `Grant ${id} has been revoked, with all its tokens.`
  );
}
