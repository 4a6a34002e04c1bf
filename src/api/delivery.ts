import type { HttpResponse } from "../base/http_message.ts";
import { newId } from "../base/id.ts";
import { encodeJson } from "../base/json.ts";
import { conflict } from "../base/problem.ts";
import {
  COUNT,
  described,
  manyOf,
  named,
  object,
  oneOf,
  optional,
  record,
  TEXT,
  withMembers,
} from "../base/shape.ts";
import { TIME_MS } from "../base/time.ts";
import {
  AttemptRecord,
  type Delivery,
  DeliveryRecord,
  ManagedDelivery,
  toAttemptRecord,
  toDeliveryRecord,
  toManagedDelivery,
} from "../event/delivery_record.ts";
import { jsonResponse } from "../http/respond.ts";
import { BACKEND_SCOPE, type Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { findDelivery, listAttempts, listDeliveries } from "../store/delivery_lists.ts";
import { deliveryId } from "../store/fan_out.ts";
import { findFailed, insertTestDelivery, resendDeliveries } from "../store/resends.ts";
import { findSubscription } from "../store/subscriptions.ts";
import { type Administration, found, locatedResponse, storeAudited } from "./administration.ts";
import { backend, consumer, type Operation } from "./operation.ts";
import { listResponse, pageOf, pagination, toPagination } from "./pagination.ts";
import { createSendLimit } from "./send_limit.ts";
import { getSubscription, ownerOf } from "./subscription.ts";

const TEST = { test: true };

const PATH = "/consumer/subscription";

const { id: ID, status: STATUS, subscription: SUBSCRIPTION } = DeliveryRecord.members;
const DeliveryId = named("DeliveryId", record({ id: ID }));
const WithAttempts = named("DeliveryWithAttempts", withMembers(DeliveryRecord, {
  attempts: manyOf(AttemptRecord),
}));
const ManagedWithAttempts = named("ManagedDeliveryWithAttempts", withMembers(ManagedDelivery, {
  attempts: manyOf(withMembers(AttemptRecord, {
    snippet: optional(described("How it began: 4 KiB at most; for scope backend.", TEXT)),
  })),
}));

/** Which failed deliveries are sent again. */
export const Resend = named("Resend", object({
  status: oneOf("failed"),
  since: optional(described("Of the event's dispatch.", TIME_MS)),
  until: optional(TIME_MS),
  subscription: optional(SUBSCRIPTION),
}));

const RESEND_SUMMARY = "Send a failed delivery again, with a fresh budget of attempts";

/** Deliveries of the caller's subscriptions, and sending one again or as a test. */
export function deliveryOperations(
  { database, wake, now, events }: Pick<Services, "database" | "wake" | "now" | "events">,
): Operation[] {
  const checkSendable = createSendLimit(now);
  const examples = new Map(events.map(({ name, example = TEST }) => [name, encodeJson(example)]));

  // A delivery is found by its own id; the path may also name its subscription.
  async function find(
    { id, delivery = "" }: { readonly id?: string; readonly delivery?: string },
    caller: Caller,
  ): Promise<Delivery> {
    const one = await findDelivery(database, delivery);
    const owned = await findSubscription(database, one?.subscription ?? "", ownerOf(caller));
    return found(owned && (id === undefined || id === owned.id) ? one : undefined, "delivery");
  }

  return [
    consumer("GET", `${PATH}/:id/delivery`, "listDeliveries", "List a subscription's deliveries", {
      query: pagination(ID),
      responses: { 200: pageOf(DeliveryRecord) },
      async handle({ params, query, caller }) {
        const { id } = await getSubscription(database, params.id, caller);
        const page = await listDeliveries(database, { subscription: id }, toPagination(query));
        return listResponse(page, toDeliveryRecord);
      },
    }),
    ...[
      { path: `${PATH}/:id/delivery/:delivery`, name: "DeliveryOfSubscription" },
      { path: `${PATH}/delivery/:delivery`, name: "Delivery" },
    ].flatMap(({ path, name }) => [
      consumer("GET", path, `get${name}`, "One delivery with its attempts", {
        responses: { 200: WithAttempts },
        async handle({ params, caller }) {
          const delivery = await find(params, caller);
          const attempts = (await listAttempts(database, delivery.id)).map(toAttemptRecord);
          return jsonResponse(200, { ...toDeliveryRecord(delivery), attempts });
        },
      }),
      consumer("POST", `${path}/resend`, `resend${name}`, RESEND_SUMMARY, {
        responses: { 202: DeliveryId },
        refuses: [409, 429],
        async handle({ params, caller }) {
          const delivery = await find(params, caller);
          checkFailed(delivery);
          checkSendable(await getSubscription(database, delivery.subscription, caller));
          const changes = await database.write(resendDeliveries([delivery.id], now()));
          wake();
          return resentResponse(delivery, changes);
        },
      }),
    ]),
    consumer("POST", `${PATH}/:id/test`, "testSubscription",
      'Deliver the event\'s example, else {"test": true}, to one subscription', {
      responses: { 202: DeliveryId },
      refuses: [409, 429],
      isLocated: true,
      async handle({ params, caller, request }) {
        const subscription = await getSubscription(database, params.id, caller);
        checkSendable(subscription);
        const nowMs = now();
        const event = newId("e", nowMs);
        const delivery = deliveryId(event, subscription.seq);
        const json = examples.get(subscription.event) ?? encodeJson(TEST);
        const test = { subscription: subscription.id, event, delivery, json };
        const [stored] = await database.write(insertTestDelivery(test, nowMs));
        if (stored !== 1) throw conflict("The subscription has just changed.");
        wake();
        const deliveries = request.path.replace(/test$/, "delivery");
        return locatedResponse(202, deliveries, delivery, { id: delivery });
      },
    }),
  ];
}

/** Which deliveries a list of the backend has. */
export const DELIVERY_QUERY = {
  ...pagination(ID),
  status: optional(STATUS),
  subscription: optional(described("A subscription's id.", SUBSCRIPTION)),
  event: optional(ManagedDelivery.members.event),
} as const;

/** /backend/delivery: every delivery, and sending failed ones again. */
export function managedDeliveryOperations(services: Administration): Operation[] {
  const { database, wake, now } = services;
  const path = "/backend/delivery";
  const find = async (id: string) => found(await findDelivery(database, id), "delivery");

  return [
    backend("GET", path, "listAllDeliveries", "List deliveries", {
      query: DELIVERY_QUERY,
      responses: { 200: pageOf(ManagedDelivery) },
      handle: async ({ query }) =>
        listResponse(await listDeliveries(database, query, toPagination(query)), toManagedDelivery),
    }),
    backend("GET", `${path}/:id`, "getAnyDelivery",
      "One delivery with its attempts, and how each response began", {
      responses: { 200: ManagedWithAttempts },
      async handle({ params: { id }, caller }) {
        const delivery = await find(id);
        const maySee = caller.scopes.includes(BACKEND_SCOPE);
        const attempts = (await listAttempts(database, id)).map((attempt) => ({
          ...toAttemptRecord(attempt),
          snippet: maySee ? attempt.snippet ?? undefined : undefined,
        }));
        return jsonResponse(200, { ...toManagedDelivery(delivery), attempts });
      },
    }),
    backend("POST", `${path}/:id/resend`, "resendAnyDelivery", RESEND_SUMMARY, {
      responses: { 202: DeliveryId },
      refuses: [409],
      async handle({ params: { id }, ...context }) {
        const delivery = await find(id);
        checkFailed(delivery);
        const action = { action: "delivery.resend", target: id };
        const resend = resendDeliveries([id], now());
        return resentResponse(delivery, await storeAudited(context, resend, action, services));
      },
    }),
    backend("POST", `${path}/resend`, "resendFailedDeliveries",
      "Send again what failed of the events dispatched from then to then", {
      body: Resend,
      responses: { 202: named("ResendCount", record({ count: COUNT })) },
      /** Batch by batch, so that no other write waits for long; the first has the audit entry. */
      async handle({ body: { since: sinceMs, until: untilMs, subscription }, ...context }) {
        const action = { action: "delivery.resend", target: subscription ?? "failed" };
        let count = 0;
        for await (const ids of findFailed(database, { sinceMs, untilMs, subscription })) {
          const resend = resendDeliveries(ids, now());
          const [resent = 0] = count === 0
            ? await storeAudited(context, resend, action, services)
            : await database.write(resend);
          count += resent;
          wake();
          if (context.request.signal.aborted) break;
        }
        return jsonResponse(202, { count });
      },
    }),
  ];
}

/** Throws Problem 409 where a delivery cannot be sent again, since it has not failed. */
function checkFailed({ status }: Delivery): void {
  if (status === "failed") return;
  throw conflict(`The delivery is ${status}; only a failed one is sent again.`);
}

/** Of a delivery that was stored to be sent again; throws Problem 409 where it was refused. */
function resentResponse({ id }: Delivery, [resent]: readonly number[]): HttpResponse {
  if (resent === 1) return jsonResponse(202, { id });
  throw conflict("The delivery has just changed, or its subscription has ended.");
}
