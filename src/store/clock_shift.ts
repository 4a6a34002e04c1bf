import { type Key, type KeyedRows, writeInSteps } from "./batch.ts";
import type { Database } from "../database/database.ts";
import { changesRow, findValue } from "../database/rows.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import { findCronjob } from "./cronjobs.ts";
import { updateNextDue } from "./deliveries.ts";
import { dateEndsAhead } from "./ends_ahead.ts";
import { IS_OPEN } from "./subscriptions.ts";

/** How often processes on this database have found the clock set. */
export async function countClockSteps(database: Database): Promise<number> {
  return await findValue<number>(database, sql`SELECT count FROM clock_steps`) ?? 0;
}

/** Counts one step more; false where another process was faster. */
export function takeClockStep(database: Database, count: number): Promise<boolean> {
  return changesRow(database, sql`UPDATE clock_steps SET count = count + 1 WHERE count = ${count}`);
}

/**
 * Makes the shift of all that waits by `stepMs`, by which the clock has been set that showed
 * `nowMs`: resends and leases, cronjobs and theirs, and since when subscriptions have failed. In
 * bounded batches; called again after an error it continues with the one that was not stored.
 */
export function createShift(database: Database, nowMs: number, stepMs: number) {
  const dueMs = Math.min(nowMs, nowMs + stepMs); // what is due by both clocks stays so
  const walks: (KeyedRows & { readonly shift: (keys: readonly Key[]) => Sql[] })[] = [
    {
      table: sql`cronjobs`,
      key: sql`name`,
      where: sql`TRUE`,
      after: "",
      shift: (keys) => [
        sql`UPDATE cronjobs
          SET nextAtMs = nextAtMs + ${stepMs}, leaseUntilMs = leaseUntilMs + ${stepMs}
          WHERE name IN ${listOf(keys)} AND max(nextAtMs, leaseUntilMs) > ${dueMs}`,
      ],
    },
    {
      table: sql`deliveries`,
      key: sql`id`,
      where: sql`status = 'pending'`,
      after: "",
      // What has just been made is due at once by the new clock already.
      shift: (keys) => [
        sql`UPDATE deliveries SET dueAtMs = dueAtMs + ${stepMs}
          WHERE id IN ${listOf(keys)} AND status = 'pending' AND dueAtMs > ${dueMs}
            AND (${stepMs} < 0 OR attempt > 0 OR claim IS NOT NULL)`,
      ],
    },
    {
      table: sql`subscriptions`,
      key: sql`seq`,
      where: sql`${IS_OPEN} AND (dueAtMs IS NOT NULL OR failingSinceMs IS NOT NULL)`,
      after: 0,
      shift: (keys) => [
        updateNextDue(keys, nowMs + stepMs, sql`min(d.dueAtMs)`), // its own may be of the old clock
        sql`UPDATE subscriptions SET failingSinceMs = failingSinceMs + ${stepMs}
          WHERE seq IN ${listOf(keys)} AND failingSinceMs IS NOT NULL`,
      ],
    },
  ];
  return async (): Promise<void> => {
    for (let walk = walks[0]; walk !== undefined; walk = walks[0]) {
      await writeInSteps(database, walk, walk.shift, 1);
      walks.shift();
    }
    if (stepMs < 0) await dateEndsAhead(database, nowMs + stepMs);
  };
}

/** Less is a restart. */
const LEAST_IDLE_MS = 3_600_000;

/**
 * Leaves the time in which no process ran jobs out of that for which subscriptions have failed:
 * nothing was sent meanwhile, as before a start from an old backup. Once, however many processes
 * start; before the shared job `name` runs, which has been due, and not running, for so long.
 */
export async function leaveOutIdleTime(
  database: Database,
  name: string,
  nowMs: number,
): Promise<void> {
  const job = await findCronjob(database, name);
  if (!job) return;
  const { nextAtMs, leaseUntilMs, lastAtMs, lastDurationMs } = job;
  // A run may take longer than its period; one that has not ended has a lease, and no duration yet.
  const ranUntilMs = leaseUntilMs || (lastAtMs ?? 0) + (lastDurationMs ?? 0);
  const idleMs = nowMs - Math.max(nextAtMs, ranUntilMs);
  if (idleMs < LEAST_IDLE_MS) return;
  const isStillDue = sql`name = ${name} AND nextAtMs = ${nextAtMs}`;
  await database.write([
    sql`UPDATE subscriptions SET failingSinceMs = failingSinceMs + ${idleMs}
      WHERE failingSinceMs IS NOT NULL AND EXISTS (SELECT 1 FROM cronjobs WHERE ${isStillDue})`,
    sql`UPDATE cronjobs SET nextAtMs = ${nowMs} WHERE ${isStillDue}`,
  ]);
}

/**
 * Corrects what a clock that was wrong before the start, or is wrong still, has put too far ahead
 * of `nowMs`: no resend waits for longer than `longestWaitMs`, no subscription fails from a later
 * time on, and what has ended ended by now.
 */
export async function correctTimesAhead(
  database: Database,
  nowMs: number,
  longestWaitMs: number,
): Promise<void> {
  const latestMs = Math.ceil(nowMs + longestWaitMs);
  const waits = sql`status = 'pending' AND dueAtMs > ${latestMs} AND claim IS NULL`;
  const rows = {
    table: sql`subscriptions`,
    key: sql`seq`,
    where: sql`${IS_OPEN} AND EXISTS (SELECT 1 FROM deliveries WHERE subscription = seq
      AND ${waits})`,
    after: 0,
  };
  await writeInSteps(database, rows, (keys) => [
    sql`UPDATE deliveries SET dueAtMs = ${latestMs}
      WHERE subscription IN ${listOf(keys)} AND ${waits}`,
    updateNextDue(keys, nowMs),
  ], 1);
  await database.write([sql`UPDATE subscriptions SET failingSinceMs = ${nowMs}
    WHERE ${IS_OPEN} AND failingSinceMs > ${nowMs}`]);
  await dateEndsAhead(database, nowMs);
}
