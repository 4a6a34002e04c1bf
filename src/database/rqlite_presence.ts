import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "./database.ts";
import { sql } from "./sql.ts";

/** A row for each server and each delivery thread: its beat rises for as long as that lives. */
export const RQLITE_PROCESSES = sql`CREATE TABLE IF NOT EXISTS processes
  (name TEXT PRIMARY KEY, beat INTEGER NOT NULL) STRICT, WITHOUT ROWID`;

const BEAT_MS = 1_000;
/** A process whose beat has not risen for so long has ended. */
const ENDED_AFTER_MS = 5_000;
/** A longer time between two looks does not count: nobody's beat could be seen to rise. */
const BLIND_MS = 2_500;

const SELECT = sql`SELECT name, beat FROM processes`;

interface Beat {
  readonly name: string;
  readonly beat: number;
}

/**
 * Shows other processes on this cluster that the one called `name` lives, by a beat each second,
 * the first before this resolves. Who has ended is judged by this process's own elapsed time, so
 * no clocks are compared.
 *
 * @param elapsedMs a clock that is never set
 */
export async function acquireRqlitePresence(
  database: Database,
  name: string,
  elapsedMs = () => performance.now(),
) {
  const raise = sql`INSERT INTO processes (name, beat) VALUES (${name}, 1)
    ON CONFLICT (name) DO UPDATE SET beat = beat + 1`;
  const remove = (gone: string) => sql`DELETE FROM processes WHERE name = ${gone}`;
  /** The others, and for how long their beats have not been seen to rise. */
  let others = new Map<string, Beat & { readonly stillMs: number }>();
  let lastLookMs = -Infinity;
  let beating: Promise<void> | undefined;

  async function beat(): Promise<void> {
    await database.write([raise]);
    const rows = await database.query<Beat>(SELECT);
    const sinceMs = elapsedMs() - lastLookMs;
    const seenMs = sinceMs <= BLIND_MS ? sinceMs : 0;
    lastLookMs = elapsedMs();
    others = new Map(rows.filter((row) => row.name !== name).map((row) => {
      const last = others.get(row.name);
      const stillMs = last?.beat === row.beat ? last.stillMs + seenMs : 0;
      return [row.name, { ...row, stillMs }];
    }));
  }

  await beat();
  const timer = setInterval(() => {
    beating ??= beat().catch(() => {}).finally(() => beating = undefined); // the next one shows it
  }, BEAT_MS);

  return {
    /** Calls `release` for what each process had claimed that has ended, as that for files does. */
    async forEnded(release: (name: string) => Promise<void>): Promise<void> {
      for (const { name: other, stillMs } of others.values()) {
        if (stillMs < ENDED_AFTER_MS) continue;
        await release(other);
        await database.write([remove(other)]);
        others.delete(other);
      }
    },
    /** Shows the others that this process has released everything. */
    async close(): Promise<void> {
      clearInterval(timer);
      await beating;
      await database.write([remove(name)]).catch(() => {}); // then they find out by themselves
    },
  };
}

/** Whether the beat of any process rises, within about two seconds. */
export async function isAnybodyOnCluster(database: Database): Promise<boolean> {
  const [table] = await database.query(sql`SELECT name FROM pragma_table_info('processes')`);
  const before = table ? await database.query<Beat>(SELECT) : [];
  if (before.length === 0) return false;
  await sleep(2 * BEAT_MS);
  const after = await database.query<Beat>(SELECT);
  return after.some(({ name, beat }) =>
    !before.some((known) => known.name === name && known.beat === beat)
  );
}
