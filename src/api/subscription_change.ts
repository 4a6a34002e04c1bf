import { Problem } from "../base/problem.ts";
import type { Subscription, SubscriptionChange } from "../event/subscription.ts";
import type { Database } from "../database/database.ts";
import type { Sql } from "../database/sql.ts";
import { clearSubscription } from "../store/subscription_end.ts";
import { type SubscriptionGrant, updateSubscription } from "../store/subscriptions.ts";

/** What changing a subscription works with. */
export interface SubscriptionChangeOptions {
  readonly database: Database;
  /** Stores the change and answers with the rows that its first statement changed. */
  readonly store: (statements: readonly Sql[]) => Promise<number | undefined>;
  /** Tells the distributor that there may be work. */
  readonly wake: () => void;
  readonly nowMs: number;
  /** That of the owner's token; none where an administrator changes it. */
  readonly grant?: SubscriptionGrant;
}

/**
 * Changes a subscription's endpoint and status. A disabled one first gets rid of what was cancelled
 * when it was disabled: Problem 503 where that takes longer than a request should, 409 where its
 * user, its app or what it lives by has ended.
 */
export async function changeSubscription(
  found: Subscription,
  change: SubscriptionChange,
  { database, store, wake, nowMs, grant }: SubscriptionChangeOptions,
): Promise<void> {
  if (found.status === "disabled" && change.status !== undefined) {
    if (!await clearSubscription(database, found.id, nowMs)) {
      throw new Problem(503, "unavailable", "Its old deliveries are still being cancelled.", {
        headers: { "Retry-After": "5" },
      });
    }
  }
  if (await store([updateSubscription(found.id, change, grant)]) === 0) {
    throw new Problem(409, "conflict", found.status === "disabled"
      ? "Its user, its app or the grant that made it has ended."
      : "The subscription has just changed; try again.");
  }
  wake();
}
