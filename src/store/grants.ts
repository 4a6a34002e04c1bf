import { hasScope, isOfNoApp } from "./authority.ts";
import { idTimeMs } from "../base/id.ts";
import { afterWrite } from "./after_write.ts";
import { insertAuditOfGrant, type NewAuditEntry } from "./audit.ts";
import { type Database, limitTo, type Page, type Pagination } from "../database/database.ts";
import { changesRow, findRow, NEWEST, pageOf, parseScopes, type RowOf } from "../database/rows.ts";
import { andIs, listOf, sql, type Sql } from "../database/sql.ts";
import { endExcessGrants } from "./grant_limit.ts";
import type { Revocations } from "./revocations.ts";

/** One authorization: what its tokens may do, for whom, and how long. */
export interface Grant {
  readonly id: string;
  /** The `client_id` of the app, `login` or `personal`. */
  readonly app: string;
  /** None where the app acts for itself. */
  readonly user: string | null;
  readonly type: string;
  readonly scopes: readonly string[];
  /** The registered resource that its tokens are for; none: this service. */
  readonly resource?: string | null;
  readonly refreshUntilMs: number;
  readonly accessUntilMs: number;
  readonly revokedAtMs: number | null;
}

/** A grant as it is first stored. */
export interface NewGrant extends Omit<Grant, "revokedAtMs"> {
  /** The SHA-256 of its refresh token. */
  readonly refresh: Uint8Array | undefined;
  /** When the grant was decided, if before its id was made: revocations since then cover it. */
  readonly decidedAtMs?: number;
}

const COLUMNS = sql`id, app, user, type, scopes, resource, refreshUntilMs, accessUntilMs,
  revokedAtMs`;

/**
 * The time until which all grants of the user, of the app, or of the user through the app are
 * revoked. NULL, which is before no time, if the user or the app is disabled, or if one of them or
 * the resource no longer exists. Built-in apps are in no table, an app that acts for itself has no
 * user, and a grant for this service has no resource.
 */
export function notBeforeOf(user: Sql, app: Sql, resource: Sql): Sql {
  return sql`max(
    iif(${resource} IS NULL, 0, (SELECT 0 FROM resources WHERE resources.id = ${resource})),
    iif(${user} IS NULL, 0,
      (SELECT notBeforeMs FROM users WHERE users.id = ${user} AND users.status = 'active')),
    iif(${isOfNoApp(app)}, 0,
      (SELECT notBeforeMs FROM apps WHERE apps.id = ${app} AND apps.status = 'active')),
    ifnull((SELECT notBeforeMs FROM consents c WHERE c.user = ${user} AND c.app = ${app}), 0))`;
}

const HAS_WANTED = hasScope(sql`scopes`, sql`wanted.value`);

/** Holds, at commit, if a grant's user, app and resource still have each of the scopes, in JSON. */
export function partiesHold(user: Sql, app: Sql, resource: Sql): (scopes: Sql | string) => Sql {
  const isLost = sql`(${user} IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM users WHERE id = ${user} AND ${HAS_WANTED}))
      OR (NOT ${isOfNoApp(app)}
        AND NOT EXISTS (SELECT 1 FROM apps WHERE id = ${app} AND ${HAS_WANTED}))
      OR (${resource} IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM resources WHERE id = ${resource} AND ${HAS_WANTED}))`;
  return (scopes) => sql`NOT EXISTS (SELECT 1 FROM json_each(${scopes}) wanted WHERE ${isLost})`;
}

// Built once: to build this for each exchange would take as long as its statement.
const NEW_PARTIES = [sql`g.user`, sql`g.app`, sql`g.resource`] as const;
const NEW_NOT_BEFORE = notBeforeOf(...NEW_PARTIES);
const NEW_PARTIES_HOLD_SCOPES = partiesHold(...NEW_PARTIES)(sql`g.scopes`);

/** Stores those of the grants that user, app and resource allow at this point of the batch. */
function insertGrants(grants: readonly NewGrant[]): Sql {
  const rows = grants.map((g) => {
    const hex = g.refresh && Buffer.from(g.refresh).toString("hex");
    const decidedAtMs = g.decidedAtMs ?? idTimeMs(g.id);
    return [g.id, g.app, g.user, g.type, g.scopes, hex, g.resource, g.refreshUntilMs,
      g.accessUntilMs, decidedAtMs];
  });
  const columns = sql`id, app, user, type, scopes, refresh, resource, refreshUntilMs,
    accessUntilMs`;
  // Materialized, so that each row and each value is taken out of the JSON once.
  return sql`WITH row AS MATERIALIZED (SELECT value AS v FROM json_each(${JSON.stringify(rows)})),
      g (${columns}, decidedAtMs) AS MATERIALIZED (SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3,
      v -> 4, unhex(v ->> 5), v ->> 6, v ->> 7, v ->> 8, v ->> 9 FROM row)
    INSERT INTO grants (${columns}) SELECT ${columns} FROM g
    WHERE ${NEW_NOT_BEFORE} < decidedAtMs AND ${NEW_PARTIES_HOLD_SCOPES}`;
}

