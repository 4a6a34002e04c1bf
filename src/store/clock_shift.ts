import { type Key, type KeyedRows, writeInSteps } from "./batch.ts";
import type { Database } from "../database/database.ts";
import { changesRow, findValue } from "../database/rows.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import { findCronjob } from "./cronjobs.ts";
import { updateNextDue } from "./deliveries.ts";
import { dateEndsAhead } from "./ends_ahead.ts";
import { IS_OPEN } from "./subscriptions.ts";

/** How often processes on this database have noticed that the clock was set. */
export async function countClockSteps(database: Database): Promise<number> {
  return await findValue<number>(database, sql`SELECT count FROM clock_steps`) ?? 0;
}

/** Counts one step more; false where another process was faster. */
export function takeClockStep(database: Database, count: number): Promise<boolean> {
  return changesRow(database, sql`UPDATE clock_steps SET count = count + 1 WHERE count = ${count}`);
}

/**
 * Makes a function that shifts stored times after the clock was set from `nowMs` by `stepMs`. These
 * are retries and leases of deliveries and cronjobs, and since when subscriptions fail. It writes
 * bounded batches; called again after an error it continues with the batch that failed.
 */
export function createShift(database: Database, nowMs: number, stepMs: number) {
  const dueMs = Math.min(nowMs, nowMs + stepMs); // what is due by both clocks stays due
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
      // A new delivery is due at once by the new clock already.
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
        updateNextDue(keys, nowMs + stepMs, sql`min(d.dueAtMs)`), // the stored one may be outdated
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

/** A shorter idle time is a restart. */
const LEAST_IDLE_MS = 3_600_000;

/**
 * Subtracts the time in which no process ran jobs from the time for which subscriptions have
 * failed. Nothing was sent then, as before a start from an old backup. The shared job `name` shows
 * that time: due, but not running. Only one of several processes does this, before the job runs.
 */
export async function leaveOutIdleTime(
  database: Database,
  name: string,
  nowMs: number,
): Promise<void> {
  const job = await findCronjob(database, name);
  if (!job) return;
  const { nextAtMs, leaseUntilMs, lastAtMs, lastDurationMs } = job;
  // A run may take longer than its period. A run that has not ended has a lease and no duration.
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
 * Corrects times that a clock, wrong before the start or still wrong, has put too far ahead of
 * `nowMs`. Then no retry waits longer than `longestWaitMs`, no subscription fails since a later
 * time, and no `notBeforeMs` is ahead of a correct clock.
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
