import type { StatementSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import {
  ConflictError,
  type Database,
  type SqlValue,
  type Statement,
  UnavailableError,
} from "./database.ts";
import { classifySqliteError } from "./sqlite_error.ts";
import { openSqlite, prepareSqliteFile } from "./sqlite_file.ts";
import type { WriteResult } from "./sqlite_writer.ts";

interface Waiting {
  readonly batch: readonly Statement[];
  readonly resolve: (changes: number[]) => void;
  readonly reject: (error: Error) => void;
}

/** No commit holds more batches, so that none makes the others wait long. */
const groupLimit = 512;

/**
 * Opens the SQLite engine on a file. Reads run here, on a connection that cannot write; writes run in
 * a worker thread, so neither a slow disk nor another process's lock delays a request that only
 * reads. While one group commits the next gathers. Throws UnusableDatabaseError.
 */
export function openSqliteDatabase(path: string): Database {
  prepareSqliteFile(path);
  const reader = openSqlite(path, { readOnly: true });
  const prepared = new Map<string, StatementSync>();
  const writer = startWriter(path);
  let gathering: Waiting[] = [];
  let committing: Waiting[] = [];
  let scheduled = false;
  let broken: Error | undefined;
  let closing: (() => void) | undefined;

  function flush(): void {
    scheduled = false;
    if (committing.length > 0 || gathering.length === 0) return;
    committing = gathering.splice(0, groupLimit);
    writer.postMessage(committing.map(({ batch }) => batch));
  }

  writer.on("message", (results: WriteResult[]) => {
    const done = committing;
    committing = [];
    flush(); // the next group commits while this one's answers go out
    done.forEach((waiting, index) => settle(waiting, results[index]));
    if (committing.length === 0) closing?.();
  });
  writer.on("error", (cause) => {
    broken = new UnavailableError("The database writer has ended", { cause });
    for (const { reject } of [...committing, ...gathering]) reject(broken);
    committing = [];
    gathering = [];
    closing?.();
  });

  return {
    query: <Row>(sql: string, params: readonly SqlValue[] = []) =>
      new Promise<Row[]>((resolve, reject) => {
        let statement = prepared.get(sql);
        try {
          if (!statement) prepared.set(sql, statement = reader.prepare(sql));
          resolve(statement.all(...params) as Row[]);
        } catch (cause) {
          const passing = classifySqliteError(cause) === "unavailable";
          reject(passing ? new UnavailableError("The database cannot be read", { cause }) : cause);
        }
      }),
    write: (batch) =>
      new Promise((resolve, reject) => {
        if (broken) return reject(broken);
        gathering.push({ batch, resolve, reject });
        if (scheduled || committing.length > 0) return;
        scheduled = true; // after this turn of the loop, so that its other writes join
        setImmediate(flush);
      }),
    async close() {
      if (!broken && (committing.length > 0 || gathering.length > 0)) {
        await new Promise<void>((resolve) => {
          closing = resolve;
        });
      }
      const ended = new Promise((resolve) => writer.once("exit", resolve));
      writer.postMessage("close");
      if (!broken) await ended;
      broken ??= new UnavailableError("The database is closed");
      reader.close();
    },
  };
}

function startWriter(path: string): Worker {
  // The same module runs as source (.ts) and as built (.js).
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const url = new URL(`./sqlite_writer${extension}`, import.meta.url);
  return new Worker(url, { workerData: { role: "gatepost-sqlite-writer", path } });
}

function settle(waiting: Waiting, result: WriteResult | undefined): void {
  switch (result?.kind) {
    case "stored":
      return waiting.resolve(result.changes);
    case "conflict":
      return waiting.reject(new ConflictError(result.message));
    case "unavailable":
      return waiting.reject(new UnavailableError(result.message));
    default:
      return waiting.reject(new Error(result?.message ?? "The database writer gave no result"));
  }
}
