import { newId } from "../base/id.ts";
import type { Logger } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { LoadedCronjob } from "../hosting/check.ts";
import { type CronjobOptions, runCronjob } from "../hosting/cronjob.ts";
import { createCron, type JobState, type RunOutcome } from "../job/cron.ts";
import { createSharedCron } from "../job/shared_cron.ts";
import type { Database } from "../database/database.ts";
import type { FailureAudit } from "../store/failure_audit.ts";
import type { KeyRing } from "../store/key_ring.ts";
import { purge, type PurgeProgress } from "../store/purge.ts";
import type { Revocations } from "../store/revocations.ts";
import { clearEndedSubscriptions } from "../store/subscription_end.ts";
import type { WriteWatch } from "../database/write_watch.ts";
import { type DeliveryWorker, startDeliveryWorker } from "../delivery/worker.ts";

/** What the jobs work with. */
export interface JobsOptions {
  readonly config: Config;
  readonly database: Database;
  readonly writes: WriteWatch;
  readonly keys: KeyRing;
  readonly revocations: Revocations;
  readonly failures: FailureAudit;
  readonly log: Logger;
  readonly now: () => number;
  /** What is removed is removed by this clock. */
  readonly cautiousNow: () => number;
  /** Told of every attempt, for the metrics. */
  readonly observeAttempt: (isSuccess: boolean, ms: number) => void;
}

/** Everything that runs without a request. */
export interface Jobs {
  /** Tells the distributor that there may be work. */
  wake(): void;
  startCronjobs(
    cronjobs: readonly LoadedCronjob[],
    options: Omit<CronjobOptions, "signal">,
  ): void;
  /** Starts delivery, once the process listens: its thread takes a while to load. */
  startDistributor(): void;
  /** How the distributor does: off by configuration, or stuck when it cannot do its work. */
  distributorState(): "on" | "off" | "stuck";
  /** Callbacks under way. */
  inFlight(): number;
  /** The code of what the service itself has lacked to send callbacks, within the last seconds. */
  want(): string | undefined;
  /** The service's own jobs in this process, and those of endpoint modules in whichever they run. */
  listCronjobs(): Promise<JobState[]>;
  runCronjob(name: string): Promise<RunOutcome>;
  stop(graceMs: number): Promise<void>;
}

const AUDIT_RETENTION_MS = 90 * 86_400_000;
const PURGE_INTERVAL_MS = 60_000;
// A revocation or a withdrawn key bites in every process within a second (two looks and a commit).
const WATCH_INTERVAL_MS = 400;
const AUDIT_INTERVAL_MS = 1000;
const CLEAR_INTERVAL_MS = 1000;
const STORAGE_INTERVAL_MS = 1000;
const STUCK_AFTER_MS = 30_000;

/** Starts the jobs: the watch over what other processes revoke always, the others with cron on. */
export function startJobs(options: JobsOptions): Jobs {
  const { config, database, log, now } = options;
  const cron = createCron({ log, now, elapsedMs: () => performance.now() });
  const name = newId("c", now()); // of this process, for the others on the database
  const sharedCron = createSharedCron({ database, cron, claim: name, log, now });
  let worker: DeliveryWorker | undefined;
  let isDelivering = false;
  let isStopped = false;

  cron.start({
    name: "gatepost.watch",
    everyMs: WATCH_INTERVAL_MS,
    run: options.revocations.refresh,
  });
  // By itself, since it may write, and revocations wait for nothing.
  cron.start({ name: "gatepost.keys", everyMs: WATCH_INTERVAL_MS, run: options.keys.refresh });
  cron.start({ name: "gatepost.audit", everyMs: AUDIT_INTERVAL_MS, run: options.failures.flush });
  cron.start({
    name: "gatepost.storage",
    everyMs: STORAGE_INTERVAL_MS,
    run: () => options.writes.look(database),
  });
  if (config.cron) {
    cron.start({
      name: "gatepost.clear",
      everyMs: CLEAR_INTERVAL_MS,
      run: (signal) => clearEndedSubscriptions(database, now, signal),
    });
    const progress: PurgeProgress = new Map();
    cron.start({
      name: "gatepost.purge",
      everyMs: PURGE_INTERVAL_MS,
      run: (signal) =>
        purge(
          database,
          { eventsMs: config.retentionMs, auditMs: AUDIT_RETENTION_MS },
          options.cautiousNow(),
          signal,
          progress,
        ),
    });
  }

  async function deliver(): Promise<void> {
    if (isStopped) return;
    const { observeAttempt } = options;
    const { started, look } = worker = startDeliveryWorker({
      name,
      config,
      database,
      log,
      observeAttempt,
    });
    const test = await started;
    if (!test.ok) {
      log.error("callbacks are not sent: the address guard failed its test", { reason: test.reason });
      return;
    }
    isDelivering = true;
    cron.start({ name: "gatepost.distribute", everyMs: config.distributeIntervalMs, run: look });
  }

  return {
    wake: () => worker?.wake(),
    startCronjobs(cronjobs, dispatching) {
      if (!config.cron) return;
      for (const job of cronjobs) {
        const { name, everyMs } = job;
        sharedCron.start({
          name,
          everyMs,
          run: (signal) => runCronjob(job, { ...dispatching, signal }),
        });
      }
    },
    startDistributor() {
      if (config.cron) setImmediate(() => void deliver());
    },
    distributorState() {
      if (!config.cron) return "off";
      if (worker === undefined || !isDelivering) return "stuck";
      const { quietMs } = worker.report();
      return quietMs > config.distributeIntervalMs + STUCK_AFTER_MS ? "stuck" : "on";
    },
    inFlight: () => worker?.report().inFlight ?? 0,
    want: () => worker?.report().want,
    async listCronjobs() {
      const shared = await sharedCron.list();
      const own = cron.list().filter(({ name }) => !shared.some((job) => job.name === name));
      return [...own, ...shared];
    },
    async runCronjob(name) {
      const outcome = await sharedCron.run(name);
      return outcome === "unknown" ? cron.run(name) : outcome;
    },
    async stop(graceMs) {
      isStopped = true;
      await Promise.all([cron.stop(graceMs), worker?.stop(graceMs)]);
    },
  };
}
