import { messageOf } from "../base/message_of.ts";
import { MAX_SKEW_MS } from "../database/rqlite_clock.ts";
import type { Services } from "../services.ts";
import {
  createCronjobRun,
  findCronjob,
  registerCronjob,
  type StoredCronjob,
} from "../store/cronjobs.ts";
import type { Cron, IntervalJob, JobState, RunOutcome } from "./cron.ts";

type CronjobRun = ReturnType<typeof createCronjobRun>;

/** How often a job is checked for being due: a read of one row. */
const CHECK_MS = 1000;
/** A process that died keeps its job for so long at most; a running one renews its lease. */
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const MAX_ERROR_LENGTH = 500;

/**
 * Makes a registry of jobs that run once per due time and database, however many processes know
 * them; they run by that of the process.
 */
export function createSharedCron(options: Pick<Services, "database" | "log" | "now"> & {
  /** A monotonic clock: how long a run took is not for the wall clock to say. */
  readonly elapsedMs: () => number;
  readonly cron: Cron;
  /** The name of this process, which its leases carry. */
  readonly claim: string;
  /** Whether this machine's clock agrees with those of the others on the database. */
  readonly isClockRight: () => boolean;
}) {
  const { database, cron, log, now, elapsedMs } = options;
  const jobs = new Map<string, IntervalJob>();
  /** Claims that failed, of which it is not known whether they are stored. */
  const unknown = new Map<string, CronjobRun>();

  async function runIfDue(job: IntervalJob, signal: AbortSignal): Promise<void> {
    if (!options.isClockRight()) return;
    const { name, everyMs } = job;
    const failed = unknown.get(name);
    if (failed) {
      const isClaimed = await failed.renewIfClaimed(now() + LEASE_MS);
      unknown.delete(name);
      if (isClaimed) return await runClaimed(job, failed, signal);
    }
    const nowMs = now();
    const stored = await findCronjob(database, name);
    // Unknown yet, or due later than by any clock: the module has a shorter period now.
    if (!stored || stored.nextAtMs > nowMs + everyMs + MAX_SKEW_MS) {
      await database.write([registerCronjob(name, nowMs + everyMs)]);
    } else if (stored.nextAtMs <= nowMs && stored.leaseUntilMs <= nowMs) {
      const claimed = await claim(job, false);
      if (claimed) await runClaimed(job, claimed, signal);
    }
  }

  async function claim({ name, everyMs }: IntervalJob, isForced: boolean) {
    const nowMs = now();
    const run = createCronjobRun(database, name, options.claim, nowMs);
    try {
      return await run.claim(everyMs, nowMs + LEASE_MS, isForced) ? run : undefined;
    } catch (error) {
      unknown.set(name, run);
      throw error;
    }
  }

  async function runClaimed(
    { name, run }: IntervalJob,
    claimed: CronjobRun,
    signal: AbortSignal,
  ): Promise<void> {
    const startedMs = elapsedMs();
    const renewal = setInterval(() => {
      claimed.renew(now() + LEASE_MS)
        .catch((error: unknown) => log.warn("a cronjob cannot be renewed", { job: name, error }));
    }, RENEW_MS);
    let failure: string | null | undefined = null;
    try {
      await run(signal);
    } catch (error) {
      // One that ends because the service stops has neither gone well nor failed.
      failure = signal.aborted ? undefined : messageOf(error).slice(0, MAX_ERROR_LENGTH);
      throw error;
    } finally {
      clearInterval(renewal);
      const durationMs = Math.round(elapsedMs() - startedMs);
      await claimed.finish(durationMs, failure);
    }
  }

  return {
    start(job: IntervalJob): void {
      jobs.set(job.name, job);
      const everyMs = Math.min(job.everyMs, CHECK_MS);
      cron.start({ name: job.name, everyMs, run: (signal) => runIfDue(job, signal) });
      cron.run(job.name); // registers it, so that it is listed with its time
    },
    /** Runs a job now, unless it runs in this or another process; one of this process alone too. */
    async run(name: string): Promise<RunOutcome> {
      const job = jobs.get(name);
      if (!job) return cron.run(name);
      const claimed = Promise.withResolvers<CronjobRun | undefined>();
      const outcome = cron.run(name, async (signal) => {
        const register = registerCronjob(name, now() + job.everyMs); // where it is not yet
        claimed.resolve(database.write([register]).then(() => claim(job, true)));
        const run = await claimed.promise;
        if (run) await runClaimed(job, run, signal);
      });
      if (outcome !== "started") return outcome;
      return await claimed.promise ? "started" : "running";
    },
    /** The jobs of this process, and those that all share, in whichever they run. */
    async list(): Promise<JobState[]> {
      return Promise.all(cron.list().map(async (own) => {
        const job = jobs.get(own.name);
        if (!job) return own;
        const stored = await findCronjob(database, job.name);
        return stored ? toJobState(stored, job.everyMs, now())
          : { ...own, everyMs: job.everyMs, nextAtMs: now() + job.everyMs };
      }));
    },
  };
}

/** How a job last went, in whichever process it did. */
export function toJobState(
  { leaseUntilMs, ...stored }: StoredCronjob,
  everyMs: number | undefined,
  nowMs: number,
): JobState {
  return { ...stored, everyMs, isRunning: leaseUntilMs > nowMs };
}
