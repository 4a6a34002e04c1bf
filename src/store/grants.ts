import { idTimeMs } from "../base/id.ts";
import { parseScope } from "../oauth/scope.ts";
import { type Database, type Page, pageOf, type PageRequest, sql, type Statement } from "./database.ts";
import { revocation } from "./revocations.ts";

/** One authorization: what its tokens may do, for whom, and how long. */
export interface Grant {
  readonly id: string;
  /** The `client_id` of the app, or `login`. */
  readonly app: string;
  /** None where the app acts for itself. */
  readonly user: string | null;
  readonly type: string;
  readonly scopes: readonly string[];
  readonly refreshUntilMs: number;
  readonly accessUntilMs: number;
  readonly revokedAtMs: number | null;
}

/** A grant as it is first stored; hashes are SHA-256. */
export interface NewGrant {
  readonly id: string;
  readonly app: string;
  readonly user: string | null;
  readonly type: string;
  readonly scopes: readonly string[];
  readonly refresh: Uint8Array | undefined;
  readonly refreshUntilMs: number;
  readonly accessUntilMs: number;
}

interface GrantRow {
  id: string;
  app: string;
  user: string | null;
  type: string;
  scope: string;
  refreshUntilMs: number;
  accessUntilMs: number;
  revokedAtMs: number | null;
}

const columns = `id, app, user, type, scope, refresh_until AS refreshUntilMs,
  access_until AS accessUntilMs, revoked_at AS revokedAtMs`;

function toGrant(row: GrantRow): Grant {
  const { scope, ...rest } = row;
  return { ...rest, scopes: parseScope(scope) ?? [] };
}

/**
 * Holds at commit: the user and the app of a grant still exist, are active, and have not been cut
 * off since the grant's time. `login` is no app of the table, and an app for itself has no user.
 */
export function partiesStand(user: string, app: string, grantTime: string): string {
  return `(${user} IS NULL OR EXISTS (SELECT 1 FROM users u
      WHERE u.id = ${user} AND u.status = 'active' AND u.cut_at < ${grantTime}))
    AND (${app} = 'login' OR EXISTS (SELECT 1 FROM apps a
      WHERE a.id = ${app} AND a.status = 'active' AND a.cut_at < ${grantTime}))`;
}

/** Stores a grant; false when its user or app has been disabled or cut off meanwhile. */
export async function insertGrant(
  database: Database,
  grant: NewGrant,
): Promise<boolean> {
  const [inserted] = await database.write([
    sql(
      `INSERT INTO grants (id, app, user, type, scope, refresh, refresh_until, access_until)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE ${partiesStand("?3", "?2", "?9")}`,
      grant.id,
      grant.app,
      grant.user,
      grant.type,
      grant.scopes.join(" "),
      grant.refresh ?? null,
      grant.refreshUntilMs,
      grant.accessUntilMs,
      idTimeMs(grant.id),
    ),
  ]);
  return inserted === 1;
}

/** A grant by id, whether it still stands or not. */
export async function findGrant(database: Database, id: string): Promise<Grant | undefined> {
  const rows = await database.query<GrantRow>(`SELECT ${columns} FROM grants WHERE id = ?1`, [id]);
  return rows.map(toGrant)[0];
}

/** What a presented refresh token is: good now, exchanged before, or never issued. */
export interface PresentedRefreshToken {
  readonly grant: Grant;
  readonly state: "current" | "used";
}

/** Finds the grant of a refresh token by the grant's id and the token's hash. */
export async function findRefreshToken(
  database: Database,
  grantId: string,
  hash: Uint8Array,
): Promise<PresentedRefreshToken | undefined> {
  const rows = await database.query<GrantRow & { current: number; used: number }>(
    `SELECT ${columns}, refresh IS ?2 AS current, EXISTS (SELECT 1 FROM used_refresh_tokens
       WHERE grant_id = id AND hash = ?2) AS used
     FROM grants WHERE id = ?1`,
    [grantId, hash],
  );
  const row = rows[0];
  if (!row || (!row.current && !row.used)) return undefined;
  const { current, used: _, ...grant } = row;
  return { grant: toGrant(grant), state: current ? "current" : "used" };
}

