import { conflict, tooMany } from "../base/problem.ts";
import { sha256 } from "../base/secret.ts";
import { createThrottle } from "../base/throttle.ts";
import type { Subscription } from "../event/subscription.ts";

/** Limits of tests and resends together: per subscription, and per principal. */
const LIMIT = 6;
const PRINCIPAL_LIMIT = 30;
const WINDOW_MS = 60_000;

/** Makes the check of manual sends: Problem 409 for a disabled subscription, 429 past limits. */
export function createSendLimit(now: () => number): (subscription: Subscription) => void {
  const bySubscription = createThrottle({ limit: LIMIT, windowMs: WINDOW_MS, now });
  const byPrincipal = createThrottle({ limit: PRINCIPAL_LIMIT, windowMs: WINDOW_MS, now });

  // Counts before anything is awaited, so that simultaneous sends cannot pass the limits. By the
  // second name a subscription that is deleted and made anew is under the same limit.
  return ({ id, principal, event, endpoint, status }) => {
    if (status === "disabled") {
      throw conflict("The subscription is disabled; make it active first.");
    }
    // Hashed, since 50,000 endpoints of 2,048 characters would be kept.
    const names = [id, sha256(`${principal} ${event} ${endpoint}`).toString("base64url")];
    const waitMs = Math.max(...names.map(bySubscription.waitMs), byPrincipal.waitMs(principal));
    if (waitMs > 0) {
      throw tooMany("throttled", `At most ${LIMIT} tests and resends a minute per ` +
        `subscription, and ${PRINCIPAL_LIMIT} for all of them together.`, waitMs);
    }
    names.forEach(bySubscription.fail);
    byPrincipal.fail(principal);
  };
}
