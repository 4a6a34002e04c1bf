import type { Seal } from "../base/seal.ts";
import { type Database } from "./database.ts";
import { sql, type Sql } from "./sql.ts";

/** The setting that holds the key of the pages' form tokens. */
export const PAGE_KEY = "page_key";

/** Where secrets are stored that a seal closed, with the row's id as their context. */
const PLACES = [
  { table: "settings", id: "name", column: "value", only: `name = '${PAGE_KEY}'` },
  { table: "keys", id: "kid", column: "private", only: "TRUE" },
  { table: "subscriptions", id: "id", column: "secret", only: "TRUE" },
  { table: "subscriptions", id: "id", column: "oldSecret", only: "oldSecret IS NOT NULL" },
];
const BATCH = 500;

/**
 * Gives, in bounded batches, what closes every stored secret anew that the seal's first key did not
 * close. One that is replaced meanwhile is left alone: whoever did that closed it with the first
 * key.
 */
export async function* renewSecrets(database: Database, seal: Seal): AsyncGenerator<Sql[]> {
  for (const { table, id, column, only } of PLACES) {
    for (let after: string | undefined = ""; after !== undefined;) {
      const rows: { id: string; stored: string }[] = await database.query(
        `SELECT ${id} AS id, ${column} AS stored FROM ${table}
         WHERE ${id} > ?1 AND ${only} ORDER BY ${id} LIMIT ?2`,
        [after, BATCH],
      );
      after = rows.at(-1)?.id;
      const update = `UPDATE ${table} SET ${column} = ?3 WHERE ${id} = ?1 AND ${column} = ?2`;
      const changed = rows.map((row) => ({ ...row, renewed: seal.renew(row.stored, row.id) }))
        .filter(({ stored, renewed }) => renewed !== stored);
      yield changed.map((row) => sql(update, row.id, row.stored, row.renewed));
    }
  }
}
