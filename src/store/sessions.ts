import type { GivenPassword, Session } from "../oauth/user.ts";
import type { Database } from "../database/database.ts";
import { findRow, hasRow } from "../database/rows.ts";
import { andIs, sql, type Sql } from "../database/sql.ts";
import { CONSOLE_APP } from "../oauth/principal.ts";
import { type Change, deleteWhere } from "./audit.ts";
import { revokeOwnOf } from "./grant_end.ts";

const MAX_AGENT_LENGTH = 200;

/** Stores a browser session by the SHA-256 of its cookie's value. */
export function insertSession(
  hash: Uint8Array,
  user: string,
  nowMs: number,
  untilMs: number,
  { address, agent }: { readonly address?: string; readonly agent?: string | undefined } = {},
): Sql {
  return sql`INSERT INTO sessions (hash, user, createdAtMs, untilMs, address, agent)
    VALUES (${hash}, ${user}, ${nowMs}, ${untilMs}, ${address ?? null},
      ${agent?.slice(0, MAX_AGENT_LENGTH) ?? null})`;
}

/** Holds while a session and its user are valid; `user`, if given, must be the session's. */
export const isLive = (hash: Uint8Array, nowMs: number, user?: string): Sql =>
  sql`EXISTS (SELECT 1 ${liveSessions(sql`s.hash = ${hash}${andIs(sql`u.id`, user)}`, nowMs)})`;

/** Selects from the sessions `s` and their users `u`, if both are valid. */
function liveSessions(which: Sql, nowMs: number): Sql {
  return sql`FROM sessions s JOIN users u ON u.id = s.user
    WHERE ${which} AND s.untilMs > ${nowMs} AND u.status = 'active'
      AND u.notBeforeMs < s.createdAtMs`;
}

/** Finds the user and the start of a session, while user and session are valid. */
export function findSession(database: Database, hash: Uint8Array, nowMs: number) {
  const given = sql`CASE WHEN u.passwordUntilMs IS NOT NULL THEN 'one-time'
    WHEN u.passwordPrinted IS NOT NULL THEN 'printed' END AS givenPassword`;
  type Found = { readonly user: string; readonly givenPassword: GivenPassword | null };
  return findRow<Found & Pick<Session, "createdAtMs"> & { readonly seenAtMs: number | null }>(
    database,
    sql`SELECT s.user, s.createdAtMs, s.seenAtMs, ${given}
      ${liveSessions(sql`s.hash = ${hash}`, nowMs)}`,
  );
}

/** Whether a user has a valid session that began at most `ageMs` before or after now. */
export function hasSession(database: Database, user: string, nowMs: number, ageMs = nowMs) {
  const which = sql`s.user = ${user} AND abs(${nowMs} - s.createdAtMs) <= ${ageMs}`;
  return hasRow(database, sql`SELECT 1 ${liveSessions(which, nowMs)} LIMIT 1`);
}

/** Stores that the session of a cookie was used at `nowMs`. */
export function markSeen(hash: Uint8Array, nowMs: number): Sql {
  return sql`UPDATE sessions SET seenAtMs = ${nowMs} WHERE hash = ${hash}`;
}

const HASH_BYTES = 12;
const PUBLIC_ID = sql`'b' || lower(hex(substr(hash, 1, ${HASH_BYTES})))`;

/** The public id of a session: the beginning of its hash, with which nobody can log in. */
export function sessionId(hash: Uint8Array): string {
  return `b${Buffer.from(hash).toString("hex", 0, HASH_BYTES)}`;
}

/** Lists a user's valid sessions, or the one with this id; newest first, 1000 at most. */
export function listSessions(database: Database, user: string, nowMs: number, id?: string) {
  const which = sql`s.user = ${user}${andIs(PUBLIC_ID, id)}`;
  return database.query<Session>(sql`SELECT ${PUBLIC_ID} AS id, s.address, s.agent, s.createdAtMs,
      ifnull(s.seenAtMs, s.createdAtMs) AS seenAtMs, s.untilMs
    ${liveSessions(which, nowMs)} ORDER BY s.createdAtMs DESC LIMIT 1000`);
}

/** Ends the session of a cookie; tokens stay valid. */
export function deleteSession(hash: Uint8Array): Sql {
  return sql`DELETE FROM sessions WHERE hash = ${hash}`;
}

/**
 * Ends all of a user's sessions, only the session `id`, or all but `spared`. Also ends the user's
 * console tokens: a console whose session is still valid gets new ones without a login.
 */
export function endSessionsOf(
  user: string,
  nowMs: number,
  { id, spared }: { readonly id?: string; readonly spared?: string | undefined } = {},
): [Change, ...Sql[]] {
  const but = spared === undefined ? sql`` : sql` AND ${PUBLIC_ID} <> ${spared}`;
  return [
    deleteWhere(sql`sessions`, sql`user = ${user}${andIs(PUBLIC_ID, id)}${but}`),
    ...revokeOwnOf(user, CONSOLE_APP, nowMs),
  ];
}
