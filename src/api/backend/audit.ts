import { recordOf } from "../../base/fields.ts";
import { idTimeMs } from "../../base/id.ts";
import { named, record } from "../../base/shape.ts";
import type { Services } from "../../services.ts";
import { AUDIT_LIST, type AuditEntry, AuditRecord } from "../../store/audit.ts";
import { backend, type Operation } from "../operation.ts";
import { listing, pageMembers } from "../pagination.ts";

/** GET /backend/audit: who did what to whom. */
export function auditOperation({ heavy }: Pick<Services, "heavy">): Operation {
  return backend("GET", "/backend/audit", "listAudit", "List changes, logins and failures", {
    ...listing(heavy, AUDIT_LIST, AuditRecord, toAuditRecord),
    returns: named("AuditPage", record(pageMembers(AuditRecord))),
  });
}

const toRecord = recordOf(AuditRecord);

/** Converts an audit entry to the record that the backend shows. */
export function toAuditRecord(entry: AuditEntry) {
  return toRecord({ ...entry, timeMs: idTimeMs(entry.id) });
}
