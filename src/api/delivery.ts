import type { HttpResponse } from "../base/http_message.ts";
import { newId } from "../base/id.ts";
import { encodeJson } from "../base/json.ts";
import { conflict } from "../base/problem.ts";
import {
  described,
  manyOf,
  named,
  object,
  optional,
  record,
  TEXT,
  withMembers,
} from "../base/shape.ts";
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
import {
  DELIVERY_LIST,
  findDelivery,
  listAttempts,
  listDeliveries,
} from "../store/delivery_lists.ts";
import { deliveryId } from "../store/fan_out.ts";
import { insertTestDelivery, resendDeliveries } from "../store/resends.ts";
import { findSubscription } from "../store/subscriptions.ts";
import { type Administration, found, locatedResponse, storeAudited } from "./administration.ts";
import { backend, consumer, type Operation } from "./operation.ts";
import { pageOf, pagination, toPageRecord } from "./pagination.ts";
import { NewResend, OwnResend, RESENDS_STARTED, startResend } from "./resend.ts";
import { createSendLimit } from "./send_limit.ts";
import { getSubscription, ownerOf } from "./subscription.ts";

const TEST = { test: true };

const PATH = "/consumer/subscription";

const { id: ID, status: STATUS } = DeliveryRecord.members;
// A list of one subscription's deliveries does not need the filters named here.
const { subscription, event, name, endpoint, ...OWN_FILTERS } = DELIVERY_LIST.filters;
const DeliveryId = named("DeliveryId", record({ id: ID }));
const WithAttempts = named("DeliveryWithAttempts", withMembers(DeliveryRecord, {
  attempts: manyOf(AttemptRecord),
}));
const ManagedWithAttempts = named("ManagedDeliveryWithAttempts", withMembers(ManagedDelivery, {
  attempts: manyOf(withMembers(AttemptRecord, {
    snippet: optional(described(
      "The first 4 KiB of the response, or the error's code; only for scope backend.", TEXT)),
  })),
}));

/** The body of a request to send a delivery again. */
const Resent = named("ResentDelivery", object({
  status: optional(described("Its current status; any other is refused.", STATUS), "failed"),
}));
const RESEND_SUMMARY = "Send a failed delivery again, with a fresh budget of attempts";

/** Operations on deliveries of the caller's subscriptions: read, send again, send a test. */
export function deliveryOperations(
  services: Administration & Pick<Services, "events" | "heavy">,
): Operation[] {
  const { database, wake, now, events } = services;
  const checkSendable = createSendLimit(now);

  // A delivery is found by its own id; the path may also name its subscription.
  async function find(
    { id, delivery = "" }: { readonly id?: string; readonly delivery?: string },
    caller: Caller,
  ) {
    const one = await findDelivery(database, delivery);
    const owned = await findSubscription(database, one?.subscription ?? "", ownerOf(caller));
    const isThere = one && owned && (id === undefined || id === owned.id);
    return found(isThere ? { delivery: one, subscription: owned } : undefined, "delivery");
  }

  return [
    consumer("GET", `${PATH}/:id/delivery`, "listDeliveries", "List a subscription's deliveries", {
      query: { ...pagination(ID), ...OWN_FILTERS },
      returns: pageOf(DeliveryRecord),
      async handle({ params, query, caller }) {
        const { id } = await getSubscription(database, params.id, caller);
        const given = { ...query, subscription: id };
        return toPageRecord(await listDeliveries(database, given), toDeliveryRecord);
      },
    }),
    ...[
      { path: `${PATH}/:id/delivery/:delivery`, name: "DeliveryOfSubscription" },
      { path: `${PATH}/delivery/:delivery`, name: "Delivery" },
    ].flatMap(({ path, name }) => [
      consumer("GET", path, `get${name}`, "One delivery with its attempts", {
        returns: WithAttempts,
        async handle({ params, caller }) {
          const { delivery } = await find(params, caller);
          const attempts = (await listAttempts(database, delivery.id)).map(toAttemptRecord);
          return { ...toDeliveryRecord(delivery), attempts };
        },
      }),
      consumer("POST", `${path}/resend`, `resend${name}`, RESEND_SUMMARY, {
        body: optional(Resent),
        responses: { 202: DeliveryId },
        refuses: [409, 429],
        async handle({ params, body, caller }) {
          const { delivery, subscription } = await find(params, caller);
          const status = checkStatus(delivery, body?.status);
          checkSendable(subscription);
          const changes = await database.write(resendDeliveries([delivery.id], now(), status));
          wake();
          return resentResponse(delivery, changes);
        },
      }),
    ]),
    consumer("POST", `${PATH}/:id/resend`, "resendOfSubscription",
      "Send a subscription's deliveries again", {
      body: OwnResend,
      responses: RESENDS_STARTED,
      refuses: [409, 429],
      async handle({ params, body, ...context }) {
        const subscription = await getSubscription(database, params.id, context.caller);
        if (!body.dry_run) checkSendable(subscription);
        return startResend(context, { ...body, subscription: subscription.id }, services);
      },
    }),
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
        const { example = TEST } = events.find(({ name }) => name === subscription.event) ?? {};
        const test = { subscription: subscription.id, event, delivery, json: encodeJson(example) };
        const [stored] = await database.write(insertTestDelivery(test, nowMs));
        if (stored !== 1) throw conflict("The subscription has just changed.");
        wake();
        const deliveries = request.path.replace(/test$/, "delivery");
        return locatedResponse(202, deliveries, delivery, { id: delivery });
      },
    }),
  ];
}

