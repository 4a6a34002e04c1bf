import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import products from "./catalogue.json" with { type: "json" };

const TABLES = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS products (
    sku TEXT PRIMARY KEY, name TEXT, price_cents INTEGER, stock INTEGER,
    image BLOB, image_type TEXT
  ) STRICT;
  CREATE TABLE IF NOT EXISTS customers (
    id TEXT PRIMARY KEY, discount_percent INTEGER, blocked INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, customer TEXT, reference TEXT, sku TEXT, quantity INTEGER,
    total_cents INTEGER, status TEXT, UNIQUE (customer, reference)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS reviews (sku TEXT, stars INTEGER, words TEXT, author TEXT) STRICT;
  CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, key TEXT, data TEXT
  ) STRICT;
`;

let opened: DatabaseSync | undefined;

/** Opens the database when it is first used, since `gatepost check` loads modules too. */
function database(): DatabaseSync {
  opened ??= open(process.env["SHOP_DATABASE"] ?? "");
  return opened;
}

function open(path: string): DatabaseSync {
  if (path === "") throw new Error("SHOP_DATABASE is not set: the path of the shop's database");
  // While a request waits for a lock, all others wait too, so it fails soon.
  const made = new DatabaseSync(path, { timeout: 100 });
  made.exec(TABLES);
  const add = made.prepare(
    "INSERT OR IGNORE INTO products (sku, name, price_cents, stock) VALUES (?, ?, ?, ?)",
  );
  for (const { sku, name, price_cents, stock } of products) add.run(sku, name, price_cents, stock);
  return made;
}

/** Runs a statement that changes rows, and returns how many. */
export function change(sql: string, ...values: readonly SQLInputValue[]): number {
  return Number(database().prepare(sql).run(...values).changes);
}

/** Returns the rows of a query; `Row` is the type of its columns. */
export function rows<Row>(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
  return database().prepare(sql).all(...values) as unknown as readonly Row[];
}

/**
 * Commits everything that `work` changes, or nothing. It must not await anything, since other
 * requests use the same connection.
 */
export function transaction<Result>(work: () => Result): Result {
  change("BEGIN IMMEDIATE");
  try {
    const result = work();
    change("COMMIT");
    return result;
  } catch (error) {
    change("ROLLBACK");
    throw error;
  }
}
