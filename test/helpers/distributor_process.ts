import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../src/base/id.ts";
import type { Log } from "../../src/base/log.ts";
import { createSeal, type Seal } from "../../src/base/seal.ts";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import type { Callback } from "../../src/delivery/callback.ts";
import { createDistributor, type Distributor } from "../../src/delivery/distributor.ts";
import type { AttemptOutcome } from "../../src/event/delivery.ts";
import { createShift } from "../../src/store/clock_shift.ts";
import { SILENT } from "./silent_log.ts";
import { until } from "./until.ts";

export const DELAYS_MS = [10_000, 300_000, 3_600_000] as const;
export const TIMEOUT_MS = 10_000;
/** How long a claim lasts: two attempts and a margin. */
export const LEASE_MS = 2 * TIMEOUT_MS + 30_000;
const SETTINGS = {
  database: { kind: "file" as const, path: "" },
  databaseCredentials: undefined,
  secretKeys: undefined,
  callbackAllow: [],
  callbackTimeoutMs: TIMEOUT_MS,
  resendDelaysMs: DELAYS_MS,
  disableAfterMs: 0,
};
export const SEAL = createSeal(undefined);

/** How an attempt ends: with a response of this status, or without one. */
export type Ending = number | "timeout" | "shortage";

/** An attempt that the test ends. */
interface Attempt {
  readonly callback: Callback;
  end(ending: Ending): void;
}

/** The distributor of one process; the test responds to its callbacks. */
export interface Process {
  readonly distributor: Distributor;
  /** Attempts that have begun and not ended, oldest first. */
  readonly open: Attempt[];
  /** All attempts that have begun. */
  readonly begun: Callback[];
  /** For each recorded attempt, whether it was the last one of its delivery. */
  readonly observed: boolean[];
  /** How many were open at once, at most. */
  peak(): number;
  /** The deliveries of all attempts that have begun. */
  ids(): string[];
  /** Resolves when all writes until now are stored, however slow the database is. */
  stored(): Promise<unknown>;
  /** Makes it do all due work, and returns it. */
  wake(): Process;
  /** Wakes it, and waits until it is idle. */
  run(): Promise<void>;
  /** The same, after the common clock has moved on. */
  runAfter(ms: number): Promise<void>;
  /** Ends the oldest open attempt, and waits until the process is idle. */
  endFirst(ending: Ending): Promise<void>;
  /** Ends all open attempts, and waits until the process is idle. */
  endAll(ending: Ending): Promise<void>;
}

/** What the processes of a stage share. */
export interface Shared {
  readonly database: Database;
  /** The common clock of the processes; only the test moves it. */
  nowMs: number;
  /** By how much it has been set back. */
  setBackMs: number;
  isClockWrong: boolean;
}

export interface ProcessOptions {
  readonly name?: string;
  readonly total?: number;
  readonly perSubscription?: number;
  /** Responds at once in place of the test. */
  readonly respond?: Ending | ((callback: Callback) => Ending);
  readonly database?: Database;
  readonly seal?: Seal;
  readonly log?: Log;
}

/** Makes a distributor; it does nothing before its first `wake`. */
export function createProcess(stage: Shared, options: ProcessOptions): Process {
  const { total = 64, perSubscription = 8, respond } = options;
  const open: Attempt[] = [];
  const begun: Callback[] = [];
  const observed: boolean[] = [];
  let peak = 0;
  const distributor = createDistributor({
    database: options.database ?? stage.database,
    settings: {
      ...SETTINGS,
      callbackConcurrency: total,
      callbackConcurrencyPerSubscription: perSubscription,
    },
    claim: options.name ?? newId("c", stage.nowMs),
    seal: options.seal ?? SEAL,
    log: options.log ?? SILENT,
    now: () => stage.nowMs,
    elapsedMs: () => stage.nowMs + stage.setBackMs,
    isClockRight: () => !stage.isClockWrong,
    random: () => 0.5,
    observe: (_delivery, isSuccess, isLast) => void observed.push(isSuccess || isLast),
    callbacks: {
      send: (callback) =>
        new Promise((resolve) => {
          begun.push(callback);
          const end = (given: Ending) => {
            const index = open.indexOf(attempt);
            if (index < 0) return;
            open.splice(index, 1);
            resolve(
              given === "shortage"
                ? { shortage: "EMFILE" }
                : { outcome: toOutcome(given), snippet: undefined },
            );
          };
          const attempt = { callback, end };
          open.push(attempt);
          peak = Math.max(peak, open.length);
          if (respond === undefined) return;
          setImmediate(() => end(typeof respond === "function" ? respond(callback) : respond));
        }),
      abort: async () => [...open].forEach(({ end }) => end("timeout")),
    },
  });
  const process: Process = {
    distributor,
    open,
    begun,
    observed,
    peak: () => peak,
    ids: () => begun.map(({ id }) => id),
    stored: () => stage.database.write([sql`DELETE FROM settings WHERE name = 'nothing'`]),
    wake() {
      distributor.wake();
      return process;
    },
    run: () => untilIdle(process.wake()),
    runAfter(ms) {
      stage.nowMs += ms;
      return process.run();
    },
    endFirst: (ending) => endAttempts(process, open.slice(0, 1), ending),
    endAll: (ending) => endAttempts(process, [...open], ending),
  };
  return process;
}

function toOutcome(ending: Exclude<Ending, "shortage">): AttemptOutcome {
  return ending === "timeout"
    ? { kind: "error", error: "timeout" }
    : { kind: "response", status: ending };
}

function endAttempts(process: Process, attempts: readonly Attempt[], ending: Ending) {
  assert.ok(attempts.length > 0, "no attempt is open");
  for (const attempt of attempts) attempt.end(ending);
  return untilIdle(process);
}

/** Waits until the processes have been idle for a while: nothing more will begin by itself. */
export async function untilIdle(...processes: readonly Process[]): Promise<void> {
  const sum = () => processes.reduce((before, { begun }) => before + begun.length, 0);
  for (let quiet = 0, last = sum(); quiet < 8; quiet++) {
    await sleep(10);
    await Promise.all(processes.map((process) => process.stored())); // a busy disk is not idleness
    if (sum() !== last) quiet = 0;
    last = sum();
  }
}

/** Makes a process look for work once. */
export async function lookForWork(stage: Shared, process: Process): Promise<void> {
  stage.nowMs++;
  process.wake();
  await until(() => process.distributor.quietMs() === 0);
}

/** Sets the clock back, and makes a process follow it. */
export async function setBack(stage: Shared, { distributor }: Process, ms: number): Promise<void> {
  await distributor.followClock(-ms, async () => {
    await createShift(stage.database, stage.nowMs, -ms)();
    stage.nowMs -= ms;
    stage.setBackMs += ms;
    stage.isClockWrong = false;
  });
}
