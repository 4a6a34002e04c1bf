import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../base/message_of.ts";
import type { Seal } from "../base/seal.ts";
import { UnusableDatabaseError } from "./database.ts";
import { APPLICATION_ID, applyMigrations, NEWEST_VERSION } from "./migrations.ts";
import { identify } from "./own_files.ts";
import { findSealError, SEAL_CHECK } from "./settings.ts";
import { refusalOf } from "./sqlite_error.ts";
import {
  LONG_LOCK_TIMEOUT_MS,
  openForLook,
  openSqlite,
  quickCheck,
  readHeader,
  readPragma,
} from "./sqlite_file.ts";

/** What there is at a database's path, as a look without any change shows it. */
export type DatabaseState = Judgement & {
  /** What is wrong and keeps no server from starting, a line each. */
  readonly warnings?: readonly string[];
};

type Judgement =
  /** Nothing, or nothing in it. */
  | { readonly kind: "missing" }
  /** No server would start on it; `reason` is one line. */
  | { readonly kind: "unusable"; readonly reason: string }
  | {
    readonly kind: "usable";
    /** With its write-ahead log. */
    readonly bytes: number;
    readonly schemaVersion: number;
    /** The version that this program would bring it to. */
    readonly knownVersion: number;
    readonly isSealed: boolean;
  };

/** The texts that make a schema anew. */
export const SELECT_SCHEMA =
  "SELECT sql FROM sqlite_schema WHERE sql > '' AND name NOT LIKE 'sqlite_%'";

// What takes 1.5 ms a mebibyte is done to a whole file up to here.
const WHOLE_LOOK_BYTES = 32 * 1024 * 1024;
const ROWS_OF_LOOK = 20_000;

const LOST = "It is gone or empty, and its log (-wal) is there: put it back beside that, or a " +
  "backup in its place with gatepost restore FILE.";

/** Judges by the rules of DESIGN.md whether a server can work on a database; changes nothing. */
export function judgeDatabase(path: string, seal: Seal): DatabaseState {
  const state = judgeFile(path, (connection) =>
    findSchemaError(connection) ?? findDamage(connection, path) ??
      findSealMismatch(connection, seal));
  if (state.kind !== "usable") return state;
  const reason = findLockError(path);
  return reason === undefined ? state : { kind: "unusable", reason };
}

/** The part of the judgement that costs next to nothing: whose file it is, and its version. */
export function judgeFile(
  path: string,
  findMore: (connection: DatabaseSync) => string | undefined = () => undefined,
): DatabaseState {
  try {
    checkAccess(path);
    if (isLost(path)) return { kind: "unusable", reason: LOST };
    if (identify(path) === "") return { kind: "missing" };
    if (!isDatabase(path)) return { kind: "unusable", reason: "It is not an SQLite database." };
    using connection = openForLook(path);
    return judgeContent(connection, sizeOf(path) + sizeOf(`${path}-wal`), findMore);
  } catch (error) {
    const isDamaged = refusalOf(error) === "damaged";
    const reason = isDamaged ? damaged(messageOf(error), path) : reasonOf(error, path);
    return { kind: "unusable", reason };
  }
}

/** Whether the log alone has something: SQLite would remove it, as that of an empty database. */
export function isLost(path: string): boolean {
  return sizeOf(path) === 0 && sizeOf(`${path}-wal`) > 0;
}

/** Judges what a connection shows of a database of that size. */
export function judgeContent(
  connection: DatabaseSync,
  bytes: number,
  findMore: (connection: DatabaseSync) => string | undefined,
): DatabaseState {
  // An empty database is nobody's, and may become Gatepost's.
  if (isEmpty(connection)) return { kind: "missing" };
  const isOurs = readPragma(connection, "application_id") === APPLICATION_ID;
  const reason = isOurs ? findVersionError(connection) ?? findMore(connection)
    : "It belongs to another program.";
  if (reason !== undefined) return { kind: "unusable", reason };
  return {
    kind: "usable",
    bytes,
    schemaVersion: versionOf(connection),
    knownVersion: NEWEST_VERSION,
    isSealed: findSealCheck(connection) !== undefined,
  };
}

/** Whether there is a database; throws UnusableDatabaseError, with address and reason. */
export function checkUsable(address: string, state: DatabaseState): boolean {
  if (state.kind !== "unusable") return state.kind === "usable";
  throw new UnusableDatabaseError(`Database ${address}: ${state.reason}`);
}

/** The error of a database that fails to open with this one. */
export function cannotOpen(path: string, cause: unknown): UnusableDatabaseError {
  const message = `Database ${path}: It cannot be opened: ${reasonOf(cause, path)}`;
  return new UnusableDatabaseError(message, { cause });
}

/** Throws where this process may not write the files or their folder, or may not make them. */
function checkAccess(path: string): void {
  const { R_OK, W_OK, X_OK } = constants;
  for (const suffix of ["", "-wal", "-shm", "-journal"]) {
    if (existsSync(path + suffix)) accessSync(path + suffix, R_OK | W_OK);
  }
  let folder = dirname(path);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  if (!statSync(folder).isDirectory()) throw new Error(`${folder} is no folder`);
  // Below /proc (PROC_SUPER_MAGIC of statfs(2)) Node would try for ever to make a folder.
  if (statfsSync(folder).type === 0x9fa0) throw new Error(`${folder} keeps no files`);
  accessSync(folder, W_OK | X_OK); // the write-ahead log comes and goes beside the file
}

