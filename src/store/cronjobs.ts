import type { Database } from "../database/database.ts";
import { changesRow, findRow } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";

/** A stored cronjob, which runs once per due time, however many processes use the database. */
export interface StoredCronjob {
  readonly name: string;
  readonly nextAtMs: number;
  /** In the future while a process runs the job. */
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

/** Makes a job due now; a process that has its module runs it. False if no job has the name. */
export function hastenCronjob(database: Database, name: string, nowMs: number): Promise<boolean> {
  const update = sql`UPDATE cronjobs SET nextAtMs = min(nextAtMs, ${nowMs}) WHERE name = ${name}`;
  return changesRow(database, update);
}

/** Stores a job that is due at `nextAtMs`. An existing job becomes due then at the latest. */
export function registerCronjob(name: string, nextAtMs: number): Sql {
  return sql`INSERT INTO cronjobs (name, nextAtMs) VALUES (${name}, ${nextAtMs})
    ON CONFLICT DO UPDATE SET nextAtMs = min(nextAtMs, excluded.nextAtMs)`;
}

/** A run of a job by the process `claim`. After its lease another process may run the job. */
export function createCronjobRun(database: Database, name: string, claim: string, nowMs: number) {
  const isThis = sql`name = ${name} AND lastAtMs = ${nowMs}`;
  const extend = (leaseUntilMs: number) =>
    sql`UPDATE cronjobs SET leaseUntilMs = ${leaseUntilMs} WHERE ${isThis}`;
  return {
    /**
     * Claims the run. False if the job is neither due nor forced, runs already, or another process
     * was faster. The next due time is whole periods later, so a late run delays no other.
     */
    claim(everyMs: number, leaseUntilMs: number, isForced: boolean): Promise<boolean> {
      // Numbers are bound as REAL, so only a cast divides to whole periods.
      const periods = sql`CAST((${nowMs} - nextAtMs) / ${everyMs} AS INTEGER) + 1`;
      return changesRow(database, sql`UPDATE cronjobs
        SET claim = ${claim}, leaseUntilMs = ${leaseUntilMs}, lastAtMs = ${nowMs},
          nextAtMs = nextAtMs + iif(nextAtMs <= ${nowMs}, (${periods}) * ${everyMs}, 0)
        WHERE name = ${name} AND leaseUntilMs <= ${nowMs}
          AND (nextAtMs <= ${nowMs} OR ${isForced ? 1 : 0})`);
    },
    /** Extends the lease, since the process is alive. */
    renew: (leaseUntilMs: number) => changesRow(database, extend(leaseUntilMs)),
    /** Extends the lease if the outcome of `claim` is unknown; false if it claimed nothing. */
    renewIfClaimed: (leaseUntilMs: number) =>
      changesRow(database, sql`${extend(leaseUntilMs)} AND claim = ${claim}`),
    /** Ends the run and records its result; if `error` is undefined, the last run's error stays. */
    finish: (durationMs: number, error: string | null | undefined) =>
      changesRow(database, sql`UPDATE cronjobs
        SET claim = NULL, leaseUntilMs = 0, lastDurationMs = ${durationMs},
          lastError = ${error === undefined ? sql`lastError` : error} WHERE ${isThis}`),
  };
}

/** Ends the leases of a process that has ended; the runs that it began are lost. */
export function releaseCronjobs(claim: string): Sql {
  return sql`UPDATE cronjobs SET claim = NULL, leaseUntilMs = 0 WHERE claim = ${claim}`;
}
