import { newId } from "../base/id.ts";
import { type Database, type Page, pageOf, type PageRequest, sql, type Statement } from "./database.ts";

/** Who did what to whom; never a secret. Its time is its id's. */
export interface AuditEntry {
  readonly id: string;
  /** A user's or an app's id, a user name that failed to log in, or `cli`. */
  readonly actor: string;
  /** As in `app.create`. */
  readonly action: string;
  readonly target: string;
  /** The client's address, where there is one. */
  readonly address: string | null;
}

/** Records an action; goes into the batch of what it records, so that neither is without the other. */
export function insertAudit(entry: Omit<AuditEntry, "id">, nowMs: number): Statement {
  return sql(
    "INSERT INTO audit (id, actor, action, target, address) VALUES (?1, ?2, ?3, ?4, ?5)",
    newId("t", nowMs),
    entry.actor,
    entry.action,
    entry.target,
    entry.address,
  );
}

/** The record, newest first. */
export async function listAudit(database: Database, page: PageRequest): Promise<Page<AuditEntry>> {
  const rows = await database.query<AuditEntry>(
    `SELECT id, actor, action, target, address FROM audit
     WHERE id < ?1 ORDER BY id DESC LIMIT ?2`,
    [page.before, page.limit + 1],
  );
  return pageOf(rows, page);
}
