import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type MessagePort, parentPort, type Worker, workerData } from "node:worker_threads";
import { messageOf } from "../base/message_of.ts";
import { freeStartMemory } from "../base/start_memory.ts";
import { UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { type OwnFiles, watchOwnFiles } from "./own_files.ts";
import { resultOf } from "./sqlite_error.ts";
import { LOCK_TIMEOUT_MS, openSqlite } from "./sqlite_file.ts";
import { startThread } from "./start_thread.ts";
import { type CommitReport, refusalOfGroup, type WriteResult } from "./write_result.ts";

/** Marks the worker's data, so that importing this module elsewhere starts nothing. */
const WRITER_ROLE = "gatepost-sqlite-writer";

type Batches = readonly (readonly Sql[])[];

/** A request to the thread: a group to commit, the port of another thread to serve, or to close. */
type WriterRequest = Batches | { readonly port: MessagePort } | "close";

/** The thread's message after a commit: the report, and the results of the parent's group. */
type WriterMessage = [CommitReport, readonly WriteResult[]];

const LONG_LOG_BYTES = 16 * 1024 * 1024;
const TRIM_PAUSE_MS = 1_000;
// Waits for current readers of the log. Once all of it is copied, new readers do not use it.
const TRIM_TIMEOUT_MS = 50;

/**
 * Makes the writer: a thread that commits to `file`, which is described as for `watchOwnFiles`. A
 * thread that has died is started again for the next request.
 */
export function createSqliteWriter(
  file: Readonly<Record<"given" | "path" | "identity", string>>,
  onCommit: (report: CommitReport, results: readonly WriteResult[]) => void,
  onEnd: (cause: unknown) => void,
) {
  let worker: Worker | undefined = start();

  function start(): Worker {
    let cause: unknown;
    const data = { workerData: { role: WRITER_ROLE, ...file } };
    return startThread(new URL(import.meta.url), data)
      .on("message", (message: WriterMessage) => {
        if (Array.isArray(message)) onCommit(...message); // Node sends others under --watch
      })
      .on("error", (error) => {
        cause = error;
      })
      .on("exit", () => {
        worker = undefined;
        onEnd(cause);
      });
  }

  return {
    post(request: WriterRequest, transferred: readonly MessagePort[] = []): void {
      try {
        worker ??= start();
      } catch (cause) {
        for (const port of transferred) port.close();
        return onEnd(cause);
      }
      worker.postMessage(request, transferred);
    },
    close: () =>
      new Promise<unknown>((resolve) => {
        if (!worker) return resolve(undefined);
        worker.once("exit", resolve);
        worker.postMessage("close");
      }),
  };
}

/**
 * Makes a function that runs batches in one transaction. Savepoints separate them: a batch that
 * breaks a constraint is rolled back alone. Never commits to a file that has left its path.
 */
export function createGroupWriter(
  connection: DatabaseSync,
  files: Pick<OwnFiles, "areInPlace">,
): (batches: Batches) => WriteResult[] {
  const prepared = new Map<string, StatementSync>();
  const prepareNew = (sql: string) => connection.prepare(sql);
  const prepare = (sql: string) => prepared.getOrInsertComputed(sql, prepareNew);

  function runBatch(batch: readonly Sql[]): WriteResult {
    const isOne = batch.length === 1; // SQLite itself undoes a single statement that fails
    if (!isOne) prepare("SAVEPOINT batch").run();
    try {
      const changes = batch.map(({ sql, params }) => Number(prepare(sql).run(...params).changes));
      if (!isOne) prepare("RELEASE batch").run();
      return { kind: "stored", changes };
    } catch (error) {
      // A full disk or a failed read ends the whole transaction: then all its batches fail.
      if (!connection.isTransaction) throw error;
      if (!isOne) connection.exec("ROLLBACK TO batch; RELEASE batch");
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
 * Makes a function that keeps the log short. SQLite restarts the log only if a writer finds all of
 * it copied and no reader on it. That is rare when processes write one after the other.
 */
function createLogTrimmer(connection: DatabaseSync, files: OwnFiles) {
  let nextMs = 0;
  let failure: string | undefined;
  function trim(): void {
    if (performance.now() < nextMs) return;
    failure = undefined;
    if (files.logBytes() <= LONG_LOG_BYTES) return;
    nextMs = performance.now() + TRIM_PAUSE_MS; // a backup may read the log for a while
    try {
      connection.exec(`PRAGMA busy_timeout = ${TRIM_TIMEOUT_MS}; PRAGMA wal_checkpoint(TRUNCATE)`);
    } catch (error) {
      failure = messageOf(error);
    } finally {
      connection.exec(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
    }
  }
  /** Why the last attempt to empty the log into the file failed, if it did. */
  return { trim, failure: () => failure };
}

// The worker. What several threads send in one turn of the event loop is one commit.
if (parentPort && workerData?.role === WRITER_ROLE) {
  const parent = parentPort;
  const path = String(workerData.path);
  const connection = openSqlite(path, { readOnly: false });
  const files = watchOwnFiles(String(workerData.given), path, String(workerData.identity));
  const writeGroup = createGroupWriter(connection, files);
  const log = createLogTrimmer(connection, files);
  let group: Batches = [];
  let calls: { readonly port: MessagePort; readonly batch: Batches[number] }[] = [];
  let due: NodeJS.Immediate | undefined;

  function commit(): void {
    if (!connection.isOpen) return; // sent after "close": the sender sees its port close
    const [ofParent, ofOthers] = [group, calls];
    [group, calls, due] = [[], [], undefined];
    const startedMs = performance.now();
    const results = writeGroup([...ofParent, ...ofOthers.map(({ batch }) => batch)]);
    const ms = performance.now() - startedMs;
    const refusal = refusalOfGroup(results);
    const report = { batches: results.length, ms, refusal, logFailure: log.failure() };
    parent.postMessage([report, results.splice(0, ofParent.length)] satisfies WriterMessage);
    for (const [index, { port }] of ofOthers.entries()) port.postMessage(results[index]);
    log.trim();
  }

  parent.on("message", (request: WriterRequest) => {
    if (request === "close") {
      if (due) commit();
      connection.close();
      parent.close();
    } else if ("port" in request) {
      const { port } = request;
      port.on("message", (batch: Batches[number]) => {
        calls.push({ port, batch });
        due ??= setImmediate(commit);
      });
      port.unref(); // only the parent keeps this thread alive
    } else {
      group = request;
      due ??= setImmediate(commit);
    }
  });
  freeStartMemory();
}
