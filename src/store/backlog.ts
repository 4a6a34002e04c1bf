import { idTimeMs } from "../base/id.ts";
import { type Database, limitTo } from "../database/database.ts";
import { findRow, findValue } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { dueFirst } from "./deliveries.ts";

export type Backlog = Awaited<ReturnType<typeof measureBacklog>>;

/** How many are counted at most. */
const BACKLOG_LIMIT = 1_000_000;

const COUNT_AT_ONCE = 20_000;
const SUBSCRIPTIONS_LOOKED_AT = 500;

/** Measures the backlog at a bounded cost, however large it is; other work runs in between. */
export async function measureBacklog(database: Database, nowMs: number) {
  return {
    /** Events that have not been fanned out. */
    events: await countPending(database, sql`events`),
    /** Pending deliveries: due, waiting for a resend, in flight, or of a paused subscription. */
    deliveries: await countPending(database, sql`deliveries`),
    ...await measureAges(database, nowMs),
  };
}

/** Since when the backlog has waited; undefined if it is empty or all paused. */
export async function measureAges(database: Database, nowMs: number) {
  const selectEvent = sql`SELECT min(id) FROM events WHERE status = 'pending'`;
  const event = await findValue<string | null>(database, selectEvent);
  const pending = sql`FROM deliveries WHERE subscription = s.seq AND status = 'pending'`;
  const delivery = await findRow<{ id: string | null; dueAtMs: number | null }>(
    database,
    sql`SELECT min(id) AS id, min(iif(dueAtMs <= ${nowMs}, dueAtMs, NULL)) AS dueAtMs FROM
      (SELECT (SELECT min(id) ${pending}) AS id, (SELECT min(dueAtMs) ${pending}) AS dueAtMs
        FROM (${dueFirst(sql`seq`, SUBSCRIPTIONS_LOOKED_AT)}) s)`,
  );
  const eventMs = event ? idTimeMs(event) : undefined;
  return {
    /** When the oldest event of the backlog was dispatched. */
    oldestMs: earlier(eventMs, delivery?.id ? idTimeMs(delivery.id) : undefined),
    /** Since when the most overdue one could have been sent. */
    overdueSinceMs: earlier(eventMs, delivery?.dueAtMs ?? undefined),
  };
}

async function countPending(database: Database, table: Sql): Promise<number> {
  let count = 0;
  for (let last = ""; count < BACKLOG_LIMIT;) {
    const select = sql`SELECT count(*) AS count, max(id) AS last FROM (SELECT id FROM ${table}
      WHERE status = 'pending' AND id > ${last} ORDER BY id ${limitTo(COUNT_AT_ONCE)})`;
    const part = await findRow<{ count: number; last: string }>(database, select);
    count += part?.count ?? 0;
    if (part?.count !== COUNT_AT_ONCE) break;
    last = part.last;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return count;
}

function earlier(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? one ?? other : Math.min(one, other);
}
