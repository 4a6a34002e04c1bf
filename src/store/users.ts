import { PERSONAL_APP } from "../oauth/principal.ts";
import { ACCOUNT_STATUS, type User, UserChange, UserRecord } from "../oauth/user.ts";
import { type Database, valueIf } from "../database/database.ts";
import { findItem, findRow, hasRow } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";
import { type Change, updateWhere } from "./audit.ts";
import { columnsOf } from "./columns.ts";
import { revokeGrantsOf } from "./grant_end.ts";
import { beginsWith, is } from "./list.ts";
import type { SubscriptionsEnd } from "./subscription_end.ts";

/** A user with the PHC string of the password, which is used by the login alone. */
export interface UserWithPassword extends User {
  readonly phc: string;
  /** Until when a one-time password is valid, 0 once it was used; null for a lasting one. */
  readonly passwordUntilMs: number | null;
  /** 1 for the one that the first start printed, 0 once it was used; null for any other. */
  readonly passwordPrinted: number | null;
}

const SHOWN = columnsOf(UserRecord.members);
const { password, ...MEMBERS } = UserChange.members;
/** What of a user a change may replace, beside the password. */
const CHANGED = columnsOf(MEMBERS);
const SELECT = sql`SELECT ${SHOWN.names}`;

/** A user by id, without the password's hash. */
export function findUser(database: Database, id: string) {
  return findItem(database, sql`${SELECT} FROM users WHERE id = ${id}`, SHOWN.read<User>);
}

/** A user by name, whatever its case, with the password's hash. */
export function findUserByName(database: Database, username: string) {
  const select = sql`${SELECT}, phc, passwordUntilMs, passwordPrinted FROM users
    WHERE username = ${username}`;
  return findItem(database, select, SHOWN.read<UserWithPassword>);
}

export const USER_LIST = {
  table: sql`users`,
  columns: SHOWN.names,
  filters: {
    q: beginsWith(sql`users`, sql`username`, "the name"),
    status: is(sql`status`, ACCOUNT_STATUS),
  },
  indexes: { q: [] },
  toItem: SHOWN.read<User>,
} as const;

/** Whether there is a user, of any status. */
export function hasUsers(database: Database): Promise<boolean> {
  return hasRow(database, sql`SELECT 1 FROM users LIMIT 1`);
}

/** What a new user is stored as. */
export type NewUserRow =
  & Pick<UserWithPassword, "id" | "username" | "phc" | "scopes" | "createdAtMs">
  & Partial<UserWithPassword>;

/** Stores a user, where `when` holds; ConflictError when the name is taken. */
export function insertUser(user: NewUserRow, when = sql`TRUE`): Sql {
  const { phc, passwordUntilMs = null, passwordPrinted = null } = user;
  return sql`INSERT INTO users (phc, passwordUntilMs, passwordPrinted, ${SHOWN.names})
    SELECT ${phc}, ${passwordUntilMs}, ${passwordPrinted},
      ${SHOWN.values({ status: "active", ...user })} WHERE ${when}`;
}

/** Holds where there is no user at all: of several processes that start only one makes it. */
export const HAS_NO_USER = sql`NOT EXISTS (SELECT 1 FROM users)`;

/**
 * Stores a changed user, and the new password where there is one; ConflictError, for the whole
 * batch, where the user is no longer as `before`.
 */
export function updateUser(before: User, after: User, phc?: string): Change {
  const replace = CHANGED.replace(before, after, sql`username`, after.username);
  const password = phc === undefined ? sql`` : sql`, ${setPassword(phc)}`;
  return updateWhere(sql`users`, sql`${replace}${password}`, sql`id = ${after.id}`);
}

export const hasPassword = (phc: string): Sql => sql`phc = ${phc}`;

/**
 * Replaces a password and ends what it has opened; ConflictError unless the condition holds. The
 * first statement changes 0 rows where there is no such user any more. With `untilMs` the new one
 * opens one login, until then.
 */
export function replacePassword(
  id: string,
  phc: string,
  when: Sql,
  nowMs: number,
  ttlMs: number,
  untilMs: number | null = null,
): Change[] {
  const set = setPassword(valueIf(when, phc), untilMs);
  return [updateWhere(sql`users`, set, sql`id = ${id}`), ...revokeTokensOfUser(id, nowMs, ttlMs)];
}

/** A new password has not been printed, and is the user's own unless it is one-time. */
const setPassword = (phc: Sql | string, untilMs: number | null = null): Sql =>
  sql`phc = ${phc}, passwordUntilMs = ${untilMs}, passwordPrinted = NULL`;

/** Lets a user keep the password that the first start printed. */
export function keepPassword(id: string): Change {
  const isPrinted = sql`id = ${id} AND passwordPrinted IS NOT NULL`;
  return updateWhere(sql`users`, sql`passwordPrinted = NULL`, isPrinted);
}

/** The only user there is, if the printed password has never been used. */
export function findUnusedFirstUser(database: Database) {
  return findRow<Pick<User, "username">>(database, sql`SELECT max(username) AS username
    FROM (SELECT username, passwordPrinted FROM users LIMIT 2)
    HAVING count(*) = 1 AND max(passwordPrinted) = 1`);
}

/** Notes a password as used, if that matters; ConflictError where it opens no login any more. */
export function usePassword(user: UserWithPassword, nowMs: number): Sql[] {
  const { id, phc, passwordUntilMs, passwordPrinted } = user;
  if (passwordUntilMs === null && passwordPrinted !== 1) return [];
  const isOpen = sql`phc = ${phc} AND ifnull(passwordUntilMs > ${nowMs}, TRUE)`;
  return [sql`UPDATE users SET phc = ${valueIf(isOpen, phc)},
      passwordUntilMs = min(passwordUntilMs, 0), passwordPrinted = min(passwordPrinted, 0)
    WHERE id = ${id}`];
}

/**
 * Ends all grants, sessions and subscriptions of a user that were made until now. Without `end`,
 * the subscriptions that the user made by own login stay: a new password ends the rest.
 */
export function revokeTokensOfUser(
  id: string,
  nowMs: number,
  accessTtlMs: number,
  end: SubscriptionsEnd = { reason: "password changed", sparesOwn: true },
): Change[] {
  return [
    updateWhere(sql`users`, sql`notBeforeMs = max(notBeforeMs, ${nowMs})`, sql`id = ${id}`),
    ...revokeGrantsOf({ user: id }, end, nowMs, accessTtlMs),
    sql`DELETE FROM sessions WHERE user = ${id}`,
    // Each alone, too: a user may have so many of them.
    sql`UPDATE grants SET revokedAtMs = ${nowMs}
      WHERE user = ${id} AND app = ${PERSONAL_APP} AND revokedAtMs IS NULL`,
  ];
}

/** Removes a user; end the tokens first. */
export function deleteUser(id: string): Sql {
  return sql`DELETE FROM users WHERE id = ${id}`;
}
