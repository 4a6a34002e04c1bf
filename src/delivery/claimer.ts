import type { Database } from "../database/database.ts";
import {
  claimDeliveries,
  type ClaimedDelivery,
  listDueQueues,
  HEALTHS,
} from "../store/deliveries.ts";
import type { Queues } from "./queues.ts";
import { shareOut } from "./share_out.ts";

/** What claims are made with. */
export interface ClaimerOptions {
  readonly database: Database;
  readonly queues: Queues<ClaimedDelivery>;
  /** The name of this process, which its claims carry. */
  readonly claim: string;
  /** Of one attempt; a lease is longer. */
  readonly timeoutMs: number;
}

// Beyond an attempt's own time: for the turn in the lane before it, and for recording it after.
const LEASE_MARGIN_MS = 30_000;

/** Claims due deliveries. */
export interface Claimer {
  /**
   * Claims for the lanes that have room, and puts the deliveries there. Answers how many there
   * were; undefined where there is no room for any.
   */
  claim(nowMs: number): Promise<number | undefined>;
  /** Moves the leases to come by so many milliseconds, as the stored ones have been. */
  followClock(stepMs: number): void;
}

/** Makes the claimer of one distributor. */
export function createClaimer(
  { database, queues, claim: name, timeoutMs }: ClaimerOptions,
): Claimer {
  let lastLeaseMs = 0;

  async function claim(nowMs: number): Promise<number | undefined> {
    if (queues.roomFor("healthy") === 0) return undefined;
    const kinds = await Promise.all(HEALTHS.map((health) => {
      const limit = queues.roomFor(health);
      if (limit === 0) return [];
      return listDueQueues(database, { health, except: queues.full(health), limit, nowMs });
    }));
    const requests = shareOut(kinds, queues);
    if (requests.length === 0) return 0;
    let claimed: ClaimedDelivery[] = [];
    try {
      // Later than every one before: claims are told apart by it.
      lastLeaseMs = Math.max(lastLeaseMs + 1, nowMs + 2 * timeoutMs + LEASE_MARGIN_MS);
      claimed = await claimDeliveries(database, requests, name, lastLeaseMs, nowMs);
      return claimed.length; // 0 where others were faster
    } finally {
      const found = Map.groupBy(claimed, ({ subscription }) => subscription);
      for (const { subscription, count } of requests) {
        queues.add(subscription, count, found.get(subscription) ?? []);
      }
    }
  }

  return {
    claim,
    followClock(stepMs) {
      lastLeaseMs += stepMs;
    },
  };
}
