import type { Seal } from "../base/seal.ts";
import { type Database, limitTo } from "./database.ts";
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
 * Gives, in bounded batches, what encrypts every stored secret anew that the seal's first key did
 * not encrypt. One that is replaced meanwhile is left alone: whoever did that used the first key.
 */
export async function* renewSecrets(database: Database, seal: Seal): AsyncGenerator<Sql[]> {
  for (const { table, id, column, only } of PLACES) {
    for (let after: string | undefined = ""; after !== undefined;) {
      const rows: { id: string; stored: string }[] = await database.query(
        sql`SELECT ${id} AS id, ${column} AS stored FROM ${table}
          WHERE ${id} > ${after} AND ${only} ORDER BY ${id} ${limitTo(BATCH)}`,
      );
      after = rows.at(-1)?.id;
      const changed = rows.map((row) => ({ ...row, renewed: seal.renew(row.stored, row.id) }))
        .filter(({ stored, renewed }) => renewed !== stored);
      yield changed.map((row) =>
        sql`UPDATE ${table} SET ${column} = ${row.renewed}
          WHERE ${id} = ${row.id} AND ${column} = ${row.stored}`
      );
    }
  }
}