/**
 * Whether a file is empty or begins as SQLite's do, or will once a journal has been taken back.
 * SQLite takes any short one for empty.
 */
function isDatabase(path: string): boolean {
  if (!statSync(path).isFile()) return false;
  return sizeOf(path) === 0 || beginsAsDatabase(path) || existsSync(`${path}-journal`);
}

/** Whether a file begins as those of SQLite that are not empty. */
export function beginsAsDatabase(path: string): boolean {
  return readHeader(path).toString("latin1").startsWith("SQLite format 3\0");
}

/** Whether a database has no table and nothing else yet. */
export function isEmpty(connection: DatabaseSync): boolean {
  return connection.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
}

/** Why this program cannot bring the database's version to its own. */
export function findVersionError(connection: DatabaseSync): string | undefined {
  const version = versionOf(connection);
  if (version <= NEWEST_VERSION) return undefined;
  return `Its schema version is ${version}, this program knows up to ${NEWEST_VERSION}; ` +
    "start a newer Gatepost on it.";
}

/** How many migrations a database has seen; an empty one none, whatever it says. */
export function versionOf(connection: DatabaseSync): number {
  return isEmpty(connection) ? 0 : readPragma(connection, "user_version");
}

/** Whether its schema is the newest, or becomes it by the migrations that its version lacks. */
export function findSchemaError(connection: DatabaseSync): string | undefined {
  using newest = new DatabaseSync(":memory:");
  applyMigrations(newest, 0);
  const version = versionOf(connection);
  using older = version === NEWEST_VERSION ? undefined : new DatabaseSync(":memory:");
  let reason: string | undefined;
  try {
    if (older) {
      for (const { sql } of connection.prepare(SELECT_SCHEMA).all()) older.exec(String(sql));
      applyMigrations(older, version);
    }
    const [missing] = partsOf(newest).difference(partsOf(older ?? connection));
    if (missing !== undefined) reason = `${missing} is missing`;
  } catch (error) {
    reason = (error as Error).message;
  }
  if (reason === undefined) return undefined;
  return `Its schema is not that of version ${version}, which it claims to have: ${reason}.`;
}

/** Tables, columns and indexes by name. */
function partsOf(connection: DatabaseSync): Set<string> {
  const rows = connection.prepare(
    `SELECT s.name || coalesce('.' || c.name, '') AS part
     FROM sqlite_schema s LEFT JOIN pragma_table_xinfo(s.name) c`,
  ).all();
  return new Set(rows.map((row) => String(row["part"])));
}

function findDamage(connection: DatabaseSync, path: string): string | undefined {
  if (sizeOf(path) <= WHOLE_LOOK_BYTES) {
    const found = quickCheck(connection);
    return found === "ok" ? undefined : damaged(found, path);
  }
  const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  for (const { name } of tables) {
    const rows = `SELECT 1 FROM "${name}" LIMIT ${ROWS_OF_LOOK}`;
    connection.prepare(`SELECT count(*) FROM (${rows})`).get();
  }
  return undefined;
}

function damaged(found: string, path: string): string {
  const log = existsSync(`${path}-wal`)
    ? " If the file was replaced by hand, the log beside it (-wal) is not its own: bring in the " +
      "copy again by that command."
    : "";
  return `It is damaged (${found}). Put a backup in its place with gatepost restore FILE.${log}`;
}

/**
 * Why the seal does not fit what the database was sealed with, or a key of access tokens: one that
 * it never had, or has lost.
 */
export function findSealMismatch(connection: DatabaseSync, seal: Seal): string | undefined {
  const check = findSealCheck(connection);
  const reason = check === undefined ? undefined : findSealError(seal, check);
  if (reason !== undefined) return reason;
  const keys = connection.prepare("SELECT kid, private FROM keys").all();
  const sealed = keys.find(({ kid, private: key }) => findSealError(seal, `${key}`, `${kid}`));
  return sealed && `Its signing key ${sealed["kid"]} is sealed, and GATEPOST_SECRET_KEY lacks ` +
    "the key that it was sealed with.";
}

function findSealCheck(connection: DatabaseSync): string | undefined {
  const row = connection.prepare("SELECT value FROM settings WHERE name = ?1").get(SEAL_CHECK);
  return row === undefined ? undefined : String(row["value"]);
}

/** Why no write would be taken: tries to begin one. */
function findLockError(path: string): string | undefined {
  try {
    using connection = openSqlite(path, { readOnly: false, lockTimeoutMs: LONG_LOCK_TIMEOUT_MS });
    connection.exec("BEGIN IMMEDIATE; ROLLBACK");
    return undefined;
  } catch (error) {
    if (refusalOf(error) === "locked") return "Another process has held its write lock for long.";
    return `It cannot be written: ${reasonOf(error, path)}`;
  }
}

/** SQLite calls a disk that has no room for the log's index an I/O error. */
function reasonOf(error: unknown, path: string): string {
  const isFull = refusalOf(error) === "failing" && statfsSync(dirname(path)).bavail === 0;
  return `${messageOf(error)}${isFull ? " (its disk is full)" : ""}.`;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