/** /backend/delivery: read all deliveries, and send one or many again. */
export function managedDeliveryOperations(
  services: Administration & Pick<Services, "heavy">,
): Operation[] {
  const { database, heavy, now } = services;
  const path = "/backend/delivery";
  const find = async (id: string) => found(await findDelivery(database, id), "delivery");

  return [
    backend("GET", path, "listAllDeliveries", "List deliveries", {
      query: { ...pagination(ID), ...DELIVERY_LIST.filters },
      returns: pageOf(ManagedDelivery),
      handle: async ({ query }) =>
        toPageRecord(await listDeliveries(heavy, query), toManagedDelivery),
    }),
    backend("GET", `${path}/:id`, "getAnyDelivery",
      "One delivery with its attempts, and the beginning of each response", {
      returns: ManagedWithAttempts,
      async handle({ params: { id }, caller }) {
        const delivery = await find(id);
        const maySee = caller.scopes.includes(BACKEND_SCOPE);
        const attempts = (await listAttempts(database, id)).map((attempt) => ({
          ...toAttemptRecord(attempt),
          snippet: maySee ? attempt.snippet ?? undefined : undefined,
        }));
        return { ...toManagedDelivery(delivery), attempts };
      },
    }),
    backend("POST", `${path}/:id/resend`, "resendAnyDelivery", RESEND_SUMMARY, {
      body: optional(Resent),
      responses: { 202: DeliveryId },
      refuses: [409],
      async handle({ params: { id }, body, ...context }) {
        const delivery = await find(id);
        const resend = resendDeliveries([id], now(), checkStatus(delivery, body?.status));
        const changes = await storeAudited(context, "delivery.resend", id, resend, services);
        return resentResponse(delivery, changes);
      },
    }),
    backend("POST", `${path}/resend`, "resendDeliveries",
      "Send again the deliveries that match filters", {
      body: NewResend,
      responses: RESENDS_STARTED,
      refuses: [409],
      handle: ({ body, ...context }) => startResend(context, body, services),
    }),
  ];
}

/** Returns the wanted status; throws Problem 409 if the delivery has another status. */
function checkStatus({ status }: Delivery, wanted: Delivery["status"] = "failed") {
  if (status === wanted) return wanted;
  throw conflict(`The delivery is ${status}; only a ${wanted} one is sent again.`);
}

/** Makes the response to the resend of a delivery; throws Problem 409 if no row was changed. */
function resentResponse({ id }: Delivery, [resent]: readonly number[]): HttpResponse {
  if (resent === 1) return jsonResponse(202, { id });
  throw conflict("The delivery is being sent, has just changed, or its subscription has ended.");
}
