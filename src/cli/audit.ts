import { isId } from "../base/id.ts";
import { ANONYMOUS } from "../store/audit.ts";
import { type Backend, CLI_ACTOR } from "./backend.ts";
import type { Command } from "./command.ts";
import { column, LIST_OPTIONS, printList } from "./listing.ts";
import { findUserId } from "./user.ts";

/** The commands of `gatepost audit`. */
export const AUDIT_COMMANDS: readonly Command[] = [
  {
    words: ["audit", "list"],
    purpose: "List changes, logins and failures, newest first",
    arguments: [],
    options: {
      actor: {
        value: "WHO",
        meaning: "only what they did: a user's name or id, a client_id, " +
          `${CLI_ACTOR} for this command line, ${ANONYMOUS}`,
      },
      action: { value: "ACTION", meaning: "only this, such as user.login_failed or app.create" },
      target: { value: "ID", meaning: "only what was done to this user, app, grant, key …" },
      since: { value: "TIME", meaning: "only from then on" },
      until: { value: "TIME", meaning: "only before then" },
      ...LIST_OPTIONS,
    },
    details: [
      "Who did what to whom, and from which address. Entries are kept for 90 days and hold no " +
        "secret; a name that nobody has is recorded as unknown, not as it was typed.",
    ],
    examples: [
      "gatepost audit list",
      "gatepost audit list --actor alice --since 2030-01-31T12:00:00Z",
      "gatepost audit list --action user.login_failed --json",
    ],
    async run(context) {
      const { values } = context;
      const actor = values.text("actor");
      const filters = {
        actor: actor === undefined ? undefined : await findActor(actor, context.openBackend),
        action: values.text("action"),
        target: values.text("target"),
        since: values.text("since"),
        until: values.text("until"),
      };
      await printList(context, "/backend/audit", filters, [
        column("TIME", "time"),
        column("ACTOR", "actor"),
        column("ACTION", "action"),
        column("TARGET", "target"),
        column("ADDRESS", "address"),
      ]);
    },
  },
];

/** The audit knows users by their ids, also those who are gone. Throws Problem 404. */
async function findActor(actor: string, openBackend: () => Promise<Backend>): Promise<string> {
  const isKnownForm = [CLI_ACTOR, ANONYMOUS].includes(actor) || isId("u", actor) ||
    isId("a", actor);
  return isKnownForm ? actor : findUserId(await openBackend(), actor);
}
