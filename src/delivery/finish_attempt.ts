import { afterAttempt, type ResendPolicy } from "../event/delivery.ts";
import { type AttemptRecord, recordFailure } from "../store/deliveries.ts";
import type { Sql } from "../database/sql.ts";
import { announceFailedDelivery } from "../store/events.ts";
import { disableAfterFailure } from "../store/subscription_end.ts";

/** The rules for what follows. */
export interface AfterAttemptRules {
  readonly policy: ResendPolicy;
  /** A subscription whose attempts have all failed for so long is disabled; 0 = never. */
  readonly disableAfterMs: number;
  readonly random: () => number;
}

/**
 * All that follows from an attempt that failed, as one batch: its record, and what comes of it.
 * None of it happens where another process has taken the delivery over meanwhile.
 */
export function finishFailure(
  record: AttemptRecord,
  claim: string,
  { policy, disableAfterMs, random }: AfterAttemptRules,
  nowMs: number,
): Sql[] {
  const next = afterAttempt(record.attempt, record.outcome, policy, nowMs, random());
  const recording = recordFailure({ ...record, next }, claim, nowMs);
  if (next.status !== "failed") return recording;
  const held = { delivery: record.delivery, claim, subscription: record.subscription };
  const disabling = disableAfterFailure(held, {
    goneEndpoint: next.gone ? record.endpoint : undefined,
    failingSinceMs: disableAfterMs > 0 ? nowMs - disableAfterMs : undefined,
  }, nowMs);
  return [
    announceFailedDelivery(held, nowMs),
    ...disabling.before,
    ...recording,
    ...disabling.after,
  ];
}