/** The grants of this turn of the event loop that are stored alone, all by one statement. */
const gathered = new WeakMap<Database, ReturnType<typeof gather>>();

function gather(database: Database) {
  const grants: NewGrant[] = [];
  const stored = new Promise((resolve) => setImmediate(resolve)).then(async () => {
    gathered.delete(database);
    const [inserted] = await database.write([insertGrants(grants)]);
    if (inserted === grants.length) return grants;
    const ids = listOf(grants.map(({ id }) => id));
    const select = sql`SELECT id FROM grants WHERE id IN ${ids}`;
    return afterWrite(database.query<Pick<Grant, "id">>(select));
  });
  return { grants, stored };
}

/**
 * Stores a grant with an audit entry and, for a user's grant, the statements `beside`; then ends
 * the user's oldest grants beyond the limits and refreshes `revocations`. False, and the grant is
 * not stored, if its user or app has been disabled, has had its grants revoked or has lost a scope
 * meanwhile.
 */
export async function insertGrant(
  database: Database,
  grant: NewGrant,
  audited?: NewAuditEntry,
  revocations?: Revocations,
  beside: readonly Sql[] = [],
): Promise<boolean> {
  const { id, app, user } = grant;
  if (user === null && !audited) {
    const { grants, stored } = gathered.getOrInsertComputed(database, gather);
    grants.push(grant);
    return (await stored).some((each) => each.id === id);
  }
  const madeAtMs = idTimeMs(id);
  const isInserted = await changesRow(
    database,
    insertGrants([grant]),
    ...audited ? [insertAuditOfGrant(id, audited, madeAtMs)] : [],
    ...beside,
  );
  if (isInserted && user !== null) {
    await endExcessGrants(database, user, app, madeAtMs, revocations);
  }
  return isInserted;
}

/** A grant by id, whether it is still valid or not. */
export async function findGrant(database: Database, id: string): Promise<Grant | undefined> {
  const select = sql`SELECT ${COLUMNS} FROM grants WHERE id = ${id}`;
  const row = await findRow<RowOf<Grant>>(database, select);
  return row && parseScopes(row);
}

/** A refresh token as it was presented. */
export interface RefreshHandle {
  readonly grantId: string;
  /** SHA-256 of its text. */
  readonly hash: Uint8Array;
  /** Checks the token's own proof that it was issued; tokens of 0.1.0 have none. */
  readonly isGenuine?: (() => boolean) | undefined;
}

/** A presented refresh token: valid now, `previous` if exchanged a moment ago, or used before. */
export interface PresentedRefreshToken {
  readonly grant: Grant;
  readonly state: "current" | "previous" | "used";
  /** SHA-256 of the refresh token that is valid now; null where the app has lost it. */
  readonly head: Uint8Array | null;
}

/** How long an exchange whose response was lost may be repeated, even if the clock is set back. */
const RETRY_MS = 30_000;

/** Finds the grant of a refresh token; undefined when the token was never issued. */
export async function findRefreshToken(
  database: Database,
  { grantId, hash, isGenuine }: RefreshHandle,
  nowMs: number,
): Promise<PresentedRefreshToken | undefined> {
  type Row = RowOf<Grant> & Pick<PresentedRefreshToken, "head"> & {
    readonly state: PresentedRefreshToken["state"] | null;
  };
  const select = sql`SELECT ${COLUMNS}, refresh AS head, CASE WHEN refresh = ${hash} THEN 'current'
      WHEN previous = ${hash} AND abs(${nowMs} - rotatedAtMs) < ${RETRY_MS} THEN 'previous'
      WHEN EXISTS (SELECT 1 FROM used_refresh_tokens WHERE grantId = id AND hash = ${hash})
      THEN 'used' END AS state
    FROM grants WHERE id = ${grantId}`;
  const row = await findRow<Row>(database, select);
  if (!row) return undefined;
  // The proof costs more than this query, and most tokens are found without it.
  const { state, head, ...grant } = row;
  const known = state ?? (isGenuine?.() ? "used" : undefined);
  return known && { grant: parseScopes(grant), state: known, head };
}

/** One exchange of a refresh token for the next; the scopes are those of the new access token. */
interface RefreshRotation extends Pick<Grant, "scopes" | "refreshUntilMs" | "accessUntilMs"> {
  readonly old: RefreshHandle;
  /** The old token's state when it was looked up, and the token that was valid then. */
  readonly state: "current" | "previous";
  readonly head: PresentedRefreshToken["head"];
  readonly newHash: Uint8Array;
}

const PARTIES = [sql`grants.user`, sql`grants.app`, sql`grants.resource`] as const;
export const NOT_BEFORE = notBeforeOf(...PARTIES);
const partiesHoldScopes = partiesHold(...PARTIES);

