import {
  type ClaimedDelivery,
  type ClaimRequest,
  claimsOf,
  type DueQueue,
  HEALTHS,
  listDueQueues,
} from "../store/deliveries.ts";
import { fanOut, type FanOutPart } from "../store/fan_out.ts";
import type { DistributorOptions } from "./distributor.ts";
import type { Queues } from "./queues.ts";
import type { Recorder } from "./recorder.ts";
import { takeOverDeliveries } from "./take_over.ts";

// Beyond the times of an attempt and of one before it in its queue: for recording them.
const LEASE_MARGIN_MS = 30_000;

/** Makes the claimer of one distributor: what it claims is this process's until a lease ends. */
export function createClaimer(
  options: DistributorOptions,
  queues: Queues,
  { hold, isHeld }: Pick<Recorder, "hold" | "isHeld">,
) {
  const { database, settings, claim: name } = options;
  const claims = claimsOf(database, name);
  const leaseMs = 2 * settings.callbackTimeoutMs + LEASE_MARGIN_MS;
  let lastLeaseMs = 0;
  /** The leases of claims that failed: what they hold, by now or later, is in no queue. */
  let failed: number[] = [];
  /** Whether nothing was due when it was last looked for. */
  let isUpToDate = false;

  /** Has what was reserved claimed, and puts it into the queues. */
  async function claimReserved(
    requests: readonly ClaimRequest[],
    nowMs: number,
    claim: (leaseUntilMs: number) => Promise<readonly ClaimedDelivery[]>,
  ): Promise<void> {
    // Later than every one before: claimed rows are found by it.
    const lease = lastLeaseMs = Math.max(lastLeaseMs + 1, nowMs + leaseMs);
    const claiming = claim(lease);
    const claimed = await claiming.catch(() => {
      failed.push(lease);
      return [];
    });
    // Of what is held the lease may have ended, while it waited or the database refused to store
    // its attempt, and it may have been cancelled and sent again by hand.
    const others = claimed.filter(({ id }) => !isHeld(id));
    for (const { id } of others) hold(id);
    const found = Map.groupBy(others, ({ subscription }) => subscription);
    for (const { subscription, count } of requests) {
      queues.add(subscription, count, found.get(subscription) ?? []);
      found.delete(subscription); // it may have been reserved several times
    }
    await claiming;
  }

  return {
    /**
     * Claims for the queues that have capacity, and puts the deliveries there. Returns whether any
     * seemed due; others may have been faster. Undefined where no queue has capacity.
     */
    async claim(nowMs: number): Promise<boolean | undefined> {
      failed = failed.filter((leaseMs) => leaseMs > nowMs);
      if (failed.length > 0) await takeOverDeliveries(options, name, failed);
      if (queues.capacityFor("healthy") === 0) return undefined;
      using _held = queues.hold();
      const kinds = await Promise.all(HEALTHS.map((health) => {
        const limit = queues.capacityFor(health);
        if (limit === 0) return [];
        return listDueQueues(database, health, queues.full(health), limit, nowMs);
      }));
      const requests = shareOut(kinds, queues);
      isUpToDate = kinds.every((kind) => kind.length === 0);
      if (requests.length === 0) return false;
      await claimReserved(requests, nowMs, (leaseUntilMs) =>
        claims.claim(requests, leaseUntilMs, nowMs));
      return true;
    },
    /** How many deliveries may be claimed as they are made: none while older ones are due. */
    newLimit: () => isUpToDate ? queues.capacityFor("healthy") : 0,
    /**
     * Makes deliveries. Those for idle subscriptions whose queues have capacity are claimed in the
     * same commit, which saves one and the time that it takes.
     */
    async makeDeliveries(parts: readonly FanOutPart[], nowMs: number): Promise<void> {
      const claimedParts = parts.map(({ idle, ...part }) => ({
        ...part,
        claimed: idle.filter((queue) => queues.reserve(queue, 1) > 0)
          .map(({ subscription }) => subscription),
      }));
      const requests = claimedParts.flatMap(({ claimed }) =>
        claimed.map((subscription) => ({ subscription, count: 1 }))
      );
      const make = (leaseUntilMs: number) =>
        fanOut(database, claimedParts, name, leaseUntilMs, nowMs);
      await (requests.length === 0 ? make(0) : claimReserved(requests, nowMs, make));
    },
    /** Moves the leases to come by so many milliseconds, as the stored ones have been. */
    followClock(stepMs: number): void {
      lastLeaseMs += stepMs;
      failed = failed.map((leaseMs) => leaseMs + stepMs);
    },
  };
}

/**
 * Shares out what may be claimed now: no health keeps another out, however much of it is due, and
 * no queue gets more than it has capacity for. What is requested is reserved in the queues.
 *
 * @param kinds the queues that are due, those of each health in the order in which they are due
 */
export function shareOut(
  kinds: readonly (readonly DueQueue[])[],
  queues: Pick<Queues, "reserve" | "capacityFor">,
) {
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
