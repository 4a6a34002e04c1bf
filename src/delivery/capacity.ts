import type { Health } from "../store/deliveries.ts";

/** What may be in flight at once. */
export interface QueueLimits {
  /** In all. */
  readonly total: number;
  /** Of one subscription. */
  readonly perSubscription: number;
}

/** A limit that lanes share, and what of theirs counts against it. */
export interface Group {
  /** How many may be in flight. */
  readonly limit: number;
  /** How many may be held: in flight, waiting, or about to be claimed. */
  readonly held: number;
  inFlight: number;
  /** Waiting or about to be claimed. */
  waiting: number;
}

/** Those of one principal's lanes, of which so many are open. */
interface PrincipalGroups {
  readonly groups: Readonly<Record<Health, readonly Group[]>>;
  queues: number;
}

/** The limits of one process; others have their own. */
export interface Capacity {
  /** How many of one lane may be in flight. */
  capOf(health: Health): number;
  /** How many of one lane should be held, so that it never runs dry. */
  heldOf(health: Health): number;
  /** The groups that a lane counts in. */
  groupsOf(health: Health, principal: string): readonly Group[];
  /** How many more of all lanes of a health may be held. */
  roomFor(health: Health): number;
  /** The principals of whose lanes of a health no more may be held. */
  fullPrincipals(health: Health): string[];
  /** A lane of the principal has been opened. */
  join(principal: string): void;
  /** A lane of the principal has been closed, with nothing left in it. */
  leave(principal: string): void;
  /** All that there is. */
  readonly all: Group;
}

/**
 * How many turns are held, the one in flight included, so that one claim serves for several. More
 * of those that are well, since of what turns out to hang a turn takes as long as an attempt may:
 * the leases of what waits must not end before.
 */
const TURNS: Readonly<Record<Health, number>> = { failing: 1, unknown: 2, slow: 2, healthy: 4 };

/**
 * Makes the limits. The worse lanes fare, the fewer slots are theirs together, so that there are
 * always some for those that fare better, however many the others are:
 * - one that fails has one slot; all that fail, and all that are slow, have at most half;
 * - with those of which nothing is known yet they leave one subscription's slots (somewhat less
 *   than half, where those are more) to those that are well, and without them as many again;
 * - one principal's have three quarters of what all have, those that fail or are slow a quarter.
 */
export function createCapacity({ total, perSubscription }: QueueLimits): Capacity {
  const half = partOf(total, 1 / 2);
  const hinderedLimit = Math.max(half, total - 2 * perSubscription);
  // One more than the hindered have at least, or they would keep the new ones out.
  const unprovenLimit = Math.min(total, Math.max(hinderedLimit + 1, total - perSubscription));
  const all = openGroup(total, TURNS.healthy);
  const unproven = openGroup(unprovenLimit, TURNS.unknown);
  const hindered = openGroup(hinderedLimit, TURNS.slow);
  const shared: PrincipalGroups["groups"] = {
    healthy: [all],
    unknown: [unproven, all],
    slow: [openGroup(half, TURNS.slow), hindered, unproven, all],
    failing: [openGroup(half, TURNS.unknown), hindered, unproven, all],
  };
  const principals = new Map<string, PrincipalGroups>();

  function openPrincipal(): PrincipalGroups {
    const own = openGroup(partOf(total, 3 / 4), TURNS.healthy);
    const ownNew = openGroup(partOf(unprovenLimit, 3 / 4), TURNS.unknown);
    const ownHindered = [openGroup(partOf(total, 1 / 4), TURNS.slow), ownNew, own];
    const groups = { healthy: [own], unknown: [ownNew, own], slow: ownHindered, failing: ownHindered };
    return { groups, queues: 0 };
  }

  const capOf = (health: Health) =>
    health === "failing" ? 1 : Math.min(perSubscription, total);

  return {
    all,
    capOf,
    heldOf: (health) => TURNS[health] * capOf(health),
    groupsOf: (health, principal) => [
      ...shared[health],
      ...principals.get(principal)?.groups[health] ?? [],
    ],
    roomFor: (health) => roomIn(shared[health]),
    fullPrincipals: (health) =>
      [...principals].filter(([, { groups }]) => roomIn(groups[health]) === 0)
        .map(([principal]) => principal),
    join(principal) {
      const joined = principals.getOrInsertComputed(principal, openPrincipal);
      joined.queues++;
    },
    leave(principal) {
      const left = principals.get(principal);
      if (left && --left.queues === 0) principals.delete(principal);
    },
  };
}

/** How many more may be held of what counts in all of these groups. */
export function roomIn(groups: readonly Group[]): number {
  return groups.reduce((room, { held, inFlight, waiting }) =>
    Math.max(0, Math.min(room, held - inFlight - waiting)), Infinity);
}

function openGroup(limit: number, turns: number): Group {
  return { limit, held: turns * limit, inFlight: 0, waiting: 0 };
}

function partOf(slots: number, part: number): number {
  return Math.max(1, Math.floor(slots * part));
}
