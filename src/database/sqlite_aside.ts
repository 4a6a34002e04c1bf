import { parentPort, type Worker, workerData } from "node:worker_threads";
import { messageOf } from "../base/message_of.ts";
import { backUpSqlite, partialOf, removeCopy } from "./backup.ts";
import { UnavailableError } from "./database.ts";
import type { Sql } from "./sql.ts";
import { openSqliteReader } from "./sqlite_reader.ts";
import { startThread } from "./start_thread.ts";

/** Marks the worker's data, so that importing this module elsewhere starts nothing. */
const ASIDE_ROLE = "gatepost-sqlite-aside";

/** A query, or the target file of a backup. */
type Work = { readonly statement: Sql } | { readonly target: string };
type AsideRequest = Work & { readonly id: number };
type AsideReply = { readonly id: number; readonly result?: unknown; readonly error?: string };

/**
 * Makes a reader of the file at `path` in a separate thread, for long reads: only other reads there
 * wait for them. The first request starts the thread.
 */
export function createSqliteAside(path: string) {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let worker: Worker | undefined;
  let lastId = 0;

  function start(): Worker {
    let why = "";
    return startThread(new URL(import.meta.url), { workerData: { role: ASIDE_ROLE, path } })
      .on("message", ({ id, result, error }: AsideReply) => {
        const asked = waiting.get(id);
        waiting.delete(id);
        if (error === undefined) asked?.resolve(result);
        else asked?.reject(new UnavailableError(error));
      })
      .on("error", (error) => {
        why = `: ${messageOf(error)}`; // the thread ends next
      })
      .on("exit", () => {
        worker = undefined;
        const gone = new UnavailableError(`The thread for long reads has ended${why}`);
        for (const { reject } of waiting.values()) reject(gone);
        waiting.clear();
      });
  }

  async function ask(work: Work): Promise<unknown> {
    try {
      worker ??= start();
    } catch (error) {
      throw new UnavailableError(messageOf(error));
    }
    const asked = Promise.withResolvers<unknown>();
    waiting.set(++lastId, asked);
    worker.postMessage({ id: lastId, ...work } satisfies AsideRequest);
    return asked.promise;
  }

  return {
    query: async <Row>(statement: Sql) => await ask({ statement }) as Row[],
    /** As `Engine.backUp`, but every error is an UnavailableError. */
    async backUp(target: string): Promise<number> {
      try {
        return Number(await ask({ target }));
      } catch (error) {
        if (worker === undefined) removeCopy(partialOf(target)); // the thread ended during the copy
        throw error;
      }
    },
    close: async () => void await worker?.terminate(),
  };
}

if (parentPort && workerData?.role === ASIDE_ROLE) {
  const parent = parentPort;
  const path = String(workerData.path);
  const reader = openSqliteReader(path);
  const { signal } = new AbortController();
  parent.on("message", ({ id, ...work }: AsideRequest) => {
    const reply = (more: object) => parent.postMessage({ id, ...more } satisfies AsideReply);
    ("target" in work ? backUpSqlite(path, work.target, signal) : reader.query(work.statement))
      .then((result) => reply({ result }), (error) => reply({ error: messageOf(error) }));
  });
}
