import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "./database.ts";
import { sql } from "./sql.ts";

/** A row for each server and each delivery thread, whose beat rises for as long as it is alive. */
export const RQLITE_PROCESSES = sql`CREATE TABLE IF NOT EXISTS processes
  (name TEXT PRIMARY KEY, beat INTEGER NOT NULL) STRICT, WITHOUT ROWID`;

const BEAT_MS = 1_000;
/** A process whose beat has not risen for so long has ended. */
const ENDED_AFTER_MS = 5_000;
/** A longer gap between two looks does not count: no rising beat could be seen in it. */
const MAX_GAP_MS = 2_500;

const SELECT = sql`SELECT name, beat FROM processes`;

interface Beat {
  readonly name: string;
  readonly beat: number;
}

/**
 * Shows other processes on this cluster that the process `name` is alive, by a beat each second,
 * the first before this resolves. Judges by its own monotonic clock whether others have ended, so
 * no clocks are compared.
 *
 * @param elapsedMs a monotonic clock, in milliseconds
 */
export async function acquireRqlitePresence(
  database: Database,
  name: string,
  elapsedMs = () => performance.now(),
) {
  const raise = sql`INSERT INTO processes (name, beat) VALUES (${name}, 1)
    ON CONFLICT (name) DO UPDATE SET beat = beat + 1`;
  const remove = (gone: string) => sql`DELETE FROM processes WHERE name = ${gone}`;
  /** The other processes, and for how long their beats have not been seen to rise. */
  let others = new Map<string, Beat & { readonly sinceRiseMs: number }>();
  let lastLookMs = -Infinity;
  let beating: Promise<void> | undefined;

  async function beat(): Promise<void> {
    await database.write([raise]);
    const rows = await database.query<Beat>(SELECT);
    const sinceMs = elapsedMs() - lastLookMs;
    const seenMs = sinceMs <= MAX_GAP_MS ? sinceMs : 0;
    lastLookMs = elapsedMs();
    others = new Map(rows.filter((row) => row.name !== name).map((row) => {
      const last = others.get(row.name);
      const sinceRiseMs = last?.beat === row.beat ? last.sinceRiseMs + seenMs : 0;
      return [row.name, { ...row, sinceRiseMs }];
    }));
  }

  await beat();
  const timer = setInterval(() => {
    beating ??= beat().catch(() => {}).finally(() => beating = undefined); // the next beat makes up
  }, BEAT_MS);

  return {
    /** Calls `release` with the name of each process that has ended, as presence.ts does. */
    async forEnded(release: (name: string) => Promise<void>): Promise<void> {
      for (const { name: other, sinceRiseMs } of others.values()) {
        if (sinceRiseMs < ENDED_AFTER_MS) continue;
        await release(other);
        await database.write([remove(other)]);
        others.delete(other);
      }
    },
    /** Shows other processes that this one has released everything. */
    async close(): Promise<void> {
      clearInterval(timer);
      await beating;
      await database.write([remove(name)]).catch(() => {}); // without it they notice later
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
