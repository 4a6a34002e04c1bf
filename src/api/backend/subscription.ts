import { parseManagedSubscriptionChange, type Subscription } from "../../event/subscription.ts";
import { deleteSubscription, disableSubscription } from "../../store/subscription_end.ts";
import {
  findSubscription,
  listSubscriptions,
  updateSubscription,
} from "../../store/subscriptions.ts";
import { readJson } from "../../http/body.ts";
import { toRecord as toConsumerRecord } from "../consumer/subscription.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { emptyResponse, jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { PathParams, ProtectedRoute } from "../route.ts";
import { changeSubscription } from "../subscription_change.ts";
import {
  BACKEND_ROUTE,
  type BackendOptions,
  checkChanged,
  found,
  storeAudited,
} from "./backend_route.ts";

/** What the backend's subscriptions work with. */
export interface SubscriptionAdministrationOptions extends BackendOptions {
  /** Why a well-formed endpoint is never called, or undefined. */
  readonly refuseEndpoint: (url: URL) => string | undefined;
}

/** /backend/subscription: everybody's subscriptions. */
export function managedSubscriptionRoutes(
  options: SubscriptionAdministrationOptions,
): ProtectedRoute[] {
  const { database, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/subscription" };
  const item = { ...BACKEND_ROUTE, path: "/backend/subscription/:id" };
  const find = async (params: PathParams) =>
    found(await findSubscription(database, params["id"] ?? ""), "subscription");

  return [
    {
      ...collection,
      method: "GET",
      summary: "List everybody's subscriptions",
      async handle({ request }) {
        return listResponse(await listSubscriptions(database, readPagination(request)), toRecord);
      },
    },
    {
      ...item,
      method: "GET",
      summary: "One subscription",
      handle: async ({ params }) => jsonResponse(200, toRecord(await find(params)), NO_STORE),
    },
    {
      ...item,
      method: "PATCH",
      summary: "Change a subscription's endpoint, pause, activate or disable it",
      async handle(context) {
        const { endpoint, status } = parseManagedSubscriptionChange(
          await readJson(context.request, options.maxBodyBytes), // first: it may come slowly
          options.refuseEndpoint,
        );
        const subscription = await find(context.params);
        const audited = { action: "subscription.change", target: subscription.id };
        const taken = "Its owner has a subscription of this event and endpoint already.";
        if (status === "disabled") {
          await storeAudited(context, [
            updateSubscription(subscription.id, { endpoint, status: undefined }),
            ...disableSubscription(subscription.id, "administrator", now()),
          ], audited, options, taken);
        } else {
          await changeSubscription(subscription, { endpoint, status }, {
            database,
            store: async (statements) =>
              (await storeAudited(context, statements, audited, options, taken))[0],
            wake: options.wake,
            nowMs: now(),
          });
        }
        return jsonResponse(200, toRecord(await find(context.params)), NO_STORE);
      },
    },
    {
      ...item,
      method: "DELETE",
      summary: "Remove a subscription; what it has not been sent is cancelled",
      async handle(context) {
        const { id } = await find(context.params);
        const audited = { action: "subscription.delete", target: id };
        const deletion = deleteSubscription(id, now());
        checkChanged(await storeAudited(context, deletion, audited, options), "subscription");
        return emptyResponse(204);
      },
    },
  ];
}

/** A subscription as the backend shows it. */
function toRecord(subscription: Subscription): Record<string, unknown> {
  const { id, ...rest } = toConsumerRecord(subscription);
  return { id, principal: subscription.principal, app: subscription.app, ...rest };
}
