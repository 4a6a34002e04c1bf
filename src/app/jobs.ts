import type { Logger } from "../base/log.ts";
import type { Seal } from "../base/seal.ts";
import type { Config } from "../config.ts";
import type { LoadedCronjob } from "../hosting/check.ts";
import { type CronjobOptions, runCronjob } from "../hosting/cronjob.ts";
import { createCallbackSender } from "../job/callback.ts";
import { createCron, type JobState } from "../job/cron.ts";
import { createDistributor } from "../job/distributor.ts";
import { createEgress, type Egress } from "../job/egress.ts";
import { createNameLookup } from "../job/name_lookup.ts";
import { claimCronjob, recordCronjob, registerCronjob } from "../store/cronjobs.ts";
import type { Database } from "../store/database.ts";
import type { KeyRing } from "../store/key_ring.ts";
import { purge } from "../store/purge.ts";
import type { Revocations } from "../store/revocations.ts";
import { revision, version } from "../version.ts";

/** What the jobs work with. */
export interface JobsOptions {
  readonly config: Config;
  readonly database: Database;
  readonly seal: Seal;
  readonly keys: KeyRing;
  readonly revocations: Revocations;
  readonly log: Logger;
  readonly now: () => number;
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
  /** How the distributor does: off by configuration, or stuck when it has not looked for work. */
  distributorState(): "on" | "off" | "stuck";
  list(): JobState[];
  stop(graceMs: number): Promise<void>;
}

const AUDIT_RETENTION_MS = 90 * 86_400_000;
const PURGE_INTERVAL_MS = 60_000;
// A revocation or a withdrawn key bites in every process within a second (two looks and a commit).
const WATCH_INTERVAL_MS = 400;
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
  const distributor = createDistributor({
    database,
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
    observe: () => {},
  });
  const cron = createCron(log, now);
  let isDistributing = false;

  cron.start({
    name: "gatepost.watch",
    everyMs: WATCH_INTERVAL_MS,
    async run() {
      await options.revocations.refresh();
      await options.keys.refresh();
    },
  });
  if (config.cron) {
    cron.start({
      name: "gatepost.purge",
      everyMs: PURGE_INTERVAL_MS,
      run: (signal) =>
        purge(
          database,
          { eventsMs: config.retentionMs, auditMs: AUDIT_RETENTION_MS },
          now(),
          signal,
        ),
    });
    void startDistributor();
  }

  /** Nothing is sent before the guard has shown on a listener of its own that it guards. */
  async function startDistributor(): Promise<void> {
    const test = await egress.selfTest();
    if (!test.ok) {
      log.error("callbacks are not sent: the address guard failed its test", { reason: test.reason });
      return;
    }
    isDistributing = true;
    cron.start({
      name: "gatepost.distribute",
      everyMs: config.distributeIntervalMs,
      run: () => distributor.wake(),
    });
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
        const registered = registerCronjob(database, name, now() + everyMs);
        cron.start({
          name,
          everyMs: Math.min(everyMs, 1000), // how often it is looked whether it is due
          async run(signal) {
            await registered;
            const startedAtMs = now();
            if (!await claimCronjob(database, name, startedAtMs, everyMs)) return;
            let failure: string | undefined;
            try {
              await runCronjob(job, { ...dispatching, signal });
            } catch (error) {
              failure = error instanceof Error ? error.message : String(error);
              log.error("cronjob failed", { job: name, error });
            }
            await recordCronjob(database, name, now() - startedAtMs, failure);
          },
        });
      }
    },
    distributorState() {
      if (!config.cron) return "off";
      const isStuck = now() - distributor.lastRoundMs() > config.distributeIntervalMs + STUCK_AFTER_MS;
      return isDistributing && !isStuck ? "on" : "stuck";
    },
    list: cron.list,
    async stop(graceMs) {
      await cron.stop();
      await distributor.stop(graceMs);
      await egress.close();
    },
  };
}
