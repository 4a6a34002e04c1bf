import { Worker } from "node:worker_threads";
import { type Database, type Refusal, UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { prepareSqliteFile } from "./migrate.ts";
import { identify } from "./own_files.ts";
import { openSqliteReader } from "./sqlite_reader.ts";
import { errorOf, type WriteResult } from "./write_result.ts";

/** How one commit went. */
export interface CommitReport {
  readonly batches: number;
  readonly ms: number;
  /** Why nothing of it is stored. */
  readonly refusal: Refusal | undefined;
}

interface Waiting extends PromiseWithResolvers<number[]> {
  readonly batch: readonly Sql[];
}

/** No commit holds more batches, so that none makes the others wait long. */
const GROUP_LIMIT = 512;

/**
 * Opens the SQLite engine on a file. Reads run here, on a connection that cannot write; writes run
 * in a worker thread, so neither a slow disk nor another process's lock delays a request that only
 * reads. While one group commits the next gathers. Throws UnusableDatabaseError.
 */
export function openSqliteDatabase(
  path: string,
  observe: (commit: CommitReport) => void = () => {},
): Database {
  prepareSqliteFile(path);
  const identity = identify(path);
  const reader = openSqliteReader(path);
  let writer: Worker | undefined = watch(startWriter(path, identity));
  let gathering: Waiting[] = [];
  let committing: Waiting[] = [];
  let committingSinceMs = 0;
  let scheduled = false;
  let closing: Promise<void> | undefined;

  function flush(): void {
    scheduled = false;
    if (committing.length > 0 || gathering.length === 0) return;
    committing = gathering.splice(0, GROUP_LIMIT);
    committingSinceMs = performance.now();
    writer ??= watch(startWriter(path, identity)); // the one before has died
    writer.postMessage(committing.map(({ batch }) => batch));
  }

  function report(batches: number, refusal: Refusal | undefined): void {
    observe({ batches, ms: performance.now() - committingSinceMs, refusal });
  }

  function watch(worker: Worker): Worker {
    let cause: unknown;
    worker.on("message", (results: WriteResult[]) => {
      if (!Array.isArray(results)) return; // Node's own, under --watch
      const done = committing;
      committing = [];
      const refusal = refusalOf(results);
      report(done.length, refusal);
      // A locked file: what gathered meanwhile has waited too, and would wait as long again.
      const refused = refusal === undefined ? [] : gathering.splice(0);
      flush(); // the next group commits while this one's results go out
      done.forEach((waiting, index) => settle(waiting, results[index]));
      for (const waiting of refused) settle(waiting, results[0]);
    });
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      writer = undefined;
      if (committing.length > 0) report(committing.length, "failing");
      const error = new UnavailableError("The database writer has ended", { cause });
      for (const { reject } of [...committing, ...gathering]) reject(error);
      committing = [];
      gathering = [];
    });
    return worker;
  }

  async function close(): Promise<void> {
    await Promise.allSettled([...committing, ...gathering].map(({ promise }) => promise));
    reader.close(); // before the writer, since the last to close empties the log into the file
    await new Promise<unknown>((resolve) => {
      if (!writer) return resolve(undefined);
      writer.once("exit", resolve);
      writer.postMessage("close");
    });
  }

  return {
    query: reader.query,
    write(batch) {
      if (closing) return Promise.reject(new UnavailableError("The database is closed"));
      const call = { batch, ...Promise.withResolvers<number[]>() };
      gathering.push(call);
      if (!scheduled && committing.length === 0) {
        scheduled = true; // after this pass of the event loop, so that its other writes join
        setImmediate(flush);
      }
      return call.promise;
    },
    close: () => closing ??= close(),
  };
}

/** Why a whole group was refused; a batch that broke a constraint was refused alone. */
function refusalOf(results: readonly WriteResult[]): Refusal | undefined {
  const refusals = results.map((result) => result.kind === "unavailable" && result.refusal);
  return refusals.every((refusal) => refusal !== false) ? refusals[0] : undefined;
}

function startWriter(path: string, identity: string): Worker {
  // The same module runs as source (.ts) and as built (.js).
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const url = new URL(`./sqlite_writer${extension}`, import.meta.url);
  return new Worker(url, { workerData: { role: "gatepost-sqlite-writer", path, identity } });
}

function settle({ resolve, reject }: Waiting, result: WriteResult | undefined): void {
  if (result?.kind === "stored") resolve(result.changes);
  else reject(errorOf(result));
}
