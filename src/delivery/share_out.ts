import type { ClaimRequest, DueQueue } from "../store/deliveries.ts";
import type { Queues } from "./queues.ts";

/**
 * Shares out what may be claimed now: no health keeps another out, however much of it is due, and
 * no queue gets more than it has capacity for. What is requested is reserved in the queues.
 *
 * @param kinds the queues that are due, those of each health in the order in which they are due
 */
export function shareOut(
  kinds: readonly (readonly DueQueue[])[],
  queues: Pick<Queues<unknown>, "reserve" | "capacityFor">,
): ClaimRequest[] {
  // All of one health may have the same.
  const shares = kinds.map(([first, ...others]) =>
    first && Math.max(1, Math.floor(queues.capacityFor(first.health) / (1 + others.length)))
  );
  const longest = Math.max(...kinds.map(({ length }) => length));
  const requests: ClaimRequest[] = [];
  // The first of each health, the second of each, and so on.
  for (let place = 0; place < longest; place++) {
    for (const [kind, due] of kinds.entries()) {
      const queue = due[place];
      if (queue === undefined) continue;
      const count = queues.reserve(queue, shares[kind] ?? 0);
      if (count > 0) requests.push({ subscription: queue.subscription, count });
    }
  }
  return requests;
}
