import { type Database, sql, type Statement } from "../database/database.ts";

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

/** A job as it is stored, or undefined before it has been registered. */
export async function findCronjob(
  database: Database,
  name: string,
): Promise<StoredCronjob | undefined> {
  const rows = await database.query<StoredCronjob>(`${SELECT} WHERE name = ?1`, [name]);
  return rows[0];
}

const SELECT = `SELECT name, next_at AS nextAtMs, lease_until AS leaseUntilMs, last_at AS lastAtMs,
  last_ms AS lastDurationMs, last_error AS lastError FROM cronjobs`;

/** Every job that a process has ever registered. */
export function listStoredCronjobs(database: Database): Promise<StoredCronjob[]> {
  return database.query<StoredCronjob>(`${SELECT} ORDER BY name`);
}

/** Makes a job due now, for a process that knows it; false where there is none of the name. */
export async function hastenCronjob(
  database: Database,
  name: string,
  nowMs: number,
): Promise<boolean> {
  const [changed] = await database.write([
    sql("UPDATE cronjobs SET next_at = min(next_at, ?2) WHERE name = ?1", name, nowMs),
  ]);
  return changed === 1;
}

/** Registers a job that is due at `nextAtMs`; one that is known is due then at the latest. */
export async function registerCronjob(
  database: Database,
  name: string,
  nextAtMs: number,
): Promise<void> {
  await database.write([
    sql(
      `INSERT INTO cronjobs (name, next_at) VALUES (?1, ?2)
       ON CONFLICT DO UPDATE SET next_at = min(next_at, excluded.next_at)`,
      name,
      nextAtMs,
    ),
  ]);
}

/** One run of a job that a process wants to take on. */
export interface CronjobClaim {
  readonly name: string;
  /** The name of the process. */
  readonly claim: string;
  readonly everyMs: number;
  readonly leaseUntilMs: number;
  /** Whether it runs although it is not due. */
  readonly isForced: boolean;
}

/**
 * Takes a run on for this process; false when it is not due, another process was faster, or it runs
 * already. The next due time lies whole periods on, so a late run does not shift those after it.
 */
export async function claimCronjob(
  database: Database,
  claim: CronjobClaim,
  nowMs: number,
): Promise<boolean> {
  const [changed] = await database.write([
    sql(
      // Numbers are bound as REAL, which do not divide to whole periods by themselves.
      `UPDATE cronjobs SET claim = ?6, lease_until = ?4, last_at = ?2, next_at = CASE WHEN next_at <= ?2
         THEN next_at + (CAST((?2 - next_at) / ?3 AS INTEGER) + 1) * ?3 ELSE next_at END
       WHERE name = ?1 AND lease_until <= ?2 AND (next_at <= ?2 OR ?5 = 1)`,
      claim.name,
      nowMs,
      claim.everyMs,
      claim.leaseUntilMs,
      claim.isForced ? 1 : 0,
      claim.claim,
    ),
  ]);
  return changed === 1;
}

/** A run that was claimed; `claimedAtMs` tells it from one that took over after its lease. */
export interface CronjobRun {
  readonly name: string;
  readonly claimedAtMs: number;
}

/** Keeps a run from being taken for a dead process's. */
export async function renewCronjob(
  database: Database,
  { name, claimedAtMs }: CronjobRun,
  leaseUntilMs: number,
): Promise<void> {
  await database.write([
    sql(
      "UPDATE cronjobs SET lease_until = ?3 WHERE name = ?1 AND last_at = ?2",
      name,
      claimedAtMs,
      leaseUntilMs,
    ),
  ]);
}

/** Ends a run and records how it went. */
export async function finishCronjob(
  database: Database,
  { name, claimedAtMs }: CronjobRun,
  durationMs: number,
  error: string | undefined,
): Promise<void> {
  await database.write([
    sql(
      `UPDATE cronjobs SET claim = NULL, lease_until = 0, last_ms = ?3, last_error = ?4
       WHERE name = ?1 AND last_at = ?2`,
      name,
      claimedAtMs,
      durationMs,
      error ?? null,
    ),
  ]);
}

/** Ends the leases of a process that has ended; the runs that it began are lost. */
export function releaseCronjobs(claim: string): Statement {
  return sql("UPDATE cronjobs SET claim = NULL, lease_until = 0 WHERE claim = ?1", claim);
}
