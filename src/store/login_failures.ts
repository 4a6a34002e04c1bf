import { sha256 } from "../base/secret.ts";
import { type Database, limitTo } from "../database/database.ts";
import { changesRow, findRow } from "../database/rows.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";

/** How long a failed login counts, in milliseconds. */
const WINDOW_MS = 15 * 60_000;

/** Places whose failures are counted together: texts from `first` to `last`, in binary order. */
interface PlaceLimit {
  readonly first: string;
  readonly last: string;
  /** How many failures of one account are allowed there. */
  readonly ofAccount: number;
  /** How many whatever the accounts; null where only those of the account count. */
  readonly ofAll: number | null;
}

/** One try of a password, in the terms in which failures are counted. */
export interface CountedLogin {
  /** As `accountOf` makes it. */
  readonly account: Uint8Array;
  /** Where it comes from: within each of `limits`. */
  readonly place: string;
  readonly limits: readonly PlaceLimit[];
}

/** What would count for longer than this was counted before the clock was set back. */
const AHEAD_MS = 2 * WINDOW_MS;

/**
 * The end of a place where an authenticated app failed for its users: that counts for the account
 * there, and not for others. A space sorts before all that else can follow in a place.
 */
export const BY_APP = " app";

const counts = (nowMs: number) => sql`untilMs > ${nowMs} AND untilMs <= ${nowMs + AHEAD_MS}`;

const FROM = sql`place BETWEEN l.value ->> 'first' AND l.value ->> 'last'`;

/** Selects when the last of the limits that a login has reached ends; NULL if none. */
function reached({ account, limits }: CountedLogin, nowMs: number): Sql {
  const each = sql`FROM json_each(${JSON.stringify(limits)}) l`;
  return sql`SELECT max(untilMs) FROM (
    SELECT (SELECT min(untilMs) FROM login_failures
      WHERE account = ${account} AND ${FROM} || ' ~' AND ${counts(nowMs)}
      HAVING count(*) >= l.value ->> 'ofAccount') AS untilMs ${each}
    UNION ALL
    SELECT (SELECT min(untilMs) FROM login_failures
      WHERE ${FROM} AND place NOT LIKE ${`%${BY_APP}`} AND ${counts(nowMs)}
      HAVING count(*) >= l.value ->> 'ofAll') ${each} WHERE l.value ->> 'ofAll' IS NOT NULL)`;
}

/** Until when a login is refused, or null, and its account's failures anywhere, up to `most`. */
export async function countLoginFailures(
  database: Database,
  login: CountedLogin,
  nowMs: number,
  most: number,
): Promise<{ readonly untilMs: number | null; readonly ofAccount: number }> {
  const select = sql`SELECT (${reached(login, nowMs)}) AS untilMs,
    (SELECT count(*) FROM (SELECT 1 FROM login_failures
      WHERE account = ${login.account} AND ${counts(nowMs)} ${limitTo(most)})) AS ofAccount`;
  return await findRow(database, select) ?? { untilMs: null, ofAccount: 0 };
}

/** Counts a login as failed, before it is tried or after; false where a limit is reached. */
export function admitLogin(database: Database, login: CountedLogin, nowMs: number) {
  return changesRow(
    database,
    sql`INSERT INTO login_failures (account, place, untilMs)
      SELECT ${login.account}, ${login.place}, ${nowMs + WINDOW_MS}
      WHERE (${reached(login, nowMs)}) IS NULL`,
    sql`DELETE FROM login_failures WHERE untilMs > ${nowMs + AHEAD_MS}`,
  );
}

/** How a name is counted: hashed, since it may be as long as a body, or a password by mistake. */
export function accountOf(username: string): Uint8Array {
  return sha256(username.toLowerCase());
}

/** Forgets what one account has failed, in some places or anywhere. */
export function deleteLoginFailures(account: Uint8Array, places?: readonly string[]): Sql {
  const there = places ? sql` AND place IN ${listOf(places)}` : sql``;
  return sql`DELETE FROM login_failures WHERE account = ${account}${there}`;
}
