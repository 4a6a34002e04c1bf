import type { Attempt, Delivery } from "../store/delivery_lists.ts";

/** A delivery as it is shown to whom the subscription belongs: `event` is the event's name. */
export function toDeliveryRecord(delivery: Delivery): Record<string, unknown> {
  const { id, subscription, eventName, status, attempt, dueAtMs, finishedAtMs } = delivery;
  return {
    id,
    subscription,
    event: eventName,
    status,
    attempt,
    created_at: toTime(delivery.createdAtMs),
    ...(dueAtMs !== null && { next_attempt_at: toTime(dueAtMs) }),
    ...(finishedAtMs !== null && { finished_at: toTime(finishedAtMs) }),
  };
}

/** An attempt as it is shown to whom the subscription belongs: nothing of what was answered. */
export function toAttemptRecord(
  { atMs, attempt, outcome, durationMs }: Attempt,
): Record<string, unknown> {
  return {
    time: toTime(atMs),
    attempt,
    ...outcome.kind === "response" ? { status: outcome.status } : { error: outcome.error },
    duration_ms: durationMs,
  };
}

function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
