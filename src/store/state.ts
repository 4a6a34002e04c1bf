import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Seal } from "../base/seal.ts";
import type { Database } from "./database.ts";
import { APPLICATION_ID, MIGRATIONS } from "./schema.ts";
import { findSealFault, SEAL_CHECK } from "./settings.ts";
import { openSqlite } from "./sqlite_file.ts";
import { IS_OPEN } from "./subscriptions.ts";

/** How many of each a database holds. */
export interface DatabaseCounts {
  readonly users: number;
  readonly apps: number;
  /** Deleted ones left out. */
  readonly subscriptions: number;
  readonly pendingEvents: number;
  readonly pendingDeliveries: number;
  readonly failedDeliveries: number;
}

/** What there is at a database's path, as a look without any change shows it. */
export type DatabaseState =
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
    /** Undefined while the schema is older than this program. */
    readonly counts: DatabaseCounts | undefined;
  };

/**
 * Looks at the file of a database: neither creates nor migrates it, and leaves no file beside it.
 *
 * @param seal what the configuration would open the sealed secrets with
 */
export function readDatabaseState(path: string, seal: Seal): DatabaseState {
  try {
    checkAccess(path);
    if (!existsSync(path)) return { kind: "missing" };
    if (!isDatabase(path)) return { kind: "unusable", reason: "It is not an SQLite database." };
    const connection = openForLook(path);
    try {
      return look(connection, path, seal);
    } finally {
      connection.close();
    }
  } catch (error) {
    return { kind: "unusable", reason: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Opens a database that no process has open, to read it: nothing is created beside it, whereas
 * an ordinary reader of a write-ahead log leaves one behind.
 */
export function openAtRest(path: string): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { readOnly: true });
}

/** Throws where this process may not write the file or its folder, or may not make them. */
function checkAccess(path: string): void {
  const { R_OK, W_OK, X_OK } = constants;
  if (existsSync(path)) accessSync(path, R_OK | W_OK);
  let folder = dirname(path);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  if (!statSync(folder).isDirectory()) throw new Error(`${folder} is no folder.`);
  accessSync(folder, W_OK | X_OK); // the write-ahead log comes and goes beside the file
}

/** Whether a file is empty or begins as SQLite's do; SQLite takes any short one for empty. */
function isDatabase(path: string): boolean {
  if (!statSync(path).isFile()) return false;
  const head = Buffer.alloc(16);
  const file = openSync(path, "r");
  try {
    return readSync(file, head) === 0 || head.toString("latin1") === "SQLite format 3\0";
  } finally {
    closeSync(file);
  }
}

/** While any process has the database open, and after one died, its log is there. */
function openForLook(path: string): DatabaseSync {
  return existsSync(`${path}-wal`) ? openSqlite(path, { readOnly: true }) : openAtRest(path);
}

function look(connection: DatabaseSync, path: string, seal: Seal): DatabaseState {
  const read = (sql: string) => Object.values(connection.prepare(sql).get() ?? {})[0];
  const count = (sql: string) => Number(read(`SELECT count(*) FROM ${sql}`));

  const isEmpty = count("sqlite_schema") === 0;
  if (!isEmpty && read("PRAGMA application_id") !== APPLICATION_ID) {
    return { kind: "unusable", reason: "The file belongs to another program." };
  }
  const schemaVersion = Number(read("PRAGMA user_version"));
  const knownVersion = MIGRATIONS.length;
  if (schemaVersion > knownVersion) {
    const reason = `Its schema version is ${schemaVersion}, this program knows up to`;
    return { kind: "unusable", reason: `${reason} ${knownVersion}.` };
  }
  const sealed = isEmpty ? undefined : read(`SELECT value FROM settings WHERE name = '${SEAL_CHECK}'`);
  const sealFault = typeof sealed === "string" ? findSealFault(seal, sealed) : undefined;
  if (sealFault !== undefined) return { kind: "unusable", reason: sealFault };
  return {
    kind: "usable",
    bytes: sizeOf(path) + sizeOf(`${path}-wal`),
    schemaVersion,
    knownVersion,
    isSealed: sealed !== undefined,
    counts: schemaVersion < knownVersion ? undefined : {
      users: count("users"),
      apps: count("apps"),
      subscriptions: count("subscriptions WHERE status <> 'deleted'"),
      pendingEvents: count("events WHERE status = 'pending'"),
      // What is left pending of a subscription that has ended is never sent.
      pendingDeliveries: count(`deliveries d JOIN subscriptions s ON s.seq = d.subscription
        WHERE d.status = 'pending' AND s.${IS_OPEN}`),
      failedDeliveries: count("deliveries WHERE status = 'failed'"),
    },
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** How many deliveries have failed for good, and wait for somebody to send them again. */
export async function countFailedDeliveries(database: Database): Promise<number> {
  const rows = await database.query<{ count: number }>(
    "SELECT count(*) AS count FROM deliveries WHERE status = 'failed'",
  );
  return rows[0]?.count ?? 0;
}
