import { setTimeout as sleep } from "node:timers/promises";

/** The pause between two rounds if the first left no work. */
const PAUSE_MS = 4;
/** How long attempts that end are gathered, to share one commit and one round. */
const GATHER_MS = 8;

/**
 * Makes a loop of rounds of work, one after the other.
 *
 * @param run runs one round; returns whether another should follow at once. It must not throw
 * @param mayRun while this returns false no round begins; a later `wake` begins one
 */
export function createRounds(run: () => Promise<boolean>, mayRun: () => boolean) {
  let running: Promise<void> | undefined;
  let again = false;
  let alarm: NodeJS.Timeout | undefined;

  /** Begins a round; if one is under way, another follows it. */
  function wake(): void {
    again = true;
    if (mayRun()) running ??= runAll();
  }

  async function runAll(): Promise<void> {
    try {
      do {
        again = false;
        const isMore = await run();
        // A short pause, so that the next round also serves what is dispatched in the next moment.
        if (again && !isMore) await sleep(PAUSE_MS);
        again ||= isMore;
      } while (again && mayRun());
    } finally {
      running = undefined; // here and not in a later `then`, before which a `wake` would be lost
    }
  }

  return {
    wake,
    /** Sets the alarm: wakes after `ms`, in place of any time set before. */
    wakeIn(ms: number): void {
      clearTimeout(alarm);
      alarm = setTimeout(wake, Math.max(ms, 0)).unref(); // Node would warn of less
    },
    gather: createGatherer(wake),
    /** Resolves at the end of the round under way, if any. */
    idle: async () => running,
  };
}

/** Makes a function that calls `wake` within a few ms, once for all calls, and then resolves. */
function createGatherer(wake: () => void): () => Promise<void> {
  let gathering: Promise<void> | undefined;
  return () =>
    gathering ??= sleep(GATHER_MS).then(() => {
      gathering = undefined;
      wake();
    });
}
