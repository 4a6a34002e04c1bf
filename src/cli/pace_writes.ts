import type { Database } from "../database/database.ts";

/**
 * The same database, left to others after each write for as long as that took: SQLite's lock is not
 * given in turns, so a command that writes batch upon batch would keep a server beside it waiting.
 */
export function paceWrites<Kind extends Database>(
  database: Kind,
  { elapsedMs, sleep }: { elapsedMs(): number; sleep(ms: number): Promise<void> },
): Kind {
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
