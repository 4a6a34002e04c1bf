import type { Log } from "../base/log.ts";
import type { Database } from "../database/database.ts";
import type { Sql } from "../database/sql.ts";
import { isSuccess } from "../event/delivery.ts";
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
  readonly log: Log;
  /** Milliseconds since 1970, shifted only together with what is stored (see `followClock`). */
  readonly now: () => number;
}

/** Stores the outcomes of claimed deliveries; never throws. */
export interface Recorder {
  /**
   * Records an attempt, together with those that end at about the same time, and releases what was
   * claimed for the same queue and is not to be sent now.
   */
  record(attempt: AttemptRecord, requeued: readonly ClaimedDelivery[]): Promise<void>;
  /** Releases claims of what was not sent; it is due again after so long. */
  release(deliveries: readonly ClaimedDelivery[], delayMs?: number): Promise<void>;
}

/**
 * Makes the recorder of one distributor.
 *
 * @param gather resolves when what has ended since the call is to be stored
 * @param isStopping whether what cannot be stored now is left to other processes
 */
export function createRecorder(
  options: RecorderOptions,
  gather: () => Promise<void>,
  isStopping: () => boolean,
): Recorder {
  const { database, claim, log, now } = options;
  let ended: AttemptRecord[] = [];
  let requeued: ClaimedDelivery[] = [];
  let recording: Promise<void> | undefined;

  async function recordEnded(): Promise<void> {
    await gather();
    const [attempts, unsent] = [ended, requeued];
    [ended, requeued, recording] = [[], [], undefined];
    const delivered = attempts.filter(({ outcome }) => isSuccess(outcome));
    const failed = attempts.filter(({ outcome }) => !isSuccess(outcome));
    await Promise.all([
      storeDelivered(delivered),
      ...failed.map((each) => store(finishFailure(each, claim, options, now()))),
      release(unsent),
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

  async function release(deliveries: readonly ClaimedDelivery[], delayMs = 0): Promise<void> {
    if (deliveries.length === 0) return;
    const nowMs = now();
    await store(releaseDeliveries(deliveries, claim, nowMs, nowMs + delayMs));
  }

  /** Tries until it is stored or the process ends: then another takes the delivery over. */
  async function store(statements: readonly Sql[]): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5000)) {
      try {
        await database.write(statements);
        return;
      } catch (error) {
        log.warn("an attempt cannot be recorded yet", { error });
        if (isStopping()) return;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  return {
    release,
    record(attempt, unsent) {
      ended.push(attempt);
      requeued.push(...unsent);
      return recording ??= recordEnded();
    },
  };
}
