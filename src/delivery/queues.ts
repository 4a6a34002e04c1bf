import type { DueQueue, Health } from "../store/deliveries.ts";
import { createCapacity, type Group, type QueueLimits, roomIn } from "./capacity.ts";
import { meanToStore, moveMean, healthAfter } from "./health.ts";

interface Queue<Item> {
  readonly subscription: number;
  readonly principal: string;
  readonly waiting: Item[];
  inFlight: number;
  /** How many are about to be claimed. */
  reserved: number;
  /** Claims and items taken that are not settled yet. */
  unsettled: number;
  health: Health;
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
export interface Queues<Item> {
  /**
   * Opens a subscription's lane, or keeps it open, for a claim of up to `wanted` items, and tells
   * how many it has room for; with 0 it is left as it was. Until settled a lane remembers how it
   * fares.
   */
  reserve(queue: DueQueue, wanted: number): number;
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
  /** How many more items of lanes of a health may be held: others need room to wait in too. */
  roomFor(health: Health): number;
  /** What needs nothing more now: subscriptions, and all of a health that these principals have. */
  full(health: Health): { readonly subscriptions: number[]; readonly principals: string[] };
  /** Takes back all that waits. */
  drain(): readonly Item[];
  inFlight(): number;
  waiting(): number;
}

/** Makes the lanes of one distributor. */
export function createQueues<Item>(limits: QueueLimits): Queues<Item> {
  const queues = new Map<number, Queue<Item>>(); // in the order of their turns
  const capacity = createCapacity(limits);
  const { all, capOf, heldOf } = capacity;

  function open({ subscription, health, principal, meanMs }: DueQueue): Queue<Item> {
    capacity.join(principal);
    const groups = capacity.groupsOf(health, principal);
    const counts = { waiting: [], inFlight: 0, reserved: 0, unsettled: 0 };
    const queue = { subscription, principal, health, meanMs, groups, ...counts };
    queues.set(subscription, queue);
    return queue;
  }

  function closeIfDone(queue: Queue<Item>): void {
    if (queue.unsettled > 0 || queue.waiting.length > 0) return;
    queues.delete(queue.subscription);
    capacity.leave(queue.principal);
  }

  function setHealth(queue: Queue<Item>, health: Health): void {
    if (queue.health === health) return;
    const waiting = queue.waiting.length + queue.reserved;
    count(queue, -queue.inFlight, -waiting);
    queue.health = health;
    queue.groups = capacity.groupsOf(health, queue.principal);
    count(queue, queue.inFlight, waiting);
  }

  function maySend({ waiting, inFlight, health, groups }: Queue<Item>): boolean {
    return waiting.length > 0 && inFlight < capOf(health) &&
      groups.every((group) => group.inFlight < group.limit);
  }

  function roomOf({ health, inFlight, waiting, reserved }: Queue<Item>): number {
    return heldOf(health) - inFlight - waiting.length - reserved;
  }

  function findNext(): Queue<Item> | undefined {
    if (all.inFlight >= all.limit) return undefined;
    let next: Queue<Item> | undefined;
    for (const queue of queues.values()) {
      if (next && queue.inFlight >= next.inFlight || !maySend(queue)) continue;
      next = queue;
      if (queue.inFlight === 0) break;
    }
    return next;
  }

  function takeBack(queue: Queue<Item>): readonly Item[] {
    const items = queue.waiting.splice(0);
    count(queue, 0, -items.length);
    return items;
  }

  return {
    reserve(due, wanted) {
      const queue = queues.get(due.subscription) ?? open(due);
      const reserved = Math.max(0, Math.min(wanted, roomOf(queue), roomIn(queue.groups)));
      if (reserved > 0) {
        queue.unsettled++;
        queue.reserved += reserved;
        count(queue, 0, reserved);
      } else closeIfDone(queue);
      return reserved;
    },
    add(subscription, reserved, items) {
      const queue = queues.get(subscription);
      if (!queue) throw new Error("Work is put into a lane that is not open");
      queue.waiting.push(...items);
      queue.reserved -= reserved;
      queue.unsettled--;
      count(queue, 0, items.length - reserved);
      closeIfDone(queue);
    },
    take() {
      const queue = findNext();
      const item = queue?.waiting.shift();
      if (!queue || item === undefined) return undefined;
      const { subscription } = queue;
      queues.delete(subscription); // to the end of the turns
      queues.set(subscription, queue);
      queue.unsettled++;
      queue.inFlight++;
      count(queue, 1, -1);
      return { subscription, item };
    },
    finish(subscription, fared) {
      const queue = queues.get(subscription);
      if (!queue) return { handedBack: [], meanMs: undefined };
      queue.inFlight--;
      count(queue, -1, 0);
      if (fared === undefined) return { handedBack: [], meanMs: undefined };
      const { isSuccess, durationMs } = fared;
      const before = { health: queue.health, meanMs: meanToStore(queue.meanMs) };
      queue.meanMs = moveMean(queue.meanMs, durationMs);
      setHealth(queue, healthAfter(isSuccess, queue.meanMs));
      const isHeldUp = !isSuccess || (queue.health === "slow" && before.health !== "slow");
      const meanMs = meanToStore(queue.meanMs);
      return {
        handedBack: isHeldUp ? takeBack(queue) : [],
        meanMs: meanMs === before.meanMs ? undefined : meanMs,
      };
    },
    settle(subscription) {
      const queue = queues.get(subscription);
      if (!queue) return;
      queue.unsettled--;
      closeIfDone(queue);
    },
    roomFor: capacity.roomFor,
    full: (health) => ({
      principals: capacity.fullPrincipals(health),
      subscriptions: [...queues.values()]
        .filter((queue) => roomOf(queue) < capOf(queue.health))
        .map(({ subscription }) => subscription),
    }),
    drain: () => queues.values().flatMap(takeBack).toArray(),
    inFlight: () => all.inFlight,
    waiting: () => all.waiting,
  };
}

/** Counts in all groups of a lane what has been added to it or taken from it. */
function count({ groups }: Queue<unknown>, inFlight: number, waiting: number): void {
  for (const group of groups) {
    group.inFlight += inFlight;
    group.waiting += waiting;
  }
}
