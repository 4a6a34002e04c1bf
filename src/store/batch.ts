import { type Database, limitTo } from "../database/database.ts";
import { paceWrites } from "../database/pace_writes.ts";
import { walk } from "../database/rows.ts";
import { sql, type Sql } from "../database/sql.ts";

/** How many rows one write changes if there may be very many: no other write waits long then. */
export const BATCH = 500;

/** The `LIMIT` of such a write, and of what selects its rows. */
export const AT_MOST = limitTo(BATCH);

/** The value of a key column. */
export type Key = string | number;

/** The rows of a table for which `where` holds, in the order of a key, from `after` on. */
export interface KeyedRows<Of = Key> extends Readonly<Record<"table" | "key" | "where", Sql>> {
  after: Of;
}

/** Reads the keys of rows, batch by batch. */
export async function* walkKeys<Of extends Key>(
  database: Database,
  { table, key, where, after }: KeyedRows<Of>,
): AsyncGenerator<Of[], void, void> {
  const parts = walk<{ key: Of }>(database, after, (last) =>
    sql`SELECT ${key} AS key FROM ${table}
      WHERE ${where} AND ${key} > ${last} ORDER BY ${key} ${AT_MOST}`);
  for await (const rows of parts) yield rows.map((row) => row.key);
}

/**
 * Writes what `batch` makes of the keys of very many rows, in steps for which no other write waits
 * long. Leaves a rest of fewer keys than `least`. Returns the last key written; `rows.after` has it
 * too, so that another call continues there, also after an error.
 */
export async function writeInSteps<Of extends Key>(
  database: Database,
  rows: KeyedRows<Of>,
  batch: (keys: readonly Of[]) => readonly Sql[],
  least = BATCH,
): Promise<Of> {
  const { write } = paceWrites(database);
  for await (const keys of walkKeys(database, rows)) {
    if (keys.length < least) break;
    await write(batch(keys));
    rows.after = keys.at(-1) ?? rows.after;
  }
  return rows.after;
}
