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
  const writer = createWriter(path, identity, onResults, onEnd);
  const gathering: Waiting[] = [];
  let committing: { readonly group: readonly Waiting[]; readonly sinceMs: number } | undefined;
  let closing: Promise<void> | undefined;

  function flush(): void {
    if (committing || gathering.length === 0) return;
    committing = { group: gathering.splice(0, GROUP_LIMIT), sinceMs: performance.now() };
    writer.commit(committing.group.map(({ batch }) => batch));
  }

  function endCommit(refusal: Refusal | undefined): readonly Waiting[] {
    if (!committing) return [];
    const { group, sinceMs } = committing;
    committing = undefined;
    observe({ batches: group.length, ms: performance.now() - sinceMs, refusal });
    return group;
  }

  function onResults(results: readonly WriteResult[]): void {
    const refusal = refusalOf(results);
    const done = endCommit(refusal);
    // A locked file: what gathered meanwhile has waited too, and would wait as long again.
    const refused = refusal === undefined ? [] : gathering.splice(0);
    flush(); // the next group commits while this one's results go out
    done.forEach((waiting, index) => settle(waiting, results[index]));
    for (const waiting of refused) settle(waiting, results[0]);
  }

  function onEnd(cause: unknown): void {
    const error = new UnavailableError("The database writer has ended", { cause });
    for (const { reject } of [...endCommit("failing"), ...gathering.splice(0)]) reject(error);
  }

  async function close(): Promise<void> {
    const waiting = [...committing?.group ?? [], ...gathering];
    await Promise.allSettled(waiting.map(({ promise }) => promise));
    reader.close(); // before the writer, since the last to close empties the log into the file
    await writer.close();
  }

  return {
    query: reader.query,
    write(batch) {
      if (closing) return Promise.reject(new UnavailableError("The database is closed"));
      const waiting = { batch, ...Promise.withResolvers<number[]>() };
      gathering.push(waiting);
      // After this turn of the loop, so that its other writes join.
      if (gathering.length === 1 && !committing) setImmediate(flush);
      return waiting.promise;
    },
    close: () => closing ??= close(),
  };
}

/** Why a whole group was refused; a batch that broke a constraint was refused alone. */
function refusalOf(results: readonly WriteResult[]): Refusal | undefined {
  const refusals = results.map((result) => result.kind === "unavailable" && result.refusal);
  return refusals.every((refusal) => refusal !== false) ? refusals[0] : undefined;
}

/** Makes the thread that commits; one that has died is started again for the next group. */
function createWriter(
  path: string,
  identity: string,
  onResults: (results: readonly WriteResult[]) => void,
  onEnd: (cause: unknown) => void,
) {
  let worker: Worker | undefined = start();

  function start(): Worker {
    // The same module runs as source (.ts) and as built (.js).
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
    const url = new URL(`./sqlite_writer${extension}`, import.meta.url);
    const workerData = { role: "gatepost-sqlite-writer", path, identity };
    let cause: unknown;
    return new Worker(url, { workerData })
      .on("message", (results: readonly WriteResult[]) => {
        if (Array.isArray(results)) onResults(results); // others are Node's own, under --watch
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
    commit(batches: readonly (readonly Sql[])[]): void {
      worker ??= start();
      worker.postMessage(batches);
    },
    close: () =>
      new Promise<unknown>((resolve) => {
        if (!worker) return resolve(undefined);
        worker.once("exit", resolve);
        worker.postMessage("close");
      }),
  };
}

function settle({ resolve, reject }: Waiting, result: WriteResult | undefined): void {
  if (result?.kind === "stored") resolve(result.changes);
  else reject(errorOf(result));
}