/** One exchange of a refresh token for the next. */
export interface RefreshRotation {
  readonly grantId: string;
  readonly oldHash: Uint8Array;
  readonly newHash: Uint8Array;
  readonly refreshUntilMs: number;
  readonly accessUntilMs: number;
}

/**
 * Puts the new refresh token in the place of the old one and remembers the old one (RFC 6749 §6,
 * RFC 9700 §4.14.2). Of any number at once exactly one succeeds; false when the old one is not good
 * any more, or the grant, its user or its app has ended meanwhile.
 */
export async function rotateRefreshToken(
  database: Database,
  rotation: RefreshRotation,
  nowMs: number,
): Promise<boolean> {
  const { grantId, oldHash, newHash } = rotation;
  const [rotated] = await database.write([
    sql(
      `UPDATE grants SET refresh = ?3, refresh_until = ?4, access_until = max(access_until, ?5)
       WHERE id = ?1 AND refresh = ?2 AND revoked_at IS NULL AND refresh_until > ?6
         AND ${partiesStand("user", "app", "?7")}`,
      grantId,
      oldHash,
      newHash,
      rotation.refreshUntilMs,
      rotation.accessUntilMs,
      nowMs,
      idTimeMs(grantId),
    ),
    sql(
      `INSERT INTO used_refresh_tokens (grant_id, hash)
       SELECT id, ?2 FROM grants WHERE id = ?1 AND refresh = ?3`,
      grantId,
      oldHash,
      newHash,
    ),
  ]);
  return rotated === 1;
}

/** Grants of a user or an app or both, newest first; those that ended wait there for the purge. */
export async function listGrants(
  database: Database,
  filter: { readonly user?: string | undefined; readonly app?: string | undefined },
  page: PageRequest,
): Promise<Page<Grant>> {
  const rows = await database.query<GrantRow>(
    `SELECT ${columns} FROM grants
     WHERE id < ?1 ${filter.user === undefined ? "" : "AND user = ?3"}
       ${filter.app === undefined ? "" : "AND app = ?4"}
     ORDER BY id DESC LIMIT ?2`,
    [page.before, page.limit + 1, filter.user ?? null, filter.app ?? null],
  );
  return pageOf(rows.map(toGrant), page);
}

/** Ends a grant and every token of it, at once and in every process. */
export function revokeGrant(id: string, nowMs: number): Statement[] {
  return [
    sql("UPDATE grants SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL", id, nowMs),
    sql(
      `INSERT INTO revocations (target, cut_at, until)
       SELECT id, ?2, access_until FROM grants WHERE id = ?1 AND access_until > ?2`,
      id,
      nowMs,
    ),
  ];
}

/** Ends one access token and nothing else of its grant. */
export function revokeAccessToken(jti: string, expiresAtMs: number, nowMs: number): Statement {
  return revocation(jti, nowMs, expiresAtMs);
}

/** Ends every standing grant of a user or an app that carries any of the scopes. */
export function revokeGrantsWithScopes(
  of: { readonly user: string } | { readonly app: string },
  scopes: readonly string[],
  nowMs: number,
): Statement[] {
  if (scopes.length === 0) return [];
  const [column, id] = "user" in of ? ["user", of.user] : ["app", of.app];
  const carries = `${column} = ?1 AND until > ?2 AND EXISTS (SELECT 1 FROM json_each(?3) lost
    WHERE instr(' ' || scope || ' ', ' ' || lost.value || ' ') > 0)`;
  const params = [id, nowMs, JSON.stringify(scopes)] as const;
  return [
    sql(
      `INSERT INTO revocations (target, cut_at, until)
       SELECT id, ?2, access_until FROM grants
       WHERE ${carries} AND revoked_at IS NULL AND access_until > ?2`,
      ...params,
    ),
    sql(`UPDATE grants SET revoked_at = ?2 WHERE ${carries} AND revoked_at IS NULL`, ...params),
  ];
}
