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
  /** How many failures of all accounts are allowed; null if only the account's own count. */
  readonly ofAll: number | null;
}

/** An attempt to log in, in the terms in which failures are counted. */
export interface CountedLogin {
  /** As `accountOf` makes it. */
  readonly account: Uint8Array;
  /** Where the attempt comes from: a place within each of `limits`. */
  readonly place: string;
  readonly limits: readonly PlaceLimit[];
}

/** A failure that would count for longer was counted before the clock was set back. */
const AHEAD_MS = 2 * WINDOW_MS;

/**
 * The suffix of a place where an authenticated app failed for one of its users: this counts for
 * that account, and not for others. A space sorts before all else that can follow in a place.
 */
export const BY_APP = " app";

const counts = (nowMs: number) => sql`untilMs > ${nowMs} AND untilMs <= ${nowMs + AHEAD_MS}`;

const FROM = sql`place BETWEEN l.value ->> 'first' AND l.value ->> 'last'`;

/** Selects when the last limit that a login has reached ends; NULL if it has reached none. */
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

/** Until when a login is refused (or null), and how many failures its account has, up to `most`. */
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

/** Counts a login as failed, before or after the password is tried. False at a limit. */
export function admitLogin(database: Database, login: CountedLogin, nowMs: number) {
  return changesRow(
    database,
    sql`INSERT INTO login_failures (account, place, untilMs)
      SELECT ${login.account}, ${login.place}, ${nowMs + WINDOW_MS}
      WHERE (${reached(login, nowMs)}) IS NULL`,
    sql`DELETE FROM login_failures WHERE untilMs > ${nowMs + AHEAD_MS}`,
  );
}

/** The hash by which a name is counted: it may be as long as a body, or a password by mistake. */
export function accountOf(username: string): Uint8Array {
  return sha256(username.toLowerCase());
}

/** Removes an account's failures, in some places or everywhere. */
export function deleteLoginFailures(account: Uint8Array, places?: readonly string[]): Sql {
  const there = places ? sql` AND place IN ${listOf(places)}` : sql``;
  return sql`DELETE FROM login_failures WHERE account = ${account}${there}`;
}
