import { idTimeMs } from "../base/id.ts";
import { type Database, limitTo } from "../database/database.ts";
import { joinSql, sql, type Sql, sqlText } from "../database/sql.ts";
import { HEALTHS } from "./deliveries.ts";

/** What is still to be sent. */
export interface Backlog {
  /** Events that have not been fanned out. */
  readonly events: number;
  /** Pending deliveries: due, waiting for a resend, in flight, or of a paused subscription. */
  readonly deliveries: number;
  /** When the oldest of them was dispatched, those of paused subscriptions left out. */
  readonly oldestMs: number | undefined;
  /** Since when the one that is most overdue might have been sent. */
  readonly overdueSinceMs: number | undefined;
}

/** Past so many it is not counted on: what matters then is that there are that many. */
export const BACKLOG_LIMIT = 1_000_000;

const COUNT_AT_ONCE = 20_000;
const SUBSCRIPTIONS_LOOKED_AT = 500;

/**
 * Measures the backlog at a cost that is bounded however large it is: rows are counted in parts of
 * about a millisecond each, with `pause` between them, and of the subscriptions with work those few
 * hundred are looked at that are due next.
 */
export async function measureBacklog(
  database: Database,
  nowMs: number,
  pause: () => Promise<void>,
): Promise<Backlog> {
  const events = await countPending(database, sql`events`, pause);
  const deliveries = await countPending(database, sql`deliveries`, pause);
  const [event] = await database.query<{ id: string | null }>(
    sql`SELECT min(id) AS id FROM events WHERE status = 'pending'`,
  );
  const nextDue = HEALTHS.map((health) =>
    sql`SELECT * FROM (SELECT seq FROM subscriptions
      WHERE status = 'active' AND dueAtMs IS NOT NULL AND health = ${sqlText(health)}
      ORDER BY dueAtMs ${limitTo(SUBSCRIPTIONS_LOOKED_AT)})`
  );
  const pending = sql`FROM deliveries WHERE subscription = s.seq AND status = 'pending'`;
  const [delivery] = await database.query<{ id: string | null; dueAtMs: number | null }>(
    sql`SELECT min(id) AS id, min(iif(dueAtMs <= ${nowMs}, dueAtMs, NULL)) AS dueAtMs FROM
      (SELECT (SELECT min(id) ${pending}) AS id, (SELECT min(dueAtMs) ${pending}) AS dueAtMs
        FROM (${joinSql(nextDue, " UNION ALL ")}) s)`,
  );
  const eventMs = event?.id ? idTimeMs(event.id) : undefined;
  return {
    events,
    deliveries,
    oldestMs: earlier(eventMs, delivery?.id ? idTimeMs(delivery.id) : undefined),
    overdueSinceMs: earlier(eventMs, delivery?.dueAtMs ?? undefined),
  };
}

async function countPending(
  database: Database,
  table: Sql,
  pause: () => Promise<void>,
): Promise<number> {
  let count = 0;
  let last = "";
  while (count < BACKLOG_LIMIT) {
    const [part] = await database.query<{ count: number; last: string | null }>(
      sql`SELECT count(*) AS count, max(id) AS last FROM (SELECT id FROM ${table}
        WHERE status = 'pending' AND id > ${last} ORDER BY id ${limitTo(COUNT_AT_ONCE)})`,
    );
    count += part?.count ?? 0;
    last = part?.last ?? "";
    if ((part?.count ?? 0) < COUNT_AT_ONCE) break;
    await pause();
  }
  return count;
}

function earlier(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? one ?? other : Math.min(one, other);
}
