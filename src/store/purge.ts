import { idBound } from "../base/id.ts";
import { GRANT_ALLOWED, trimAudit } from "./audit.ts";
import { type Database } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { dropExcessRefreshTokens } from "./grant_limit.ts";

/** How much one batch of a purge removes at most, so that no other write waits for long. */
const BATCH = 500;

/** How many entries of the audit tell of grants that were allowed. */
const KEPT_GRANTS = 100_000;

/** What is kept for how long, in milliseconds. */
export interface Retention {
  readonly eventsMs: number;
  readonly auditMs: number;
}

/** How many rows of a kind that must stay one purge looks at: the next one goes on from there. */
const STAYING_AT_ONCE = 20_000;

/** How far each walk has come; kept from purge to purge. */
export type PurgeProgress = Map<string, string | number>;

/** Removes what has had its time, in bounded batches, until nothing is left or it is to stop. */
export async function purge(
  database: Database,
  retention: Retention,
  nowMs: number,
  signal: AbortSignal,
  progress: PurgeProgress = new Map(),
): Promise<void> {
  await dropExcessRefreshTokens(database, nowMs, signal);
  const ended: Sql[] = [
    endedBatch("grants", "id", "untilMs", nowMs),
    endedBatch("codes", "id", "untilMs", nowMs),
    endedBatch("sessions", "hash", "untilMs", nowMs),
    endedBatch("revocations", "seq", "untilMs", nowMs),
    endedBatch("login_failures", "rowid", "untilMs", nowMs),
    sql(
      `DELETE FROM audit WHERE id IN
         (SELECT id FROM audit WHERE id < ?1 ORDER BY id LIMIT ${BATCH})`,
      idBound("t", nowMs - retention.auditMs),
    ),
    trimAudit(GRANT_ALLOWED, KEPT_GRANTS, BATCH),
  ];
  for (const batch of ended) {
    for (let changed = BATCH; changed === BATCH && !signal.aborted;) {
      [changed = 0] = await database.write([batch]);
    }
  }
  for (const table of finishedTables(nowMs - retention.eventsMs)) {
    await sweep(database, table, progress, signal);
  }
}

function endedBatch(table: string, key: string, end: string, nowMs: number): Sql {
  return sql(
    `DELETE FROM ${table} WHERE ${key} IN
       (SELECT ${key} FROM ${table} WHERE ${end} <= ?1 ORDER BY ${end} LIMIT ${BATCH})`,
    nowMs,
  );
}

/** Rows that are old enough, but of which some must stay although they are. */
interface Sweep {
  /** Selects, in the order of their keys, the first rows after `?1`. */
  readonly select: string;
  /** Deletes the rows of the keys `?1` (JSON) that may go. */
  readonly remove: string;
  /** From `?2` on of the selection. */
  readonly bound: readonly (string | number)[];
  readonly first: string | number;
}

const CHOSEN = "(SELECT value FROM json_each(?1))";

/** What is finished, in the order that its references allow. */
function finishedTables(finishedMs: number): Sweep[] {
  const deliveries = ["delivered", "failed", "cancelled"].map((status) => ({
    select: `SELECT id AS key, finishedAtMs <= ?3 AS mayGo FROM deliveries
      WHERE status = '${status}' AND id > ?1 AND id < ?2 ORDER BY id LIMIT ${BATCH}`,
    remove: `DELETE FROM deliveries WHERE id IN ${CHOSEN} AND status = '${status}'`,
    bound: [idBound("d", finishedMs), finishedMs],
    first: "",
  }));
  const keepsDelivery = `EXISTS (SELECT 1 FROM deliveries d
    WHERE d.id > 'd' || substr(events.id, 2) AND d.id < 'd' || substr(events.id, 2) || '~')`;
  const isNamed = "EXISTS (SELECT 1 FROM deliveries d WHERE d.subscription = subscriptions.seq)";
  return [
    ...deliveries,
    {
      select: `SELECT id AS key, NOT ${keepsDelivery} AS mayGo FROM events
        WHERE status = 'distributed' AND id > ?1 AND id < ?2 ORDER BY id LIMIT ${BATCH}`,
      remove: `DELETE FROM events WHERE id IN ${CHOSEN} AND NOT ${keepsDelivery}`,
      bound: [idBound("e", finishedMs)],
      first: "",
    },
    {
      select: `SELECT seq AS key, NOT ${isNamed} AS mayGo FROM subscriptions
        WHERE status = 'deleted' AND seq > ?1 ORDER BY seq LIMIT ${BATCH}`,
      remove: `DELETE FROM subscriptions WHERE seq IN ${CHOSEN} AND NOT ${isNamed}`,
      bound: [],
      first: 0,
    },
  ];
}

/**
 * Goes through a table batch by batch, so that what must stay holds up no write, and from the end
 * begins again. Between batches other work has its turn: a query alone would not let it.
 */
async function sweep(
  database: Database,
  { select, remove, bound, first }: Sweep,
  progress: PurgeProgress,
  signal: AbortSignal,
): Promise<void> {
  let after = progress.get(remove) ?? first;
  for (let staying = 0; staying < STAYING_AT_ONCE && !signal.aborted;) {
    const rows = await database.query<{ key: string | number; mayGo: number }>(
      select,
      [after, ...bound],
    );
    const last = rows.at(-1);
    if (!last) {
      progress.delete(remove);
      return;
    }
    const keys = rows.filter(({ mayGo }) => mayGo === 1).map(({ key }) => key);
    if (keys.length > 0) await database.write([sql(remove, JSON.stringify(keys))]);
    staying += rows.length - keys.length;
    after = last.key;
    progress.set(remove, after);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
