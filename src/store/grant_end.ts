import { hasScope } from "./authority.ts";
import { idBound } from "../base/id.ts";
import { type Database } from "../database/database.ts";
import { sql, type Sql, type SqlValue } from "../database/sql.ts";
import { LOGIN_APP } from "../oauth/principal.ts";
import { revocation } from "./revocations.ts";
import { endSubscriptions } from "./subscription_end.ts";

/** Why subscriptions end together with the grant that they live by. */
export const REVOKED = "grant revoked";

/** How many grants end in one write, where there may be very many. */
const BATCH = 500;

/** Ends a grant with every token and subscription of it, at once and in every process. */
export function revokeGrant(id: string, nowMs: number): Sql[] {
  return [...revokeWhere("id = ?2", nowMs, id), ...endSubscriptions({ grant: id }, REVOKED, nowMs)];
}

/** Ends every standing grant of a user that came from the login endpoint, and what lives by them. */
export function revokeLoginsOf(user: string, nowMs: number): Sql[] {
  return [
    ...revokeWhere("user = ?2 AND app = 'login'", nowMs, user),
    ...endSubscriptions({ user, app: LOGIN_APP }, REVOKED, nowMs),
  ];
}

/** Ends every standing grant of the login endpoint, in steps that no other write waits long for. */
export async function revokeAllLogins(database: Database, nowMs: number): Promise<void> {
  for (let last = ""; ;) {
    const rows = await database.query<{ id: string }>(
      `SELECT id FROM grants WHERE app = 'login' AND id > ?1 ORDER BY id LIMIT ${BATCH}`,
      [last],
    );
    if (rows.length === 0) return;
    const ids = JSON.stringify(rows.map(({ id }) => id));
    await database.write(revokeWhere("id IN (SELECT value FROM json_each(?2))", nowMs, ids));
    last = rows.at(-1)?.id ?? last;
  }
}

/** Ends one access token and nothing else of its grant. */
export function revokeAccessToken(jti: string, expiresAtMs: number): Sql {
  return revocation(jti, expiresAtMs, expiresAtMs);
}

/**
 * Ends every standing grant of a user or an app that carries any of the scopes, and such codes and
 * subscriptions.
 */
export function revokeGrantsWithScopes(
  of: { readonly user: string } | { readonly app: string },
  scopes: readonly string[],
  nowMs: number,
): Sql[] {
  if (scopes.length === 0) return [];
  const [column, id] = "user" in of ? ["user", of.user] : ["app", of.app];
  const carries = `${column} = ?2 AND EXISTS (SELECT 1 FROM json_each(?3) lost
    WHERE ${hasScope("scopes", "lost.value")})`;
  const params = [id, JSON.stringify(scopes)];
  return [
    ...revokeWhere(carries, nowMs, ...params),
    sql(`DELETE FROM codes WHERE ${carries}`, nowMs, ...params),
    ...endSubscriptions({ ...of, scopes }, "scope removed", nowMs),
  ];
}

/** A user, an app, or a user through an app. */
export type GrantParties =
  | { readonly user: string; readonly app?: string }
  | { readonly user?: never; readonly app: string };

// A token's `exp` is in whole seconds, at least one.
const TOKEN_SLACK_MS = 1000;

/**
 * Ends every token of a user, an app, or a user through an app that comes from a grant made until
 * now, for as long as the longest-lived of them could be alive: that costs the same however many
 * they are. Ids lie ahead of the clock after it has stepped back; such grants and codes are ended
 * one by one.
 */
export function revokeGrantsOf(
  { user, app }: GrantParties,
  nowMs: number,
  accessTtlMs: number,
): Sql[] {
  const ids = [user, app].filter((id) => id !== undefined);
  const where = [
    ...user === undefined ? [] : ["user = ?2"],
    ...app === undefined ? [] : [`app = ?${ids.length + 1}`],
    `id >= ?${ids.length + 2}`,
  ].join(" AND ");
  const params = [...ids, idBound("g", nowMs + 1)];
  return [
    revokeTokensOf(ids.join(" "), nowMs, accessTtlMs),
    ...revokeWhere(where, nowMs, ...params),
    sql(`DELETE FROM codes WHERE ${where}`, nowMs, ...params),
  ];
}

/** Ends the access tokens of a user, an app (or `login`) or both whose grant was made until now. */
export function revokeTokensOf(target: string, nowMs: number, accessTtlMs: number): Sql {
  return sql`INSERT INTO revocations (target, notBeforeMs, untilMs)
     SELECT ${target}, ${nowMs}, ${nowMs} + max(${accessTtlMs + TOKEN_SLACK_MS}, ifnull(max(tokenTtlMs), 0)) FROM keys`;
}

/** Ends the standing grants that `where` picks, with parameters from `?2` on. */
function revokeWhere(where: string, nowMs: number, ...params: readonly SqlValue[]): Sql[] {
  return [
    sql(
      `UPDATE grants SET revokedAtMs = ?1 WHERE revokedAtMs IS NULL AND untilMs > ?1 AND ${where}`,
      nowMs,
      ...params,
    ),
  ];
}
