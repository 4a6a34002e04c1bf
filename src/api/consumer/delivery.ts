import { newId } from "../../base/id.ts";
import { Problem } from "../../base/problem.ts";
import type { Subscription } from "../../event/subscription.ts";
import { type Caller, CONSUMER_SCOPE } from "../../oauth/principal.ts";
import type { Database } from "../../database/database.ts";
import {
  type Delivery,
  findDelivery,
  listAttempts,
  listDeliveries,
} from "../../store/delivery_lists.ts";
import { deliveryId } from "../../store/events.ts";
import { insertTestDelivery, resendDeliveries } from "../../store/resends.ts";
import { findSubscription } from "../../store/subscriptions.ts";
import { toAttemptRecord, toDeliveryRecord } from "../delivery_record.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { jsonResponse } from "../../http/respond.ts";
import type { PathParams, ProtectedRoute } from "../route.ts";
import { createThrottle } from "../../base/throttle.ts";
import { getSubscription, ownerOf } from "./subscription.ts";

/** What the consumer's deliveries work with. */
export interface DeliveryOptions {
  readonly database: Database;
  readonly basePath: string;
  /** Tells the distributor that there is work. */
  readonly wake: () => void;
  readonly now: () => number;
}

/** Tests and resends together: for each subscription, and for all of a principal. */
const LIMIT = 6;
const PRINCIPAL_LIMIT = 30;
const WINDOW_MS = 60_000;
const TEST_JSON = JSON.stringify({ test: true });

/** Deliveries of the caller's subscriptions, and sending one again or as a test. */
export function deliveryRoutes(options: DeliveryOptions): ProtectedRoute[] {
  const { database, now } = options;
  const base = { access: [CONSUMER_SCOPE], cors: true } as const;
  const collection = "/consumer/subscription";
  const bySubscription = createThrottle({ limit: LIMIT, windowMs: WINDOW_MS, now });
  const byPrincipal = createThrottle({ limit: PRINCIPAL_LIMIT, windowMs: WINDOW_MS, now });

  /**
   * Counts before anything is awaited, so that many at once do not get past the limits. Whoever
   * deletes a subscription and makes it anew has no more of them.
   */
  function checkThrottle({ id, principal, event, endpoint }: Subscription): void {
    const names = [id, `${principal} ${event} ${endpoint}`];
    const waitMs = Math.max(...names.map(bySubscription.waitMs), byPrincipal.waitMs(principal));
    if (waitMs > 0) {
      const detail = `Tests and resends: at most ${LIMIT} a minute of one subscription, and ` +
        `${PRINCIPAL_LIMIT} of all.`;
      throw new Problem(429, "throttled", detail, {
        headers: { "Retry-After": String(Math.ceil(waitMs / 1000)) },
      });
    }
    names.forEach(bySubscription.fail);
    byPrincipal.fail(principal);
  }

  // A delivery is found by its own id; the subscription's may stand before it.
  const items = [`${collection}/:id/delivery/:delivery`, `${collection}/delivery/:delivery`]
    .flatMap((path): ProtectedRoute[] => [
      {
        ...base,
        path,
        method: "GET",
        summary: "One delivery with its attempts",
        async handle({ params, caller }) {
          const { delivery } = await getDelivery(database, caller, params);
          const attempts = await listAttempts(database, delivery.id);
          return jsonResponse(200, {
            ...toDeliveryRecord(delivery),
            attempts: attempts.map(toAttemptRecord),
          });
        },
      },
      {
        ...base,
        path: `${path}/resend`,
        method: "POST",
        summary: "Send a failed delivery again, with a fresh budget of attempts",
        async handle({ params, caller }) {
          const { delivery, subscription } = await getDelivery(database, caller, params);
          refuseResend(delivery, subscription);
          checkThrottle(subscription);
          const [resent] = await database.write(resendDeliveries([delivery.id], now()));
          if (resent !== 1) throw new Problem(409, "conflict", "The delivery has just changed.");
          options.wake();
          return jsonResponse(202, { id: delivery.id });
        },
      },
    ]);

  return [
    {
      ...base,
      path: `${collection}/:id/delivery`,
      method: "GET",
      summary: "List a subscription's deliveries",
      async handle({ request, params, caller }) {
        const page = readPagination(request);
        const { id } = await getSubscription(database, caller, params["id"]);
        const deliveries = await listDeliveries(database, { subscription: id }, page);
        return listResponse(deliveries, toDeliveryRecord);
      },
    },
    ...items,
    {
      ...base,
      path: `${collection}/:id/test`,
      method: "POST",
      summary: 'Deliver {"test": true} to one subscription',
      async handle({ params, caller }) {
        const subscription = await getSubscription(database, caller, params["id"]);
        refuseDisabled(subscription);
        checkThrottle(subscription);
        const nowMs = now();
        const event = newId("e", nowMs);
        const delivery = deliveryId(event, subscription.seq);
        const test = { subscription: subscription.id, event, delivery, json: TEST_JSON };
        const [stored] = await database.write(insertTestDelivery(test, nowMs));
        if (stored !== 1) throw new Problem(409, "conflict", "The subscription has just changed.");
        options.wake();
        const location = `${options.basePath}${collection}/${subscription.id}/delivery/${delivery}`;
        return jsonResponse(202, { id: delivery }, { Location: location });
      },
    },
  ];
}

/** The caller's delivery that a path names, and its subscription; throws Problem 404. */
async function getDelivery(
  database: Database,
  caller: Caller,
  params: PathParams,
): Promise<{ delivery: Delivery; subscription: Subscription }> {
  const delivery = await findDelivery(database, params["delivery"] ?? "");
  const isNamed = (params["id"] ?? delivery?.subscription) === delivery?.subscription;
  const subscription = delivery && isNamed
    ? await findSubscription(database, delivery.subscription, ownerOf(caller))
    : undefined;
  if (!delivery || !subscription) {
    throw new Problem(404, "not_found", "There is no such delivery.");
  }
  return { delivery, subscription };
}

/** Throws Problem 409 unless the delivery can be sent again. */
function refuseResend({ status }: Delivery, subscription: Subscription): void {
  if (status !== "failed") {
    const detail = `The delivery is ${status}; only a failed one is sent again.`;
    throw new Problem(409, "conflict", detail);
  }
  refuseDisabled(subscription);
}

function refuseDisabled({ status }: Subscription): void {
  if (status === "disabled") {
    throw new Problem(409, "conflict", "The subscription is disabled; make it active first.");
  }
}
