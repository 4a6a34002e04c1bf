import type { WorkerRequest } from "./worker_messages.ts";

/** One thread. */
export interface Thread {
  post(request: WorkerRequest): void;
  /** Resolves when it has ended: with the error that ended it, if there was one. */
  readonly ended: Promise<Error | undefined>;
  terminate(): void;
}

/** Keeps a thread running. */
export interface ThreadSupervisor {
  /** Starts the thread, unless `stop` was called before. */
  start(): void;
  /** The thread that was started last. */
  thread(): Thread | undefined;
  /** From now on no thread is started. */
  stop(): void;
}

/** Before a thread that has died is replaced; twice as long each time, up to a minute. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Makes the supervisor of a thread: should it die, another one is started after a pause.
 *
 * @param onDeath called with why it died, where it was an error, and the pause in milliseconds
 */
export function createThreadSupervisor(
  startThread: () => Thread,
  onDeath: (error: Error | undefined, pauseMs: number) => void,
): ThreadSupervisor {
  const stopping = new AbortController();
  let thread: Thread | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let restart: NodeJS.Timeout | undefined;

  function start(): void {
    if (stopping.signal.aborted) return;
    const startedMs = performance.now();
    thread = startThread();
    void thread.ended.then((error) => {
      if (stopping.signal.aborted) return;
      if (performance.now() - startedMs > LONGEST_PAUSE_MS) pauseMs = FIRST_PAUSE_MS;
      onDeath(error, pauseMs);
      restart = setTimeout(start, pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    });
  }

  return {
    start,
    thread: () => thread,
    stop() {
      stopping.abort();
      clearTimeout(restart);
    },
  };
}
