import { recordOf } from "../../base/fields.ts";
import { idOf, idTimeMs } from "../../base/id.ts";
import { described, named, nullable, record, TEXT } from "../../base/shape.ts";
import { TIME } from "../../base/time.ts";
import type { Services } from "../../services.ts";
import { AUDIT_LIST, type AuditEntry } from "../../store/audit.ts";
import { backend, type Operation } from "../operation.ts";
import { listing, pageMembers } from "../pagination.ts";
import { APP } from "./grant.ts";

export const AuditRecord = named("AuditEntry", record({
  id: idOf("t"),
  time: TIME,
  actor: TEXT,
  action: TEXT,
  target: TEXT,
  address: nullable(TEXT),
  app: described("The app that acted for the actor, where one did.", nullable(APP)),
}));

/** GET /backend/audit: who did what to whom. */
export function auditOperation({ heavy }: Pick<Services, "heavy">): Operation {
  return backend("GET", "/backend/audit", "listAudit", "List changes, logins and failures", {
    ...listing(heavy, AUDIT_LIST, AuditRecord.members.id, AuditRecord, toAuditRecord),
    returns: named("AuditPage", record(pageMembers(AuditRecord))),
  });
}

const toRecord = recordOf(AuditRecord);

/** An entry as the backend shows it. */
export function toAuditRecord(entry: AuditEntry) {
  return toRecord({ ...entry, timeMs: idTimeMs(entry.id) });
}
