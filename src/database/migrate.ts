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
 * Makes the file ready: creates it with its folder (modes 0600, 0700) or migrates its schema.
 * Throws UnusableDatabaseError, and leaves the file as it is, when it is not for this program, or
 * sealed with another seal than one that is given.
 */
export function prepareSqliteFile(path: string, seal?: Seal): void {
  // Without writing: whoever closes a database last merges the log of a crash into its file, which
  // is not to be done to one that this program does not know.
  checkUsable(path, judgeFile(path, (file) => seal && findSealMismatch(file, seal)));
  const isNew = !existsSync(path);
  let topFolder: string | undefined; // of those that are made
  try {
    if (isNew) {
      topFolder = makeFolder(path);
      closeSync(openSync(path, "a", 0o600));
      chmodSync(path, 0o600); // whatever the umask says
      giveToOwner(path);
    }
    using connection = openSqlite(path, { readOnly: false, lockTimeoutMs: LONG_LOCK_TIMEOUT_MS });
    migrate(connection);
    useWriteAheadLog(connection); // no part of the migration: whoever did that may have died
  } catch (cause) {
    const error = cannotOpen(path, cause);
    // Whoever has locked it is about to fill it.
    if (isNew && refusalOf(cause) !== "locked") removeEmpty(path, topFolder);
    throw error;
  }
}

/**
 * Makes the folder of a database where there is none, and returns the topmost that it made. Throws
 * UnusableDatabaseError where none can be made.
 */
export function makeFolder(path: string): string | undefined {
  const folder = dirname(path);
  if (existsSync(folder)) return undefined;
  checkUsable(path, judgeFile(path));
  return mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/** What root makes is that user's whose folder it is in, and who runs a server there. */
export function giveToOwner(file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(file));
  if (uid !== 0) lchownSync(file, uid, gid);
}

/** Takes back a file that got no content, as on a full disk, and the folders down from `top`. */
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
  // Several processes may start at once: the first migrates, the others find it done. What fails is
  // undone as its connection is closed.
  connection.exec("BEGIN EXCLUSIVE");
  const error = findVersionError(connection);
  if (error !== undefined) throw new Error(error);
  applyMigrations(connection, versionOf(connection));
  connection.exec("COMMIT");
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
      if (refusalOf(error) === undefined || performance.now() > untilMs) throw error;
    }
  }
}
