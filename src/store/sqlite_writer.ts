import type { DatabaseSync, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Statement } from "./database.ts";
import { classifySqliteError } from "./sqlite_error.ts";
import { openSqlite } from "./sqlite_file.ts";
import type { WriteResult } from "./write_result.ts";

/**
 * Runs batches in one transaction, each in a savepoint of its own: a batch that breaks a constraint
 * is undone alone, and all others become durable with a single flush to disk.
 */
export function createGroupWriter(connection: DatabaseSync): (
  batches: readonly (readonly Statement[])[],
) => WriteResult[] {
  const prepared = new Map<string, StatementSync>();
  const prepare = (sql: string): StatementSync => {
    let statement = prepared.get(sql);
    if (!statement) prepared.set(sql, statement = connection.prepare(sql));
    return statement;
  };

  function runBatch(batch: readonly Statement[]): WriteResult {
    prepare("SAVEPOINT batch").run();
    try {
      const changes = batch.map(({ sql, params }) => Number(prepare(sql).run(...params).changes));
      prepare("RELEASE batch").run();
      return { kind: "stored", changes };
    } catch (error) {
      // A full disk or a failed read ends the whole transaction: then all its batches fail.
      if (!connection.isTransaction) throw error;
      connection.exec("ROLLBACK TO batch; RELEASE batch");
      return failure(error);
    }
  }

  return (batches) => {
    try {
      prepare("BEGIN IMMEDIATE").run();
      const results = batches.map(runBatch);
      prepare("COMMIT").run();
      return results;
    } catch (error) {
      if (connection.isTransaction) connection.exec("ROLLBACK");
      return batches.map(() => failure(error));
    }
  };
}

function failure(error: unknown): WriteResult {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: classifySqliteError(error), message };
}

// As a worker: answers each group of batches with its results; "close" ends it.
if (parentPort && workerData?.role === "gatepost-sqlite-writer") {
  const port = parentPort;
  const connection = openSqlite(String(workerData.path), { readOnly: false });
  const writeGroup = createGroupWriter(connection);
  port.on("message", (message: "close" | readonly (readonly Statement[])[]) => {
    if (message !== "close") {
      port.postMessage(writeGroup(message));
      return;
    }
    connection.close();
    port.close();
  });
}
