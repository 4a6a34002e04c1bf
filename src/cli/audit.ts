import { ANONYMOUS, AUDIT_LIST, CLI_ACTOR } from "../store/audit.ts";
import type { Command } from "./command.ts";
import { listCommand } from "./resource.ts";
import { findPrincipalId } from "./user.ts";

const AUDIT = { noun: "audit", columns: ["time", "actor", "app", "action", "target", "address"] };

export const AUDIT_COMMANDS: readonly Command[] = [
  listCommand(AUDIT, "List changes, logins and failures, newest first", {
    details: [
      "Who did what to whom, and from which address. Entries are kept for 90 days and hold no " +
        "secret; a name that nobody has is recorded as unknown, not as it was typed.",
    ],
    examples: [
      "gatepost audit list",
      "gatepost audit list --actor alice --since 2030-01-31T12:00:00Z",
      "gatepost audit list --action user.login_failed --json",
    ],
    query: AUDIT_LIST.filters,
    members: {
      actor: {
        value: "WHO",
        meaning: "only what they did: a user's name or id, a client_id, " +
          `${CLI_ACTOR} for this command line, ${ANONYMOUS}`,
        // The audit records users by their ids, also users who no longer exist.
        find: (context, given) =>
          [CLI_ACTOR, ANONYMOUS].includes(given) ? given : findPrincipalId(context, given),
      },
      target: { value: "ID", meaning: "only what was done to this user, app, grant, key …" },
    },
  }),
];
