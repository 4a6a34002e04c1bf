import type { Queues } from "../../src/delivery/queues.ts";
import type { ClaimedDelivery, DueQueue, Health } from "../../src/store/deliveries.ts";

/** A subscription with due work, whose principal has no other. */
export function due(
  subscription: number,
  health: Health = "healthy",
  principal = `u_${subscription}`,
): DueQueue {
  return { subscription, health, principal, meanMs: health === "slow" ? 9_000 : 0 };
}

/** `count` items of a subscription, numbered from 0 on: `1/0`, `1/1` … */
export function itemsOf(subscription: number, count: number): ClaimedDelivery[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${subscription}/${index}`,
    subscription,
  }));
}

/** Puts as many of `count` items into a queue as it has capacity for, as a claim does. */
export function putInto(queues: Queues, queue: DueQueue, count: number): void {
  const reserved = queues.reserve(queue, count);
  if (reserved > 0) queues.add(queue.subscription, reserved, itemsOf(queue.subscription, reserved));
}

export function put(queues: Queues, subscription: number, count: number, health?: Health): void {
  putInto(queues, due(subscription, health), count);
}

/** Calls next() until nothing more may be sent. */
export function sendAll(queues: Queues): ClaimedDelivery[] {
  const sent: ClaimedDelivery[] = [];
  for (let next = queues.next(); next; next = queues.next()) sent.push(next);
  return sent;
}

/** Ends an attempt and its record; `isSuccess` is undefined if the attempt was not made. */
export function end(
  queues: Queues,
  subscription: number,
  isSuccess: boolean | undefined,
  durationMs = 5,
) {
  if (isSuccess === undefined) queues.putBack(subscription);
  const requeued = isSuccess === undefined
    ? []
    : queues.finish(subscription, isSuccess, durationMs).requeued;
  queues.release(subscription);
  return requeued.map(({ id }) => id);
}
