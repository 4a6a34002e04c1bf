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
  /** 1 for the password that the first start printed, 0 once it was used; null for any other. */
  readonly passwordPrinted: number | null;
}

const SHOWN = columnsOf(UserRecord.members);
const { password, ...MEMBERS } = UserChange.members;
/** The columns of a user that a change may replace, beside the password. */
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

/** Holds if there is no user: of processes that start at once, one makes the first user. */
export const HAS_NO_USER = sql`NOT EXISTS (SELECT 1 FROM users)`;

/**
 * Stores a changed user, and a new password if `phc` is given. The whole batch fails with
 * ConflictError if the stored user is no longer as `before`.
 */
export function updateUser(before: User, after: User, phc?: string): Change {
  const replace = CHANGED.replace(before, after, sql`username`, after.username);
  const password = phc === undefined ? sql`` : sql`, ${setPassword(phc)}`;
  return updateWhere(sql`users`, sql`${replace}${password}`, sql`id = ${after.id}`);
}

export const hasPassword = (phc: string): Sql => sql`phc = ${phc}`;

/**
 * Replaces a password and ends the user's sessions and tokens; ConflictError unless `when` holds.
 * The first statement changes 0 rows if the user no longer exists. With `untilMs` the new password
 * is good for one login until then.
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

/** A new password was not printed; it is the user's own, unless `untilMs` makes it one-time. */
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

/** Marks a one-time or printed password as used; ConflictError if it is no longer valid. */
export function usePassword(user: UserWithPassword, nowMs: number): Sql[] {
  const { id, phc, passwordUntilMs, passwordPrinted } = user;
  if (passwordUntilMs === null && passwordPrinted !== 1) return [];
  const isOpen = sql`phc = ${phc} AND ifnull(passwordUntilMs > ${nowMs}, TRUE)`;
  return [sql`UPDATE users SET phc = ${valueIf(isOpen, phc)},
      passwordUntilMs = min(passwordUntilMs, 0), passwordPrinted = min(passwordPrinted, 0)
    WHERE id = ${id}`];
}

/**
 * Ends all of a user's grants, sessions and subscriptions made until now. The default `end` is that
 * of a new password: it spares subscriptions that the user made by own login.
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
    // Also marks personal tokens one by one, so that they no longer count against their limit.
    sql`UPDATE grants SET revokedAtMs = ${nowMs}
      WHERE user = ${id} AND app = ${PERSONAL_APP} AND revokedAtMs IS NULL`,
  ];
}

/** Removes a user; end the tokens first. */
export function deleteUser(id: string): Sql {
  return sql`DELETE FROM users WHERE id = ${id}`;
}
