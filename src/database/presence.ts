import { closeSync, existsSync, openSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { UnavailableError } from "./database.ts";
import { refusalOf } from "./sqlite_error.ts";

const OWN_LOCK_TIMEOUT_MS = 1000;
const ATTEMPTS = 5;

/**
 * Shows other processes on this database file that the one called `name` lives: it locks a file of
 * its own beside the database, and the system releases that lock however the process ends. The lock
 * is SQLite's, because Node has none; it works wherever the database's own locks do.
 */
export function acquirePresence(databasePath: string, name: string) {
  const prefix = prefixOf(databasePath);
  const own = prefix + name;
  let lock = takeOwn(own);
  return {
    /**
     * Calls `release` once, in one process, for what each process had claimed that has ended; again
     * at the next call if that throws. Of a process without a file nothing is known: its claims
     * last until their leases end. This process's own file is made anew if somebody has removed it.
     */
    async forEnded(release: (name: string) => Promise<void>): Promise<void> {
      if (!existsSync(own)) {
        const gone = lock;
        lock = takeOwn(own);
        gone.close();
      }
      for (const path of listFiles(prefix)) {
        using free = path === own ? undefined : tryLock(path, 0);
        if (!free || !existsSync(path)) continue; // it has closed meanwhile, or another was faster
        await release(path.slice(prefix.length));
        rmSync(path, { force: true }); // while it is locked, so that it is never a living one's
      }
    },
    /** Shows the others that this process has released everything. */
    close(): void {
      try {
        rmSync(own, { force: true });
      } catch {
        // A folder that takes no writes any more: others find the file without a lock.
      }
      lock.close();
    },
  };
}

/** Whether a process shows by a file of its own that it works on this database. */
export function isAnybodyPresent(databasePath: string): boolean {
  return listFiles(prefixOf(databasePath)).some((path) => {
    using free = tryLock(path, 0);
    return free === undefined;
  });
}

/** How the paths of the processes' files begin; the name of each follows. */
const prefixOf = (databasePath: string): string => `${databasePath}-process-`;

function listFiles(prefix: string): string[] {
  const folder = dirname(prefix);
  return readdirSync(folder).map((file) => join(folder, file))
    .filter((path) => path.startsWith(prefix));
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
  rmSync(path, { force: true }); // without a lock it would say that this process has ended
  throw new UnavailableError(`${path} cannot be locked`);
}

/** Undefined where another process holds it, and where there is no such file: none is made. */
function tryLock(path: string, timeoutMs: number): DatabaseSync | undefined {
  const url = pathToFileURL(path);
  url.search = "mode=rw";
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(url, { timeout: timeoutMs });
    // In memory, so that no journal lies beside the file and is taken for a process's too.
    connection.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return connection;
  } catch (error) {
    connection?.close();
    if (refusalOf(error) !== undefined) return undefined;
    throw error;
  }
}
