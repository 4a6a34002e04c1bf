import { hasScope } from "./authority.ts";
import { idTimeMs } from "../base/id.ts";
import { type AuditRecord, insertAuditOfGrant } from "./audit.ts";
import { type Database, type Page, pageOf, type Pagination } from "../database/database.ts";
import { sql } from "../database/sql.ts";
import { endExcessGrants } from "./grant_limit.ts";
import type { Revocations } from "./revocations.ts";

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
  /** When it was decided, where that was before the id was made: what was cut since stays cut. */
  readonly decidedAtMs?: number;
}

interface GrantRow {
  id: string;
  app: string;
  user: string | null;
  type: string;
  scopes: string;
  refreshUntilMs: number;
  accessUntilMs: number;
  revokedAtMs: number | null;
}

const COLUMNS = `id, app, user, type, scopes, refreshUntilMs,
  accessUntilMs, revokedAtMs`;

function toGrant(row: GrantRow): Grant {
  return { ...row, scopes: JSON.parse(row.scopes) };
}

/**
 * Holds at commit: the user and the app of a grant still exist, are active, and have not been cut
 * off, each alone or one from the other, since the grant's time. `login` is no app of the table,
 * and an app for itself has no user.
 */
export function arePartiesActive(user: string, app: string, grantTime: string): string {
  return `(${user} IS NULL OR EXISTS (SELECT 1 FROM users u
      WHERE u.id = ${user} AND u.status = 'active' AND u.notBeforeMs < ${grantTime}
        AND NOT EXISTS (SELECT 1 FROM consents c
          WHERE c.user = u.id AND c.app = ${app} AND c.notBeforeMs >= ${grantTime})))
    AND (${app} = 'login' OR EXISTS (SELECT 1 FROM apps a
      WHERE a.id = ${app} AND a.status = 'active' AND a.notBeforeMs < ${grantTime}))`;
}

/**
 * Holds at commit: the user and the app of a grant still have each of the scopes, a JSON array.
 * What they lost between the decision and the commit is not granted.
 */
export function partiesHoldScopes(user: string, app: string, scopes: string): string {
  const has = hasScope("scopes", "wanted.value");
  return `NOT EXISTS (SELECT 1 FROM json_each(${scopes}) wanted
    WHERE (${user} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users WHERE id = ${user} AND ${has}))
      OR (${app} <> 'login' AND NOT EXISTS (SELECT 1 FROM apps WHERE id = ${app} AND ${has})))`;
}

const INSERT_GRANT =
  `INSERT INTO grants (id, app, user, type, scopes, refresh, refreshUntilMs, accessUntilMs)
   SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
   WHERE ${arePartiesActive("?3", "?2", "?9")} AND ${partiesHoldScopes("?3", "?2", "?10")}`;

/**
 * Stores a grant, with an entry of the audit beside it, and ends those of its user that are too
 * many with it; false, and it is not stored, when its user or app has been disabled or cut off or has
 * lost a scope meanwhile. The revocations take in what has ended.
 */
export async function insertGrant(
  database: Database,
  grant: NewGrant,
  audited?: AuditRecord,
  revocations?: Revocations,
): Promise<boolean> {
  const madeAtMs = idTimeMs(grant.id);
  const [inserted, ...changes] = await database.write([
    sql(
      INSERT_GRANT,
      grant.id,
      grant.app,
      grant.user,
      grant.type,
      JSON.stringify(grant.scopes),
      grant.refresh ?? null,
      grant.refreshUntilMs,
      grant.accessUntilMs,
      grant.decidedAtMs ?? madeAtMs,
      JSON.stringify(grant.scopes),
    ),
    ...audited ? [insertAuditOfGrant(grant.id, audited, madeAtMs)] : [],
    ...grant.user === null ? [] : endExcessGrants(grant.user, grant.app, madeAtMs),
  ]);
  if (grant.user !== null && changes.at(-1) !== 0) await revocations?.refresh();
  return inserted === 1;
}

const FIND_GRANT = `SELECT ${COLUMNS} FROM grants WHERE id = ?1`;

/** A grant by id, whether it still stands or not. */
export async function findGrant(database: Database, id: string): Promise<Grant | undefined> {
  const rows = await database.query<GrantRow>(FIND_GRANT, [id]);
  return rows.map(toGrant)[0];
}

/** A refresh token as it was presented. */
export interface RefreshHandle {
  readonly grantId: string;
  /** SHA-256 of its text. */
  readonly hash: Uint8Array;
  /** Whether it proves by itself that it was issued; those of 0.1.0 do not. */
  readonly isGenuine: boolean;
}

/**
 * What a presented refresh token is: good now; the one before, exchanged a moment ago; or exchanged
 * before.
 */
export interface PresentedRefreshToken {
  readonly grant: Grant;
  readonly state: "current" | "previous" | "used";
}

/** How long the answer to an exchange may be asked for again. */
const RETRY_MS = 30_000;

const FIND_REFRESH_TOKEN =
  `SELECT ${COLUMNS}, CASE WHEN refresh = ?2 THEN 'current'
     WHEN previous = ?2 AND rotatedAtMs > ?3 THEN 'previous'
     WHEN ?4 OR EXISTS (SELECT 1 FROM used_refresh_tokens WHERE grantId = id AND hash = ?2)
       THEN 'used' END AS state
   FROM grants WHERE id = ?1`;

