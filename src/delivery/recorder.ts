import type { Log } from "../base/log.ts";
import { isSuccess } from "../event/delivery.ts";
import type { Database } from "../database/database.ts";
import type { Sql } from "../database/sql.ts";
import {
  type AttemptRecord,
  type ClaimedDelivery,
  recordDelivered,
  releaseDeliveries,
} from "../store/deliveries.ts";
import { type AfterAttemptRules, finishFailure } from "./finish_attempt.ts";

/** What the recorder works with. */
export interface RecorderOptions extends AfterAttemptRules {
  readonly database: Database;
  /** The name of this process, which its claims carry. */
  readonly claim: string;
  /** Ends when what has come together since is to be stored. */
  readonly gather: () => Promise<void>;
  /** Whether what cannot be stored now is left to other processes. */
  readonly isStopping: () => boolean;
  readonly log: Log;
  readonly now: () => number;
}

/** Stores what became of claimed deliveries; never throws. */
export interface Recorder {
  /** Records an attempt, together with those that end at about the same time. */
  record(attempt: AttemptRecord): Promise<void>;
  /** Gives deliveries back unsent; they are due again after so long. */
  release(deliveries: readonly ClaimedDelivery[], delayMs?: number): Promise<void>;
}

/** Makes the recorder of one distributor. */
export function createRecorder(options: RecorderOptions): Recorder {
  const { database, claim, log, now } = options;
  let ended: AttemptRecord[] = [];
  let recording: Promise<void> | undefined;

  async function recordEnded(): Promise<void> {
    await options.gather();
    const attempts = ended;
    ended = [];
    recording = undefined;
    const delivered = attempts.filter(({ outcome }) => isSuccess(outcome));
    const failed = attempts.filter(({ outcome }) => !isSuccess(outcome));
    await Promise.all([
      storeDelivered(delivered),
      ...failed.map((each) => store(finishFailure(each, claim, options, now()))),
    ]);
  }

  /** Together, which costs little more than one; should that fail, each by itself. */
  async function storeDelivered(attempts: readonly AttemptRecord[]): Promise<void> {
    if (attempts.length === 0) return;
    try {
      await database.write(recordDelivered(attempts, claim, now()));
    } catch {
      await Promise.all(attempts.map((each) => store(recordDelivered([each], claim, now()))));
    }
  }

  /** Tries until it is stored or the process ends: then another takes the delivery over. */
  async function store(statements: readonly Sql[]): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5000)) {
      try {
        await database.write(statements);
        return;
      } catch (error) {
        log.warn("an attempt cannot be recorded yet", { error });
        if (options.isStopping()) return;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  return {
    record(attempt) {
      ended.push(attempt);
      return recording ??= recordEnded();
    },
    release(deliveries, delayMs = 0) {
      const nowMs = now();
      return store(releaseDeliveries(deliveries, claim, nowMs, nowMs + delayMs));
    },
  };
}
