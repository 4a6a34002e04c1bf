import { messageOf } from "../base/message_of.ts";
import { createRepeatCheck } from "../base/repeated.ts";
import type { Services } from "../services.ts";
import type { StoredCronjob } from "../store/cronjobs.ts";

/** A job that this process runs at an interval. */
export interface IntervalJob {
  readonly name: string;
  readonly everyMs: number;
  run(signal: AbortSignal): Promise<void> | void;
}

/** How a job last went and when it runs next; times in milliseconds since 1970. */
export interface JobState extends Omit<StoredCronjob, "leaseUntilMs"> {
  /** Undefined on the command line, which does not load the job's module. */
  readonly everyMs: number | undefined;
  readonly isRunning: boolean;
}

/** The result of a request to run a job now. */
export type RunOutcome = "started" | "running" | "unknown";

export type Cron = ReturnType<typeof createCron>;

// Node's timers take 32 bits; a longer delay would become 1 ms.
const LONGEST_DELAY_MS = 2_147_483_647;

interface Entry {
  readonly job: IntervalJob;
  timer: NodeJS.Timeout | undefined;
  /** When it is due next, by `elapsedMs`. */
  dueMs: number;
  running: Promise<void> | undefined;
  /** The last run; null members if there was none. */
  last: Pick<StoredCronjob, "lastAtMs" | "lastDurationMs" | "lastError">;
  /** Whether a failure is logged; not each time, since a job may run every second. */
  readonly isNew: (message: string) => boolean;
}

/**
 * Makes a registry of jobs. Due times are whole periods after the start, so that lateness does not
 * add up. A job never overlaps itself: a due time is skipped if the job still runs then, or the
 * machine sleeps. `elapsedMs` is a monotonic clock.
 */
export function createCron(
  { log, now, elapsedMs }: Pick<Services, "log" | "now"> & { readonly elapsedMs: () => number },
) {
  const entries = new Map<string, Entry>();
  const stopping = new AbortController();

  /** Each run sets the delay of the next one, since a fixed interval would add up lateness. */
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
    const lastAtMs = now();
    const startedMs = elapsedMs();
    let lastError: string | null = null;
    try {
      await run(stopping.signal);
    } catch (error) {
      lastError = messageOf(error);
      const fields = { job: entry.job.name, error };
      if (stopping.signal.aborted) log.info("job stopped", fields); // by the abort signal
      else if (entry.isNew(lastError)) log.error("job failed", fields);
    }
    entry.last = { lastAtMs, lastDurationMs: Math.round(elapsedMs() - startedMs), lastError };
  }

  return {
    /** Runs the job every `everyMs` from now on; throws if the name is taken. */
    start(job: IntervalJob): void {
      if (entries.has(job.name)) throw new Error(`There is a job ${job.name} already`);
      const dueMs = elapsedMs() + job.everyMs;
      const entry: Entry = {
        job, timer: undefined, dueMs, running: undefined,
        last: { lastAtMs: null, lastDurationMs: null, lastError: null },
        isNew: createRepeatCheck(elapsedMs),
      };
      entries.set(job.name, entry);
      arm(entry);
    },
    /** Runs a job now, or `work` instead of it; the next due time stays as it is. */
    run(name: string, work?: IntervalJob["run"]): RunOutcome {
      const entry = entries.get(name);
      if (!entry) return "unknown";
      return begin(entry, work ?? entry.job.run) ? "started" : "running";
    },
    /** Resolves at the end of the run under way, if any. */
    idle: async (name: string) => entries.get(name)?.running,
    list: (): JobState[] =>
      entries.values().map(({ job, running, last, dueMs }) => ({
        name: job.name,
        everyMs: job.everyMs,
        isRunning: running !== undefined,
        ...last,
        nextAtMs: Math.round(now() + dueMs - elapsedMs()),
      })).toArray(),
    /** Starts no more jobs, aborts the running ones, and awaits them for at most `graceMs`. */
    async stop(graceMs: number): Promise<void> {
      stopping.abort();
      for (const { timer } of entries.values()) clearInterval(timer);
      const late = Promise.withResolvers<void>();
      using _grace = setTimeout(late.resolve, graceMs);
      const ended = Promise.all(entries.values().map(({ running }) => running));
      await Promise.race([ended, late.promise]);
    },
  };
}
