import type { Command } from "./command.ts";
import { UsageError } from "./failure.ts";
import { findUserId } from "./user.ts";

/** The commands of `gatepost grant`. */
export const GRANT_COMMANDS: readonly Command[] = [
  {
    words: ["grant", "revoke"],
    purpose: "End every grant of a user or an app",
    arguments: [],
    options: {
      user: { value: "NAME", meaning: "the user's name or id" },
      app: {
        value: "CLIENT_ID",
        meaning: "the app's client_id; login for tokens of the login endpoint",
      },
    },
    details: [
      "Every token that came from them ends too. With both, the grants that this user gave to " +
        "this app. A running server refuses the tokens within a second. Who they belonged to may " +
        "log in again: see user disable, app disable.",
    ],
    examples: [
      "gatepost grant revoke --user alice",
      "gatepost grant revoke --app a0mhc…",
      "gatepost grant revoke --user alice --app a0mhc…",
    ],
    async run(context) {
      const { values } = context;
      const [user, app] = [values.text("user"), values.text("app")];
      if (user === undefined && app === undefined) {
        throw new UsageError("grant revoke needs --user NAME or --app CLIENT_ID");
      }
      const backend = await context.openBackend();
      const body = {
        user: user === undefined ? undefined : await findUserId(backend, user),
        app,
      };
      const answer = await backend.call("POST", "/backend/grant/revoke", JSON.stringify(body));
      context.print(answer, () => "The grants have ended, and every token that came from them.");
    },
  },
];
