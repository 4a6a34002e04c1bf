import type { ClaimedDelivery, DueQueue, Health } from "../store/deliveries.ts";
import { capacityOf, createCapacity, hasSlot, unusedOf } from "./capacity.ts";
import type { QueueGroups, QueueLimits } from "./capacity.ts";

interface Queue extends Pick<DueQueue, "subscription" | "principal"> {
  readonly waiting: ClaimedDelivery[];
  /** Claims under way, and items whose outcome is not stored yet; they keep the queue open. */
  uses: number;
  health: Health;
  meanMs: number;
  groups: QueueGroups;
}

/** A longer mean duration makes a subscription slow; the column `health` has the same limit. */
const SLOW_MS = 1000;
/** A shorter mean is stored as 0, so that fast subscribers need no write after each attempt. */
const SHORT_MS = 250;
/** The weight of the newest attempt in the moving mean. */
const NEWEST_WEIGHT = 1 / 4;

/** The work of one process, one queue per subscription. Decides what may be claimed and sent. */
export type Queues = ReturnType<typeof createQueues>;

/** Makes the queues of one distributor, all empty. */
export function createQueues(limits: QueueLimits) {
  const queues = new Map<number, Queue>(); // the least recently used first
  const capacity = createCapacity(limits);
  const { all } = capacity;

  function open({ subscription, health, principal, meanMs }: DueQueue): Queue {
    capacity.join(principal);
    const groups = capacity.groupsOf(health, principal);
    const queue = { subscription, principal, waiting: [], uses: 0, health, meanMs, groups };
    queues.set(subscription, queue);
    return queue;
  }

  function find(subscription: number): Queue {
    const queue = queues.get(subscription);
    if (!queue) throw new Error("The queue is not open");
    return queue;
  }

  /** Ends one use of the queue, and closes it if there is no other use and no waiting item. */
  function endUse(queue: Queue): void {
    queue.uses--;
    if (queue.uses > 0 || queue.waiting.length > 0) return;
    queues.delete(queue.subscription);
    capacity.leave(queue.principal);
  }

  function setHealth(queue: Queue, health: Health): void {
    if (queue.health === health) return;
    const [{ inFlight, waiting }] = queue.groups;
    count(queue, -inFlight, -waiting);
    queue.health = health;
    queue.groups = capacity.groupsOf(health, queue.principal);
    count(queue, inFlight, waiting);
  }

  function empty(queue: Queue): readonly ClaimedDelivery[] {
    const items = queue.waiting.splice(0);
    count(queue, 0, -items.length);
    return items;
  }

  return {
    /**
     * Reserves capacity in a subscription's queue for a claim of up to `wanted` items. Returns how
     * many it got; with 0 the queue stays as it was. While a queue is open, the health that it has
     * learned counts, not that of `due`.
     */
    reserve(due: DueQueue, wanted: number): number {
      const queue = queues.get(due.subscription) ?? open(due);
      const reserved = Math.min(wanted, capacityOf(queue.groups));
      queue.uses++;
      count(queue, 0, reserved);
      if (reserved === 0) endUse(queue);
      return reserved;
    },
    /** Replaces a reservation of `reserved` items by those that have been claimed. */
    add(subscription: number, reserved: number, items: readonly ClaimedDelivery[]): void {
      const queue = find(subscription);
      queue.waiting.push(...items);
      count(queue, 0, items.length - reserved);
      endUse(queue);
    },
    /**
     * Keeps all open queues open until disposed. The health that is read from the database
     * meanwhile may be older than what a queue has learned, and a closed queue would forget that.
     */
    hold(): Disposable {
      const held = [...queues.values()];
      for (const queue of held) queue.uses++;
      return { [Symbol.dispose]: () => held.forEach(endUse) };
    },
    /**
     * Returns the next item that may be sent, and counts it as in flight. It comes from the queue
     * with the fewest items in flight; among equals, from the least recently used one.
     */
    next(): ClaimedDelivery | undefined {
      if (all.inFlight >= all.limit) return undefined;
      let next: Queue | undefined;
      for (const queue of queues.values()) {
        const { inFlight } = queue.groups[0];
        if (next && inFlight >= next.groups[0].inFlight || !maySend(queue)) continue;
        next = queue;
        if (inFlight === 0) break;
      }
      if (!next) return undefined;
      queues.delete(next.subscription); // to move it to the end
      queues.set(next.subscription, next);
      next.uses++;
      count(next, 1, -1);
      return next.waiting.shift();
    },
    /**
     * Ends the attempt of an item. Returns the waiting items that must be requeued, because they
     * would wait too long here, and the mean duration of the attempts if it is to be stored.
     */
    finish(subscription: number, isSuccess: boolean, durationMs: number) {
      const queue = find(subscription);
      count(queue, -1, 0);
      const before = { health: queue.health, meanMs: meanToStore(queue.meanMs) };
      queue.meanMs = Math.round(queue.meanMs + (durationMs - queue.meanMs) * NEWEST_WEIGHT);
      const ifSuccess = queue.meanMs > SLOW_MS ? "slow" : "healthy";
      setHealth(queue, isSuccess ? ifSuccess : "failing");
      const isHeldUp = !isSuccess || (queue.health === "slow" && before.health !== "slow");
      const meanMs = meanToStore(queue.meanMs);
      return {
        requeued: isHeldUp ? empty(queue) : [],
        meanMs: meanMs === before.meanMs ? undefined : meanMs,
      };
    },
    /** Takes back an item from `next` that was not sent after all. */
    putBack: (subscription: number) => count(find(subscription), -1, 0),
    /** Ends the use of an item from `next`, once its outcome is stored. */
    release: (subscription: number) => endUse(find(subscription)),
    /** How many more items of all queues of this health may be held. */
    capacityFor: capacity.capacityFor,
    /** The subscriptions, and the principals at this health, for which nothing more is claimed. */
    full: (health: Health) => ({
      principals: capacity.fullPrincipals(health),
      subscriptions: [...queues.values()]
        .filter(({ groups: [own] }) => unusedOf(own) < own.limit)
        .map(({ subscription }) => subscription),
    }),
    /** Removes and returns all that waits. */
    drain: (): readonly ClaimedDelivery[] => queues.values().flatMap(empty).toArray(),
    inFlight: () => all.inFlight,
  };
}

function maySend({ waiting, groups }: Queue): boolean {
  return waiting.length > 0 && groups.every(hasSlot);
}

/** Adds to the counts of all groups of a queue; negative numbers are taken off. */
function count({ groups }: Queue, inFlight: number, waiting: number): void {
  for (const group of groups) {
    group.inFlight += inFlight;
    group.waiting += waiting;
  }
}

/** The mean as it is stored: 0 if it is short. */
function meanToStore(meanMs: number): number {
  return meanMs < SHORT_MS ? 0 : meanMs;
}
