import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Sql } from "./sql.ts";

/** How long a connection waits for a lock of another process: two seconds with the write before. */
export const LOCK_TIMEOUT_MS = 800;

// https://sqlite.org/fileformat2.html#file_format_version_numbers
const [WRITE_VERSION_AT, USES_LOG] = [18, 2];

/** How long a start waits: for a process that is making the database, or brings it up to date. */
export const LONG_LOCK_TIMEOUT_MS = 5_000;

/**
 * Opens a connection with what every connection needs: a lock timeout, foreign keys, full
 * durability, and no ATTACH (Node's permission model does not confine SQLite, so this does).
 */
export function openSqlite(
  path: string,
  options: { readonly readOnly: boolean; readonly lockTimeoutMs?: number },
): DatabaseSync {
  const connection = new DatabaseSync(path, {
    readOnly: options.readOnly,
    timeout: options.lockTimeoutMs ?? LOCK_TIMEOUT_MS,
    enableForeignKeyConstraints: true,
    limits: { attach: 0 },
  });
  // Each commit empties a reader's cache, so it need not be large. What is sealed or deleted stays
  // readable nowhere. What a statement may have to undo stays out of temporary files, which would
  // be written as often as the log itself, and outside of the data folder.
  const cacheKiB = options.readOnly ? 2_000 : 8_000;
  connection.exec(`PRAGMA synchronous = FULL; PRAGMA cache_size = -${cacheKiB};
    PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY`);
  // Opening may meet another process that opens or closes the file; once open, and with
  // a write-ahead log, no reader ever waits for a writer.
  if (options.readOnly && options.lockTimeoutMs === undefined) {
    connection.exec("PRAGMA busy_timeout = 0");
  }
  return connection;
}

/** Empties the log into the file: neither holds what was overwritten. False if it is in use. */
export function emptyLog(path: string): boolean {
  using connection = openSqlite(path, { readOnly: false });
  return connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.["busy"] === 0;
}

/** Opens a database that no process has open, to read it; an ordinary reader would leave a log. */
export function openAtRest(path: string): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { readOnly: true });
}

/**
 * Opens a database to read it and leave no trace. While any process has it open, and after one
 * died, its log is there. One that has never had a log is being made: its readers wait for locks.
 * Whoever has died making it has left a journal, which only a connection that may write takes back.
 */
export function openForLook(path: string): DatabaseSync {
  const isAtRest = !existsSync(`${path}-wal`) && readHeader(path)[WRITE_VERSION_AT] === USES_LOG;
  if (isAtRest) return openAtRest(path);
  const readOnly = !existsSync(`${path}-journal`);
  return openSqlite(path, { readOnly, lockTimeoutMs: LONG_LOCK_TIMEOUT_MS });
}

/** How a database file begins (https://sqlite.org/fileformat2.html): what of it there is. */
export function readHeader(path: string): Buffer {
  const header = Buffer.alloc(20);
  const file = openSync(path, "r");
  try {
    return header.subarray(0, readSync(file, header));
  } finally {
    closeSync(file);
  }
}

/**
 * Makes what reads rows, by statements that are prepared once. Each row is made of its values:
 * node:sqlite's own are dictionaries to V8, and to read or copy them costs more than the query.
 */
export function createRowReader(connection: DatabaseSync): <Row>(select: Sql) => Row[] {
  const prepare = (sql: string) => {
    const statement = connection.prepare(sql, { returnArrays: true });
    return { statement, names: statement.columns().map(({ name }) => name) };
  };
  const prepared = new Map<string, ReturnType<typeof prepare>>();
  return <Row>({ sql, params }: Sql) => {
    const { statement, names } = prepared.getOrInsertComputed(sql, prepare);
    return statement.all(...params).map((values) => {
      const row: Record<string, unknown> = {};
      for (let index = 0; index < names.length; index++) row[names[index] ?? ""] = values[index];
      return row as Row;
    });
  };
}

/** The first damage that SQLite finds in a database, on one line: "ok" if none. */
export function quickCheck(connection: DatabaseSync): string {
  const found = connection.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  return String(found).replace(/\s+/g, " ");
}

/** The value of a pragma that is a number. */
export function readPragma(connection: DatabaseSync, name: string): number {
  return Number(connection.prepare(`PRAGMA ${name}`).get()?.[name]);
}
