import { idBound } from "../base/id.ts";
import type { Database } from "../database/database.ts";
import { MAX_SKEW_MS } from "../database/rqlite_clock.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import { BUILT_IN_APPS } from "../oauth/principal.ts";
import { isOf, revokeWhere } from "./grant_end.ts";

/** The time until which all grants of a user, an app, or a user through an app have ended. */
interface End {
  readonly user: string | null;
  readonly app: string | null;
  readonly notBeforeMs: number;
}

/**
 * Moves each `notBeforeMs` that is ahead, because the clock was set back, to now: nobody could log
 * in before it. Grants, codes and sessions made in between stay ended, row by row.
 */
export async function dateEndsAhead(database: Database, nowMs: number): Promise<void> {
  const isAhead = sql`notBeforeMs > ${nowMs + MAX_SKEW_MS}`; // ahead of every correct clock
  const ends = await database.query<End>(
    sql`SELECT id AS user, NULL AS app, notBeforeMs FROM users WHERE ${isAhead}
      UNION ALL SELECT NULL, id, notBeforeMs FROM apps WHERE ${isAhead}
      UNION ALL SELECT user, app, notBeforeMs FROM consents WHERE ${isAhead}
      UNION ALL SELECT NULL, target, max(notBeforeMs) FROM revocations
        WHERE target IN ${listOf(BUILT_IN_APPS)} AND ${isAhead} GROUP BY target`,
  );
  for (const end of ends) await database.write(dateEnd(end, isAhead, nowMs));
}

function dateEnd({ user, app, notBeforeMs }: End, isAhead: Sql, nowMs: number): Sql[] {
  const parties = { ...user !== null && { user }, ...app !== null && { app } };
  const target = Object.values(parties).join(" ");
  const [first, after] = [idBound("g", nowMs + 1), idBound("g", notBeforeMs + 1)];
  const ended = sql`${isOf(parties)} AND id >= ${first} AND id < ${after}`;
  const date = (table: Sql, key: Sql) =>
    sql`UPDATE ${table} SET notBeforeMs = ${nowMs} WHERE ${key} AND ${isAhead}`;
  const ofTarget = sql`target = ${target} AND ${isAhead}`;
  return [
    revokeWhere(ended, nowMs),
    sql`DELETE FROM codes WHERE ${ended}`,
    ...app !== null ? [] : [
      sql`DELETE FROM sessions
        WHERE user = ${user} AND createdAtMs > ${nowMs} AND createdAtMs <= ${notBeforeMs}`,
    ],
    user === null ? date(sql`apps`, sql`id = ${app}`)
      : app === null ? date(sql`users`, sql`id = ${user}`)
      : date(sql`consents`, sql`user = ${user} AND app = ${app}`),
    sql`INSERT INTO revocations (target, notBeforeMs, untilMs)
      SELECT target, ${nowMs}, max(untilMs) FROM revocations WHERE ${ofTarget} GROUP BY target`,
    sql`DELETE FROM revocations WHERE ${ofTarget}`,
  ];
}
