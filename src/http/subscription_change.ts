import { Problem } from "../base/problem.ts";
import type { Subscription, SubscriptionChange } from "../event/subscription.ts";
import type { Database, Statement } from "../store/database.ts";
import { clearSubscription } from "../store/subscription_end.ts";
import { hasStandingOwner, updateSubscription } from "../store/subscriptions.ts";

/** What changing a subscription works with. */
export interface SubscriptionChangeOptions {
  readonly database: Database;
  /** Stores the change and answers with the rows that its first statement changed. */
  readonly store: (statements: readonly Statement[]) => Promise<number | undefined>;
  /** Tells the distributor that there may be work. */
  readonly wake: () => void;
  readonly nowMs: number;
  /** The grant of the owner's token; none where an administrator changes it. */
  readonly grantId?: string;
}

/**
 * Changes a subscription's endpoint and status. A disabled one first gets rid of what was cancelled
 * when it was disabled: Problem 503 where that takes longer than a request should, 409 where its
 * user or app has ended.
 */
export async function changeSubscription(
  found: Subscription,
  change: SubscriptionChange,
  { database, store, wake, nowMs, grantId }: SubscriptionChangeOptions,
): Promise<void> {
  if (found.status === "disabled" && change.status !== undefined) {
    if (!await hasStandingOwner(database, found.id)) {
      throw new Problem(409, "conflict", "Its user or app is disabled.");
    }
    if (!await clearSubscription(database, found.id, nowMs)) {
      throw new Problem(503, "unavailable", "Its old deliveries are still being cancelled.", {
        headers: { "Retry-After": "5" },
      });
    }
  }
  if (await store([updateSubscription(found.id, change, grantId)]) === 0) {
    throw new Problem(409, "conflict", "The subscription has just changed; try again.");
  }
  wake();
}
