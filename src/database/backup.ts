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
import { openAtRest, openSqlite, quickCheck } from "./sqlite_file.ts";

// Four mebibytes a step: seldom enough to be quick, often enough to be interrupted.
const PAGES_PER_STEP = 1024;

/** Where the copy grows that becomes `target`. */
export const partialOf = (target: string): string => `${target}.partial`;

/** Removes a copy that has not become whole. */
export function removeCopy(file: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

/** Does `Engine.backUp` of a file. */
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
    // Not read-only: such a connection would leave its write-ahead log behind if it is the last.
    using source = openSqlite(path, { readOnly: false });
    await copySqlite(source, partial, signal);
    keepAs(target, partial);
    return statSync(target).size;
  });
}

/** Whether a path is that of a file which SQLite or a process puts beside the database. */
function isOwnName(path: string, target: string): boolean {
  const own = join(realpathSync(dirname(target)), basename(target));
  return /^-(wal|shm|journal|process-.*)$/.test(own.replace(path, ""));
}

/**
 * Copies a database, as it is when that begins, to an empty file; the copy is checked and on disk
 * when it is done. Throws as `backUpSqlite`.
 */
export async function copySqlite(
  source: DatabaseSync,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  // A transaction that stays open keeps one state for all steps; without it each write of
  // another connection would make the copy begin again.
  source.exec("BEGIN");
  source.prepare("SELECT count(*) FROM sqlite_schema").get();
  await backup(source, target, { rate: PAGES_PER_STEP, progress: () => signal.throwIfAborted() });
  signal.throwIfAborted();
  using copy = openAtRest(target);
  const found = quickCheck(copy);
  if (found !== "ok") throw new UnusableDatabaseError(`The database is damaged: ${found}`);
}

/**
 * Makes an empty file, mode 0600, for as long as the work on it takes. What killed processes have
 * left of such files in its folder goes first.
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
    return await work(path).finally(() => removeCopy(path));
  } finally {
    presence.close();
  }
}

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

/** Gives the copy its name, and never takes that of another file. */
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
 * Puts the names in a folder on disk, by a file there that has had its use. SQLite does it, for its
 * journal: Node has no fsync under its permission model.
 */
export function syncFolder(used: string): void {
  rmSync(used, { force: true });
  using scratch = new DatabaseSync(used);
  scratch.exec("CREATE TABLE scratch (id)");
}

/** Whether something has the name, be it a link to a disk that is not mounted. */
function isTaken(target: string): boolean {
  return lstatSync(target, { throwIfNoEntry: false }) !== undefined;
}

function targetExists(target: string, cause?: unknown): Error {
  const error = new Error(`${target} is there already; a backup never replaces a file`, { cause });
  return Object.assign(error, { code: "EEXIST", syscall: "link" });
}
