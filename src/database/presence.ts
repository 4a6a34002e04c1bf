import { closeSync, existsSync, openSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { UnavailableError } from "./database.ts";
import { refusalOf } from "./sqlite_error.ts";

const OWN_LOCK_TIMEOUT_MS = 1000;
const ATTEMPTS = 5;

/**
 * Shows other processes on this database file that the process `name` is alive. It locks a file of
 * its own beside the database; the system releases the lock however the process ends. The lock is
 * SQLite's, because Node has none, so it works wherever the database's own locks do.
 */
export function acquirePresence(databasePath: string, name: string) {
  const prefix = prefixOf(databasePath);
  const own = prefix + name;
  let lock = takeOwn(own);
  return {
    /**
     * Calls `release` with the name of each ended process, in one process and once; again at the
     * next call if it throws. A process without a file is not noticed: its claims last until their
     * leases end. Creates this process's own file again if somebody has removed it.
     */
    async forEnded(release: (name: string) => Promise<void>): Promise<void> {
      if (!existsSync(own)) {
        const gone = lock;
        lock = takeOwn(own);
        gone.close();
      }
      for (const path of listFiles(prefix)) {
        using free = path === own ? undefined : tryLock(path, 0);
        if (!free || !existsSync(path)) continue; // closed meanwhile, or another process was faster
        await release(path.slice(prefix.length));
        rmSync(path, { force: true }); // while locked, so that it is no living process's
      }
    },
    /** Shows other processes that this one has released everything. */
    close(): void {
      try {
        rmSync(own, { force: true });
      } catch {
        // The folder may refuse writes now. Other processes find the file without a lock.
      }
      lock.close();
    },
  };
}

/** Whether any process holds the lock of a presence file beside this database. */
export function isAnybodyPresent(databasePath: string): boolean {
  return listFiles(prefixOf(databasePath)).some((path) => {
    using free = tryLock(path, 0);
    return free === undefined;
  });
}

/** The beginning of the paths of presence files; the name of a process follows. */
const prefixOf = (databasePath: string): string => `${databasePath}-process-`;

function listFiles(prefix: string): string[] {
  const folder = dirname(prefix);
  return readdirSync(folder).map((file) => join(folder, file))
    .filter((path) => path.startsWith(prefix));
}

/**
 * Creates and locks this process's file. Another process may remove the file before the lock is
 * taken, so the lock counts only if the file still exists.
 */
function takeOwn(path: string): DatabaseSync {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    closeSync(openSync(path, "a", 0o600));
    const lock = tryLock(path, OWN_LOCK_TIMEOUT_MS);
    if (lock && existsSync(path)) return lock;
    lock?.close();
  }
  rmSync(path, { force: true }); // an unlocked file would mean that this process has ended
  throw new UnavailableError(`${path} cannot be locked`);
}

/** Locks the file. Undefined if another process holds the lock, or if there is no such file. */
function tryLock(path: string, timeoutMs: number): DatabaseSync | undefined {
  const url = pathToFileURL(path);
  url.search = "mode=rw";
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(url, { timeout: timeoutMs });
    // In memory: a journal beside the file would be taken for another process's file.
    connection.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return connection;
  } catch (error) {
    connection?.close();
    if (refusalOf(error) !== undefined) return undefined;
    throw error;
  }
}
