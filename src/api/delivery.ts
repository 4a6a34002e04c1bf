import { newId } from "../base/id.ts";
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
  type Shape,
  TEXT,
  withMembers,
} from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import {
  type Attempt,
  AttemptRecord,
  type Delivery,
  DeliveryRecord,
  ManagedDelivery,
  toAttemptRecord,
  toDeliveryRecord,
  toManagedDelivery,
} from "../event/delivery_record.ts";
import { jsonResponse } from "../http/respond.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { findDelivery, listAttempts, listDeliveries } from "../store/delivery_lists.ts";
import { deliveryId } from "../store/events.ts";
import { findFailed, insertTestDelivery, resendDeliveries } from "../store/resends.ts";
import { findSubscription } from "../store/subscriptions.ts";
import {
  type Actor,
  type Administration,
  found,
  locatedResponse,
  storeAudited,
} from "./administration.ts";
import { backend, consumer, type Head, type Operation, operation } from "./operation.ts";
import { listResponse, pageOf, pagination, toPagination } from "./pagination.ts";
import { createSendLimit } from "./send_limit.ts";
import { getSubscription, ownerOf } from "./subscription.ts";

const TEST_JSON = JSON.stringify({ test: true });

const PATH = "/consumer/subscription";

const { id: ID, status: STATUS, subscription: SUBSCRIPTION } = DeliveryRecord.members;
const DeliveryId = named("DeliveryId", record({ id: ID }));
const WithAttempts = named("DeliveryWithAttempts", withMembers(DeliveryRecord, {
  attempts: manyOf(AttemptRecord),
}));
const ManagedWithAttempts = named("ManagedDeliveryWithAttempts", withMembers(ManagedDelivery, {
  attempts: manyOf(withMembers(AttemptRecord, {
    snippet: optional(described("How the response began: 4 KiB at most.", TEXT)),
  })),
}));

/** Which failed deliveries are sent again. */
export const Resend = named("Resend", object({
  status: oneOf("failed"),
  since: optional(described("Of the event's dispatch.", TIME)),
  until: optional(TIME),
  subscription: optional(SUBSCRIPTION),
}));

