import { idOf, idTimeMs } from "../../base/id.ts";
import {
  described,
  type Infer,
  named,
  nullable,
  optional,
  pick,
  record,
  TEXT,
  text,
} from "../../base/shape.ts";
import { TIME, TIME_MS, toTime } from "../../base/time.ts";
import type { Services } from "../../services.ts";
import { type AuditEntry, listAudit } from "../../store/audit.ts";
import { backend, type Operation } from "../operation.ts";
import { listResponse, pageOf, pagination, toPagination } from "../pagination.ts";
import { APP } from "./grant.ts";

const MAX_LENGTH = 200;

const WANTED = text(
  (value) => value.length <= MAX_LENGTH ? undefined : `Must be at most ${MAX_LENGTH} characters.`,
  { maxLength: MAX_LENGTH },
);

/** An entry as the backend shows it. */
const AuditRecord = named("AuditEntry", record({
  id: idOf("t"),
  time: TIME,
  actor: TEXT,
  action: TEXT,
  target: TEXT,
  address: nullable(TEXT),
  app: described("The app that acted for the actor, where one did.", nullable(APP)),
}));

/** Which entries a list has. */
export const AUDIT_QUERY = {
  ...pagination(AuditRecord.members.id),
  actor: optional(described("Who did it.", WANTED)),
  action: optional(described("What was done.", WANTED)),
  target: optional(described("To what.", WANTED)),
  since: optional(described("At that time or later.", TIME_MS)),
  until: optional(described("Before that time.", TIME_MS)),
} as const;

/** GET /backend/audit: who did what to whom. */
export function auditOperations({ heavy }: Pick<Services, "heavy">): Operation[] {
  return [
    backend("GET", "/backend/audit", "listAudit", "List changes, logins and failures", {
      query: AUDIT_QUERY,
      responses: { 200: pageOf(AuditRecord, "AuditPage") },
      async handle({ query: { since: sinceMs, until: untilMs, ...query } }) {
        const page = await listAudit(heavy, { ...query, sinceMs, untilMs }, toPagination(query));
        return listResponse(page, toAuditRecord);
      },
    }),
  ];
}

/** An entry as the backend shows it. */
export function toAuditRecord(entry: AuditEntry): Infer<typeof AuditRecord> {
  return pick(AuditRecord, { ...entry, time: toTime(idTimeMs(entry.id)) });
}
