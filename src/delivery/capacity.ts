import type { Health } from "../store/deliveries.ts";

/** How many items may be in flight at once: in all, and of one subscription. */
export type QueueLimits = Readonly<Record<"total" | "perSubscription", number>>;

/** A limit that a queue has or that several share, and what of theirs counts against it. */
interface Group {
  /** How many may be in flight. */
  readonly limit: number;
  /** How many may be held: in flight, waiting, or about to be claimed. */
  readonly held: number;
  /** Of this group it may have more than its limit: `SHARE` times as many as it leaves there. */
  readonly shareOf?: Group;
  inFlight: number;
  /** Waiting or about to be claimed. */
  waiting: number;
}

/** Those that a queue counts in: its own first. */
export type QueueGroups = readonly [own: Group, ...shared: Group[]];

type Groups = Readonly<Record<Health, readonly Group[]>>;

/**
 * How many items are held for each that may be in flight, that one included, so that one claim
 * serves several sends. More of the healthy, since of a subscriber that hangs each takes as long as
 * an attempt may: the leases of what waits must not end before.
 */
const HELD_FOR_EACH = { failing: 1, unknown: 2, slow: 2, healthy: 4 } as const;

/**
 * So that one principal alone has three quarters, two have fifteen sixteenths, and something is
 * left to a third, as for the queues of a switch (Choudhury and Hahne, "Dynamic queue length
 * thresholds for shared-memory packet switches", 1998).
 */
const SHARE = 3;

/**
 * Makes the limits of one process. The worse the health of queues, the fewer slots they have
 * together, so that there are always some for the healthier, however many the others are:
 * - one that fails has one slot; all that fail, and all that are slow, have at most half;
 * - with the unknown they leave one subscription's slots (somewhat less than half, where those are
 *   more) to the healthy, and without the unknown as many again;
 * - one principal's have the slots of one, or three times what they leave to other principals;
 *   those of them that fail or are slow a quarter of all.
 */
export function createCapacity({ total, perSubscription }: QueueLimits) {
  const half = partOf(total, 1 / 2);
  const impairedLimit = Math.max(half, total - 2 * perSubscription);
  // One more than the impaired have at least, or they would keep the unknown out.
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
    /** How many more of all queues of a health may be held. */
    capacityFor: (health: Health) => capacityOf(shared[health]),
    /** The principals of whose queues of a health no more may be held. */
    fullPrincipals: (health: Health) =>
      [...principals].filter(([, { groups }]) => capacityOf(groups[health]) === 0)
        .map(([principal]) => principal),
    /** A queue of the principal has been opened. */
    join(principal: string): void {
      principals.getOrInsertComputed(principal, openPrincipal).queues++;
    },
    /** A queue of the principal has been closed, with nothing left in it. */
    leave(principal: string): void {
      const left = principals.get(principal);
      if (left && --left.queues === 0) principals.delete(principal);
    },
  };
}

/** How many more may be held of what counts in all of these groups; 0 where they hold too many. */
export function capacityOf(groups: readonly Group[]): number {
  return groups.reduce((least, group) => Math.max(0, Math.min(least, unusedOf(group))), Infinity);
}

/** How many more a group may hold; less than 0 where it holds too many. */
export function unusedOf({ held, inFlight, waiting, shareOf }: Group): number {
  const used = inFlight + waiting;
  if (!shareOf) return held - used;
  return Math.max(held - used, Math.floor((SHARE * unusedOf(shareOf) - used) / (SHARE + 1)));
}

/** Whether one more of a group may be in flight. */
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
