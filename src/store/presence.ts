import { closeSync, existsSync, openSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { UnavailableError } from "./database.ts";
import { classifySqliteError } from "./sqlite_error.ts";

/** Which of the processes on one database file are there. */
export interface Presence {
  /** False only for a process that has ended, however it did, or that there never was. */
  isAlive(name: string): boolean;
  /** Tells the others that this process has let go of everything. */
  close(): void;
}

const OWN_LOCK_TIMEOUT_MS = 1000;
const ATTEMPTS = 5;

/**
 * Shows other processes on this database file that the one called `name` is there, for as long as
 * it lives: it holds a lock on a file of its own beside the database, and the system releases that
 * lock at the very end of a process, also of one that is killed. The lock is SQLite's, on an empty
 * database, because Node has no other; it holds wherever the database's own locks do.
 */
export function openPresence(databasePath: string, name: string): Presence {
  const prefix = `${databasePath}-process-`;
  for (const file of readdirSync(dirname(databasePath))) {
    const path = join(dirname(databasePath), file);
    if (file.startsWith(basename(prefix))) removeIfFree(path);
  }
  const own = prefix + name;
  const lock = takeOwn(own);
  return {
    isAlive: (other) => other === name || !removeIfFree(prefix + other),
    close() {
      rmSync(own, { force: true });
      lock.close();
    },
  };
}

/**
 * Locks this process's file. Another that is tidying up may come between making and locking it, so
 * the lock counts only if the file is still there.
 */
function takeOwn(path: string): DatabaseSync {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    closeSync(openSync(path, "a", 0o600));
    const lock = tryLock(path, OWN_LOCK_TIMEOUT_MS);
    if (lock && existsSync(path)) return lock;
    lock?.close();
  }
  throw new UnavailableError(`${path} cannot be locked`);
}

/** Removes the file of a process that has ended; true if there is none any more. */
export function removeIfFree(path: string): boolean {
  if (!existsSync(path)) return true;
  const lock = tryLock(path, 0);
  if (!lock) return false;
  rmSync(path, { force: true }); // while it is locked, so that it is never a living one's
  lock.close();
  return true;
}

function tryLock(path: string, timeoutMs: number): DatabaseSync | undefined {
  const connection = new DatabaseSync(path, { timeout: timeoutMs });
  try {
    // In memory, so that no journal lies beside the file and is taken for a process's too.
    connection.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return connection;
  } catch (error) {
    connection.close();
    if (classifySqliteError(error) === "unavailable") return undefined;
    throw error;
  }
}
