import { type BigIntStats, existsSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** The watch over the files of an open database. */
export type OwnFiles = ReturnType<typeof watchOwnFiles>;

// Linux follows as many.
const MOST_LINKS = 40;

/** Returns the path of the file itself: SQLite keeps the log beside the file, not beside a link. */
export function followLinks(path: string, most = MOST_LINKS): string {
  if (existsSync(path) || most === 0) return realpathSync(path);
  try {
    const next = resolve(realpathSync(dirname(path)), readlinkSync(path));
    return followLinks(next, most - 1); // the target does not exist yet
  } catch { // it is no link: nothing is there, or it cannot be examined
    return resolve(path);
  }
}

/**
 * Returns the identity of the file at a path: the same text for as long as it is the same file, ""
 * if there is none. Throws the system's error if the file cannot be examined.
 */
export function identify(path: string): string {
  return identityOf(look(path));
}

/** Whether a path leads to the file of this identity; false if it cannot be examined. */
export function leadsTo(path: string, identity: string): boolean {
  try {
    return identify(path) === identity;
  } catch {
    return false;
  }
}

/**
 * Watches the file at `path`, whose identity at opening was `identity`, and the link `given` to it.
 * Also watches its log and the log's index, which has the locks between processes.
 */
export function watchOwnFiles(given: string, path: string, identity: string) {
  const paths = [...new Set([given, path])];
  let logIdentity: string | undefined;
  let logBytes = 0;
  return {
    /** Whether the paths still lead to the open files: otherwise what is written would be lost. */
    areInPlace(): boolean {
      if (!paths.every((each) => leadsTo(each, identity))) return false;
      const [log, index] = [look(`${path}-wal`), look(`${path}-shm`)];
      logBytes = Number(log?.size ?? 0);
      const found = `${identityOf(log)} ${identityOf(index)}`;
      logIdentity ??= found;
      return log !== undefined && index !== undefined && found === logIdentity;
    },
    /**
     * Whether only the log is gone, and nobody else has written since this service's last commit.
     * Such a write would be in a log, or in the file, whose modification time it changes.
     */
    isLogGone: (committedAtMs: number) =>
      leadsTo(path, identity) && !look(`${path}-wal`)?.size &&
      Number(look(path)?.mtimeMs) <= committedAtMs,
    /** The size of the log, in bytes, at the last call of `areInPlace`. */
    logBytes: () => logBytes,
  };
}

function look(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function identityOf(found: BigIntStats | undefined): string {
  return found ? `${found.dev}:${found.ino}` : "";
}
