import { idTimeMs } from "../base/id.ts";
import { type Database } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { endExcessGrants } from "./grant_limit.ts";
import { arePartiesActive, partiesHoldScopes } from "./grants.ts";
import type { Revocations } from "./revocations.ts";
import { liveSession } from "./sessions.ts";

/** An authorization code that waits for its exchange; its id becomes the grant's. */
export interface Code {
  readonly id: string;
  readonly app: string;
  readonly user: string;
  readonly scopes: readonly string[];
  readonly redirectUri: string;
  /** The S256 challenge, where PKCE is used. */
  readonly challenge: string | null;
  readonly untilMs: number;
}

type CodeRow = Omit<Code, "scopes"> & { scopes: string };

/**
 * Stores a code by the SHA-256 of its text; nothing when the browser session that asks for it (by
 * hash) has ended meanwhile, its app is not active, or user or app have lost a scope.
 */
export function insertCode(code: Code, hash: Uint8Array, session: Uint8Array): Sql {
  return sql(
    `INSERT INTO codes (id, hash, app, user, scopes, redirectUri, challenge, untilMs)
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
     WHERE EXISTS (SELECT 1 ${liveSession("?9", "?10")} AND u.id = ?4)
       AND EXISTS (SELECT 1 FROM apps WHERE id = ?3 AND status = 'active')
       AND ${partiesHoldScopes("?4", "?3", "?11")}`,
    code.id,
    hash,
    code.app,
    code.user,
    JSON.stringify(code.scopes),
    code.redirectUri,
    code.challenge,
    code.untilMs,
    session,
    idTimeMs(code.id),
    JSON.stringify(code.scopes),
  );
}

/** The code that waits, or undefined when it was redeemed, has been purged or never was. */
export async function findCode(
  database: Database,
  id: string,
  hash: Uint8Array,
): Promise<Code | undefined> {
  const rows = await database.query<CodeRow>(sql`SELECT id, app, user, scopes, redirectUri, challenge, untilMs
     FROM codes WHERE id = ${id} AND hash = ${hash}`);
  return rows.map((row) => ({ ...row, scopes: JSON.parse(row.scopes) }))[0];
}

/** Removes the codes of an app that wait for their exchange. */
export function deleteCodesOf(app: string): Sql {
  return sql`DELETE FROM codes WHERE app = ${app}`;
}

/** The app that a grant belongs to, where the grant came from this code: the code was redeemed. */
export async function findRedeemedCode(
  database: Database,
  id: string,
  hash: Uint8Array,
): Promise<{ readonly app: string } | undefined> {
  const rows = await database.query<{ app: string }>(sql`SELECT app FROM grants WHERE id = ${id} AND code = ${hash}`);
  return rows[0];
}

/** What a code is exchanged for. */
export interface CodeRedemption {
  readonly id: string;
  readonly hash: Uint8Array;
  readonly user: string;
  readonly app: string;
  readonly scopes: readonly string[];
  /** Of the first access token: without those that have been lost since the code was made. */
  readonly accessScopes: readonly string[];
  readonly refresh: Uint8Array | undefined;
  readonly refreshUntilMs: number;
  readonly accessUntilMs: number;
}

const REDEEM_CODE =
  `INSERT INTO grants (id, app, user, type, scopes, code, refresh, refreshUntilMs, accessUntilMs)
   SELECT id, app, user, 'authorization_code', ?3, hash, ?4, ?5, ?6 FROM codes
   WHERE id = ?1 AND hash = ?2 AND untilMs > ?7
     AND ${arePartiesActive("codes.user", "codes.app", "?8")}
     AND ${partiesHoldScopes("codes.user", "codes.app", "?9")}`;

/**
 * Turns a code into its grant (RFC 6749 §4.1.3). The row moves from one table to the other, so of
 * any number at once exactly one succeeds; false when the code is gone or has expired, or its user
 * or app has been disabled or cut off since it was made. Grants of the user that are too many with
 * it end, and the revocations take that in.
 */
export async function redeemCode(
  database: Database,
  redemption: CodeRedemption,
  nowMs: number,
  revocations?: Revocations,
): Promise<boolean> {
  const { id, hash } = redemption;
  const [inserted, , ended] = await database.write([
    sql(
      REDEEM_CODE,
      id,
      hash,
      JSON.stringify(redemption.scopes),
      redemption.refresh ?? null,
      redemption.refreshUntilMs,
      redemption.accessUntilMs,
      nowMs,
      idTimeMs(id),
      JSON.stringify(redemption.accessScopes),
    ),
    sql`DELETE FROM codes WHERE id = ${id} AND EXISTS (SELECT 1 FROM grants WHERE id = ${id})`,
    ...endExcessGrants(redemption.user, redemption.app, nowMs),
  ]);
  if (ended !== 0) await revocations?.refresh();
  return inserted === 1;
}
