import { idBound } from "../base/id.ts";
import { GRANT_ALLOWED, GRANT_DENIED, trimAudit } from "./audit.ts";
import { AT_MOST, BATCH, type Key, type KeyedRows } from "./batch.ts";
import { type Database, limitTo } from "../database/database.ts";
import { paceWrites } from "../database/pace_writes.ts";
import { listOf, sql, type Sql, sqlText } from "../database/sql.ts";
import { DEVICE_CODE_MS } from "../oauth/device_code.ts";
import { dropFigures } from "./figures.ts";
import { dropExcessRefreshTokens } from "./grant_limit.ts";

/** How many audit entries of allowed grants are kept, and how many of denied ones. */
const KEPT_GRANTS = 100_000;

/** How many rows that must stay one sweep examines: the next purge continues from there. */
const STAYING_AT_ONCE = 20_000;

/**
 * How many bytes of large rows one batch deletes. Other writes wait while they are overwritten, and
 * the log needs space for them, even if the disk is nearly full.
 */
const BYTES_AT_ONCE = 2 * 1024 * 1024;
/** How many kept responses one batch deletes, each of 256 KiB at most. */
const RESPONSES_AT_ONCE = 64;

/** The last key of each sweep, from which the next purge continues. */
export type PurgeProgress = Map<string, Key>;

/** Deletes expired rows until `signal` aborts, in bounded batches between which others write. */
export async function purge(
  shared: Database,
  retention: Readonly<Record<"eventsMs" | "auditMs", number>>,
  nowMs: number,
  signal: AbortSignal,
  progress: PurgeProgress = new Map(),
): Promise<void> {
  const database = paceWrites(shared);
  await dropExcessRefreshTokens(database, nowMs, signal);
  const finishedMs = nowMs - retention.eventsMs;
  const expired = (table: Sql, key: Sql, sinceMs = nowMs, atMost = AT_MOST) =>
    sql`DELETE FROM ${table} WHERE ${key} IN
      (SELECT ${key} FROM ${table} WHERE untilMs <= ${sinceMs} ORDER BY untilMs ${atMost})`;
  const ended: Sql[] = [
    expired(sql`grants`, sql`id`),
    expired(sql`codes`, sql`id`),
    expired(sql`device_codes`, sql`hash`, nowMs - DEVICE_CODE_MS), // until then: expired_token
    expired(sql`sessions`, sql`hash`),
    expired(sql`client_assertions`, sql`hash`),
    expired(sql`revocations`, sql`seq`),
    expired(sql`login_failures`, sql`rowid`),
    expired(sql`idempotency_keys`, sql`id`, nowMs, limitTo(RESPONSES_AT_ONCE)),
    sql`DELETE FROM audit WHERE id IN (SELECT id FROM audit
      WHERE id < ${idBound("t", nowMs - retention.auditMs)} ORDER BY id ${AT_MOST})`,
    trimAudit(GRANT_ALLOWED, KEPT_GRANTS, BATCH),
    trimAudit(GRANT_DENIED, KEPT_GRANTS, BATCH),
    expired(sql`muted_problems`, sql`id`),
    ...dropFigures(nowMs, AT_MOST),
    sql`DELETE FROM resends WHERE id IN (SELECT id FROM resends WHERE state <> 'running'
      AND id < ${idBound("w", finishedMs)} ORDER BY id ${AT_MOST})`,
    // No process has the cronjob's module any more.
    sql`DELETE FROM cronjobs WHERE nextAtMs <= ${nowMs - retention.auditMs}
      AND leaseUntilMs <= ${nowMs}`,
  ];
  for (const batch of ended) {
    // A batch that is not full is the last one, even if others store more meanwhile.
    for (let changed = BATCH; [BATCH, RESPONSES_AT_ONCE].includes(changed) && !signal.aborted;) {
      [changed = 0] = await database.write([batch]);
    }
  }
  const byId = { key: sql`id`, after: "" };
  const finished: Sweep[] = [ // in the order that their references allow
    ...["delivered", "failed", "cancelled"].map((status) => ({
      ...byId,
      table: sql`deliveries`,
      where: sql`status = ${sqlText(status)} AND id < ${idBound("d", finishedMs)}`,
      mayGo: sql`status = ${sqlText(status)} AND finishedAtMs <= ${finishedMs}`,
    })),
    {
      ...byId,
      table: sql`events`,
      where: sql`status = 'distributed' AND id < ${idBound("e", finishedMs)}`,
      mayGo: sql`NOT EXISTS (SELECT 1 FROM deliveries d
        WHERE d.id > 'd' || substr(events.id, 2) AND d.id < 'd' || substr(events.id, 2) || '~')`,
      bytes: sql`octet_length(data)`,
    },
    {
      key: sql`seq`,
      after: 0,
      table: sql`subscriptions`,
      where: sql`status = 'deleted'`,
      mayGo: sql`NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.subscription = subscriptions.seq)`,
    },
  ];
  for (const table of finished) await sweep(database, table, progress, signal);
}

/** Rows that are old enough, of which those with `mayGo` are deleted; `bytes` is their size. */
type Sweep = KeyedRows & { readonly mayGo: Sql; readonly bytes?: Sql };

/**
 * Walks through a table batch by batch, so that rows that must stay delay no write; after the end
 * it starts over. Other work runs between batches, which a query alone would not allow.
 */
async function sweep(
  database: Database,
  { table, key, where, mayGo, bytes = sql`0`, ...rows }: Sweep,
  progress: PurgeProgress,
  signal: AbortSignal,
): Promise<void> {
  const name = where.sql;
  let after = progress.get(name) ?? rows.after;
  for (let staying = 0; staying < STAYING_AT_ONCE && !signal.aborted;) {
    const select = sql`SELECT ${key} AS key, ${mayGo} AS mayGo, ${bytes} AS bytes FROM ${table}
      WHERE ${key} > ${after} AND ${where} ORDER BY ${key} ${AT_MOST}`;
    const found = await database.query<{ key: Key; mayGo: number; bytes: number }>(select);
    let sum = 0;
    const rows = found.filter((row, at) =>
      (sum += row.mayGo * row.bytes) <= BYTES_AT_ONCE || at === 0);
    const last = rows.at(-1);
    if (!last) return void progress.delete(name);
    const keys = rows.filter((row) => row.mayGo === 1).map((row) => row.key);
    const remove = sql`DELETE FROM ${table} WHERE ${key} IN ${listOf(keys)} AND ${mayGo}`;
    if (keys.length > 0) await database.write([remove]);
    staying += rows.length - keys.length;
    after = last.key;
    progress.set(name, after);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
