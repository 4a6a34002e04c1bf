import { newId } from "../base/id.ts";
import type { Logger } from "../base/log.ts";
import type { Seal } from "../base/seal.ts";
import type { Config } from "../config.ts";
import type { LoadedCronjob } from "../hosting/check.ts";
import { type CronjobOptions, runCronjob } from "../hosting/cronjob.ts";
import { createCallbackSender } from "../job/callback.ts";
import { createCron, type JobState, type RunOutcome } from "../job/cron.ts";
import { createDistributor } from "../job/distributor.ts";
import { createEgress, type Egress } from "../job/egress.ts";
import { createSharedCron } from "../job/shared_cron.ts";
import { createNameLookup } from "../job/name_lookup.ts";
import type { Database } from "../store/database.ts";
import type { FailureAudit } from "../store/failure_audit.ts";
import type { KeyRing } from "../store/key_ring.ts";
import { openPresence } from "../store/presence.ts";
import { purge, type PurgeProgress } from "../store/purge.ts";
import type { Revocations } from "../store/revocations.ts";
import { revision, version } from "../version.ts";

/** What the jobs work with. */
export interface JobsOptions {
  readonly config: Config;
  readonly database: Database;
  readonly seal: Seal;
  readonly keys: KeyRing;
  readonly revocations: Revocations;
  readonly failures: FailureAudit;
  readonly log: Logger;
  readonly now: () => number;
  /** Told of every attempt, for the metrics. */
  readonly observeAttempt: (isSuccess: boolean, ms: number) => void;
}

/** Everything that runs without a request. */
export interface Jobs {
  readonly egress: Egress;
  /** Tells the distributor that there may be work. */
  wake(): void;
  startCronjobs(
    cronjobs: readonly LoadedCronjob[],
    options: Omit<CronjobOptions, "signal">,
  ): void;
  /** Starts delivery in the next turn of the loop, since fetch takes a while to load. */
  startDistributor(): void;
  /** How the distributor does: off by configuration, or stuck when it has not looked for work. */
  distributorState(): "on" | "off" | "stuck";
  /** Callbacks under way. */
  inFlight(): number;
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
const STUCK_AFTER_MS = 30_000;

/** Starts the jobs: the watch over what other processes revoke always, the others with cron on. */
export function startJobs(options: JobsOptions): Jobs {
  const { config, database, log, now } = options;
  const { callbackTimeoutMs } = config;
  const egress = createEgress({
    allow: config.callbackAllow,
    request: fetch,
    lookup: createNameLookup({ timeoutMs: Math.min(callbackTimeoutMs, 5000) }),
    connectionsPerOrigin: config.callbackConcurrency,
    connectTimeoutMs: callbackTimeoutMs,
    silenceTimeoutMs: callbackTimeoutMs,
  });
  const processName = newId("c", now());
  const presence = config.cron ? openPresence(config.databasePath, processName) : undefined;
  const distributor = createDistributor({
    database,
    claim: processName,
    isAlive: (name) => presence?.isAlive(name) ?? true,
    send: createCallbackSender({
      egress,
      timeoutMs: callbackTimeoutMs,
      userAgent: `Gatepost/${version}@${revision}`,
      now,
    }),
    seal: options.seal,
    limits: {
      total: config.callbackConcurrency,
      perSubscription: config.callbackConcurrencyPerSubscription,
    },
    policy: { delaysMs: config.resendDelaysMs },
    timeoutMs: callbackTimeoutMs,
    disableAfterMs: config.disableAfterMs,
    log,
    now,
    random: Math.random,
    observe: options.observeAttempt,
  });
  const cron = createCron({ log, now, elapsedMs: () => performance.now() });
  const sharedCron = createSharedCron({ database, cron, log, now });
  let isDistributing = false;

  cron.start({
    name: "gatepost.watch",
    everyMs: WATCH_INTERVAL_MS,
    run: options.revocations.refresh,
  });
  // By itself, since it may write, and revocations wait for nothing.
  cron.start({ name: "gatepost.keys", everyMs: WATCH_INTERVAL_MS, run: options.keys.refresh });
  cron.start({ name: "gatepost.audit", everyMs: AUDIT_INTERVAL_MS, run: options.failures.flush });
  if (config.cron) {
    const progress: PurgeProgress = new Map();
    cron.start({
      name: "gatepost.purge",
      everyMs: PURGE_INTERVAL_MS,
      run: (signal) =>
        purge(
          database,
          { eventsMs: config.retentionMs, auditMs: AUDIT_RETENTION_MS },
          now(),
          signal,
          progress,
        ),
    });
  }

  /** Nothing is sent before the guard has shown on a listener of its own that it guards. */
  async function distribute(): Promise<void> {
    const test = await egress.selfTest();
    if (!test.ok) {
      log.error("callbacks are not sent: the address guard failed its test", { reason: test.reason });
      return;
    }
    isDistributing = true;
    cron.start({
      name: "gatepost.distribute",
      everyMs: config.distributeIntervalMs,
      async run() {
        await distributor.takeOver().finally(distributor.wake);
      },
    });
    await distributor.takeOver()
      .catch((error: unknown) => log.warn("claims cannot be taken over yet", { error }));
    distributor.wake();
  }

  return {
    egress,
    wake() {
      if (isDistributing) distributor.wake();
    },
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
      if (config.cron) setImmediate(() => void distribute());
    },
    distributorState() {
      if (!config.cron) return "off";
      const isStuck = now() - distributor.lastRoundMs() > config.distributeIntervalMs + STUCK_AFTER_MS;
      return isDistributing && !isStuck ? "on" : "stuck";
    },
    inFlight: distributor.inFlight,
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
      await Promise.all([cron.stop(graceMs), distributor.stop(graceMs)]);
      await egress.close();
      presence?.close();
    },
  };
}
