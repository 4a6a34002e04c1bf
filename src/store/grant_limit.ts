import { sql, type Statement } from "./database.ts";

/** How many grants of a user stand at once: through one app, and in all. */
const GRANTS_OF_APP = 100;
const GRANTS_OF_USER = 500;
/** How many are ended at once; there are more than one only where there was no limit before. */
const BATCH = 500;

/**
 * Ends the oldest grants of a user that are too many with this new one, through its app or in all.
 * One that has expired, or ended with its app, counts until it is purged: no row is read to count.
 */
export function endExcessGrants(grantId: string, nowMs: number): Statement {
  const same = (column: string) => `${column} = (SELECT ${column} FROM grants WHERE id = ?2)`;
  const past = (limit: number, where: string) =>
    `SELECT * FROM (SELECT id FROM grants WHERE ${where} AND revoked_at IS NULL
       ORDER BY id DESC LIMIT ${BATCH} OFFSET ${limit})`;
  return sql(
    `UPDATE grants SET revoked_at = ?1 WHERE id IN (
       ${past(GRANTS_OF_APP, `${same("user")} AND ${same("app")}`)}
       UNION ALL ${past(GRANTS_OF_USER, same("user"))})`,
    nowMs,
    grantId,
  );
}
