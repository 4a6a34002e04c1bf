import type { Database } from "../database/database.ts";

/** The time that writes are paced by, in milliseconds. */
export interface Pace {
  readonly elapsedMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/**
 * The same database, left to others after each write for as long as that took: SQLite's lock is not
 * given in turns, so a command that writes batch upon batch would keep a server beside it waiting.
 */
export function paceWrites(database: Database, { elapsedMs, sleep }: Pace): Database {
  let restUntilMs = 0;
  return {
    ...database,
    async write(statements) {
      const restMs = restUntilMs - elapsedMs();
      if (restMs > 0) await sleep(restMs);
      const startedMs = elapsedMs();
      try {
        return await database.write(statements);
      } finally {
        restUntilMs = 2 * elapsedMs() - startedMs;
      }
    },
  };
}
