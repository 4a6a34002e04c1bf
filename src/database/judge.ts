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

/** The state of a database, found without any change to it. */
export type DatabaseState = Judgement & {
  /** Problems that do not keep a server from starting, one line each. */
  readonly warnings?: readonly string[];
};

type Judgement =
  /** There is no database, or an empty one. */
  | { readonly kind: "missing" }
  /** No server would start on it; `reason` is one line. */
  | { readonly kind: "unusable"; readonly reason: string }
  | {
    readonly kind: "usable";
    /** Includes the write-ahead log. */
    readonly bytes: number;
    readonly schemaVersion: number;
    /** The version to which this program would migrate it. */
    readonly knownVersion: number;
    readonly isSealed: boolean;
  };

/** Selects the statements that create the schema. */
export const SELECT_SCHEMA =
  "SELECT sql FROM sqlite_schema WHERE sql > '' AND name NOT LIKE 'sqlite_%'";

// Up to this size the whole file is checked, which takes 1.5 ms a mebibyte.
const WHOLE_LOOK_BYTES = 32 * 1024 * 1024;
const ROWS_OF_LOOK = 20_000;

const LOST = "It is gone or empty, and its log (-wal) is there: put the file back beside it, or " +
  "a backup in its place with gatepost restore FILE.";

/** Judges by the rules of DESIGN.md whether a server can work on a database; changes nothing. */
export function judgeDatabase(path: string, seal: Seal): DatabaseState {
  const state = judgeFile(path, (connection) =>
    findSchemaError(connection) ?? findDamage(connection, path) ??
      findSealMismatch(connection, seal));
  if (state.kind !== "usable") return state;
  const reason = findLockError(path);
  return reason === undefined ? state : { kind: "unusable", reason };
}

/** The cheap part of the judgement, whose file it is and its version, and then `findMore`. */
export function judgeFile(
  path: string,
  findMore: (connection: DatabaseSync) => string | undefined = () => undefined,
): DatabaseState {
  try {
    checkAccess(path);
    if (hasOnlyLog(path)) return { kind: "unusable", reason: LOST };
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

/** Whether only the log has content: SQLite would remove it as the log of an empty database. */
export function hasOnlyLog(path: string): boolean {
  return sizeOf(path) === 0 && sizeOf(`${path}-wal`) > 0;
}

/** Judges the content of an open database, whose size is `bytes`. */
export function judgeContent(
  connection: DatabaseSync,
  bytes: number,
  findMore: (connection: DatabaseSync) => string | undefined,
): DatabaseState {
  // An empty database belongs to no program, so Gatepost may use it.
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

/** Makes the error for a database that cannot be opened because of `cause`. */
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
  if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
  // Below /proc (PROC_SUPER_MAGIC of statfs(2)) Node would try for ever to make a folder.
  if (statfsSync(folder).type === 0x9fa0) throw new Error(`${folder} keeps no files`);
  accessSync(folder, W_OK | X_OK); // SQLite creates and removes the log beside the file
}

/**
 * Whether a file is empty or has SQLite's header, or will have it once its journal is rolled back.
 * SQLite itself takes any short file for an empty database.
 */
function isDatabase(path: string): boolean {
  if (!statSync(path).isFile()) return false;
  return sizeOf(path) === 0 || beginsAsDatabase(path) || existsSync(`${path}-journal`);
}

/** Whether a file begins with the header of an SQLite database that is not empty. */
export function beginsAsDatabase(path: string): boolean {
  return readHeader(path).toString("latin1").startsWith("SQLite format 3\0");
}

/** Whether the schema of a database is empty. */
export function isEmpty(connection: DatabaseSync): boolean {
  return connection.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
}

/** Returns why this program cannot migrate the database; undefined if it can. */
export function findVersionError(connection: DatabaseSync): string | undefined {
  const version = versionOf(connection);
  if (version <= NEWEST_VERSION) return undefined;
  return `Its schema version is ${version}, this program knows up to ${NEWEST_VERSION}; ` +
    "start a newer Gatepost on it.";
}

/** The schema version of a database: 0 for an empty one, whatever it claims. */
export function versionOf(connection: DatabaseSync): number {
  return isEmpty(connection) ? 0 : readPragma(connection, "user_version");
}

/** Returns why the schema, once migrated, would not be the newest one; undefined if it would. */
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

/** The names of all tables, columns, indexes and triggers. */
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
 * Returns why the seal cannot decrypt the database's seal check or a signing key: the key that
 * encrypted it is not, or no longer, in GATEPOST_SECRET_KEY.
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

/** Tries to begin a write. Returns why that fails. */
function findLockError(path: string): string | undefined {
  try {
    using connection = openSqlite(path, { readOnly: false, lockTimeoutMs: LONG_LOCK_TIMEOUT_MS });
    connection.exec("BEGIN IMMEDIATE; ROLLBACK");
    return undefined;
  } catch (error) {
    if (refusalOf(error) === "locked") return "Another process holds its write lock for too long.";
    return `It cannot be written: ${reasonOf(error, path)}`;
  }
}

/** Adds that the disk is full: SQLite reports an I/O error if the log's index has no space. */
function reasonOf(error: unknown, path: string): string {
  const isFull = refusalOf(error) === "failing" && statfsSync(dirname(path)).bavail === 0;
  return `${messageOf(error)}${isFull ? " (its disk is full)" : ""}.`;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
