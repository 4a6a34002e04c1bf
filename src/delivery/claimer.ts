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

// A lease covers an attempt, one before it in its queue, and this long for recording both.
const LEASE_MARGIN_MS = 30_000;

/** Makes the claimer of one distributor. Only this process sends a claim until its lease ends. */
export function createClaimer(
  options: DistributorOptions,
  queues: Queues,
  { hold, isHeld }: Pick<Recorder, "hold" | "isHeld">,
) {
  const { database, settings, claim: name } = options;
  const claims = claimsOf(database, name);
  const leaseMs = 2 * settings.callbackTimeoutMs + LEASE_MARGIN_MS;
  let lastLeaseMs = 0;
  /** The leases of failed claims, which may still be stored: their deliveries are in no queue. */
  let failed: number[] = [];
  /** Whether the last look found nothing due. */
  let isUpToDate = false;

  /** Claims what has been reserved, and puts it into the queues. */
  async function claimReserved(
    requests: readonly ClaimRequest[],
    nowMs: number,
    claim: (leaseUntilMs: number) => Promise<readonly ClaimedDelivery[]>,
  ): Promise<void> {
    // Unique, since it identifies the rows of this claim.
    const lease = lastLeaseMs = Math.max(lastLeaseMs + 1, nowMs + leaseMs);
    const claiming = claim(lease);
    const claimed = await claiming.catch(() => {
      failed.push(lease);
      return [];
    });
    // A delivery may still be held after its lease: it waited, or its attempt could not be stored.
    // Meanwhile somebody may have cancelled it and sent it again.
    const others = claimed.filter(({ id }) => !isHeld(id));
    for (const { id } of others) hold(id);
    const found = Map.groupBy(others, ({ subscription }) => subscription);
    for (const { subscription, count } of requests) {
      queues.add(subscription, count, found.get(subscription) ?? []);
      found.delete(subscription); // several requests may be for it
    }
    await claiming;
  }

  return {
    /**
     * Claims for the queues that have capacity, and fills them. Returns whether anything was due,
     * though other processes may have claimed it first; undefined if no queue has capacity.
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
    /** How many deliveries may be claimed when they are made; 0 while older ones are due. */
    newLimit: () => isUpToDate ? queues.capacityFor("healthy") : 0,
    /**
     * Makes deliveries. Deliveries of idle subscriptions whose queues have capacity are claimed in
     * the same commit, which saves the time of a second one.
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
    /** Shifts the leases known here, as the stored ones have been, by so many milliseconds. */
    followClock(stepMs: number): void {
      lastLeaseMs += stepMs;
      failed = failed.map((leaseMs) => leaseMs + stepMs);
    },
  };
}

/**
 * Shares out the capacity for claims. No health keeps another out, however much of it is due, and
 * no queue gets more than its capacity. Reserves in the queues what the requests ask for.
 *
 * @param kinds the due queues by health, each list in the order of their due times
 */
export function shareOut(
  kinds: readonly (readonly DueQueue[])[],
  queues: Pick<Queues, "reserve" | "capacityFor">,
) {
  // All queues of one health get the same share.
  const shares = kinds.map(([first, ...others]) =>
    first && Math.max(1, Math.floor(queues.capacityFor(first.health) / (1 + others.length)))
  );
  const longest = Math.max(...kinds.map(({ length }) => length));
  const requests: ClaimRequest[] = [];
  // The first queue of each health, then the second of each, and so on.
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
