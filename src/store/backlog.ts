import { idTimeMs } from "../base/id.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../database/sql.ts";
import { type Health, HEALTHS } from "./deliveries.ts";

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
 * hundred are looked at whose turn is next.
 */
export async function measureBacklog(
  database: Database,
  nowMs: number,
  pause: () => Promise<void>,
): Promise<Backlog> {
  const events = await countPending(database, "events", pause);
  const deliveries = await countPending(database, "deliveries", pause);
  const [event] = await database.query<{ id: string | null }>(sql`SELECT min(id) AS id FROM events WHERE status = 'pending'`);
  const [delivery] = await database.query<{ id: string | null; dueAtMs: number | null }>(
    `SELECT min(id) AS id, min(CASE WHEN dueAtMs <= ?1 THEN dueAtMs END) AS dueAtMs FROM (
       SELECT
         (SELECT min(id) FROM deliveries WHERE subscription = s.seq AND status = 'pending') AS id,
         (SELECT min(dueAtMs) FROM deliveries WHERE subscription = s.seq AND status = 'pending')
           AS dueAtMs
       FROM (${HEALTHS.map(turnsOf).join(" UNION ALL ")}) s)`,
    [nowMs, SUBSCRIPTIONS_LOOKED_AT],
  );
  const eventMs = event?.id ? idTimeMs(event.id) : undefined;
  return {
    events,
    deliveries,
    oldestMs: earlier(eventMs, delivery?.id ? idTimeMs(delivery.id) : undefined),
    overdueSinceMs: earlier(eventMs, delivery?.dueAtMs ?? undefined),
  };
}

function turnsOf(health: Health): string {
  return `SELECT * FROM (SELECT seq FROM subscriptions
    WHERE status = 'active' AND dueAtMs IS NOT NULL AND health = '${health}'
    ORDER BY dueAtMs LIMIT ?2)`;
}

async function countPending(
  database: Database,
  table: "events" | "deliveries",
  pause: () => Promise<void>,
): Promise<number> {
  let count = 0;
  let last = "";
  while (count < BACKLOG_LIMIT) {
    const [part] = await database.query<{ count: number; last: string | null }>(
      `SELECT count(*) AS count, max(id) AS last FROM (
         SELECT id FROM ${table} WHERE status = 'pending' AND id > ?1 ORDER BY id LIMIT ?2)`,
      [last, COUNT_AT_ONCE],
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
