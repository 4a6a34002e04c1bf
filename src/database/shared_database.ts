import type { MessagePort } from "node:worker_threads";
import { type Database, OutcomeUnknownError, UnavailableError } from "./database.ts";
import { openSqliteReader } from "./sqlite_reader.ts";
import { settle, type WriteResult } from "./write_result.ts";

/**
 * Opens the SQLite file in a thread other than the main one. Writes go by `port`, which comes from
 * `connect`, to the writer thread. It commits them together with those of other threads, and
 * replies in the order of the batches.
 */
export function openSharedDatabase(path: string, port: MessagePort): Database {
  const reader = openSqliteReader(path);
  const waiting: PromiseWithResolvers<number[]>[] = [];
  let isOpen = true;
  let closing: Promise<void> | undefined;

  port.on("message", (result: WriteResult) => {
    const call = waiting.shift();
    if (call) settle(call, result);
  });
  port.on("close", () => {
    isOpen = false;
    const gone = new OutcomeUnknownError("The database writer has ended");
    for (const { reject } of waiting.splice(0)) reject(gone);
  });

  async function close(): Promise<void> {
    isOpen = false;
    await Promise.allSettled(waiting.map(({ promise }) => promise));
    reader.close();
    port.close();
  }

  return {
    query: reader.query,
    write(batch) {
      if (!isOpen) return Promise.reject(new UnavailableError("The database is closed"));
      const call = Promise.withResolvers<number[]>();
      port.postMessage(batch);
      waiting.push(call);
      return call.promise;
    },
    close: () => closing ??= close(),
  };
}
