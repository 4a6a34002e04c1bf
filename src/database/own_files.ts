import { type BigIntStats, existsSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** The files of an open database, as the paths lead to them. */
export type OwnFiles = ReturnType<typeof watchOwnFiles>;

// As many as Linux follows.
const MOST_LINKS = 40;

/** The path of the file itself: SQLite keeps the log beside it, not beside a link to it. */
export function followLinks(path: string, most = MOST_LINKS): string {
  if (existsSync(path) || most === 0) return realpathSync(path);
  try {
    const next = resolve(realpathSync(dirname(path)), readlinkSync(path));
    return followLinks(next, most - 1); // it leads to what will be
  } catch { // it is no link: there is nothing, or what is there cannot be looked at
    return resolve(path);
  }
}

/**
 * What a path leads to: the same text as long as it is the same file, "" where there is none.
 * Throws the system's error where it cannot be looked at.
 */
export function identify(path: string): string {
  return identityOf(look(path));
}

/** Whether a path leads to the file of this identity; not where it cannot be looked at. */
export function leadsTo(path: string, identity: string): boolean {
  try {
    return identify(path) === identity;
  } catch {
    return false;
  }
}

/**
 * Watches over the file at `path`, which was `identity` when it was opened, over its log and the
 * index to that, by whose locks processes take turns, and over the link `given` that led there.
 */
export function watchOwnFiles(given: string, path: string, identity: string) {
  const paths = [...new Set([given, path])];
  let besides: string | undefined;
  let logBytes = 0;
  return {
    /** Whether the paths still lead to the open files: what goes to others would be lost. */
    areInPlace(): boolean {
      if (!paths.every((each) => leadsTo(each, identity))) return false;
      const [log, index] = [look(`${path}-wal`), look(`${path}-shm`)];
      logBytes = Number(log?.size ?? 0);
      const found = `${identityOf(log)} ${identityOf(index)}`;
      besides ??= found;
      return log !== undefined && index !== undefined && found === besides;
    },
    /**
     * Whether the log alone is gone, and nothing of others has come since the last commit of this
     * service: what they have written would be in a log, or in the file, whose time it changes.
     */
    isLogGone: (committedAtMs: number) =>
      leadsTo(path, identity) && !look(`${path}-wal`)?.size &&
      Number(look(path)?.mtimeMs) <= committedAtMs,
    /** How long the log was when it was last looked at. */
    logBytes: () => logBytes,
  };
}

function look(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function identityOf(found: BigIntStats | undefined): string {
  return found ? `${found.dev}:${found.ino}` : "";
}
