import { type Database, sql } from "./database.ts";

/** A job that runs once per due time and database, as it is stored. */
export interface StoredCronjob {
  readonly name: string;
  readonly nextAtMs: number;
  readonly lastAtMs: number | null;
  readonly lastDurationMs: number | null;
  readonly lastError: string | null;
}

/** Every job that has been registered on this database. */
export function listCronjobs(database: Database): Promise<StoredCronjob[]> {
  return database.query<StoredCronjob>(
    `SELECT name, next_at AS nextAtMs, last_at AS lastAtMs, last_ms AS lastDurationMs,
       last_error AS lastError FROM cronjobs ORDER BY name`,
  );
}

/** Registers a job whose first run is due at `nextAtMs`; one that is known keeps its time. */
export async function registerCronjob(
  database: Database,
  name: string,
  nextAtMs: number,
): Promise<void> {
  await database.write([
    sql("INSERT INTO cronjobs (name, next_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING", name, nextAtMs),
  ]);
}

/** Takes a due run for this process; false when it is not due, or another process was faster. */
export async function claimCronjob(
  database: Database,
  name: string,
  nowMs: number,
  everyMs: number,
): Promise<boolean> {
  const [changed] = await database.write([
    // Whole periods on, so that a late run does not shift the ones after it.
    sql(
      `UPDATE cronjobs SET next_at = next_at + ((?2 - next_at) / ?3 + 1) * ?3, last_at = ?2
       WHERE name = ?1 AND next_at <= ?2`,
      name,
      nowMs,
      everyMs,
    ),
  ]);
  return changed === 1;
}

/** Records how a run went. */
export async function recordCronjob(
  database: Database,
  name: string,
  durationMs: number,
  error: string | undefined,
): Promise<void> {
  await database.write([
    sql("UPDATE cronjobs SET last_ms = ?2, last_error = ?3 WHERE name = ?1", name, durationMs, error ?? null),
  ]);
}
