import {
  accessSync,
  constants,
  existsSync,
  lchownSync,
  linkSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Seal } from "../base/seal.ts";
import { copySqlite, syncFolder, withTemporary } from "./backup.ts";
import { UnusableDatabaseError } from "./database.ts";
import type { Restored } from "./engine.ts";
import { checkUsable, hasOnlyLog, judgeDatabase } from "./judge.ts";
import { giveToOwner, makeFolder } from "./migrate.ts";
import { isAnybodyPresent } from "./presence.ts";
import { refusalOf } from "./sqlite_error.ts";
import { openAtRest } from "./sqlite_file.ts";

/**
 * Implements `Engine.restore` for a file, mode 0600. First makes a copy beside the database and
 * judges it, by its content and with the seal. Then moves the database and its log aside.
 */
export async function restoreSqlite(
  source: string,
  path: string,
  seal: Seal,
  nowMs: number,
  signal: AbortSignal,
): Promise<Restored> {
  checkSource(source, path);
  makeFolder(path); // the folder may have been lost too
  return withTemporary(`${path}.restoring`, async (copy) => {
    await copyJudged(source, copy, seal, signal);
    // The locked file has left its path when the lock is released, so SQLite changes nothing there.
    using _lock = lockWhole(path);
    keepOwner(copy, path);
    const keptAs = replace(path, copy, nowMs);
    return { bytes: statSync(path).size, keptAs };
  });
}

/** Copies a backup to an empty file. Throws if no server could use the copy. */
export async function copyJudged(
  source: string,
  copy: string,
  seal: Seal,
  signal: AbortSignal,
): Promise<void> {
  try {
    using connection = openAtRest(source);
    await copySqlite(connection, copy, signal);
  } catch (cause) {
    const isOfSource = cause instanceof UnusableDatabaseError || refusalOf(cause) === "damaged";
    if (!isOfSource) throw cause;
    throw new UnusableDatabaseError(`${source} is not a database, or is damaged.`, { cause });
  }
  if (!checkUsable(`${source}, copied to ${copy}`, judgeDatabase(copy, seal))) {
    throw new UnusableDatabaseError(`${source} holds no database of Gatepost.`);
  }
}

/** Keeps the database's owner: root may restore what another user's server uses. */
function keepOwner(copy: string, path: string): void {
  const owner = statSync(path, { throwIfNoEntry: false });
  if (!owner) giveToOwner(copy);
  else if (owner.uid !== statSync(copy).uid) lchownSync(copy, owner.uid, owner.gid);
}

/** Throws if `source` cannot be a backup from which something at `path` is restored. */
export function checkSource(source: string, path: string): void {
  accessSync(source, constants.R_OK); // SQLite would not say which file it cannot open
  const found = statSync(source);
  const there = statSync(path, { throwIfNoEntry: false });
  if (!found.isFile()) throw new UnusableDatabaseError(`${source} is not a regular file.`);
  if (there?.ino === found.ino && there.dev === found.dev) {
    throw new UnusableDatabaseError(`${source} is the database itself.`);
  }
  if (!existsSync(`${source}-wal`)) return;
  throw new UnusableDatabaseError(
    `${source} has a log beside it (-wal), so it is no backup: set GATEPOST_DATABASE to it and ` +
      "make one with gatepost backup.",
  );
}

/** Locks the whole database; throws if it is in use. Undefined if it is damaged or missing. */
function lockWhole(path: string): DatabaseSync | undefined {
  const refusal = new UnusableDatabaseError(
    `A process works on ${path}: stop every server and command first.`,
  );
  if (isAnybodyPresent(path)) throw refusal;
  if (!existsSync(path) || hasOnlyLog(path)) return undefined;
  const connection = new DatabaseSync(path);
  try {
    // In this mode SQLite locks the whole file, on which every open connection has a shared lock.
    connection.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE");
    return connection;
  } catch (error) {
    connection.close();
    if (refusalOf(error) === "locked") throw refusal;
    return undefined;
  }
}

/** Returns a free name, made of `path` and the time, for the file with the former content. */
export function keptPath(path: string, nowMs: number): string {
  const aside = `${path}.before-${new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, "")}`;
  return existsSync(aside) ? keptPath(path, nowMs + 1_000) : aside;
}

/**
 * Moves what is at the path aside and puts the copy there, or leaves everything as it was. The path
 * always has a database, if it had one and the file system has hard links. A log or a journal
 * without a database is moved too: SQLite would take it for the copy's.
 */
function replace(path: string, copy: string, nowMs: number): string | undefined {
  const aside = keptPath(path, nowMs);
  const isThere = existsSync(path);
  const moved: string[] = [];
  try {
    if (isThere) linkSync(path, aside);
  } catch {
    renameSync(path, aside); // a file system without links
  }
  try {
    for (const suffix of ["-wal", "-shm", "-journal"]) {
      const log = statSync(path + suffix, { throwIfNoEntry: false });
      if (log?.size === 0) rmSync(path + suffix);
      if (!log?.size) continue;
      renameSync(path + suffix, aside + suffix);
      moved.push(suffix);
    }
    renameSync(copy, path);
    syncFolder(copy);
  } catch (error) {
    if (isThere) renameSync(aside, path); // does nothing while both names are the same file
    rmSync(isThere ? aside : path, { force: true });
    for (const suffix of moved) renameSync(aside + suffix, path + suffix);
    throw error;
  }
  return isThere ? aside : undefined;
}
