import { type Database, limitTo } from "../database/database.ts";
import { walk } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";

/** How many rows one write changes where there may be very many, so that no other waits long. */
export const BATCH = 500;

/** The `LIMIT` of such a write, and of what selects its rows. */
export const AT_MOST = limitTo(BATCH);

/** Reads the keys after `first` of the rows for which `where` holds, batch by batch, in order. */
export async function* walkKeys<Key extends string | number>(
  database: Database,
  { table, key, where, first }: Readonly<Record<"table" | "key" | "where", Sql>> & { first: Key },
): AsyncGenerator<Key[], void, void> {
  const parts = walk<{ key: Key }>(database, first, (after) =>
    sql`SELECT ${key} AS key FROM ${table}
      WHERE ${where} AND ${key} > ${after} ORDER BY ${key} ${AT_MOST}`);
  for await (const rows of parts) yield rows.map((row) => row.key);
}
