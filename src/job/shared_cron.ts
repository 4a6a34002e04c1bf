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

/** How often the database is asked whether a job is due, by a read of one row. */
const CHECK_MS = 1000;
/** The longest time for which a dead process keeps its job; a live one renews its lease. */
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const MAX_ERROR_LENGTH = 500;

/**
 * Makes a registry of jobs that run once per due time and database, however many processes have
 * them. They run by `cron`, the registry of this process.
 */
export function createSharedCron(options: Pick<Services, "database" | "log" | "now"> & {
  /** A monotonic clock, which times the runs. */
  readonly elapsedMs: () => number;
  readonly cron: Cron;
  /** The name of this process, which its leases carry. */
  readonly claim: string;
  /** Whether this machine's clock agrees with the clocks of the other machines. */
  readonly isClockRight: () => boolean;
}) {
  const { database, cron, log, now, elapsedMs } = options;
  const jobs = new Map<string, IntervalJob>();
  /** Failed claims that may nevertheless be stored. */
  const unknown = new Map<string, CronjobRun>();
  /** Stores the end of a job's last run, if that has failed: its lease would delay the next one. */
  const unstored = new Map<string, () => Promise<unknown>>();
  /** The looks under way whether a job is due. */
  const looks = new Map<string, Promise<CronjobRun | undefined>>();

  async function runIfDue(job: IntervalJob, signal: AbortSignal): Promise<void> {
    const look = claimIfDue(job);
    looks.set(job.name, look);
    const claimed = await look.finally(() => looks.delete(job.name));
    if (claimed) await runClaimed(job, claimed, signal);
  }

  async function claimIfDue(job: IntervalJob): Promise<CronjobRun | undefined> {
    if (!options.isClockRight()) return undefined;
    const { name, everyMs } = job;
    await unstored.get(name)?.();
    unstored.delete(name);
    const failed = unknown.get(name);
    if (failed) {
      const isClaimed = await failed.renewIfClaimed(now() + LEASE_MS);
      unknown.delete(name);
      if (isClaimed) return failed;
    }
    const nowMs = now();
    const stored = await findCronjob(database, name);
    // Not stored yet, or due later than any clock explains: its period has become shorter.
    if (!stored || stored.nextAtMs > nowMs + everyMs + MAX_SKEW_MS) {
      await database.write([registerCronjob(name, nowMs + everyMs)]);
      return undefined;
    }
    const isDue = stored.nextAtMs <= nowMs && stored.leaseUntilMs <= nowMs;
    return isDue ? await claim(job, false) : undefined;
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
      // A run that ends because the service stops has neither succeeded nor failed.
      failure = signal.aborted ? undefined : messageOf(error).slice(0, MAX_ERROR_LENGTH);
      throw error;
    } finally {
      clearInterval(renewal);
      const durationMs = Math.round(elapsedMs() - startedMs);
      const finish = () => claimed.finish(durationMs, failure);
      unstored.set(name, finish);
      await finish();
      unstored.delete(name);
    }
  }

  return {
    start(job: IntervalJob): void {
      jobs.set(job.name, job);
      const everyMs = Math.min(job.everyMs, CHECK_MS);
      cron.start({ name: job.name, everyMs, run: (signal) => runIfDue(job, signal) });
      cron.run(job.name); // registers the job, so that lists show when it is due
    },
    /** Runs a job now, shared or not, unless it runs already in this or another process. */
    async run(name: string): Promise<RunOutcome> {
      const job = jobs.get(name);
      if (!job) return cron.run(name);
      // A look is no run, unless it has found the job due.
      const look = looks.get(name);
      if (look && !await look.catch(() => {})) await cron.idle(name);
      const claimed = Promise.withResolvers<CronjobRun | undefined>();
      const outcome = cron.run(name, async (signal) => {
        const register = registerCronjob(name, now() + job.everyMs); // if it is not registered yet
        claimed.resolve(database.write([register]).then(() => claim(job, true)));
        const run = await claimed.promise;
        if (run) await runClaimed(job, run, signal);
      });
      if (outcome !== "started") return outcome;
      return await claimed.promise ? "started" : "running";
    },
    /** Lists the jobs of this process, and the shared ones whichever process runs them. */
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

/** Returns the state of a shared job, whichever process ran it last. */
export function toJobState(
  { leaseUntilMs, ...stored }: StoredCronjob,
  everyMs: number | undefined,
  nowMs: number,
): JobState {
  return { ...stored, everyMs, isRunning: leaseUntilMs > nowMs };
}
