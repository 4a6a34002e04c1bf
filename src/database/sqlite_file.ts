import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Sql } from "./sql.ts";

/** How long a connection waits for a lock: below 2 s even behind a write that waits as long. */
export const LOCK_TIMEOUT_MS = 800;

// https://sqlite.org/fileformat2.html#file_format_version_numbers
const [WRITE_VERSION_AT, USES_LOG] = [18, 2];

/** How long a start waits while another process creates or migrates the database. */
export const LONG_LOCK_TIMEOUT_MS = 5_000;

/**
 * Opens a connection with what every connection needs: a lock timeout, foreign keys, full
 * durability, and no ATTACH, since Node's permission model does not confine SQLite.
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
  // A reader's cache is small, since each commit empties it. `secure_delete` overwrites what was
  // deleted, or stored before it was sealed. `temp_store` keeps statement journals out of temporary
  // files, which lie outside the data folder and would be written as often as the log.
  const cacheKiB = options.readOnly ? 2_000 : 8_000;
  connection.exec(`PRAGMA synchronous = FULL; PRAGMA cache_size = -${cacheKiB};
    PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY`);
  // Only opening may wait, for a process that opens or closes the file. After that, with a
  // write-ahead log, a reader never waits for a writer.
  if (options.readOnly && options.lockTimeoutMs === undefined) {
    connection.exec("PRAGMA busy_timeout = 0");
  }
  return connection;
}

/** Empties the log into the file, so that neither holds overwritten data. False if it is in use. */
export function emptyLog(path: string): boolean {
  using connection = openSqlite(path, { readOnly: false });
  return connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.["busy"] === 0;
}

/** Opens for reading a database that no process has open. An ordinary reader would leave a log. */
export function openAtRest(path: string): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { readOnly: true });
}

/**
 * Opens a database for reading, without a trace. Its log exists while a process has it open, and
 * after one has died. A database that never had a log is being created, so its readers wait for
 * locks. If its creator died it left a journal, which only a writable connection can roll back.
 */
export function openForLook(path: string): DatabaseSync {
  const isAtRest = !existsSync(`${path}-wal`) && readHeader(path)[WRITE_VERSION_AT] === USES_LOG;
  if (isAtRest) return openAtRest(path);
  const readOnly = !existsSync(`${path}-journal`);
  return openSqlite(path, { readOnly, lockTimeoutMs: LONG_LOCK_TIMEOUT_MS });
}

/** Reads the start of a database file, up to 20 bytes (https://sqlite.org/fileformat2.html). */
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
 * Makes a function that reads rows and prepares each statement once. It builds the row objects
 * itself: those of node:sqlite are dictionaries to V8, slower to read or copy than the query.
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

/** Returns the first damage that SQLite finds in a database, on one line: "ok" if none. */
export function quickCheck(connection: DatabaseSync): string {
  const found = connection.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  return String(found).replace(/\s+/g, " ");
}

/** The value of a pragma that is a number. */
export function readPragma(connection: DatabaseSync, name: string): number {
  return Number(connection.prepare(`PRAGMA ${name}`).get()?.[name]);
}
