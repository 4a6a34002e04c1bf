import type { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { type OwnFiles, watchOwnFiles } from "./own_files.ts";
import { LOCK_TIMEOUT_MS, openSqlite, prepareOnce } from "./sqlite_file.ts";
import { resultOf, type WriteResult } from "./write_result.ts";

const LONG_LOG_BYTES = 16 * 1024 * 1024;
const TRIM_PAUSE_MS = 1_000;
// For those who read the log now: when all of it is copied, readers that come do without it.
const TRIM_TIMEOUT_MS = 50;

/**
 * Makes what runs batches in one transaction, each in a savepoint of its own: one that breaks a
 * constraint is undone alone. Nothing is committed to a file that the path no longer leads to.
 */
export function createGroupWriter(
  connection: DatabaseSync,
  files: Pick<OwnFiles, "areInPlace">,
): (batches: readonly (readonly Sql[])[]) => WriteResult[] {
  const prepare = prepareOnce(connection);

  function runBatch(batch: readonly Sql[]): WriteResult {
    prepare("SAVEPOINT batch").run();
    try {
      const changes = batch.map(({ sql, params }) => Number(prepare(sql).run(...params).changes));
      prepare("RELEASE batch").run();
      return { kind: "stored", changes };
    } catch (error) {
      // A full disk or a failed read ends the whole transaction: then all its batches fail.
      if (!connection.isTransaction) throw error;
      connection.exec("ROLLBACK TO batch; RELEASE batch");
      return resultOf(error);
    }
  }

  return (batches) => {
    try {
      prepare("BEGIN IMMEDIATE").run();
      const results = batches.map(runBatch);
      if (!files.areInPlace()) throw new UnavailableError("The database's files were replaced");
      prepare("COMMIT").run();
      return results;
    } catch (error) {
      if (connection.isTransaction) connection.exec("ROLLBACK");
      return batches.map(() => resultOf(error));
    }
  };
}

/**
 * Makes what keeps the log short. SQLite begins it anew only where a writer finds all of it copied
 * into the file and nobody reading, which several that write one after the other hardly leave.
 */
function createLogTrimmer(connection: DatabaseSync, files: OwnFiles): () => void {
  let nextMs = 0;
  return () => {
    if (files.logBytes() <= LONG_LOG_BYTES || performance.now() < nextMs) return;
    nextMs = performance.now() + TRIM_PAUSE_MS; // a backup may be reading it for a while
    try {
      connection.exec(`PRAGMA busy_timeout = ${TRIM_TIMEOUT_MS}; PRAGMA wal_checkpoint(TRUNCATE)`);
    } catch {
      // A full disk, say: the next write fails with it.
    } finally {
      connection.exec(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
    }
  };
}

// As a worker: replies to each group of batches with its results; "close" ends it.
if (parentPort && workerData?.role === "gatepost-sqlite-writer") {
  const port = parentPort;
  const path = String(workerData.path);
  const connection = openSqlite(path, { readOnly: false });
  const files = watchOwnFiles(path, String(workerData.identity));
  const writeGroup = createGroupWriter(connection, files);
  const trimLog = createLogTrimmer(connection, files);
  port.on("message", (message: "close" | readonly (readonly Sql[])[]) => {
    if (message !== "close") {
      port.postMessage(writeGroup(message));
      trimLog();
      return;
    }
    connection.close();
    port.close();
  });
}
