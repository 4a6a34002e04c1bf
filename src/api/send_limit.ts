import { conflict, tooMany } from "../base/problem.ts";
import { createLimiter } from "../base/rate.ts";
import type { Subscription } from "../event/subscription.ts";

/** Tests and resends together: of each subscription, and of all of a principal. */
const RATE = { count: 6, windowMs: 60_000 };
const PRINCIPAL_RATE = { count: 30, windowMs: 60_000 };

/**
 * Makes the check before something is sent by hand to a subscription: it throws Problem 409 where
 * that is disabled, and 429 past the limits. It counts before anything is awaited, so that many at
 * once do not get past them.
 */
export function createSendLimit(now: () => number): (subscription: Subscription) => void {
  const take = createLimiter(now);

  return ({ id, principal, event, endpoint, status }) => {
    if (status === "disabled") {
      throw conflict("The subscription is disabled; make it active first.");
    }
    const quotas = take([
      { key: id, rate: RATE },
      { key: `${principal} ${event} ${endpoint}`, rate: RATE }, // deleted and made anew
      { key: principal, rate: PRINCIPAL_RATE },
    ]);
    const waitMs = Math.max(...quotas.map((quota) => quota.waitMs));
    if (waitMs === 0) return;
    const detail = `Tests and resends: at most ${RATE.count} a minute of one subscription, and ` +
      `${PRINCIPAL_RATE.count} of all.`;
    throw tooMany("throttled", detail, waitMs);
  };
}
