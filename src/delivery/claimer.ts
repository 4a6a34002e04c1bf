import type { Database } from "../database/database.ts";
import {
  claimDeliveries,
  type ClaimedDelivery,
  HEALTHS,
  listDueQueues,
} from "../store/deliveries.ts";
import type { Queues } from "./queues.ts";
import { shareOut } from "./share_out.ts";

/** What claims are made with. */
export interface ClaimerOptions {
  readonly database: Database;
  /** The name of this process, which its claims carry. */
  readonly claim: string;
  /** Of one attempt, in milliseconds; a lease is longer. */
  readonly timeoutMs: number;
}

// Beyond an attempt's own time: for waiting in the queue before it, and for recording it after.
const LEASE_MARGIN_MS = 30_000;

/** Claims due deliveries. */
export interface Claimer {
  /**
   * Claims for the queues that have capacity, and puts the deliveries there. Returns how many there
   * were; undefined where no queue has capacity.
   */
  claim(nowMs: number): Promise<number | undefined>;
  /** Moves the leases to come by so many milliseconds, as the stored ones have been. */
  followClock(stepMs: number): void;
}

/** Makes the claimer of one distributor. */
export function createClaimer(
  { database, claim: name, timeoutMs }: ClaimerOptions,
  queues: Queues<ClaimedDelivery>,
): Claimer {
  let lastLeaseMs = 0;

  return {
    async claim(nowMs) {
      if (queues.capacityFor("healthy") === 0) return undefined;
      const kinds = await Promise.all(HEALTHS.map((health) => {
        const limit = queues.capacityFor(health);
        if (limit === 0) return [];
        return listDueQueues(database, { health, except: queues.full(health), limit, nowMs });
      }));
      const requests = shareOut(kinds, queues);
      if (requests.length === 0) return 0;
      // Later than every one before: claimed rows are found by it.
      lastLeaseMs = Math.max(lastLeaseMs + 1, nowMs + 2 * timeoutMs + LEASE_MARGIN_MS);
      const claiming = claimDeliveries(database, requests, name, lastLeaseMs, nowMs);
      const claimed = await claiming.catch(() => []);
      const found = Map.groupBy(claimed, ({ subscription }) => subscription);
      for (const { subscription, count } of requests) {
        queues.add(subscription, count, found.get(subscription) ?? []);
      }
      return (await claiming).length; // 0 where others were faster
    },
    followClock(stepMs) {
      lastLeaseMs += stepMs;
    },
  };
}
