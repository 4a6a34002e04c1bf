import type { DueLane, Standing } from "../store/deliveries.ts";
import { createCapacity, type Group, type LaneLimits, roomIn } from "./capacity.ts";
import { meanToStore, moveMean, standingAfter } from "./standing.ts";

interface Lane<Item> {
  readonly subscription: number;
  readonly principal: string;
  readonly waiting: Item[];
  inFlight: number;
  /** How many are about to be claimed. */
  reserved: number;
  /** Claims and items taken that are not settled yet. */
  unsettled: number;
  standing: Standing;
  meanMs: number;
  /** Those that it counts in. */
  groups: readonly Group[];
}

/** What an attempt tells of its subscription. */
export interface Fared {
  readonly isSuccess: boolean;
  readonly durationMs: number;
}

/** What follows for a lane. */
export interface Finished<Item> {
  /** What waits in the lane and would not have its turn for long. */
  readonly handedBack: readonly Item[];
  /** The mean duration of its attempts in milliseconds, where it is no longer what is stored. */
  readonly meanMs: number | undefined;
}

/** The work of one process, a lane a subscription: decides what may be claimed and sent now. */
export interface Lanes<Item> {
  /**
   * Opens a subscription's lane, or keeps it open, for a claim of up to `wanted` items, and tells
   * how many it has room for; with 0 it is left as it was. Until settled a lane remembers how it
   * fares.
   */
  reserve(lane: DueLane, wanted: number): number;
  /** Ends a `reserve` of so many, with what has been claimed. */
  add(subscription: number, reserved: number, items: readonly Item[]): void;
  /**
   * The next item that may be sent, from the lane with the fewest in flight, and of several from
   * the one whose turn is longest ago; it is in flight from then on.
   */
  take(): { readonly subscription: number; readonly item: Item } | undefined;
  /** An item is no longer in flight; without `fared` it was not sent after all. */
  finish(subscription: number, fared: Fared | undefined): Finished<Item>;
  /** Ends one `take`, once what came of it is stored. */
  settle(subscription: number): void;
  /** How many more items of lanes of a standing may be held: others need room to wait in too. */
  roomFor(standing: Standing): number;
  /** What needs nothing more now: subscriptions, and all of a standing that these principals have. */
  full(standing: Standing): { readonly subscriptions: number[]; readonly principals: string[] };
  /** Takes back all that waits. */
  drain(): readonly Item[];
  inFlight(): number;
  waiting(): number;
}

/** Makes the lanes of one distributor. */
export function createLanes<Item>(limits: LaneLimits): Lanes<Item> {
  const lanes = new Map<number, Lane<Item>>(); // in the order of their turns
  const capacity = createCapacity(limits);
  const { all, capOf, heldOf } = capacity;

  function open({ subscription, standing, principal, meanMs }: DueLane): Lane<Item> {
    capacity.join(principal);
    const groups = capacity.groupsOf(standing, principal);
    const counts = { waiting: [], inFlight: 0, reserved: 0, unsettled: 0 };
    const lane = { subscription, principal, standing, meanMs, groups, ...counts };
    lanes.set(subscription, lane);
    return lane;
  }

  function closeIfDone(lane: Lane<Item>): void {
    if (lane.unsettled > 0 || lane.waiting.length > 0) return;
    lanes.delete(lane.subscription);
    capacity.leave(lane.principal);
  }

  function setStanding(lane: Lane<Item>, standing: Standing): void {
    if (lane.standing === standing) return;
    const waiting = lane.waiting.length + lane.reserved;
    count(lane, -lane.inFlight, -waiting);
    lane.standing = standing;
    lane.groups = capacity.groupsOf(standing, lane.principal);
    count(lane, lane.inFlight, waiting);
  }

  function maySend({ waiting, inFlight, standing, groups }: Lane<Item>): boolean {
    return waiting.length > 0 && inFlight < capOf(standing) &&
      groups.every((group) => group.inFlight < group.limit);
  }

  function roomOf({ standing, inFlight, waiting, reserved }: Lane<Item>): number {
    return heldOf(standing) - inFlight - waiting.length - reserved;
  }

  function findNext(): Lane<Item> | undefined {
    if (all.inFlight >= all.limit) return undefined;
    let next: Lane<Item> | undefined;
    for (const lane of lanes.values()) {
      if (next && lane.inFlight >= next.inFlight || !maySend(lane)) continue;
      next = lane;
      if (lane.inFlight === 0) break;
    }
    return next;
  }

  function takeBack(lane: Lane<Item>): readonly Item[] {
    const items = lane.waiting.splice(0);
    count(lane, 0, -items.length);
    return items;
  }

  return {
    reserve(due, wanted) {
      const lane = lanes.get(due.subscription) ?? open(due);
      const reserved = Math.max(0, Math.min(wanted, roomOf(lane), roomIn(lane.groups)));
      if (reserved > 0) {
        lane.unsettled++;
        lane.reserved += reserved;
        count(lane, 0, reserved);
      } else closeIfDone(lane);
      return reserved;
    },
    add(subscription, reserved, items) {
      const lane = lanes.get(subscription);
      if (!lane) throw new Error("Work is put into a lane that is not open");
      lane.waiting.push(...items);
      lane.reserved -= reserved;
      lane.unsettled--;
      count(lane, 0, items.length - reserved);
      closeIfDone(lane);
    },
    take() {
      const lane = findNext();
      const item = lane?.waiting.shift();
      if (!lane || item === undefined) return undefined;
      const { subscription } = lane;
      lanes.delete(subscription); // to the end of the turns
      lanes.set(subscription, lane);
      lane.unsettled++;
      lane.inFlight++;
      count(lane, 1, -1);
      return { subscription, item };
    },
    finish(subscription, fared) {
      const lane = lanes.get(subscription);
      if (!lane) return { handedBack: [], meanMs: undefined };
      lane.inFlight--;
      count(lane, -1, 0);
      if (fared === undefined) return { handedBack: [], meanMs: undefined };
      const { isSuccess, durationMs } = fared;
      const before = { standing: lane.standing, meanMs: meanToStore(lane.meanMs) };
      lane.meanMs = moveMean(lane.meanMs, durationMs);
      setStanding(lane, standingAfter(isSuccess, lane.meanMs));
      const isHeldUp = !isSuccess || (lane.standing === "slow" && before.standing !== "slow");
      const meanMs = meanToStore(lane.meanMs);
      return {
        handedBack: isHeldUp ? takeBack(lane) : [],
        meanMs: meanMs === before.meanMs ? undefined : meanMs,
      };
    },
    settle(subscription) {
      const lane = lanes.get(subscription);
      if (!lane) return;
      lane.unsettled--;
      closeIfDone(lane);
    },
    roomFor: capacity.roomFor,
    full: (standing) => ({
      principals: capacity.fullPrincipals(standing),
      subscriptions: [...lanes.values()]
        .filter((lane) => roomOf(lane) < capOf(lane.standing))
        .map(({ subscription }) => subscription),
    }),
    drain: () => lanes.values().flatMap(takeBack).toArray(),
    inFlight: () => all.inFlight,
    waiting: () => all.waiting,
  };
}

/** Counts in all groups of a lane what has been added to it or taken from it. */
function count({ groups }: Lane<unknown>, inFlight: number, waiting: number): void {
  for (const group of groups) {
    group.inFlight += inFlight;
    group.waiting += waiting;
  }
}
