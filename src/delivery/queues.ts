import type { DueQueue, Health } from "../store/deliveries.ts";
import {
  capacityOf,
  createCapacity,
  type QueueGroups,
  type QueueLimits,
  unusedOf,
} from "./capacity.ts";
import { healthAfter, meanToStore, moveMean } from "./health.ts";

interface Queue<Item> {
  readonly subscription: number;
  readonly principal: string;
  readonly waiting: Item[];
  /** Claims under way, and items whose outcome is not stored yet; it is kept open for them. */
  uses: number;
  health: Health;
  meanMs: number;
  groups: QueueGroups;
}

/** The work of one process, a queue a subscription: decides what may be claimed and sent now. */
export interface Queues<Item> {
  /**
   * Opens a subscription's queue, or keeps it open, for a claim of up to `wanted` items, and
   * returns how many it has capacity for; with 0 it is left as it was. An open queue remembers the
   * health of its subscription.
   */
  reserve(queue: DueQueue, wanted: number): number;
  /** Ends a `reserve` of so many, with what has been claimed. */
  add(subscription: number, reserved: number, items: readonly Item[]): void;
  /**
   * The next item that may be sent, from the queue with the fewest in flight, and of several from
   * the one that sent longest ago; it is in flight from then on.
   */
  next(): { readonly subscription: number; readonly item: Item } | undefined;
  /**
   * An item is in flight no more: its attempt has ended. Returns what is to be requeued, since it
   * would wait for long, and the mean duration of the attempts where that is not what is stored.
   */
  finish(subscription: number, isSuccess: boolean, durationMs: number): {
    readonly requeued: readonly Item[];
    readonly meanMs: number | undefined;
  };
  /** An item is in flight no more: it was not sent after all. */
  putBack(subscription: number): void;
  /** Ends the use of an item from `next`, once its outcome is stored. */
  release(subscription: number): void;
  /** How many more items of all queues of a health may be held. */
  capacityFor(health: Health): number;
  /** What needs no more claims now: subscriptions, and all of a health of these principals. */
  full(health: Health): { readonly subscriptions: number[]; readonly principals: string[] };
  /** Removes and returns all that waits. */
  drain(): readonly Item[];
  inFlight(): number;
  waiting(): number;
}

/** Makes the queues of one distributor. */
export function createQueues<Item>(limits: QueueLimits): Queues<Item> {
  const queues = new Map<number, Queue<Item>>(); // first the one that sent longest ago
  const capacity = createCapacity(limits);
  const { all } = capacity;

  function open({ subscription, health, principal, meanMs }: DueQueue): Queue<Item> {
    capacity.join(principal);
    const groups = capacity.groupsOf(health, principal);
    const queue = { subscription, principal, waiting: [], uses: 0, health, meanMs, groups };
    queues.set(subscription, queue);
    return queue;
  }

  function find(subscription: number): Queue<Item> {
    const queue = queues.get(subscription);
    if (!queue) throw new Error("The queue is not open");
    return queue;
  }

  function closeIfDone({ subscription, principal, uses, waiting }: Queue<Item>): void {
    if (uses > 0 || waiting.length > 0) return;
    queues.delete(subscription);
    capacity.leave(principal);
  }

  function setHealth(queue: Queue<Item>, health: Health): void {
    if (queue.health === health) return;
    const [{ inFlight, waiting }] = queue.groups;
    count(queue, -inFlight, -waiting);
    queue.health = health;
    queue.groups = capacity.groupsOf(health, queue.principal);
    count(queue, inFlight, waiting);
  }

  function findNext(): Queue<Item> | undefined {
    if (all.inFlight >= all.limit) return undefined;
    let next: Queue<Item> | undefined;
    for (const queue of queues.values()) {
      const { inFlight } = queue.groups[0];
      if (next && inFlight >= next.groups[0].inFlight || !maySend(queue)) continue;
      next = queue;
      if (inFlight === 0) break;
    }
    return next;
  }

  function empty(queue: Queue<Item>): readonly Item[] {
    const items = queue.waiting.splice(0);
    count(queue, 0, -items.length);
    return items;
  }

  return {
    reserve(due, wanted) {
      const queue = queues.get(due.subscription) ?? open(due);
      const reserved = Math.min(wanted, capacityOf(queue.groups));
      if (reserved > 0) {
        queue.uses++;
        count(queue, 0, reserved);
      } else closeIfDone(queue);
      return reserved;
    },
    add(subscription, reserved, items) {
      const queue = find(subscription);
      queue.waiting.push(...items);
      queue.uses--;
      count(queue, 0, items.length - reserved);
      closeIfDone(queue);
    },
    next() {
      const queue = findNext();
      const item = queue?.waiting.shift();
      if (!queue || item === undefined) return undefined;
      const { subscription } = queue;
      queues.delete(subscription); // to the end
      queues.set(subscription, queue);
      queue.uses++;
      count(queue, 1, -1);
      return { subscription, item };
    },
    finish(subscription, isSuccess, durationMs) {
      const queue = find(subscription);
      count(queue, -1, 0);
      const before = { health: queue.health, meanMs: meanToStore(queue.meanMs) };
      queue.meanMs = moveMean(queue.meanMs, durationMs);
      setHealth(queue, healthAfter(isSuccess, queue.meanMs));
      const isHeldUp = !isSuccess || (queue.health === "slow" && before.health !== "slow");
      const meanMs = meanToStore(queue.meanMs);
      return {
        requeued: isHeldUp ? empty(queue) : [],
        meanMs: meanMs === before.meanMs ? undefined : meanMs,
      };
    },
    putBack: (subscription) => count(find(subscription), -1, 0),
    release(subscription) {
      const queue = find(subscription);
      queue.uses--;
      closeIfDone(queue);
    },
    capacityFor: capacity.capacityFor,
    full: (health) => ({
      principals: capacity.fullPrincipals(health),
      subscriptions: [...queues.values()]
        .filter(({ groups: [own] }) => unusedOf(own) < own.limit)
        .map(({ subscription }) => subscription),
    }),
    drain: () => queues.values().flatMap(empty).toArray(),
    inFlight: () => all.inFlight,
    waiting: () => all.waiting,
  };
}

function maySend({ waiting, groups }: Queue<unknown>): boolean {
  return waiting.length > 0 && groups.every((group) => group.inFlight < group.limit);
}

/** Counts in all groups of a queue what has been added to it or taken from it. */
function count({ groups }: Queue<unknown>, inFlight: number, waiting: number): void {
  for (const group of groups) {
    group.inFlight += inFlight;
    group.waiting += waiting;
  }
}
