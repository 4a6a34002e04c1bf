import { messageOf } from "../base/message_of.ts";
import { createRepeatCheck } from "../base/repeated.ts";
import type { Sql } from "../database/sql.ts";
import { afterAttempt, isSuccess } from "../event/delivery.ts";
import { type AttemptRecord, type ClaimedDelivery, claimsOf } from "../store/deliveries.ts";
import { announceFailedDelivery } from "../store/events.ts";
import { disableAfterFailure } from "../store/subscription_end.ts";
import type { DistributorOptions } from "./distributor.ts";
import type { WorkerSettings } from "./worker_messages.ts";

type RecorderOptions =
  & Pick<DistributorOptions, "database" | "claim" | "log" | "now" | "elapsedMs" | "random">
  & { readonly settings: Pick<WorkerSettings, "resendDelaysMs" | "disableAfterMs"> };

/** Stores the outcomes of claimed deliveries; never rejects. */
export type Recorder = ReturnType<typeof createRecorder>;

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
) {
  const { database, claim, log, now, elapsedMs, random } = options;
  const { resendDelaysMs: delaysMs, disableAfterMs } = options.settings;
  const claims = claimsOf(database, claim);
  const isNew = createRepeatCheck(elapsedMs);
  /** What is to be stored: attempts, and claims of what is not sent. */
  const ended: AttemptRecord[] = [];
  const unsent: ClaimedDelivery[] = [];
  let recording: Promise<void> | undefined;
  /** The deliveries that are in a queue or in flight, or whose attempts are not stored. */
  const held = new Set<string>();
  /** Resolves when what is being stored has been tried: what ends meanwhile is stored together. */
  let tried: Promise<unknown> = Promise.resolve();

  async function recordEnded(): Promise<void> {
    await Promise.all([gather(), tried]);
    const [attempts, left] = [ended.splice(0), unsent.splice(0)];
    recording = undefined;
    const delivered = attempts.filter(({ outcome }) => isSuccess(outcome));
    const failed = attempts.filter(({ outcome }) => !isSuccess(outcome));
    await Promise.all([
      storeDelivered(delivered),
      ...failed.map((each) => storeAttempt(each, finishFailure(each))),
      release(left),
    ]);
  }

  /** Together, which costs little more than one; should that fail, each by itself. */
  async function storeDelivered(attempts: readonly AttemptRecord[]): Promise<void> {
    if (attempts.length === 0) return;
    try {
      await write(claims.recordDelivered(attempts, now()));
      for (const { id } of attempts) held.delete(id);
    } catch {
      await Promise.all(attempts.map((each) =>
        storeAttempt(each, claims.recordDelivered([each], now()))
      ));
    }
  }

  /**
   * All that follows from an attempt that failed, as one batch: its record, and what comes of it.
   * None of it happens where another process has taken the delivery over meanwhile.
   */
  function finishFailure(record: AttemptRecord): readonly Sql[] {
    const nowMs = now();
    const { subscription, endpoint, attempt, outcome } = record;
    const next = afterAttempt(attempt, outcome, delaysMs, nowMs, random());
    const recorded = claims.recordFailure({ ...record, next }, nowMs);
    if (next.status !== "failed") return recorded;
    const isClaimed = claims.isClaimed(record);
    const rule = next.gone ? { goneEndpoint: endpoint }
      : { failingSinceMs: disableAfterMs > 0 ? nowMs - disableAfterMs : 0 };
    const { before, after } = disableAfterFailure(subscription, isClaimed, rule, nowMs);
    return [announceFailedDelivery(isClaimed, nowMs), ...before, ...recorded, ...after];
  }

  /** Releases claims of what was not sent; it is due again after so many milliseconds. */
  async function release(deliveries: readonly ClaimedDelivery[], delayMs = 0): Promise<void> {
    if (deliveries.length === 0) return;
    // Before it is stored: right after that they may be claimed again.
    for (const { id } of deliveries) held.delete(id);
    const nowMs = now();
    await store(claims.release(deliveries, nowMs, nowMs + delayMs));
  }

  async function storeAttempt(record: AttemptRecord, statements: readonly Sql[]): Promise<void> {
    await store(statements);
    held.delete(record.id);
  }

  function write(statements: readonly Sql[]): Promise<unknown> {
    const written = database.write(statements);
    tried = Promise.allSettled([tried, written]).then(() => {}); // keeps no results
    return written;
  }

  /** Tries until it is stored or the process ends: then another takes the delivery over. */
  async function store(statements: readonly Sql[]): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5000)) {
      try {
        await write(statements);
        return;
      } catch (error) {
        if (isNew(messageOf(error))) log.warn("an attempt cannot be recorded yet", { error });
        if (isStopping()) return;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  return {
    release,
    /** It has been claimed: `record` or `release` is called for it in the end. */
    hold: (delivery: string) => void held.add(delivery),
    /** Whether that is still to come: it is not to be sent beside itself. */
    isHeld: (delivery: string) => held.has(delivery),
    /**
     * Records an attempt, together with those that end at about the same time, and releases what
     * was claimed for the same queue and is not to be sent now.
     */
    record(attempt: AttemptRecord, requeued: readonly ClaimedDelivery[]): Promise<void> {
      ended.push(attempt);
      unsent.push(...requeued);
      return recording ??= recordEnded();
    },
  };
}
