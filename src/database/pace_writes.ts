import type { Database } from "./database.ts";

/**
 * Returns the same database with a pause after each write: `times` as long as the write took.
 * SQLite's lock is not fair, so a process that writes batch upon batch would keep another one
 * waiting until it times out.
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
