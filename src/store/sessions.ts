import { type Database } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";

/** Stores a browser session by the SHA-256 of its cookie's value. */
export function insertSession(
  hash: Uint8Array,
  user: string,
  nowMs: number,
  untilMs: number,
): Sql {
  return sql`INSERT INTO sessions (hash, user, createdAtMs, untilMs) VALUES (${hash}, ${user}, ${nowMs}, ${untilMs})`;
}

/** Selects from a session `s` and its user `u` while both are good. */
export function liveSession(hash: string, now: string): string {
  return `FROM sessions s JOIN users u ON u.id = s.user
    WHERE s.hash = ${hash} AND s.untilMs > ${now} AND u.status = 'active' AND u.notBeforeMs < s.createdAtMs`;
}

/** Who is logged in by this session, while user and session are good. */
export async function findSessionUser(
  database: Database,
  hash: Uint8Array,
  nowMs: number,
): Promise<string | undefined> {
  const rows = await database.query<{ user: string }>(
    `SELECT s.user ${liveSession("?1", "?2")}`,
    [hash, nowMs],
  );
  return rows[0]?.user;
}

/** Ends a browser session. */
export function deleteSession(hash: Uint8Array): Sql {
  return sql`DELETE FROM sessions WHERE hash = ${hash}`;
}
