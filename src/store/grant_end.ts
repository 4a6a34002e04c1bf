import { hasScope } from "./authority.ts";
import { idBound } from "../base/id.ts";
import type { Database } from "../database/database.ts";
import { andIs, listOf, sql, type Sql, sqlText } from "../database/sql.ts";
import { CONSOLE_APP } from "../oauth/principal.ts";
import { type Change, updateWhere } from "./audit.ts";
import { writeInSteps } from "./batch.ts";
import { endSubscriptions, type Parties, type SubscriptionsEnd } from "./subscription_end.ts";

/** How subscriptions end together with the grant that they depend on. */
export const REVOKED: SubscriptionsEnd = { reason: "grant revoked" };

/** Holds for the rows of a user, an app, or a user through an app. */
export function isOf({ user, app }: Parties): Sql {
  return user === undefined ? sql`app = ${app}` : sql`user = ${user}${andIs(sql`app`, app)}`;
}

/** Ends a grant with all its tokens and subscriptions, at once and in every process. */
export function revokeGrant(id: string, nowMs: number): Sql[] {
  return [revokeWhere(sql`id = ${id}`, nowMs), ...endSubscriptions({ grant: id }, REVOKED, nowMs)];
}

/** Ends a grant without a refresh token; its subscriptions stay, as when its token expires. */
export function revokeBareGrant(id: string, nowMs: number): Change {
  const bare = sql`id = ${id} AND refreshUntilMs = 0 AND revokedAtMs IS NULL`;
  return updateWhere(sql`grants`, sql`revokedAtMs = ${nowMs}`, bare);
}

/** Ends every valid grant and code of a user through a built-in app, and its subscriptions. */
export function revokeOwnOf(user: string, app: string, nowMs: number): Sql[] {
  const own = { user, app };
  return [
    revokeWhere(isOf(own), nowMs),
    // Of built-in apps only the console has codes; its literal name lets SQLite use the index.
    ...app === CONSOLE_APP
      ? [sql`DELETE FROM codes WHERE user = ${user} AND app = ${sqlText(CONSOLE_APP)}`]
      : [],
    ...endSubscriptions(own, REVOKED, nowMs),
  ];
}

/** Ends all of a user's grants but one, and the user's codes, sessions and subscriptions. */
export function revokeOthersOf(user: string, grantId: string, nowMs: number): Sql[] {
  return [
    revokeWhere(sql`user = ${user} AND id <> ${grantId}`, nowMs),
    sql`DELETE FROM codes WHERE user = ${user}`,
    sql`DELETE FROM sessions WHERE user = ${user}`,
    ...endSubscriptions({ user }, REVOKED, nowMs),
  ];
}

/** Ends every valid grant of a built-in app, in steps for which no other write waits long. */
export async function revokeAllOf(database: Database, app: string, nowMs: number): Promise<void> {
  const where = isOf({ app });
  const last = await revokeInSteps(database, where, nowMs);
  await database.write([revokeWhere(sql`${where} AND id > ${last}`, nowMs)]);
}

function revokeInSteps(database: Database, of: Sql, nowMs: number): Promise<string> {
  const where = sql`${of} AND revokedAtMs IS NULL`; // the condition of their index
  const rows = { table: sql`grants`, key: sql`id`, where, after: "" };
  return writeInSteps(database, rows, (ids) => [revokeWhere(sql`id IN ${listOf(ids)}`, nowMs)]);
}

// A grant has the id of its code, which lives 10 minutes at most: no older id can appear.
const RECENT_MS = 15 * 60_000;

/**
 * Ends every valid grant, code and subscription of a user or an app that has any of the scopes.
 * Returns the statements for the batch that removes the scopes. If there are very many grants, ends
 * most of them before, in steps for which no other write waits long.
 */
export async function revokeGrantsWithScopes(
  database: Database,
  of: Parties,
  scopes: readonly string[],
  nowMs: number,
): Promise<Sql[]> {
  if (scopes.length === 0) return [];
  const lost = JSON.stringify(scopes);
  const carries = sql`EXISTS (SELECT 1 FROM json_each(${lost}) lost
    WHERE ${hasScope(sql`scopes`, sql`lost.value`)})`;
  const where = sql`${isOf(of)} AND ${carries}`;
  const last = await revokeInSteps(database, where, nowMs);
  const recent = idBound("g", nowMs - RECENT_MS);
  return [
    revokeWhere(sql`${where} AND id > ${last < recent ? last : recent}`, nowMs),
    sql`DELETE FROM codes WHERE ${where}`,
    ...endSubscriptions(of, { reason: "scope removed", scopes }, nowMs),
  ];
}

// A token's `exp` is in whole seconds, at least one.
const TOKEN_SLACK_MS = 1000;

/**
 * Ends the subscriptions of a user, an app, or a user through an app, and every token from a grant
 * made until now. That costs the same however many there are. After the clock was set back, ids may
 * be ahead of it: grants and codes with such ids are ended one by one.
 */
export function revokeGrantsOf(
  of: Parties,
  end: SubscriptionsEnd,
  nowMs: number,
  accessTtlMs: number,
): Sql[] {
  const target = [of.user, of.app].filter((id) => id !== undefined).join(" ");
  const ttlMs = accessTtlMs + TOKEN_SLACK_MS;
  const isAhead = sql`${isOf(of)} AND id >= ${idBound("g", nowMs + 1)}`;
  return [
    sql`INSERT INTO revocations (target, notBeforeMs, untilMs)
      SELECT ${target}, ${nowMs}, ${nowMs} + max(${ttlMs}, ifnull(max(tokenTtlMs), 0)) FROM keys`,
    revokeWhere(isAhead, nowMs),
    sql`DELETE FROM codes WHERE ${isAhead}`,
    ...endSubscriptions(of, end, nowMs),
  ];
}

/** Ends the valid grants for which `where` holds. */
export function revokeWhere(where: Sql, nowMs: number): Sql {
  return sql`UPDATE grants SET revokedAtMs = ${nowMs}
    WHERE revokedAtMs IS NULL AND untilMs > ${nowMs} AND ${where}`;
}
