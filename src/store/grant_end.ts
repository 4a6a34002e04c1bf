import { idBound } from "../base/id.ts";
import { sql, type SqlValue, type Statement } from "./database.ts";
import { revocation } from "./revocations.ts";
import { endSubscriptions } from "./subscription_end.ts";

/** Why subscriptions end together with the grant that they live by. */
export const REVOKED = "grant revoked";

/** Ends a grant with every token and subscription of it, at once and in every process. */
export function revokeGrant(id: string, nowMs: number): Statement[] {
  return [...revokeWhere("id = ?2", nowMs, id), ...endSubscriptions({ grant: id }, REVOKED, nowMs)];
}

/**
 * Ends every standing grant of an app, or of a user through it, the codes that wait, and the
 * subscriptions that were made so.
 */
export function revokeGrantsOf(
  { user, app }: { readonly user?: string | undefined; readonly app: string },
  nowMs: number,
  reason = REVOKED,
): Statement[] {
  const where = user === undefined ? "app = ?2" : "app = ?2 AND user = ?3";
  const params = user === undefined ? [app] : [app, user];
  return [
    ...revokeWhere(where, nowMs, ...params),
    sql(`DELETE FROM codes WHERE ${where}`, nowMs, ...params),
    ...endSubscriptions(user === undefined ? { app } : { user, app }, reason, nowMs),
  ];
}

/** Ends one access token and nothing else of its grant. */
export function revokeAccessToken(jti: string, expiresAtMs: number): Statement {
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
): Statement[] {
  if (scopes.length === 0) return [];
  const [column, id] = "user" in of ? ["user", of.user] : ["app", of.app];
  const carries = `${column} = ?2 AND EXISTS (SELECT 1 FROM json_each(?3) lost
    WHERE instr(' ' || scope || ' ', ' ' || lost.value || ' ') > 0)`;
  const params = [id, JSON.stringify(scopes)];
  return [
    ...revokeWhere(carries, nowMs, ...params),
    sql(`DELETE FROM codes WHERE ${carries}`, nowMs, ...params),
    ...endSubscriptions({ ...of, scopes }, "scope removed", nowMs),
  ];
}

/**
 * Ends every token of a user or an app that comes from a grant made until now, for as long as the
 * longest-lived of them could be alive. Ids lie ahead of the clock after it has stepped back; such
 * grants and codes are ended one by one.
 */
export function cutGrants(
  of: { readonly user: string } | { readonly app: string },
  nowMs: number,
  accessTtlMs: number,
): Statement[] {
  const [column, id] = "user" in of ? ["user", of.user] : ["app", of.app];
  const ahead = idBound("g", nowMs + 1);
  return [
    sql(
      `INSERT INTO revocations (target, cut_at, until)
       SELECT ?1, ?2, max(?3, ifnull(max(access_until), 0)) FROM grants WHERE ${column} = ?1`,
      id,
      nowMs,
      nowMs + accessTtlMs,
    ),
    ...revokeWhere(`${column} = ?2 AND id >= ?3`, nowMs, id, ahead),
    sql(`DELETE FROM codes WHERE ${column} = ?1 AND id >= ?2`, id, ahead),
  ];
}

/** Ends the standing grants that `where` picks, with parameters from `?2` on. */
function revokeWhere(where: string, nowMs: number, ...params: readonly SqlValue[]): Statement[] {
  const stands = `revoked_at IS NULL AND until > ?1 AND ${where}`;
  return [
    // Without a time, unlike a user's or an app's: a grant that has ended makes no more tokens.
    sql(
      `INSERT INTO revocations (target, cut_at, until)
       SELECT id, access_until, access_until FROM grants WHERE ${stands} AND access_until > ?1`,
      nowMs,
      ...params,
    ),
    sql(`UPDATE grants SET revoked_at = ?1 WHERE ${stands}`, nowMs, ...params),
  ];
}
