import {
  chmodSync,
  closeSync,
  existsSync,
  lchownSync,
  mkdirSync,
  openSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Seal } from "../base/seal.ts";
import { UnusableDatabaseError } from "./database.ts";
import {
  cannotOpen,
  checkUsable,
  findSealMismatch,
  findVersionError,
  judgeFile,
  versionOf,
} from "./judge.ts";
import { applyMigrations, NEWEST_VERSION } from "./migrations.ts";
import { refusalOf } from "./sqlite_error.ts";
import { LOCK_TIMEOUT_MS, LONG_LOCK_TIMEOUT_MS, openSqlite } from "./sqlite_file.ts";

/**
 * Creates the file and its folder (modes 0600, 0700), or migrates its schema. Throws
 * UnusableDatabaseError, and changes nothing, if the file is not for this program or the given seal
 * cannot decrypt it.
 */
export function prepareSqliteFile(path: string, seal?: Seal): void {
  // Judges without writing: a writable connection that closes last merges the log of a crash into
  // the file, which must not be done to another program's file.
  checkUsable(path, judgeFile(path, (file) => seal && findSealMismatch(file, seal)));
  const isNew = !existsSync(path);
  let topFolder: string | undefined; // the topmost of the folders that are created
  try {
    if (isNew) {
      topFolder = makeFolder(path);
      closeSync(openSync(path, "a", 0o600));
      chmodSync(path, 0o600); // regardless of the umask
      giveToOwner(path);
    }
    using connection = openSqlite(path, { readOnly: false, lockTimeoutMs: LONG_LOCK_TIMEOUT_MS });
    migrate(connection);
    useWriteAheadLog(connection); // not in `migrate`: a process that migrated may have died here
  } catch (cause) {
    const error = cannotOpen(path, cause);
    // A process that has locked the file is about to fill it.
    if (isNew && refusalOf(cause) !== "locked") removeEmpty(path, topFolder);
    throw error;
  }
}

/**
 * Creates the folder of a database if it is missing. Returns the topmost folder created. Throws
 * UnusableDatabaseError if no folder can be created.
 */
export function makeFolder(path: string): string | undefined {
  const folder = dirname(path);
  if (existsSync(folder)) return undefined;
  checkUsable(path, judgeFile(path));
  return mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/** Gives a file that root created to the owner of its folder, who runs the server. */
export function giveToOwner(file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(file));
  if (uid !== 0) lchownSync(file, uid, gid);
}

/** Removes a file that got no content, as on a full disk, and its folders up to `top`. */
function removeEmpty(path: string, top: string | undefined): void {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.size === 0) rmSync(path);
    for (let folder = dirname(path); top && folder.startsWith(top); folder = dirname(folder)) {
      rmdirSync(folder);
    }
  } catch {
    // Not all of it is empty any more.
  }
}

function migrate(connection: DatabaseSync): void {
  if (versionOf(connection) === NEWEST_VERSION) return;
  // Of processes that start at once the first one migrates, and the others find the work done.
  // Closing the connection rolls back what fails.
  connection.exec("BEGIN EXCLUSIVE");
  const error = findVersionError(connection);
  if (error !== undefined) throw new Error(error);
  applyMigrations(connection, versionOf(connection));
  connection.exec("COMMIT");
}

/** Turns on the write-ahead log, without which readers and the writer block each other. */
function useWriteAheadLog(connection: DatabaseSync): void {
  const untilMs = performance.now() + LOCK_TIMEOUT_MS;
  while (true) {
    try {
      const mode = connection.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
      if (mode === "wal") return;
      throw new UnusableDatabaseError("The database's file system cannot hold a write-ahead log");
    } catch (error) {
      // SQLite waits for every lock but this one, for which processes that start at once compete.
      if (refusalOf(error) === undefined || performance.now() > untilMs) throw error;
    }
  }
}
