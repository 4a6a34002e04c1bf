import type { Services } from "../services.ts";

/** A job of this process that runs again and again. */
export interface IntervalJob {
  readonly name: string;
  readonly everyMs: number;
  run(signal: AbortSignal): Promise<void> | void;
}

/** How a job last went and when it runs next; times in milliseconds since 1970. */
export interface JobState {
  readonly name: string;
  /** Undefined on the command line: only the job's module says it. */
  readonly everyMs: number | undefined;
  readonly isRunning: boolean;
  readonly lastAtMs: number | undefined;
  readonly lastDurationMs: number | undefined;
  readonly lastError: string | undefined;
  readonly nextAtMs: number;
}

/** The result of a request to run a job now. */
export type RunOutcome = "started" | "running" | "unknown";

/** The registry of setInterval jobs. */
export interface Cron {
  /** Runs the job every `everyMs` from now on; throws for a name that is taken. */
  start(job: IntervalJob): void;
  /** Runs a job now, or `work` in its place; its next due time stays as it is. */
  run(name: string, work?: IntervalJob["run"]): RunOutcome;
  list(): JobState[];
  /** Starts no more jobs, aborts those that run, and waits for them for at most `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

// Node's timers take 32 bits; a longer delay would become 1 ms.
const LONGEST_DELAY_MS = 2_147_483_647;

interface Entry {
  readonly job: IntervalJob;
  timer: NodeJS.Timeout | undefined;
  /** When it is due next, in elapsed time. */
  dueMs: number;
  running: Promise<void> | undefined;
  last: { atMs: number; durationMs: number; error: string | undefined } | undefined;
}

/**
 * Makes a registry. Due times are whole periods after the start, so lateness does not add up; a job
 * never overlaps itself: a due time that comes while it runs, or while the machine slept, is
 * skipped. `elapsedMs` is a monotonic clock.
 */
export function createCron(
  { log, now, elapsedMs }: Pick<Services, "log" | "now"> & { readonly elapsedMs: () => number },
): Cron {
  const entries = new Map<string, Entry>();
  const stopping = new AbortController();

  /** An interval alone would carry lateness on, so each run sets the next delay. */
  function arm(entry: Entry): void {
    clearInterval(entry.timer);
    if (stopping.signal.aborted) return;
    const delayMs = Math.min(Math.max(entry.dueMs - elapsedMs(), 1), LONGEST_DELAY_MS);
    entry.timer = setInterval(() => runIfDue(entry), delayMs);
  }

  function runIfDue(entry: Entry): void {
    const { everyMs } = entry.job;
    const lateMs = elapsedMs() - entry.dueMs;
    if (lateMs >= 0) {
      entry.dueMs += (Math.floor(lateMs / everyMs) + 1) * everyMs;
      begin(entry, entry.job.run);
    }
    arm(entry);
  }

  function begin(entry: Entry, run: IntervalJob["run"]): boolean {
    if (entry.running || stopping.signal.aborted) return false;
    entry.running = runOnce(entry, run).finally(() => {
      entry.running = undefined;
    });
    return true;
  }

  async function runOnce(entry: Entry, run: IntervalJob["run"]): Promise<void> {
    const atMs = now();
    const startedMs = elapsedMs();
    let failure: string | undefined;
    try {
      await run(stopping.signal);
    } catch (error) {
      log.error("job failed", { job: entry.job.name, error });
      failure = error instanceof Error ? error.message : String(error);
    }
    entry.last = { atMs, durationMs: Math.round(elapsedMs() - startedMs), error: failure };
  }

  return {
    start(job) {
      if (entries.has(job.name)) throw new Error(`There is a job ${job.name} already`);
      const dueMs = elapsedMs() + job.everyMs;
      const entry = { job, timer: undefined, dueMs, running: undefined, last: undefined };
      entries.set(job.name, entry);
      arm(entry);
    },
    run(name, work) {
      const entry = entries.get(name);
      if (!entry) return "unknown";
      return begin(entry, work ?? entry.job.run) ? "started" : "running";
    },
    list: () =>
      entries.values().map(({ job, running, last, dueMs }) => ({
        name: job.name,
        everyMs: job.everyMs,
        isRunning: running !== undefined,
        lastAtMs: last?.atMs,
        lastDurationMs: last?.durationMs,
        lastError: last?.error,
        nextAtMs: Math.round(now() + dueMs - elapsedMs()),
      })).toArray(),
    async stop(graceMs) {
      stopping.abort();
      for (const { timer } of entries.values()) clearInterval(timer);
      let grace: NodeJS.Timeout | undefined;
      await Promise.race([
        Promise.all(entries.values().map(({ running }) => running)),
        new Promise((resolve) => grace = setTimeout(resolve, graceMs)),
      ]);
      clearTimeout(grace);
    },
  };
}