/**
 * Replaces a refresh token by the new one (RFC 6749 §6, RFC 9700 §4.14.2). Exactly one of
 * concurrent exchanges in one state succeeds. False if the old token is no longer in `state`, or if
 * the grant, its user or its app has ended or lost one of `scopes` meanwhile. If the outcome is
 * unknown, or a repeated write finds its own first one, success shows in the stored new token.
 */
export async function rotateRefreshToken(
  database: Database,
  { old, state, head, newHash, scopes, refreshUntilMs, accessUntilMs }: RefreshRotation,
  nowMs: number,
): Promise<boolean> {
  const { grantId, hash } = old;
  const isCurrent = state === "current";
  const rotated = sql`FROM grants WHERE id = ${grantId} AND refresh = ${newHash}`;
  const isRotated = async () => await findRow(database, sql`SELECT 1 ${rotated}`) !== undefined;
  return await changesRow(
    database,
    // The previous token may be exchanged only once more: then no previous one is kept.
    sql`UPDATE grants SET refresh = ${newHash}, previous = ${isCurrent ? hash : null},
        rotatedAtMs = ${nowMs}, refreshUntilMs = ${refreshUntilMs},
        accessUntilMs = max(accessUntilMs, ${accessUntilMs})
      WHERE id = ${grantId} AND refresh = ${head} AND ${isCurrent ? sql`refresh` : sql`previous`}
        = ${hash} AND revokedAtMs IS NULL AND refreshUntilMs > ${nowMs}
        AND ${NOT_BEFORE} < ${idTimeMs(grantId)}
        AND ${partiesHoldScopes(JSON.stringify(scopes))}`,
    ...old.isGenuine ? [] : [
      sql`INSERT INTO used_refresh_tokens (grantId, hash)
        SELECT id, ${hash} ${rotated} ON CONFLICT DO NOTHING`,
    ],
  ).catch(async (error: unknown) => {
    if (await isRotated().catch(() => false)) return true;
    throw error;
  }) || isRotated();
}

/** A grant in a list, with its status. */
export interface ListedGrant extends Grant {
  /** The name of the personal token, or of the app if it is stored. */
  readonly name: string | null;
  readonly lastUsedAtMs: number | null;
  readonly status: "active" | "expired" | "revoked";
}

/** Lists grants of a user, an app or both, newest first; ended ones too, until the purge. */
export async function listGrants(
  database: Database,
  given: Pagination & Partial<Record<"user" | "app", string | undefined>>,
  nowMs: number,
): Promise<Page<ListedGrant>> {
  const { user, app, limit, cursor = NEWEST } = given;
  const before = sql`id < ${cursor}`;
  // A user's grants have two indexes, which SQLite merges; an app may have very many of others.
  const ofUser = sql`${before} AND user = ${user ?? null}${andIs(sql`+app`, app)}`;
  const select = user === undefined
    ? selectGrants(sql`${before}${andIs(sql`app`, app)}`)
    : sql`${selectGrants(sql`${ofUser} AND revokedAtMs IS NULL`)} UNION ALL
      ${selectGrants(sql`${ofUser} AND revokedAtMs IS NOT NULL`)}`;
  const ordered = sql`${select} ORDER BY id DESC ${limitTo(limit + 1)}`;
  const rows = await database.query<ListedRow>(ordered);
  return pageOf(rows.map((row) => toListed(row, nowMs)), given);
}

/** Lists the grants by which anybody can act for a user now, newest first. */
export async function listLiveGrants(database: Database, user: string, nowMs: number) {
  const live = selectGrants(sql`user = ${user} AND revokedAtMs IS NULL AND untilMs > ${nowMs}`);
  const rows = await database.query<ListedRow>(sql`${live} ORDER BY id DESC`);
  return rows.map((row) => toListed(row, nowMs)).filter(({ status }) => status === "active");
}

type ListedRow = RowOf<Omit<ListedGrant, "status">> & { readonly notBeforeMs: number | null };

function selectGrants(where: Sql): Sql {
  return sql`SELECT ${COLUMNS}, ${NOT_BEFORE} AS notBeforeMs,
      ifnull(name, (SELECT a.name FROM apps a WHERE a.id = app)) AS name,
      nullif(max(ifnull(lastUsedAtMs, 0), ifnull(rotatedAtMs, 0)), 0) AS lastUsedAtMs
    FROM grants WHERE ${where}`;
}

function toListed({ notBeforeMs, ...row }: ListedRow, nowMs: number): ListedGrant {
  const isEnded = notBeforeMs === null || notBeforeMs >= idTimeMs(row.id);
  const isAlive = Math.max(row.refreshUntilMs, row.accessUntilMs) > nowMs;
  const status = row.revokedAtMs !== null || isEnded ? "revoked" : isAlive ? "active" : "expired";
  return { ...parseScopes(row), status };
}
