import { idTimeMs } from "../base/id.ts";
import type { Database } from "../database/database.ts";
import { findRow, parseScopes, type RowOf } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { type Caller, PERSONAL_APP } from "../oauth/principal.ts";
import { type ListedGrant, NOT_BEFORE, partiesHold, type RefreshHandle } from "./grants.ts";
import { isGrantActive } from "./subscriptions.ts";

/** How many personal tokens a user may have at once. */
export const PERSONAL_TOKENS = 100;

/** Holds at commit: the caller's token is still valid. */
export function isCallerActive({ grantId, jti }: Pick<Caller, "grantId" | "jti">): Sql {
  const isRevoked = sql`EXISTS (SELECT 1 FROM revocations WHERE target = ${jti})`;
  return sql`${isGrantActive(grantId)} AND NOT ${isRevoked}`;
}

/**
 * Stores a user's personal token, a grant of its own, by its SHA-256. 0 rows change if the user has
 * reached the limit or lost a scope, or if `isLoggedIn` does not hold: a login that has ended must
 * not leave a token behind.
 */
export function insertPersonalToken(
  { id, name, scopes, accessUntilMs }: ListedGrant,
  user: string,
  hash: Uint8Array,
  isLoggedIn: Sql,
  nowMs: number,
): Sql {
  const json = JSON.stringify(scopes);
  return sql`INSERT INTO grants
      (id, app, user, type, name, scopes, token, refreshUntilMs, accessUntilMs)
    SELECT ${id}, ${PERSONAL_APP}, ${user}, ${PERSONAL_APP}, ${name}, ${json}, ${hash}, 0,
      ${accessUntilMs}
    WHERE ${isLoggedIn} AND ${partiesHold(sql`${user}`, sql`${PERSONAL_APP}`, sql`NULL`)(json)}
      AND (SELECT count(*) FROM grants INDEXED BY grants_of_user WHERE user = ${user}
        AND revokedAtMs IS NULL AND app = ${PERSONAL_APP} AND untilMs > ${nowMs})
        < ${PERSONAL_TOKENS}`;
}

/** Finds the caller of a personal token; undefined if it has ended, alone or with its user. */
export async function findPersonalCaller(
  database: Database,
  { grantId, hash }: Pick<RefreshHandle, "grantId" | "hash">,
  nowMs: number,
): Promise<Caller | undefined> {
  const row = await findRow<RowOf<Pick<Caller, "sub" | "scopes" | "expiresAtMs">>>(
    database,
    sql`SELECT user AS sub, scopes, accessUntilMs AS expiresAtMs FROM grants
      WHERE id = ${grantId} AND token = ${hash} AND revokedAtMs IS NULL
        AND accessUntilMs > ${nowMs} AND ${NOT_BEFORE} < ${idTimeMs(grantId)}`,
  );
  const own = { kind: "user", clientId: PERSONAL_APP, grantId, jti: grantId } as const;
  return row && { ...own, ...parseScopes(row) };
}
