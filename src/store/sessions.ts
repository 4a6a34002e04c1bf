import type { Database } from "../database/database.ts";
import { findValue } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";

/** Stores a browser session by the SHA-256 of its cookie's value. */
export function insertSession(hash: Uint8Array, user: string, nowMs: number, untilMs: number): Sql {
  return sql`INSERT INTO sessions (hash, user, createdAtMs, untilMs)
    VALUES (${hash}, ${user}, ${nowMs}, ${untilMs})`;
}

/** Selects from a session `s` and its user `u` while both are valid. */
export function liveSession(hash: Uint8Array, nowMs: number): Sql {
  return sql`FROM sessions s JOIN users u ON u.id = s.user
    WHERE s.hash = ${hash} AND s.untilMs > ${nowMs} AND u.status = 'active'
      AND u.notBeforeMs < s.createdAtMs`;
}

/** Who is logged in by this session, while user and session are valid. */
export function findSessionUser(
  database: Database,
  hash: Uint8Array,
  nowMs: number,
): Promise<string | undefined> {
  return findValue(database, sql`SELECT s.user ${liveSession(hash, nowMs)}`);
}

/** Ends a browser session. */
export function deleteSession(hash: Uint8Array): Sql {
  return sql`DELETE FROM sessions WHERE hash = ${hash}`;
}
