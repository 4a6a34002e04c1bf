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

/** Holds while a session and its user, who may be given, are valid. */
export const isLive = (hash: Uint8Array, nowMs: number, user?: string): Sql =>
  sql`EXISTS (SELECT 1 ${liveSessions(sql`s.hash = ${hash}${andIs(sql`u.id`, user)}`, nowMs)})`;

/** Selects from sessions `s` and their users `u` while both are valid. */
function liveSessions(which: Sql, nowMs: number): Sql {
  return sql`FROM sessions s JOIN users u ON u.id = s.user
    WHERE ${which} AND s.untilMs > ${nowMs} AND u.status = 'active'
      AND u.notBeforeMs < s.createdAtMs`;
}

/** Who is logged in by this session, and since when, while user and session are valid. */
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

/** Whether a user has any valid session that was begun within so long of now. */
export function hasSession(database: Database, user: string, nowMs: number, ageMs = nowMs) {
  const which = sql`s.user = ${user} AND abs(${nowMs} - s.createdAtMs) <= ${ageMs}`;
  return hasRow(database, sql`SELECT 1 ${liveSessions(which, nowMs)} LIMIT 1`);
}

/** Notes that the session of a cookie is used now. */
export function markSeen(hash: Uint8Array, nowMs: number): Sql {
  return sql`UPDATE sessions SET seenAtMs = ${nowMs} WHERE hash = ${hash}`;
}

const HASH_BYTES = 12;
const PUBLIC_ID = sql`'b' || lower(hex(substr(hash, 1, ${HASH_BYTES})))`;

/** What a session is known by: the beginning of its hash, which opens nothing. */
export function sessionId(hash: Uint8Array): string {
  return `b${Buffer.from(hash).toString("hex", 0, HASH_BYTES)}`;
}

/** The valid sessions of a user, or the one of this id: newest first; of very many some. */
export function listSessions(database: Database, user: string, nowMs: number, id?: string) {
  const which = sql`s.user = ${user}${andIs(PUBLIC_ID, id)}`;
  return database.query<Session>(sql`SELECT ${PUBLIC_ID} AS id, s.address, s.agent, s.createdAtMs,
      ifnull(s.seenAtMs, s.createdAtMs) AS seenAtMs, s.untilMs
    ${liveSessions(which, nowMs)} ORDER BY s.createdAtMs DESC LIMIT 1000`);
}

/** Ends the session of a cookie alone: no token ends with it. */
export function deleteSession(hash: Uint8Array): Sql {
  return sql`DELETE FROM sessions WHERE hash = ${hash}`;
}

/**
 * Ends all of a user's sessions, the one of this id alone, or all but that; and the tokens of the
 * user's consoles: where a session lives they are made anew, unseen.
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
