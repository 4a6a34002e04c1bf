import type { Database } from "../database/database.ts";
import { changesRow, findRow } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";

/** A job that runs once per due time and database, as it is stored. */
export interface StoredCronjob {
  readonly name: string;
  readonly nextAtMs: number;
  /** While a process runs it, in the future. */
  readonly leaseUntilMs: number;
  readonly lastAtMs: number | null;
  readonly lastDurationMs: number | null;
  readonly lastError: string | null;
}

const SELECT = sql`SELECT name, nextAtMs, leaseUntilMs, lastAtMs, lastDurationMs, lastError
  FROM cronjobs`;

/** A job as it is stored, or undefined before it has been registered. */
export function findCronjob(database: Database, name: string): Promise<StoredCronjob | undefined> {
  return findRow<StoredCronjob>(database, sql`${SELECT} WHERE name = ${name}`);
}

/** Every job that a process has ever registered. */
export function listStoredCronjobs(database: Database): Promise<StoredCronjob[]> {
  return database.query<StoredCronjob>(sql`${SELECT} ORDER BY name`);
}

/** Makes a job due now, for a process that knows it; false where none has the name. */
export function hastenCronjob(database: Database, name: string, nowMs: number): Promise<boolean> {
  const update = sql`UPDATE cronjobs SET nextAtMs = min(nextAtMs, ${nowMs}) WHERE name = ${name}`;
  return changesRow(database, update);
}

/** Stores a job that is due at `nextAtMs`; one that is there is due then at the latest. */
export function registerCronjob(name: string, nextAtMs: number): Sql {
  return sql`INSERT INTO cronjobs (name, nextAtMs) VALUES (${name}, ${nextAtMs})
    ON CONFLICT DO UPDATE SET nextAtMs = min(nextAtMs, excluded.nextAtMs)`;
}

/** A run that a process claims; after its lease another may begin. */
export interface CronjobRun {
  readonly name: string;
  /** The name of the process. */
  readonly claim: string;
  readonly claimedAtMs: number;
}

/**
 * Claims a run; false when it is not due and not forced, another process was faster, or it runs
 * already. The next due time is whole periods later, so a late run does not shift those after it.
 */
export function claimCronjob(
  database: Database,
  { name, claim, claimedAtMs: nowMs }: CronjobRun,
  { everyMs, leaseUntilMs, isForced }:
    & Readonly<Record<"everyMs" | "leaseUntilMs", number>>
    & { readonly isForced: boolean },
): Promise<boolean> {
  // Numbers are bound as REAL, which do not divide to whole periods by themselves.
  const periods = sql`CAST((${nowMs} - nextAtMs) / ${everyMs} AS INTEGER) + 1`;
  return changesRow(
    database,
    sql`UPDATE cronjobs SET claim = ${claim}, leaseUntilMs = ${leaseUntilMs}, lastAtMs = ${nowMs},
        nextAtMs = nextAtMs + iif(nextAtMs <= ${nowMs}, (${periods}) * ${everyMs}, 0)
      WHERE name = ${name} AND leaseUntilMs <= ${nowMs}
        AND (nextAtMs <= ${nowMs} OR ${isForced ? 1 : 0})`,
  );
}

/** Extends the lease of a run whose process is alive. */
export function renewCronjob({ name, claimedAtMs }: CronjobRun, leaseUntilMs: number): Sql {
  return sql`UPDATE cronjobs SET leaseUntilMs = ${leaseUntilMs}
    WHERE name = ${name} AND lastAtMs = ${claimedAtMs}`;
}

/** The same, where claiming it has failed in between: false if it is not claimed. */
export function renewIfClaimed(database: Database, run: CronjobRun, leaseUntilMs: number) {
  return changesRow(database, sql`${renewCronjob(run, leaseUntilMs)} AND claim = ${run.claim}`);
}

/** Ends a run and records how it went; without an error given, that of the one before stays. */
export function finishCronjob(
  { name, claimedAtMs }: CronjobRun,
  durationMs: number,
  error: string | null | undefined,
): Sql {
  return sql`UPDATE cronjobs SET claim = NULL, leaseUntilMs = 0, lastDurationMs = ${durationMs},
      lastError = ${error === undefined ? sql`lastError` : error}
    WHERE name = ${name} AND lastAtMs = ${claimedAtMs}`;
}

/** Ends the leases of a process that has ended; the runs that it began are lost. */
export function releaseCronjobs(claim: string): Sql {
  return sql`UPDATE cronjobs SET claim = NULL, leaseUntilMs = 0 WHERE claim = ${claim}`;
}
