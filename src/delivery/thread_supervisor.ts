import type { Worker } from "node:worker_threads";
import type { WorkerRequest } from "./worker_messages.ts";

/** The pause before a dead thread is replaced; it doubles each time, up to a minute. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Makes the supervisor of a thread. If the thread dies or cannot be started, the supervisor starts
 * another after a pause.
 *
 * @param onDeath called with the error of which it died, if any, and the pause in milliseconds
 */
export function createThreadSupervisor(
  startThread: () => Worker,
  onDeath: (error: unknown, pauseMs: number) => void,
) {
  let thread: Worker | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let isStopping = false;

  function start(): void {
    if (isStopping) return;
    const startedMs = performance.now();
    let failure: unknown;
    const replace = () => {
      thread = undefined;
      if (isStopping) return;
      if (performance.now() - startedMs > LONGEST_PAUSE_MS) pauseMs = FIRST_PAUSE_MS;
      onDeath(failure, pauseMs);
      setTimeout(start, pauseMs).unref();
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    };
    const fail = (error: unknown) => {
      failure = error;
    };
    try {
      thread = startThread().once("error", fail).once("exit", replace);
    } catch (error) {
      fail(error); // the system has no thread to give
      replace();
    }
  }

  return {
    /** Starts the thread, unless `stop` was called before. */
    start,
    /** Posts to the thread. Returns false if there is no thread now. */
    post(request: WorkerRequest): boolean {
      thread?.postMessage(request);
      return thread !== undefined;
    },
    /** Ends the thread by `request`, or by force after `withinMs`. No other thread is started. */
    async stop(request: WorkerRequest, withinMs: number): Promise<void> {
      isStopping = true;
      if (thread === undefined) return;
      const ended = Promise.withResolvers<unknown>();
      using _margin = setTimeout(() => void thread?.terminate(), withinMs);
      thread.once("exit", ended.resolve).postMessage(request);
      await ended.promise;
    },
  };
}
