import { ANONYMOUS, AUDIT_LIST, CLI_ACTOR } from "../store/audit.ts";
import type { Command } from "./command.ts";
import { listCommand } from "./resource.ts";
import { findPrincipalId } from "./user.ts";

const AUDIT = { noun: "audit", columns: ["time", "actor", "app", "action", "target", "address"] };

export const AUDIT_COMMANDS: readonly Command[] = [
  listCommand(AUDIT, "List changes, logins and failures, newest first", {
    details: [
      "Each entry has the actor, the action, its target and the client's address, and no " +
        "secret. It is kept for 90 days. A name that no user has is recorded as unknown.",
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
        meaning: "only actions of this actor: a user's name or id, a client_id, " +
          `${CLI_ACTOR} for this command line, ${ANONYMOUS}`,
        // The audit records users by their ids, also users who no longer exist.
        find: (context, given) =>
          [CLI_ACTOR, ANONYMOUS].includes(given) ? given : findPrincipalId(context, given),
      },
      target: { value: "ID", meaning: "only actions on this user, app, grant, key …" },
    },
  }),
];
