import { idBound } from "../base/id.ts";
import { GRANT_ALLOWED, trimAudit } from "./audit.ts";
import { type Database, limitTo } from "../database/database.ts";
import { listOf, sql, type Sql, sqlText } from "../database/sql.ts";
import { dropExcessRefreshTokens } from "./grant_limit.ts";

/** How much one batch of a purge removes at most, so that no other write waits for long. */
const BATCH = 500;
const AT_MOST = limitTo(BATCH);

/** How many entries of the audit about grants that were allowed are kept. */
const KEPT_GRANTS = 100_000;

/** What is kept for how long, in milliseconds. */
export interface Retention {
  readonly eventsMs: number;
  readonly auditMs: number;
}

/** How many rows of a kind that must stay one purge looks at: the next one goes on from there. */
const STAYING_AT_ONCE = 20_000;

type Key = string | number;

/** How far each sweep has come; kept from purge to purge. */
export type PurgeProgress = Map<string, Key>;

/** Removes what has expired, in bounded batches, until nothing is left or it is to stop. */
export async function purge(
  database: Database,
  retention: Retention,
  nowMs: number,
  signal: AbortSignal,
  progress: PurgeProgress = new Map(),
): Promise<void> {
  await dropExcessRefreshTokens(database, nowMs, signal);
  const ended: Sql[] = [
    expired(sql`grants`, sql`id`, nowMs),
    expired(sql`codes`, sql`id`, nowMs),
    expired(sql`sessions`, sql`hash`, nowMs),
    expired(sql`revocations`, sql`seq`, nowMs),
    expired(sql`login_failures`, sql`rowid`, nowMs),
    sql`DELETE FROM audit WHERE id IN (SELECT id FROM audit
      WHERE id < ${idBound("t", nowMs - retention.auditMs)} ORDER BY id ${AT_MOST})`,
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

function expired(table: Sql, key: Sql, nowMs: number): Sql {
  return sql`DELETE FROM ${table} WHERE ${key} IN
    (SELECT ${key} FROM ${table} WHERE untilMs <= ${nowMs} ORDER BY untilMs ${AT_MOST})`;
}

/** Rows that are old enough, but of which some must stay although they are. */
interface Sweep {
  readonly name: string;
  readonly first: Key;
  /** Selects, in the order of their keys, the rows that follow, each with whether it may go. */
  readonly select: (after: Key) => Sql;
  /** Deletes the rows of the keys that may go. */
  readonly remove: (keys: readonly Key[]) => Sql;
}

/** What is finished, in the order that its references allow. */
function finishedTables(finishedMs: number): Sweep[] {
  const deliveries = ["delivered", "failed", "cancelled"].map((name): Sweep => {
    const status = sqlText(name);
    return {
      name,
      first: "",
      select: (after) => sql`SELECT id AS key, finishedAtMs <= ${finishedMs} AS mayGo
        FROM deliveries WHERE id > ${after} AND id < ${idBound("d", finishedMs)}
          AND status = ${status} ORDER BY id ${AT_MOST}`,
      remove: (keys) => sql`DELETE FROM deliveries
        WHERE id IN ${listOf(keys)} AND status = ${status}`,
    };
  });
  const keepsDelivery = sql`EXISTS (SELECT 1 FROM deliveries d
    WHERE d.id > 'd' || substr(events.id, 2) AND d.id < 'd' || substr(events.id, 2) || '~')`;
  const isNamed = sql`EXISTS (SELECT 1 FROM deliveries d WHERE d.subscription = subscriptions.seq)`;
  return [
    ...deliveries,
    {
      name: "events",
      first: "",
      select: (after) => sql`SELECT id AS key, NOT ${keepsDelivery} AS mayGo FROM events
        WHERE id > ${after} AND id < ${idBound("e", finishedMs)} AND status = 'distributed'
        ORDER BY id ${AT_MOST}`,
      remove: (keys) => sql`DELETE FROM events
        WHERE id IN ${listOf(keys)} AND NOT ${keepsDelivery}`,
    },
    {
      name: "subscriptions",
      first: 0,
      select: (after) => sql`SELECT seq AS key, NOT ${isNamed} AS mayGo FROM subscriptions
        WHERE status = 'deleted' AND seq > ${after} ORDER BY seq ${AT_MOST}`,
      remove: (keys) => sql`DELETE FROM subscriptions
        WHERE seq IN ${listOf(keys)} AND NOT ${isNamed}`,
    },
  ];
}

/**
 * Goes through a table batch by batch, so that what must stay holds up no write, and from the end
 * begins again. Between batches other work runs: a query alone would not let it.
 */
async function sweep(
  database: Database,
  { name, first, select, remove }: Sweep,
  progress: PurgeProgress,
  signal: AbortSignal,
): Promise<void> {
  let after = progress.get(name) ?? first;
  for (let staying = 0; staying < STAYING_AT_ONCE && !signal.aborted;) {
    const rows = await database.query<{ key: Key; mayGo: number }>(select(after));
    const last = rows.at(-1);
    if (!last) {
      progress.delete(name);
      return;
    }
    const keys = rows.filter(({ mayGo }) => mayGo === 1).map(({ key }) => key);
    if (keys.length > 0) await database.write([remove(keys)]);
    staying += rows.length - keys.length;
    after = last.key;
    progress.set(name, after);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
