import { afterAttempt, type ResendPolicy } from "../event/delivery.ts";
import type { Statement } from "../store/database.ts";
import { recordAttempt, type SendableDelivery } from "../store/deliveries.ts";
import { announceFailedDelivery } from "../store/own_events.ts";
import { disableAfterFailure } from "../store/subscription_end.ts";
import type { CallbackResult } from "./callback.ts";

/** An attempt that has ended. */
export interface FinishedAttempt {
  readonly delivery: SendableDelivery;
  /** The name of the process that made it. */
  readonly claim: string;
  readonly startedAtMs: number;
  readonly result: CallbackResult;
}

/** The rules for what follows. */
export interface AfterAttemptRules {
  readonly policy: ResendPolicy;
  /** A subscription whose attempts have all failed for so long is disabled; 0 = never. */
  readonly disableAfterMs: number;
  readonly random: () => number;
}

/**
 * All that follows from one attempt, as one batch: its record, and what a failure brings about.
 * None of it happens where another process has taken the delivery over meanwhile.
 */
export function finishAttempt(
  { delivery, claim, startedAtMs, result: { outcome, snippet } }: FinishedAttempt,
  { policy, disableAfterMs, random }: AfterAttemptRules,
  nowMs: number,
): Statement[] {
  const attempt = delivery.attempt + 1;
  const next = afterAttempt(attempt, outcome, policy, nowMs, random());
  const record = recordAttempt({
    delivery: delivery.id,
    subscription: delivery.subscription,
    claim,
    endpoint: delivery.endpoint,
    attempt,
    startedAtMs,
    durationMs: nowMs - startedAtMs,
    outcome,
    snippet,
    next,
  }, nowMs);
  if (next.status !== "failed") return record;
  const held = { delivery: delivery.id, claim, subscription: delivery.subscription };
  const disabling = disableAfterFailure(held, {
    goneEndpoint: next.gone ? delivery.endpoint : undefined,
    failingSinceMs: disableAfterMs > 0 ? nowMs - disableAfterMs : undefined,
  }, nowMs);
  return [
    announceFailedDelivery(held, nowMs),
    ...disabling.before,
    ...record,
    ...disabling.after,
  ];
}
