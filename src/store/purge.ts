import { type Database, sql, type Statement } from "./database.ts";

/** How much one batch of a purge removes at most, so that no other write waits for long. */
const BATCH = 500;

/** What is kept for how long, in milliseconds. */
export interface Retention {
  readonly eventsMs: number;
  readonly auditMs: number;
}

/** Removes what has had its time, in bounded batches, until nothing is left or it is told to stop. */
export async function purge(
  database: Database,
  retention: Retention,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const finished = nowMs - retention.eventsMs;
  const audited = nowMs - retention.auditMs;
  const batches: Statement[] = [
    endedBatch("grants", "id", "until", nowMs),
    endedBatch("codes", "id", "until", nowMs),
    endedBatch("sessions", "hash", "until", nowMs),
    endedBatch("revocations", "seq", "until", nowMs),
    sql(
      `DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries
         WHERE id < ?1 AND status <> 'pending' AND finished_at <= ?2 ORDER BY id LIMIT ${BATCH})`,
      idBefore("d", finished),
      finished,
    ),
    sql(
      `DELETE FROM events WHERE id IN (SELECT e.id FROM events e
         WHERE e.id < ?1 AND e.status = 'distributed'
           AND NOT EXISTS (SELECT 1 FROM deliveries d
             WHERE d.id BETWEEN 'd' || substr(e.id, 2) AND 'd' || substr(e.id, 2) || '~')
         ORDER BY e.id LIMIT ${BATCH})`,
      idBefore("e", finished),
    ),
    sql(
      `DELETE FROM subscriptions WHERE seq IN (SELECT s.seq FROM subscriptions s
         WHERE s.status = 'deleted'
           AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.subscription = s.seq)
         LIMIT ${BATCH})`,
    ),
    sql(
      `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ?1 ORDER BY id LIMIT ${BATCH})`,
      idBefore("t", audited),
    ),
  ];
  for (const batch of batches) {
    for (let changed = BATCH; changed === BATCH && !signal.aborted;) {
      [changed = 0] = await database.write([batch]);
    }
  }
}

function endedBatch(table: string, key: string, end: string, nowMs: number): Statement {
  return sql(
    `DELETE FROM ${table} WHERE ${key} IN
       (SELECT ${key} FROM ${table} WHERE ${end} <= ?1 ORDER BY ${end} LIMIT ${BATCH})`,
    nowMs,
  );
}

/** Sorts after every id of the kind that was made before the time. */
function idBefore(kind: string, timeMs: number): string {
  return kind + Math.max(0, timeMs).toString(36).padStart(9, "0");
}
