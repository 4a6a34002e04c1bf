import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readSync } from "node:fs";
import { dirname } from "node:path";
import { constants, DatabaseSync } from "node:sqlite";
import { UnusableDatabaseError } from "./database.ts";
import { APPLICATION_ID, MIGRATIONS } from "./schema.ts";
import { classifySqliteError } from "./sqlite_error.ts";

/**
 * How long a connection waits for a lock that another process holds: a write is refused with the one
 * that waits before it, and gets its answer within two seconds.
 */
export const LOCK_TIMEOUT_MS = 800;

/**
 * Opens a connection with what every connection needs: a lock timeout, foreign keys, full
 * durability, and no ATTACH (Node's permission model does not confine SQLite, so this does).
 */
export function openSqlite(path: string, options: { readOnly: boolean }): DatabaseSync {
  const connection = new DatabaseSync(path, {
    readOnly: options.readOnly,
    timeout: LOCK_TIMEOUT_MS,
    enableForeignKeyConstraints: true,
  });
  // A reader's cache is emptied by each commit, so it need not be large.
  const cacheKiB = options.readOnly ? 2_000 : 8_000;
  connection.exec(`PRAGMA synchronous = FULL; PRAGMA cache_size = -${cacheKiB}`);
  connection.exec("PRAGMA secure_delete = ON"); // what is sealed or deleted stays readable nowhere
  // What a statement may have to undo stays out of temporary files, which would be written beside
  // the log as often as the log itself, and outside of the data folder.
  connection.exec("PRAGMA temp_store = MEMORY");
  // Opening may meet another process that opens or closes the file; once open, and with
  // a write-ahead log, no reader ever waits for a writer.
  if (options.readOnly) connection.exec("PRAGMA busy_timeout = 0");
  connection.setAuthorizer((action) =>
    action === constants.SQLITE_ATTACH ? constants.SQLITE_DENY : constants.SQLITE_OK
  );
  return connection;
}

/**
 * Empties the log beside the file into it, so that what has been overwritten can be read in neither.
 * False where somebody else was reading the log for too long.
 */
export function emptyLog(path: string): boolean {
  const connection = openSqlite(path, { readOnly: false });
  try {
    return connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.["busy"] === 0;
  } finally {
    connection.close();
  }
}

/**
 * Makes the file ready: creates it with its folder (file 0600, folder 0700) or brings its schema up
 * to date. Throws UnusableDatabaseError, and leaves the file as it is, when it is no database, is
 * another program's, or is newer than this program.
 */
export function prepareSqliteFile(path: string): void {
  try {
    createFile(path);
    checkLog(path);
    const connection = openSqlite(path, { readOnly: false });
    try {
      migrate(connection);
      useWriteAheadLog(connection); // no part of the migration: whoever did that may have died
    } finally {
      connection.close();
    }
  } catch (error) {
    if (error instanceof UnusableDatabaseError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new UnusableDatabaseError(`The database cannot be opened: ${reason}`, { cause: error });
  }
}

function createFile(path: string): void {
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, "a", 0o600));
    chmodSync(path, 0o600); // whatever the umask says
    return;
  }
  // SQLite would overwrite a short file that is not a database; a longer one it refuses by itself.
  const head = Buffer.alloc(16);
  const file = openSync(path, "r");
  const length = readSync(file, head);
  closeSync(file);
  if (length > 0 && head.toString("latin1") !== "SQLite format 3\0") {
    throw new UnusableDatabaseError("The database file is not an SQLite database");
  }
}

/**
 * Whoever closes a database last merges the log that a crash left behind into its file. That is not
 * to be done to a file that this program does not know, so it is looked at without writing first.
 */
function checkLog(path: string): void {
  if (!existsSync(`${path}-wal`)) return;
  const connection = openSqlite(path, { readOnly: true });
  try {
    readVersion(connection);
  } finally {
    connection.close();
  }
}

function migrate(connection: DatabaseSync): void {
  if (readPragma(connection, "application_id") === APPLICATION_ID &&
    readPragma(connection, "user_version") === MIGRATIONS.length) return;
  // Several processes may start at once: the first migrates, the others find it done.
  connection.exec("BEGIN EXCLUSIVE");
  try {
    const version = readVersion(connection);
    for (const migration of MIGRATIONS.slice(version)) connection.exec(migration);
    connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    connection.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

/** How many migrations the database has seen; throws where they are more than there are here. */
function readVersion(connection: DatabaseSync): number {
  const version = isOwn(connection) ? readPragma(connection, "user_version") : 0;
  if (version <= MIGRATIONS.length) return version;
  throw new UnusableDatabaseError(
    `The database has schema version ${version}, this program knows up to ` +
      `${MIGRATIONS.length}; start a newer Gatepost on it`,
  );
}

/** Whether the database is Gatepost's; false for an empty one, which may become that. */
function isOwn(connection: DatabaseSync): boolean {
  if (readPragma(connection, "application_id") === APPLICATION_ID) return true;
  const isEmpty = connection.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (isEmpty) return false;
  throw new UnusableDatabaseError("The database file belongs to another program");
}

/** Readers and the writer go on beside each other with a write-ahead log alone. */
function useWriteAheadLog(connection: DatabaseSync): void {
  const untilMs = performance.now() + LOCK_TIMEOUT_MS;
  while (true) {
    try {
      const mode = connection.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
      if (mode === "wal") return;
      throw new UnusableDatabaseError("The database's file system cannot hold a write-ahead log");
    } catch (error) {
      // SQLite waits for every lock but this one, which several processes that start at once want.
      if (classifySqliteError(error) !== "unavailable" || performance.now() > untilMs) throw error;
    }
  }
}

function readPragma(connection: DatabaseSync, name: string): number {
  return Number(connection.prepare(`PRAGMA ${name}`).get()?.[name]);
}
