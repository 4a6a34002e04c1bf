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
 * @param gather resolves a few milliseconds later, so that outcomes are stored together
 * @param isStopping whether an outcome that cannot be stored now is left to other processes
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
  /** To be stored: attempts that have ended, and claims of unsent deliveries. */
  const ended: AttemptRecord[] = [];
  const unsent: ClaimedDelivery[] = [];
  let recording: Promise<void> | undefined;
  /** The deliveries that wait in a queue, are in flight, or whose attempt is not stored yet. */
  const held = new Set<string>();
  /** Resolves after the writes under way; outcomes that come meanwhile share the next write. */
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

  /** Stores all in one write, which costs little more than one; if that fails, one by one. */
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
   * Returns the statements for a failed attempt and all its consequences, to be run as one batch.
   * They change nothing if another process has taken the delivery over meanwhile.
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

  /** Releases the claims of unsent deliveries, which are due again after `delayMs`. */
  async function release(deliveries: readonly ClaimedDelivery[], delayMs = 0): Promise<void> {
    if (deliveries.length === 0) return;
    // Before the write, since the deliveries may be claimed again right after it.
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

  /** Retries until stored or the process ends; another process then takes the delivery over. */
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
    /** Marks a delivery as claimed, until `record` or `release` is called for it. */
    hold: (delivery: string) => void held.add(delivery),
    /** Whether a delivery is marked; it must not be sent a second time meanwhile. */
    isHeld: (delivery: string) => held.has(delivery),
    /**
     * Records an attempt, together with others that end at about the same time. Releases the
     * requeued deliveries.
     */
    record(attempt: AttemptRecord, requeued: readonly ClaimedDelivery[]): Promise<void> {
      ended.push(attempt);
      unsent.push(...requeued);
      return recording ??= recordEnded();
    },
  };
}
