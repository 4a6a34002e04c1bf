import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { newId } from "../base/id.ts";
import { UnusableDatabaseError } from "./database.ts";
import { acquirePresence } from "./presence.ts";
import { refusalOf } from "./sqlite_error.ts";
import { openAtRest, openSqlite, quickCheck } from "./sqlite_file.ts";

// 4 MiB a step: large enough to be fast, small enough to be interrupted in between.
const PAGES_PER_STEP = 1024;

/** The path of the copy for `target` until it is complete. */
export const partialOf = (target: string): string => `${target}.partial`;

/** Removes an incomplete copy and the files that SQLite put beside it. */
export function removeCopy(file: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

/** Implements `Engine.backUp` for a file. */
export async function backUpSqlite(
  path: string,
  target: string,
  signal: AbortSignal,
): Promise<number> {
  if (isTaken(target)) throw targetExists(target);
  if (isOwnName(path, target)) {
    throw new UnusableDatabaseError(`${target} is a name that files beside the database have`);
  }
  return withTemporary(partialOf(target), async (partial) => {
    // A read-only connection would leave its write-ahead log behind if it closed last.
    using source = openSqlite(path, { readOnly: false });
    await copySqlite(source, partial, signal);
    keepAs(target, partial);
    return statSync(target).size;
  });
}

/** Whether the target has a name that SQLite or a process uses beside the database. */
function isOwnName(path: string, target: string): boolean {
  const own = join(realpathSync(dirname(target)), basename(target));
  return /^-(wal|shm|journal|process-.*)$/.test(own.replace(path, ""));
}

/**
 * Copies a database, as it is at the start of the copy, to an empty file. The copy is checked and
 * on disk at the end. Throws as `backUpSqlite`.
 */
export async function copySqlite(
  source: DatabaseSync,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  // An open transaction gives all steps the same snapshot. Without it, each write of another
  // connection would restart the copy.
  source.exec("BEGIN");
  source.prepare("SELECT count(*) FROM sqlite_schema").get();
  await backup(source, target, { rate: PAGES_PER_STEP, progress: () => signal.throwIfAborted() });
  signal.throwIfAborted();
  using copy = openAtRest(target);
  const found = quickCheck(copy);
  if (found !== "ok") throw new UnusableDatabaseError(`The database is damaged: ${found}`);
}

/**
 * Creates an empty file, mode 0600, runs `work` on it and removes it. First removes such files that
 * killed processes left in the folder.
 */
export async function withTemporary<Result>(
  path: string,
  work: (path: string) => Promise<Result>,
): Promise<Result> {
  const folder = dirname(path);
  accessSync(folder, constants.W_OK);
  const name = basename(path);
  const own = `${newId("c", Date.now())}-${name}`;
  const presence = acquirePresence(join(folder, ".gatepost-copy"), own);
  try {
    await presence.forEnded(async (ended) =>
      removeCopy(join(folder, ended.slice(ended.indexOf("-") + 1))));
    makePrivate(path);
    return await work(path).catch(nameFullDisk(path)).finally(() => removeCopy(path));
  } finally {
    presence.close();
  }
}

/** SQLite does not say which disk is full: that of the copy, as nothing else is written. */
const nameFullDisk = (path: string) => (error: unknown): never => {
  if (error instanceof Error && refusalOf(error) === "full") {
    error.message = `${path}: ${error.message}`;
  }
  throw error;
};

function makePrivate(file: string): void {
  try {
    writeFileSync(file, "", { flag: "wx", mode: 0o600 });
  } catch (cause) {
    if (!existsSync(file)) throw cause;
    const message = `${file} is there already: another command is making a copy, if it is not ` +
      "another file. If none runs, remove it.";
    throw new UnusableDatabaseError(message, { cause });
  }
}

/** Gives the copy its final name; never replaces another file. */
function keepAs(target: string, partial: string): void {
  try {
    linkSync(partial, target);
  } catch (cause) {
    if (isTaken(target)) throw targetExists(target, cause);
    renameSync(partial, target); // a file system without links
  }
  try {
    syncFolder(partial);
  } catch (error) {
    rmSync(target);
    throw error;
  }
}

/**
 * Flushes the entries of a folder to disk, by a scratch database at the free path `used` in it.
 * SQLite flushes them for its journal: Node has no fsync under its permission model.
 */
export function syncFolder(used: string): void {
  rmSync(used, { force: true });
  using scratch = new DatabaseSync(used);
  scratch.exec("CREATE TABLE scratch (id)");
}

/** Whether the name is taken, even by a link to a disk that is not mounted. */
function isTaken(target: string): boolean {
  return lstatSync(target, { throwIfNoEntry: false }) !== undefined;
}

function targetExists(target: string, cause?: unknown): Error {
  const error = new Error(`${target} is there already; a backup never replaces a file`, { cause });
  return Object.assign(error, { code: "EEXIST", syscall: "link" });
}
