import type { Database } from "../database/database.ts";
import type { WriteWatch } from "../database/write_watch.ts";
import type { DeliveryWorker } from "../delivery/worker.ts";
import type { LoadedCronjob } from "../hosting/check.ts";
import { runCronjob } from "../hosting/cronjob.ts";
import { createCron } from "../job/cron.ts";
import { createSharedCron } from "../job/shared_cron.ts";
import type { Services } from "../services.ts";
import { leaveOutIdleTime } from "../store/clock_shift.ts";
import { findCronjob } from "../store/cronjobs.ts";
import { purge, type PurgeProgress } from "../store/purge.ts";
import { clearEndedSubscriptions } from "../store/subscription_end.ts";
import { BEAT_MS, WATCH_INTERVAL_MS } from "./catch_up.ts";

type JobsOptions =
  & Pick<Services, "config" | "database" | "keys" | "revocations" | "failures" | "log" | "now">
  & Pick<Services, "metrics" | "rates" | "events" | "uses" | "figures">
  & {
    readonly writes: WriteWatch;
    readonly worker: DeliveryWorker;
    /** The name of this process, which its leases carry. */
    readonly name: string;
    readonly isClockRight: () => boolean;
    /** Checks whether the process has stood still. */
    readonly beat: () => void;
    /** The clock by which rows are deleted. */
    readonly cautiousNow: () => number;
  };

/** Everything that runs without a request. */
export type Jobs = ReturnType<typeof createJobs>;

const AUDIT_RETENTION_MS = 90 * 86_400_000;
const SECOND_MS = 1_000;
const PURGE = { name: "gatepost.purge", everyMs: 60_000 };

/** Returns when a process last purged this database; undefined before the first purge. */
export async function findLastPurge(database: Database): Promise<number | undefined> {
  return (await findCronjob(database, PURGE.name))?.lastAtMs ?? undefined;
}

/** Makes the jobs; none runs yet. */
export function createJobs(options: JobsOptions) {
  const { config, database, revocations, rates, keys, failures, writes, worker, log, now } =
    options;
  const elapsedMs = () => performance.now();
  const cron = createCron({ log, now, elapsedMs });
  const sharedCron = createSharedCron({ ...options, cron, claim: options.name, elapsedMs });
  const retention = { eventsMs: config.retentionMs, auditMs: AUDIT_RETENTION_MS };
  const progress: PurgeProgress = new Map();

  const watches = [
    { name: "gatepost.beat", everyMs: BEAT_MS, run: options.beat },
    { name: "gatepost.watch", everyMs: WATCH_INTERVAL_MS, run: revocations.refresh },
    { name: "gatepost.rates", everyMs: WATCH_INTERVAL_MS, run: rates.refresh },
    // Apart from the watch, since it may write and revocations must not wait for that.
    { name: "gatepost.keys", everyMs: WATCH_INTERVAL_MS, run: keys.refresh },
    { name: "gatepost.audit", everyMs: SECOND_MS, run: failures.flush },
    { name: "gatepost.figures", everyMs: SECOND_MS, run: options.figures.flush },
    { name: "gatepost.uses", everyMs: 60 * SECOND_MS, run: options.uses.flush },
    { name: "gatepost.storage", everyMs: SECOND_MS, run: () => writes.look(database) },
  ];

  async function deliver(idleLeftOut: Promise<void> | undefined): Promise<void> {
    await idleLeftOut;
    const test = await worker.start();
    if (!test.ok) {
      const { reason } = test;
      log.error("callbacks are not sent: the address guard failed its test", { reason });
      return;
    }
    const everyMs = config.distributeIntervalMs;
    cron.start({ name: "gatepost.distribute", everyMs, run: worker.look });
  }

  return {
    /** Starts the jobs that watch other processes and, with GATEPOST_CRON on, all others. */
    start(cronjobs: readonly LoadedCronjob[]): void {
      for (const job of watches) cron.start(job);
      if (!config.cron) return;
      // With a wrong clock, time in which other processes worked would seem idle.
      const idleLeftOut = options.isClockRight()
        ? leaveOutIdleTime(database, PURGE.name, now()).catch((error: unknown) =>
          log.warn("the time without a server counts as failing time of subscriptions", { error }))
        : undefined;
      // In each process: it seldom finds work, and a lease would cost more than the search.
      cron.start({
        name: "gatepost.clear",
        everyMs: SECOND_MS,
        run: (signal) => clearEndedSubscriptions(database, now, signal),
      });
      sharedCron.start({
        ...PURGE,
        run: (signal) => purge(database, retention, options.cautiousNow(), signal, progress),
      });
      for (const job of cronjobs) {
        const run = (signal: AbortSignal) =>
          runCronjob(job, signal, { ...options, wake: worker.wake });
        sharedCron.start({ ...job, run });
      }
      // After the first requests, because the thread takes long to load.
      setImmediate(() => void deliver(idleLeftOut));
    },
    listCronjobs: sharedCron.list,
    runCronjob: sharedCron.run,
    async stop(graceMs: number): Promise<void> {
      await Promise.all([cron.stop(graceMs), worker.stop(graceMs)]);
    },
  };
}
