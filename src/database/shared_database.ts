import type { MessagePort } from "node:worker_threads";
import { type Database, OutcomeUnknownError, UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { openSqliteReader } from "./sqlite_reader.ts";
import { settle, type WriteResult } from "./write_result.ts";

/** A batch for the writer's thread. */
export interface WriteCall {
  readonly id: number;
  readonly statements: readonly Sql[];
}

/** What became of the batch with this id. */
export interface WriteReply {
  readonly id: number;
  readonly result: WriteResult | undefined;
}

/**
 * Opens the SQLite file on another thread. The writer's thread writes, in the same commits as those
 * of others; it is at the other end of `port`, which comes from `connect`.
 */
export function openSharedDatabase(path: string, port: MessagePort): Database {
  const reader = openSqliteReader(path);
  const waiting = new Map<number, PromiseWithResolvers<number[]>>();
  let lastId = 0;
  let isOpen = true;
  let closing: Promise<void> | undefined;

  port.on("message", ({ id, result }: WriteReply) => {
    const call = waiting.get(id);
    waiting.delete(id);
    if (call) settle(call, result);
  });
  port.on("close", () => {
    isOpen = false;
    const gone = new OutcomeUnknownError("The database writer has ended");
    for (const { reject } of waiting.values()) reject(gone);
    waiting.clear();
  });

  async function close(): Promise<void> {
    isOpen = false;
    await Promise.allSettled(waiting.values().map(({ promise }) => promise));
    reader.close();
    port.close();
  }

  return {
    query: reader.query,
    write(statements) {
      if (!isOpen) return Promise.reject(new UnavailableError("The database is closed"));
      const call = Promise.withResolvers<number[]>();
      waiting.set(++lastId, call);
      port.postMessage({ id: lastId, statements } satisfies WriteCall);
      return call.promise;
    },
    close: () => closing ??= close(),
  };
}
