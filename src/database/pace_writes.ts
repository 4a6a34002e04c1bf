import type { Database } from "./database.ts";

/**
 * The same database, left to others after each write for so many times as long as that took:
 * SQLite's lock is not given in turns, so who writes batch upon batch would keep another process
 * waiting until it gives up.
 */
export function paceWrites<Kind extends Database>(
  database: Kind,
  times = 1,
  elapsedMs = () => performance.now(),
  sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
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
        restUntilMs = elapsedMs() + times * (elapsedMs() - startedMs);
      }
    },
  };
}
