import type { ClaimRequest, DueLane } from "../store/deliveries.ts";
import type { Lanes } from "./lanes.ts";

/** A lane with how many deliveries to claim for it. */
export type LaneRequest = DueLane & ClaimRequest;

/**
 * Shares out what may be claimed now: no standing keeps another out, however much of it is due, and
 * no lane gets more than it has room for.
 *
 * @param kinds the lanes that are due, those of each standing in the order of their turns
 */
export function shareOut(
  kinds: readonly (readonly DueLane[])[],
  lanes: Pick<Lanes<unknown>, "room" | "roomFor">,
): LaneRequest[] {
  const due = inTurns(kinds);
  let left = lanes.roomFor("proven"); // of them there may be as many as of all together
  let unprovenLeft = lanes.roomFor("new");
  const share = Math.max(1, Math.floor(left / Math.max(1, due.length)));
  return due.map(({ subscription, standing }) => {
    const isProven = standing === "proven";
    const allowed = isProven ? left : Math.min(left, unprovenLeft);
    const count = Math.min(share, lanes.room(subscription, standing), allowed);
    left -= count;
    if (!isProven) unprovenLeft -= count;
    return { subscription, standing, count };
  }).filter(({ count }) => count > 0);
}

/** The first of each list, the second of each, and so on. */
function inTurns<Item>(lists: readonly (readonly Item[])[]): Item[] {
  const longest = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list.slice(index, index + 1)))
    .flat();
}
