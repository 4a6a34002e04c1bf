import type { Seal } from "../base/seal.ts";
import { type Database, limitTo } from "./database.ts";
import { walk } from "./rows.ts";
import { sql, type Sql } from "./sql.ts";

/** The setting that holds the key of the pages' form tokens. */
export const PAGE_KEY = "page_key";

/** Where secrets are stored that a seal encrypted, with the row's id as their context. */
const PLACES = [
  { table: sql`settings`, id: sql`name`, column: sql`value`, only: sql`name = ${PAGE_KEY}` },
  { table: sql`keys`, id: sql`kid`, column: sql`private`, only: sql`TRUE` },
  { table: sql`subscriptions`, id: sql`id`, column: sql`secret`, only: sql`TRUE` },
  { table: sql`subscriptions`, id: sql`id`, column: sql`oldSecret`, only: sql`oldSecret NOT NULL` },
];
const BATCH = 500;

/**
 * Makes, in bounded batches, what encrypts every stored secret anew that the seal's first key did
 * not encrypt. One that is replaced meanwhile is left alone: whoever did that used the first key.
 */
export async function* renewSecrets(database: Database, seal: Seal): AsyncGenerator<Sql[]> {
  for (const { table, id, column, only } of PLACES) {
    const parts = walk<{ key: string; stored: string }>(database, "", (after) =>
      sql`SELECT ${id} AS key, ${column} AS stored FROM ${table}
        WHERE ${id} > ${after} AND ${only} ORDER BY ${id} ${limitTo(BATCH)}`);
    for await (const rows of parts) {
      yield rows.flatMap(({ key, stored }) => {
        const renewed = seal.renew(stored, key);
        return renewed === stored ? [] : sql`UPDATE ${table} SET ${column} = ${renewed}
          WHERE ${id} = ${key} AND ${column} = ${stored}`;
      });
    }
  }
}
