import { messageOf } from "../base/message_of.ts";
import { createRepeatCheck } from "../base/repeated.ts";
import { isSuccess } from "../event/delivery.ts";
import { type ClaimedDelivery, claimsOf, type SendableDelivery } from "../store/deliveries.ts";
import type { DistributorOptions } from "./distributor.ts";
import type { Queues } from "./queues.ts";
import type { Recorder } from "./recorder.ts";
import type { ShortageWatch } from "./shortage_watch.ts";

const BATCH_SIZE = 8;
/** Time for a process that has the key to send it; this one may be started again with the key. */
const UNREADABLE_PAUSE_MS = 60_000;

/** Makes the sender of one distributor: it sends items of the queues, and records the outcomes. */
export function createSender(
  options: DistributorOptions,
  { queues, recorder, shortages, maySend, gather }: {
    readonly queues: Queues;
    readonly recorder: Recorder;
    readonly shortages: ShortageWatch;
    readonly maySend: () => boolean;
    /** Called when queues may have capacity for new claims. */
    readonly gather: () => void;
  },
) {
  const { database, settings, claim, callbacks, log, now, elapsedMs } = options;
  const claims = claimsOf(database, claim);
  const batches = new Set<Promise<void>>();
  const isNew = createRepeatCheck(elapsedMs);
  let isScheduled = false;
  let isAborted = false;

  /** Sends what the queues allow, in small batches, yielding to the event loop before each. */
  function send(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      const claimed = nextBatch();
      if (claimed.length === 0) return;
      const batch = sendBatch(claimed).finally(() => batches.delete(batch));
      batches.add(batch);
      send();
    });
  }

  function nextBatch(): readonly ClaimedDelivery[] {
    const batch: ClaimedDelivery[] = [];
    if (!maySend() || shortages.pauseMs() > 0) return batch;
    for (let next = queues.next(); next; next = queues.next()) {
      batch.push(next);
      if (batch.length === BATCH_SIZE) break;
    }
    return batch;
  }

  async function sendBatch(claimed: readonly ClaimedDelivery[]): Promise<void> {
    const ids = claimed.map(({ id }) => id);
    // Read again: a subscription may have been paused, ended or changed while its item waited.
    const found = await claims.listSendable(ids, now() + settings.callbackTimeoutMs)
      .catch((error: unknown): SendableDelivery[] => {
        log.warn("deliveries cannot be read", { deliveries: ids, error });
        return [];
      });
    const left = claimed.filter(({ id }) => !found.some((each) => each.id === id));
    await Promise.all([...found.map(attempt), requeue(left)]);
  }

  async function attempt(delivery: SendableDelivery): Promise<void> {
    const startedAtMs = now();
    const startedMs = elapsedMs();
    const result = await call(delivery, startedAtMs).catch((error: unknown) => {
      const fields = { delivery: delivery.id, error };
      if (isNew(messageOf(error))) log.error("a delivery cannot be sent", fields);
      return { pauseMs: UNREADABLE_PAUSE_MS };
    });
    if ("pauseMs" in result) return requeue([delivery], result.pauseMs);
    if ("shortage" in result) {
      shortages.note(result.shortage);
      return requeue([delivery], shortages.pauseMs());
    }
    const succeeded = isSuccess(result.outcome);
    // An attempt that this process aborted is not the subscriber's failure.
    if (isAborted && !succeeded) return requeue([delivery]);
    const durationMs = Math.round(elapsedMs() - startedMs);
    const { requeued, meanMs } = queues.finish(delivery.subscription, succeeded, durationMs);
    send();
    await recorder.record({ ...delivery, startedAtMs, durationMs, meanMs, ...result }, requeued);
    const isLast = delivery.attempt > settings.resendDelaysMs.length;
    options.observe(delivery, succeeded, isLast, durationMs);
    release(delivery);
  }

  /** Sends one, signed with old secrets too after a rotation. Rejects if decryption fails. */
  async function call(delivery: SendableDelivery, nowMs: number) {
    const { id, event, json, endpoint, attempt, secret, oldSecret } = delivery;
    const isOldValid = (delivery.oldSecretUntilMs ?? 0) > nowMs;
    const secrets = [secret, ...isOldValid ? oldSecret?.split(" ") ?? [] : []]
      .map((encrypted) => options.seal.decrypt(encrypted, delivery.subscriptionId));
    return callbacks.send({ id, event, json, endpoint, attempt, secrets });
  }

  /** Releases the claims of deliveries that were not sent; they are due again after `delayMs`. */
  async function requeue(deliveries: readonly ClaimedDelivery[], delayMs = 0): Promise<void> {
    if (deliveries.length === 0) return;
    for (const { subscription } of deliveries) queues.putBack(subscription);
    send();
    await recorder.release(deliveries, delayMs);
    deliveries.forEach(release);
  }

  function release({ subscription }: ClaimedDelivery): void {
    queues.release(subscription);
    gather();
  }

  return {
    send,
    /** Releases unsent claims, awaits attempts for at most `graceMs`, then aborts the rest. */
    async stop(graceMs: number): Promise<void> {
      using _grace = setTimeout(() => {
        isAborted = true;
        void callbacks.abort();
      }, graceMs);
      await recorder.release(queues.drain());
      await Promise.all(batches);
    },
  };
}
