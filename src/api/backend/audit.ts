import type { Check } from "../../base/fields.ts";
import { idTimeMs } from "../../base/id.ts";
import { type AuditEntry, listAudit } from "../../store/audit.ts";
import type { Database } from "../../database/database.ts";
import { checkTime, listResponse, readFilteredPagination } from "../pagination.ts";
import type { ProtectedRoute } from "../route.ts";
import { BACKEND_ROUTE } from "./backend_route.ts";

/** Characters of what entries are looked for by. */
export const MAX_FILTER_LENGTH = 200;

const checkText: Check = (text) =>
  text.length <= MAX_FILTER_LENGTH
    ? undefined
    : `Must be at most ${MAX_FILTER_LENGTH} characters.`;

/** GET /backend/audit: who did what to whom. */
export function auditRoute({ database }: { readonly database: Database }): ProtectedRoute {
  const filters = {
    actor: checkText,
    action: checkText,
    target: checkText,
    since: checkTime,
    until: checkTime,
  };
  return {
    ...BACKEND_ROUTE,
    path: "/backend/audit",
    method: "GET",
    summary: "List changes, logins and failures",
    async handle({ request }) {
      const { page, filter: { actor, action, target, since, until } } =
        readFilteredPagination(request, filters);
      const filter = { actor, action, target, sinceMs: toMs(since), untilMs: toMs(until) };
      return listResponse(await listAudit(database, filter, page), toRecord);
    },
  };
}

function toMs(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}

function toRecord({ id, ...entry }: AuditEntry): Record<string, unknown> {
  return { id, time: new Date(idTimeMs(id)).toISOString(), ...entry };
}
