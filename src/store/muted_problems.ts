import type { Database } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { type Change, deleteWhere } from "./audit.ts";

/** Until when each problem is muted, in milliseconds since 1970, by its id. */
export async function listMuted(database: Database, nowMs: number): Promise<Map<string, number>> {
  const rows = await database.query<{ readonly id: string; readonly untilMs: number }>(
    sql`SELECT id, untilMs FROM muted_problems WHERE untilMs > ${nowMs}`,
  );
  return new Map(rows.map(({ id, untilMs }) => [id, untilMs]));
}

/** Mutes a problem until `untilMs`, which replaces a former end. */
export function muteProblem(id: string, untilMs: number): Sql {
  return sql`INSERT INTO muted_problems (id, untilMs) VALUES (${id}, ${untilMs})
    ON CONFLICT DO UPDATE SET untilMs = excluded.untilMs`;
}

/** Ends the muting of a problem. */
export function unmuteProblem(id: string): Change {
  return deleteWhere(sql`muted_problems`, sql`id = ${id}`);
}
