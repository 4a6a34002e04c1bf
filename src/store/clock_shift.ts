import { type Database } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { moveTurns } from "./deliveries.ts";
import { EARLIER_TURN } from "./subscriptions.ts";

/** How many rows one batch shifts, so that no other write waits for long. */
const BATCH = 500;

/** How often processes on this database have found the clock set. */
export async function countClockSteps(database: Database): Promise<number> {
  const [row] = await database.query<{ count: number }>(sql`SELECT count FROM clock_steps`);
  return row?.count ?? 0;
}

/** Counts one step more; false where another process was faster. */
export async function takeClockStep(database: Database, count: number): Promise<boolean> {
  const [changed] = await database.write([
    sql`UPDATE clock_steps SET count = count + 1 WHERE count = ${count}`,
  ]);
  return changed === 1;
}

/** Rows to walk through by their keys, the next of which `select` finds after `?1`. */
interface Walk {
  readonly select: string;
  readonly first: string | number;
  /** Shifts the rows of the keys (JSON). */
  readonly shift: (keys: string) => Sql[];
}

/**
 * Makes the shift by `stepMs` of all that waits, since the clock that read `nowMs` has been set by so
 * much: resends and leases, cronjobs and theirs, and since when subscriptions have failed. In bounded
 * batches; called again after it has thrown it goes on with the one that was not stored.
 */
export function createShift(
  database: Database,
  nowMs: number,
  stepMs: number,
): () => Promise<void> {
  const dueMs = Math.min(nowMs, nowMs + stepMs); // what is due by both clocks stays so
  const walks: Walk[] = [
    {
      select: `SELECT name AS key FROM cronjobs WHERE name > ?1 ORDER BY name LIMIT ${BATCH}`,
      first: "",
      shift: (keys) => [sql`UPDATE cronjobs SET nextAtMs = nextAtMs + ${stepMs}, leaseUntilMs = leaseUntilMs + ${stepMs}
         WHERE name IN (SELECT value FROM json_each(${keys})) AND max(nextAtMs, leaseUntilMs) > ${dueMs}`],
    },
    {
      select: `SELECT id AS key FROM deliveries
        WHERE status = 'pending' AND id > ?1 ORDER BY id LIMIT ${BATCH}`,
      first: "",
      // What has just been made is due at once by the new clock already.
      shift: (keys) => [sql`UPDATE deliveries SET dueAtMs = dueAtMs + ${stepMs}
         WHERE id IN (SELECT value FROM json_each(${keys})) AND status = 'pending' AND dueAtMs > ${dueMs}
           AND (${stepMs} < 0 OR attempt > 0 OR claim IS NOT NULL)`],
    },
    {
      select: `SELECT seq AS key FROM subscriptions
        WHERE seq > ?1 AND status IN ('active', 'paused')
          AND (dueAtMs IS NOT NULL OR failingSinceMs IS NOT NULL) ORDER BY seq LIMIT ${BATCH}`,
      first: 0,
      shift: (keys) => [
        moveTurns(JSON.parse(keys), EARLIER_TURN, nowMs + stepMs),
        sql`UPDATE subscriptions SET failingSinceMs = failingSinceMs + ${stepMs}
           WHERE seq IN (SELECT value FROM json_each(${keys})) AND failingSinceMs IS NOT NULL`,
      ],
    },
  ];
  let [walk, ...rest] = walks;
  let after = walk?.first;
  return async () => {
    while (walk !== undefined && after !== undefined) {
      const rows = await database.query<{ key: string | number }>(walk.select, [after]);
      const last = rows.at(-1)?.key;
      if (last === undefined) {
        [walk, ...rest] = rest;
        after = walk?.first;
      } else {
        await database.write(walk.shift(JSON.stringify(rows.map(({ key }) => key))));
        after = last;
      }
    }
  };
}