/** Finds the grant of a refresh token; undefined when the token was never issued. */
export async function findRefreshToken(
  database: Database,
  { grantId, hash, isGenuine }: RefreshHandle,
  nowMs: number,
): Promise<PresentedRefreshToken | undefined> {
  const rows = await database.query<GrantRow & { state: PresentedRefreshToken["state"] | null }>(
    FIND_REFRESH_TOKEN,
    [grantId, hash, nowMs - RETRY_MS, isGenuine ? 1 : 0],
  );
  const [row] = rows;
  if (!row || row.state === null) return undefined;
  const { state, ...grant } = row;
  return { grant: toGrant(grant), state };
}

/** One exchange of a refresh token for the next. */
export interface RefreshRotation {
  readonly old: RefreshHandle;
  /** What it was when it was looked up. */
  readonly state: "current" | "previous";
  readonly newHash: Uint8Array;
  /** Of the access token that comes with it. */
  readonly scopes: readonly string[];
  readonly refreshUntilMs: number;
  readonly accessUntilMs: number;
}

const rotation = (presented: "refresh" | "previous", previous: string) =>
  `UPDATE grants SET refresh = ?3, previous = ${previous}, rotatedAtMs = ?6, refreshUntilMs = ?4,
     accessUntilMs = max(accessUntilMs, ?5)
   WHERE id = ?1 AND ${presented} = ?2 AND revokedAtMs IS NULL AND refreshUntilMs > ?6
     AND ${arePartiesActive("grants.user", "grants.app", "?7")}
     AND ${partiesHoldScopes("grants.user", "grants.app", "?8")}`;

const ROTATIONS = {
  current: rotation("refresh", "refresh"),
  previous: rotation("previous", "NULL"), // once more, and not again
};

/**
 * Puts the new refresh token in the place of the current one (RFC 6749 §6, RFC 9700 §4.14.2). Of
 * any number that were looked up in one state exactly one succeeds; false when the old one is not in
 * that state any more, or the grant, its user or its app has ended meanwhile.
 */
export async function rotateRefreshToken(
  database: Database,
  { old, state, newHash, ...rotation }: RefreshRotation,
  nowMs: number,
): Promise<boolean> {
  const { grantId, hash, isGenuine } = old;
  const [rotated] = await database.write([
    sql(
      ROTATIONS[state],
      grantId,
      hash,
      newHash,
      rotation.refreshUntilMs,
      rotation.accessUntilMs,
      nowMs,
      idTimeMs(grantId),
      JSON.stringify(rotation.scopes),
    ),
    ...isGenuine ? [] : [sql`INSERT INTO used_refresh_tokens (grantId, hash)
       SELECT id, ${hash} FROM grants WHERE id = ${grantId} AND refresh = ${newHash} ON CONFLICT DO NOTHING`],
  ]);
  return rotated === 1;
}

/** A grant as it is listed: with what has become of it. */
export type ListedGrant = Grant & { readonly status: "active" | "expired" | "revoked" };

/** Grants of a user or an app or both, newest first; those that ended wait there for the purge. */
export async function listGrants(
  database: Database,
  filter: { readonly user?: string | undefined; readonly app?: string | undefined },
  page: Pagination,
  nowMs: number,
): Promise<Page<ListedGrant>> {
  const { user, app } = filter;
  const values = [page.before, page.limit + 1, user ?? null, app ?? null];
  // SQLite knows no parameter beyond the last one that stands in the statement.
  const named = app !== undefined ? 4 : user !== undefined ? 3 : 2;
  const rows = await database.query<GrantRow & { notBeforeMs: number | null }>(
    `SELECT ${COLUMNS}, max(
       CASE WHEN user IS NULL THEN 0 ELSE (SELECT notBeforeMs FROM users WHERE id = grants.user) END,
       CASE app WHEN 'login' THEN 0 ELSE (SELECT notBeforeMs FROM apps WHERE id = grants.app) END,
       ifnull((SELECT notBeforeMs FROM consents c WHERE c.user = grants.user AND c.app = grants.app), 0)
     ) AS notBeforeMs FROM grants
     WHERE id < ?1 ${user === undefined ? "" : "AND user = ?3"}
       ${app === undefined ? "" : "AND app = ?4"}
     ORDER BY id DESC LIMIT ?2`,
    values.slice(0, named),
  );
  const listed = rows.map(({ notBeforeMs, ...row }) => ({
    ...toGrant(row),
    status: statusOf(row, notBeforeMs, nowMs),
  }));
  return pageOf(listed, page);
}

/** `notBeforeMs` is null where the user or the app has been deleted. */
function statusOf(row: GrantRow, notBeforeMs: number | null, nowMs: number): ListedGrant["status"] {
  const isCut = notBeforeMs === null || notBeforeMs >= idTimeMs(row.id);
  if (row.revokedAtMs !== null || isCut) return "revoked";
  return Math.max(row.refreshUntilMs, row.accessUntilMs) > nowMs ? "active" : "expired";
}
