import type { ClaimRequest, DueQueue } from "../store/deliveries.ts";
import type { Queues } from "./queues.ts";

/**
 * Shares out what may be claimed now: no health keeps another out, however much of it is due, and
 * no lane gets more than it has room for. The room of what is asked for is reserved.
 *
 * @param kinds the lanes that are due, those of each health in the order of their turns
 */
export function shareOut(
  kinds: readonly (readonly DueQueue[])[],
  queues: Pick<Queues<unknown>, "reserve" | "roomFor">,
): ClaimRequest[] {
  const shares = kinds.map((due) => ({ due, share: shareOf(due, queues) }));
  const longest = Math.max(...kinds.map(({ length }) => length));
  const requests: ClaimRequest[] = [];
  // The first of each health, the second of each, and so on.
  for (let turn = 0; turn < longest; turn++) {
    for (const { due, share } of shares) {
      const queue = due[turn];
      if (queue === undefined) continue;
      const count = queues.reserve(queue, share);
      if (count > 0) requests.push({ subscription: queue.subscription, count });
    }
  }
  return requests;
}

/** What each lane of a health may have, so that all get the same. */
function shareOf(due: readonly DueQueue[], { roomFor }: Pick<Queues<unknown>, "roomFor">): number {
  const [first] = due;
  return first ? Math.max(1, Math.floor(roomFor(first.health) / due.length)) : 0;
}
