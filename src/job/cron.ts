import type { Log } from "../base/log.ts";

/** A job of this process that runs again and again. */
export interface IntervalJob {
  readonly name: string;
  readonly everyMs: number;
  run(signal: AbortSignal): Promise<void> | void;
}

/** How a job last went and when it runs next; times in milliseconds since 1970. */
export interface JobState {
  readonly name: string;
  readonly lastAtMs: number | undefined;
  readonly lastDurationMs: number | undefined;
  readonly lastError: string | undefined;
  readonly nextAtMs: number;
}

/** The registry of setInterval jobs. */
export interface Cron {
  start(job: IntervalJob): void;
  list(): JobState[];
  /** Starts no job any more, tells those that run, and waits for them. */
  stop(): Promise<void>;
}

/** Makes a registry. A job never overlaps itself: a turn that comes while it runs is passed over. */
export function createCron(log: Log, now: () => number): Cron {
  const jobs = new Map<string, { state: JobState; timer: NodeJS.Timeout; run?: Promise<void> }>();
  const stopping = new AbortController();

  async function runJob({ name, everyMs, run }: IntervalJob): Promise<void> {
    const entry = jobs.get(name);
    if (!entry || entry.run || stopping.signal.aborted) return;
    const startedAtMs = now();
    let lastError: string | undefined;
    const running = (async () => {
      try {
        await run(stopping.signal);
      } catch (error) {
        lastError = error instanceof Error ? error.message : String(error);
        log.error("job failed", { job: name, error });
      }
    })();
    entry.run = running;
    await running;
    delete entry.run;
    entry.state = {
      name,
      lastAtMs: startedAtMs,
      lastDurationMs: now() - startedAtMs,
      lastError,
      nextAtMs: startedAtMs + everyMs,
    };
  }

  return {
    start(job) {
      const timer = setInterval(() => void runJob(job), job.everyMs);
      const state = {
        name: job.name,
        lastAtMs: undefined,
        lastDurationMs: undefined,
        lastError: undefined,
        nextAtMs: now() + job.everyMs,
      };
      jobs.set(job.name, { state, timer });
    },
    list: () => jobs.values().map(({ state }) => state).toArray(),
    async stop() {
      stopping.abort();
      for (const { timer } of jobs.values()) clearInterval(timer);
      await Promise.all(jobs.values().map(({ run }) => run));
    },
  };
}
