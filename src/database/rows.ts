import type { Database, Page, Pagination } from "./database.ts";
import type { Sql } from "./sql.ts";

/** The row of a record: a list is JSON text, a boolean is 0 or 1. */
export type RowOf<Item> = { readonly [Key in keyof Item]: Stored<Item[Key]> };

type Stored<Value> = Value extends readonly unknown[] ? string
  : Value extends boolean ? number
  : Value;

/** Parses the scopes of a row, a JSON array. */
export function parseScopes<Row extends { readonly scopes: string }>(
  row: Row,
): Omit<Row, "scopes"> & { readonly scopes: readonly string[] } {
  return { ...row, scopes: JSON.parse(row.scopes) };
}

/** The first row of a SELECT. */
export async function findRow<Row>(database: Database, select: Sql): Promise<Row | undefined> {
  return (await database.query<Row>(select))[0];
}

/** The item of the first row of a SELECT. */
export async function findItem<Row, Item>(
  database: Database,
  select: Sql,
  toItem: (row: Row) => Item,
): Promise<Item | undefined> {
  const row = await findRow<Row>(database, select);
  return row && toItem(row);
}

/** The value in the first row of a SELECT of one column. */
export async function findValue<Value>(database: Database, select: Sql) {
  const [row] = await database.query<Record<string, Value>>(select);
  return row && Object.values(row)[0];
}

/** Whether a SELECT has any row. */
export async function hasRow(database: Database, select: Sql): Promise<boolean> {
  return (await database.query(select)).length > 0;
}

/** Writes one batch. Returns whether its first statement changed exactly one row. */
export async function changesRow(database: Database, ...batch: readonly Sql[]): Promise<boolean> {
  return (await database.write(batch))[0] === 1;
}

/** Sorts after every id: as a cursor it makes a list begin with the newest item. */
export const NEWEST = "~";

/** Makes a page from the rows of a query whose LIMIT is one more than the page's. */
export function pageOf<Item extends { readonly id: string }>(
  rows: readonly Item[],
  { limit }: Pagination,
): Page<Item> {
  const items = rows.slice(0, limit);
  return { items, next: rows.length > limit ? items.at(-1)?.id : undefined };
}

/** Reads rows in batches, in the order of their keys; `select` selects those after a key. */
export async function* walk<Row extends { readonly key: string | number }>(
  database: Database,
  first: Row["key"],
  select: (after: Row["key"]) => Sql,
): AsyncGenerator<Row[], void, void> {
  for (let after = first; ;) {
    const rows = await database.query<Row>(select(after));
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.key;
  }
}