/** Deliveries of the caller's subscriptions, and sending one again or as a test. */
export function deliveryOperations(
  services: Pick<Services, "database" | "basePath" | "wake" | "now">,
): Operation[] {
  const { database, wake, now } = services;
  const checkSendable = createSendLimit(now);

  return [
    operation({
      ...consumer("GET", `${PATH}/:id/delivery`, "listDeliveries",
        "List a subscription's deliveries"),
      query: pagination(ID),
      responses: { 200: pageOf(DeliveryRecord) },
      async handle({ params, query, caller }) {
        const { id } = await getSubscription(database, params.id, caller);
        const page = await listDeliveries(database, { subscription: id }, toPagination(query));
        return listResponse(page, toDeliveryRecord);
      },
    }),
    // A delivery is found by its own id; the path may also name its subscription.
    ...[
      { path: `${PATH}/:id/delivery/:delivery`, name: "DeliveryOfSubscription" },
      { path: `${PATH}/delivery/:delivery`, name: "Delivery" },
    ].flatMap((at) => itemOperations({
      ...at,
      head: consumer,
      summary: "One delivery with its attempts",
      record: WithAttempts,
      toRecord: toDeliveryRecord,
      toAttempt: toAttemptRecord,
      refuses: [409, 429],
      async find({ id, delivery = "" }, caller) {
        const one = await findDelivery(database, delivery);
        const owned = await findSubscription(database, one?.subscription ?? "", ownerOf(caller));
        return owned && (id === undefined || id === owned.id) ? one : undefined;
      },
      async resend({ id, subscription }, { caller }) {
        checkSendable(await getSubscription(database, subscription, caller));
        const changes = await database.write(resendDeliveries([id], now()));
        wake();
        return changes;
      },
    }, services)),
    operation({
      ...consumer("POST", `${PATH}/:id/test`, "testSubscription",
        'Deliver {"test": true} to one subscription'),
      responses: { 202: DeliveryId },
      refuses: [409, 429],
      isLocated: true,
      async handle({ params, caller }) {
        const subscription = await getSubscription(database, params.id, caller);
        checkSendable(subscription);
        const nowMs = now();
        const event = newId("e", nowMs);
        const delivery = deliveryId(event, subscription.seq);
        const test = { subscription: subscription.id, event, delivery, json: TEST_JSON };
        const [stored] = await database.write(insertTestDelivery(test, nowMs));
        if (stored !== 1) throw conflict("The subscription has just changed.");
        wake();
        const path = `${PATH}/${subscription.id}/delivery/${delivery}`;
        return locatedResponse(202, path, { id: delivery }, services);
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

  return [
    operation({
      ...backend("GET", path, "listAllDeliveries", "List deliveries"),
      query: DELIVERY_QUERY,
      responses: { 200: pageOf(ManagedDelivery) },
      handle: async ({ query }) =>
        listResponse(await listDeliveries(database, query, toPagination(query)), toManagedDelivery),
    }),
    ...itemOperations({
      head: backend,
      path: `${path}/:id`,
      name: "AnyDelivery",
      summary: "One delivery with its attempts, and how each response began",
      record: ManagedWithAttempts,
      toRecord: toManagedDelivery,
      toAttempt: (attempt) => ({
        ...toAttemptRecord(attempt),
        ...(attempt.snippet !== null && { snippet: attempt.snippet }),
      }),
      refuses: [409],
      find: ({ id = "" }) => findDelivery(database, id),
      resend({ id }, context) {
        const action = { action: "delivery.resend", target: id };
        return storeAudited(context, resendDeliveries([id], now()), action, services);
      },
    }, services),
    operation({
      ...backend("POST", `${path}/resend`, "resendFailedDeliveries",
        "Send again what failed of the events dispatched from then to then"),
      body: Resend,
      responses: { 202: named("ResendCount", record({ count: COUNT })) },
      /** Batch by batch, so that no other write waits for long; the first has the audit entry. */
      async handle({ body: { since, until, subscription }, ...context }) {
        const action = { action: "delivery.resend", target: subscription ?? "failed" };
        const sinceMs = since === undefined ? undefined : Date.parse(since);
        const untilMs = until === undefined ? undefined : Date.parse(until);
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

/** Those of the caller's subscriptions, or all. */
interface View extends Pick<Operation, "path" | "summary"> {
  readonly head: Head;
  /** The end of the operations' ids. */
  readonly name: string;
  readonly record: Shape<unknown>;
  readonly refuses: readonly number[];
  toRecord(delivery: Delivery): object;
  toAttempt(attempt: Attempt): object;
  find(
    params: { readonly id?: string; readonly delivery?: string },
    caller: Caller,
  ): Promise<Delivery | undefined>;
  /** Returns the rows that each statement changed: none of the first where it was refused. */
  resend(delivery: Delivery, context: Actor): Promise<readonly number[]>;
}

function itemOperations(view: View, { database }: Pick<Services, "database">): Operation[] {
  const { head, path, name, summary, record, refuses, find } = view;
  return [
    operation({
      ...head("GET", path, `get${name}`, summary),
      responses: { 200: record },
      async handle({ params, caller }) {
        const delivery = found(await find(params, caller), "delivery");
        const attempts = await listAttempts(database, delivery.id);
        const shown = { ...view.toRecord(delivery), attempts: attempts.map(view.toAttempt) };
        return jsonResponse(200, shown);
      },
    }),
    operation({
      ...head("POST", `${path}/resend`, `resend${name}`,
        "Send a failed delivery again, with a fresh budget of attempts"),
      responses: { 202: DeliveryId },
      refuses,
      async handle({ params, ...context }) {
        const delivery = found(await find(params, context.caller), "delivery");
        const { id, status } = delivery;
        if (status !== "failed") {
          throw conflict(`The delivery is ${status}; only a failed one is sent again.`);
        }
        const [resent] = await view.resend(delivery, context);
        if (resent !== 1) {
          throw conflict("The delivery has just changed, or its subscription has ended.");
        }
        return jsonResponse(202, { id });
      },
    }),
  ];
}
