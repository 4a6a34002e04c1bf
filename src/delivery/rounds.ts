import { setTimeout as sleep } from "node:timers/promises";

/** Between two rounds where the first left nothing over. */
const PAUSE_MS = 4;
/** How long what ends at about the same time is gathered, for one commit and one round. */
const GATHER_MS = 8;

/**
 * Makes a loop of rounds of work, one after the other.
 *
 * @param run one round; returns whether another should follow at once. It must not throw
 * @param mayRun while it is false no round begins, until the next `wake` after that
 */
export function createRounds(run: () => Promise<boolean>, mayRun: () => boolean) {
  let running: Promise<void> | undefined;
  let again = false;
  let alarm: NodeJS.Timeout | undefined;

  /** Begins a round, or has one follow the round that is under way. */
  function wake(): void {
    again = true;
    if (mayRun()) running ??= runAll();
  }

  async function runAll(): Promise<void> {
    try {
      do {
        again = false;
        const isMore = await run();
        // What was dispatched meanwhile is taken up with what comes in the next moment.
        if (again && !isMore) await sleep(PAUSE_MS);
        again ||= isMore;
      } while (again && mayRun());
    } finally {
      running = undefined; // at once, not when that is told: a wake in between would be lost
    }
  }

  return {
    wake,
    /** Wakes after so many milliseconds, and at no other time that was set before. */
    wakeIn(ms: number): void {
      clearTimeout(alarm);
      alarm = setTimeout(wake, ms).unref();
    },
    gather: createGatherer(wake),
    /** Resolves when no round is under way. */
    idle: async () => running,
  };
}

/** Makes what wakes within a few milliseconds, and resolves then, once for all who have asked. */
function createGatherer(wake: () => void): () => Promise<void> {
  let gathering: Promise<void> | undefined;
  return () =>
    gathering ??= sleep(GATHER_MS).then(() => {
      gathering = undefined;
      wake();
    });
}
