import { idTimeMs } from "../base/id.ts";
import type { Database } from "../database/database.ts";
import { changesRow, findItem, findRow, parseScopes, type RowOf } from "../database/rows.ts";
import { joinSql, sql, type Sql } from "../database/sql.ts";
import { isOfNoApp } from "./authority.ts";
import { endExcessGrants } from "./grant_limit.ts";
import { type Grant, type NewGrant, notBeforeOf, partiesHold } from "./grants.ts";
import type { Revocations } from "./revocations.ts";
import { isLive } from "./sessions.ts";

/** An authorization code that waits for its exchange; its id becomes the grant's. */
export interface Code extends Pick<Grant, "id" | "app" | "scopes" | "resource"> {
  readonly user: string;
  /** Empty for a device, which has none. */
  readonly redirectUri: string;
  /** The S256 challenge, where PKCE is used. */
  readonly challenge: string | null;
  readonly untilMs: number;
}

/**
 * Stores a code by the SHA-256 of its text, if each `when` holds. Stores nothing if the browser
 * session (its hash) has ended, the app is not active, or user, app or resource has lost a scope.
 */
export function insertCode(
  code: Code,
  hash: Uint8Array,
  session: Uint8Array,
  nowMs: number, // the id's time may be later: the clock may have been set back
  ...when: readonly Sql[]
): Sql {
  const { id, app, user, scopes, redirectUri, challenge, untilMs, resource = null } = code;
  const hold = partiesHold(sql`${user}`, sql`${app}`, sql`${resource}`);
  return sql`INSERT INTO codes
      (id, hash, app, user, scopes, redirectUri, challenge, untilMs, resource)
    SELECT ${id}, ${hash}, ${app}, ${user}, ${JSON.stringify(scopes)}, ${redirectUri},
      ${challenge}, ${untilMs}, ${resource}
    WHERE ${isLive(session, nowMs, user)}
      AND (${isOfNoApp(sql`${app}`)}
        OR EXISTS (SELECT 1 FROM apps WHERE id = ${app} AND status = 'active'))
      AND ${joinSql([hold(JSON.stringify(scopes)), ...when], " AND ")}`;
}

/** Holds once a code is stored, until it is redeemed or purged. */
export function hasCode(id: string): Sql {
  return sql`EXISTS (SELECT 1 FROM codes WHERE id = ${id})`;
}

/** A code that has not been redeemed or purged. */
export function findCode(database: Database, id: string, hash: Uint8Array) {
  const select = sql`SELECT id, app, user, scopes, resource, redirectUri, challenge, untilMs
    FROM codes WHERE id = ${id} AND hash = ${hash}`;
  return findItem(database, select, parseScopes<RowOf<Code>>);
}

/** Removes the codes of an app that have not been redeemed. */
export function deleteCodesOf(app: string): Sql {
  return sql`DELETE FROM codes WHERE app = ${app}`;
}

/** Finds the app whose grant was made from this code; undefined if the code was not redeemed. */
export function findRedeemedCode(database: Database, id: string, hash: Uint8Array) {
  const select = sql`SELECT app FROM grants WHERE id = ${id} AND code = ${hash}`;
  return findRow<Pick<Grant, "app">>(database, select);
}

/** The grant for which a code is exchanged. */
export interface CodeRedemption extends Omit<NewGrant, "decidedAtMs"> {
  readonly user: string;
  readonly hash: Uint8Array;
  /** The scopes of the first access token: without those lost since the code was made. */
  readonly accessScopes: readonly string[];
}

const PARTIES = [sql`codes.user`, sql`codes.app`, sql`codes.resource`] as const;
const NOT_BEFORE = notBeforeOf(...PARTIES);
const partiesHoldScopes = partiesHold(...PARTIES);

/**
 * Turns a code into its grant (RFC 6749 §4.1.3). The row moves from one table to the other, so
 * exactly one of concurrent exchanges succeeds. False if the code is gone or expired, or if its
 * user or app has been disabled or had its grants revoked since. False too if the user, the app or
 * the resource has ended or lost one of `accessScopes`. Ends the user's oldest grants beyond the
 * limits, and refreshes `revocations`.
 */
export async function redeemCode(
  database: Database,
  redemption: CodeRedemption,
  nowMs: number,
  revocations?: Revocations,
): Promise<boolean> {
  const { id, hash, user, app, scopes, accessScopes, refresh = null } = redemption;
  const isRedeemed = await changesRow(
    database,
    sql`INSERT INTO grants
        (id, app, user, type, scopes, code, refresh, refreshUntilMs, accessUntilMs, resource)
      SELECT id, app, user, ${redemption.type}, ${JSON.stringify(scopes)}, hash, ${refresh},
        ${redemption.refreshUntilMs}, ${redemption.accessUntilMs}, resource
      FROM codes WHERE id = ${id} AND hash = ${hash} AND untilMs > ${nowMs}
        AND ${NOT_BEFORE} < ${idTimeMs(id)}
        AND ${partiesHoldScopes(JSON.stringify(accessScopes))}`,
    sql`DELETE FROM codes WHERE id = ${id} AND EXISTS (SELECT 1 FROM grants WHERE id = ${id})`,
  );
  if (isRedeemed) await endExcessGrants(database, user, app, nowMs, revocations);
  return isRedeemed;
}
