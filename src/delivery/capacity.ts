import type { Health } from "../store/deliveries.ts";

/** How many items may be in flight at once: in total and per subscription. */
export type QueueLimits = Readonly<Record<"total" | "perSubscription", number>>;

/** A limit of one queue, or one that several queues share, and how much of it is used. */
interface Group {
  /** How many may be in flight. */
  readonly limit: number;
  /** How many items may be held: in flight, waiting, or about to be claimed. */
  readonly held: number;
  /** May exceed its own limit up to `SHARE` times the slots that are then left in this group. */
  readonly shareOf?: Group;
  inFlight: number;
  /** Waiting or about to be claimed. */
  waiting: number;
}

/** The groups that a queue counts in; its own is the first. */
export type QueueGroups = readonly [own: Group, ...shared: Group[]];

type Groups = Readonly<Record<Health, readonly Group[]>>;

/**
 * How many items are held for each slot, the one in flight included, so that one claim serves
 * several sends. Fewer where subscribers may hang: each attempt then takes its whole timeout, and
 * the leases of the waiting items must not end before their turn.
 */
const HELD_FOR_EACH = { failing: 1, unknown: 2, slow: 2, healthy: 4 } as const;

/**
 * With 3, one principal alone gets three quarters of the slots and two get fifteen sixteenths, so a
 * third principal always finds some free, as in a packet switch (Choudhury and Hahne, "Dynamic
 * queue length thresholds for shared-memory packet switches", 1998).
 */
const SHARE = 3;

/**
 * Makes the limits of one process. The worse the health of queues, the fewer slots they share, so
 * that healthier queues always find some, however many unhealthy ones there are:
 * - A failing queue has one slot. All failing queues, and all slow ones, have at most half.
 * - Failing, slow and unknown queues together leave the slots of one subscription to the healthy
 *   (or a little less than half). Failing and slow queues together leave twice as many.
 * - The queues of one principal have the slots of one subscription, or three times what they leave
 *   to other principals. Its failing and slow queues have a quarter of all.
 */
export function createCapacity({ total, perSubscription }: QueueLimits) {
  const half = partOf(total, 1 / 2);
  const impairedLimit = Math.max(half, total - 2 * perSubscription);
  // At least one more than the impaired have, or these would keep the unknown out.
  const unprovenLimit = Math.min(total, Math.max(impairedLimit + 1, total - perSubscription));
  const all = openGroup(total, "healthy");
  const unproven = openGroup(unprovenLimit, "unknown");
  const impaired = openGroup(impairedLimit, "slow");
  const shared: Groups = {
    healthy: [all],
    unknown: [unproven, all],
    slow: [openGroup(half, "slow"), impaired, unproven, all],
    failing: [openGroup(half, "unknown"), impaired, unproven, all],
  };
  const principals = new Map<string, { readonly groups: Groups; queues: number }>();

  function openShare(shareOf: Group, holdsAs: Health): Group {
    const least = Math.min(perSubscription, partOf(shareOf.limit, SHARE / (SHARE + 1)));
    return { ...openGroup(least, holdsAs), shareOf };
  }

  function openPrincipal() {
    const own = openShare(all, "healthy");
    const ownUnproven = openShare(unproven, "unknown");
    const worst = [openGroup(partOf(total, 1 / 4), "slow"), ownUnproven, own];
    const groups = { healthy: [own], unknown: [ownUnproven, own], slow: worst, failing: worst };
    return { groups, queues: 0 };
  }

  return {
    all,
    groupsOf: (health: Health, principal: string): QueueGroups => [
      openGroup(health === "failing" ? 1 : Math.min(perSubscription, total), health),
      ...shared[health],
      ...principals.get(principal)?.groups[health] ?? [],
    ],
    /** How many more items of all queues of this health may be held. */
    capacityFor: (health: Health) => capacityOf(shared[health]),
    /** The principals whose queues of this health may hold no more items. */
    fullPrincipals: (health: Health) =>
      [...principals].filter(([, { groups }]) => capacityOf(groups[health]) === 0)
        .map(([principal]) => principal),
    /** To be called when a queue of the principal opens. */
    join(principal: string): void {
      principals.getOrInsertComputed(principal, openPrincipal).queues++;
    },
    /** To be called when a queue of the principal closes, which must be empty. */
    leave(principal: string): void {
      const left = principals.get(principal);
      if (left && --left.queues === 0) principals.delete(principal);
    },
  };
}

/** How many more items may be held that count in all of these groups; never below 0. */
export function capacityOf(groups: readonly Group[]): number {
  return groups.reduce((least, group) => Math.max(0, Math.min(least, unusedOf(group))), Infinity);
}

/** How many more items a group may hold; negative if it holds too many. */
export function unusedOf({ held, inFlight, waiting, shareOf }: Group): number {
  const used = inFlight + waiting;
  if (!shareOf) return held - used;
  return Math.max(held - used, Math.floor((SHARE * unusedOf(shareOf) - used) / (SHARE + 1)));
}

/** Whether one more item of the group may be in flight. */
export function hasSlot({ limit, inFlight, shareOf }: Group): boolean {
  return inFlight < limit ||
    (shareOf !== undefined && inFlight < SHARE * (shareOf.limit - shareOf.inFlight - 1));
}

function openGroup(limit: number, holdsAs: Health): Group {
  return { limit, held: HELD_FOR_EACH[holdsAs] * limit, inFlight: 0, waiting: 0 };
}

function partOf(slots: number, part: number): number {
  return Math.max(1, Math.floor(slots * part));
}
