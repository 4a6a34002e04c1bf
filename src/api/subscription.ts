import { conflict, Problem } from "../base/problem.ts";
import { refinedMember } from "../base/refined_member.ts";
import {
  described,
  type Infer,
  oneOf,
  optional,
  refined,
  type Report,
  type Shape,
} from "../base/shape.ts";
import type { Database } from "../database/database.ts";
import type { Sql } from "../database/sql.ts";
import { OWN_PREFIX } from "../event/event.ts";
import {
  ManagedSubscription,
  ManagedSubscriptionChange,
  SubscriptionChange,
  SubscriptionRecord,
  toManagedSubscription,
  toSubscriptionRecord,
} from "../event/subscription.ts";
import {
  BACKEND_SCOPE,
  type Caller,
  CONSUMER_SCOPE,
  covers,
  isOwnLogin,
} from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { afterWrite } from "../store/after_write.ts";
import { findEventScopes } from "../store/authority.ts";
import { listPart } from "../store/list.ts";
import {
  clearSubscription,
  deleteSubscription,
  disableSubscription,
} from "../store/subscription_end.ts";
import {
  findSubscription,
  listFailing,
  SUBSCRIPTION_CURSOR,
  SUBSCRIPTION_LIST,
  updateSubscription,
} from "../store/subscriptions.ts";
import { findUser } from "../store/users.ts";
import {
  type Actor,
  type Administration,
  checkChanged,
  found,
  refuseConflict,
  storeAudited,
} from "./administration.ts";
import { backend, consumer, type Operation, type Side } from "./operation.ts";
import { pageOf, pagination, toPageRecord } from "./pagination.ts";

// A list of the caller's own subscriptions does not need these two filters.
const { owner, app, ...OWN_FILTERS } = SUBSCRIPTION_LIST.filters;

/** The detail where another subscription of the owner has the same event and endpoint. */
export const TAKEN = "There is a subscription of this event and endpoint already.";

/** The order of a list of subscriptions. */
export const SORT = optional(
  described("worst: only failing ones, the longest failing first.", oneOf("newest", "worst")),
  "newest",
);

/** `{side}/subscription`: the caller's own, or everybody's. Changes of the latter are audited. */
export function subscriptionOperations(
  side: Side,
  services: Administration & Pick<Services, "heavy" | "refuseEndpoint">,
): Operation[] {
  const { database, heavy, wake, now } = services;
  const isOwn = side === "/consumer";
  const [make, record, toRecord] = isOwn
    ? [consumer, SubscriptionRecord, toSubscriptionRecord] as const
    : [backend, ManagedSubscription, toManagedSubscription] as const;
  const filters: typeof OWN_FILTERS = isOwn ? OWN_FILTERS : SUBSCRIPTION_LIST.filters;
  const changes: Shape<Infer<typeof ManagedSubscriptionChange>> =
    isOwn ? SubscriptionChange : ManagedSubscriptionChange;
  const path = `${side}/subscription` as const;
  const find = (id: string, caller: Caller) =>
    getSubscription(database, id, isOwn ? caller : undefined);

  async function store(context: Actor, action: string, id: string, statements: readonly Sql[]) {
    if (!isOwn) return storeAudited(context, action, id, statements, services, TAKEN);
    const changes = await database.write(statements).catch(refuseConflict(TAKEN));
    wake();
    return changes;
  }

  return [
    make("GET", path, isOwn ? "listSubscriptions" : "listAllSubscriptions",
      `List ${isOwn ? "the caller's" : "everybody's"} subscriptions`, {
      query: { ...pagination(SUBSCRIPTION_CURSOR), ...filters, sort: SORT },
      returns: pageOf(record),
      async handle({ query: { sort, ...query }, caller }) {
        const given = isOwn ? { ...query, ...ownerOf(caller) } : query;
        const page = sort === "worst"
          ? await listFailing(isOwn ? database : heavy, given)
          : await listPart(database, SUBSCRIPTION_LIST, given);
        return toPageRecord(page, toRecord);
      },
    }),
    make("GET", `${path}/:id`, isOwn ? "getSubscription" : "getAnySubscription",
      "One subscription", {
      returns: record,
      handle: async ({ params: { id }, caller }) => toRecord(await find(id, caller)),
    }),
    make("PATCH", `${path}/:id`, isOwn ? "changeSubscription" : "changeAnySubscription",
      isOwn ? "Change a subscription's endpoint, pause it or activate it"
        : "Change a subscription's endpoint, pause, activate or disable it", {
      body: refinedMember(refined(changes, checkPause), "endpoint", checkReachable(services)),
      returns: record,
      refuses: [409],
      async handle({ params: { id }, body: { endpoint, paused_until, ...body }, ...context }) {
        const { caller } = context;
        const status = paused_until === undefined ? body.status : "paused";
        const subscription = await find(id, caller);
        const isDisabled = status === "disabled";
        const isRevived = subscription.status === "disabled" && status && !isDisabled;
        // A new endpoint receives the event too, which this token may not be allowed to have.
        if (isOwn && (status === "active" || isRevived || endpoint !== undefined)) {
          await checkEventAllowed(database, subscription.event, caller);
        }
        // Old unsent deliveries are cancelled before the subscription is active or paused again.
        if (isRevived && !await clearSubscription(database, id, now())) {
          throw new Problem(503, "unavailable", "Its old deliveries are still being cancelled.", {
            headers: { "Retry-After": "5" },
          });
        }
        const update = { endpoint, paused_until, status: isDisabled ? undefined : status };
        const grant = isOwn
          ? { id: caller.grantId, scopes: await grantedScopes(database, caller) }
          : undefined;
        const [changed] = await store(context, "subscription.change", id, [
          updateSubscription(id, update, grant),
          ...isDisabled ? disableSubscription(id, "administrator", now()) : [],
        ]);
        if (changed === 0) {
          throw conflict(subscription.status === "disabled"
            ? "The user, the app or the grant of the subscription has ended."
            : "The subscription has just changed; try again.");
        }
        return toRecord(await afterWrite(find(id, caller)));
      },
    }),
    make("DELETE", `${path}/:id`, isOwn ? "unsubscribe" : "deleteAnySubscription",
      isOwn ? "Unsubscribe" : "Remove a subscription; its unsent deliveries are cancelled", {
      async handle({ params: { id }, ...context }) {
        await find(id, context.caller);
        const end = deleteSubscription(id, now());
        const changes = await store(context, "subscription.delete", id, end);
        checkChanged(changes, "subscription");
      },
    }),
  ];
}

/** Reports a `paused_until` whose status is not paused. */
function checkPause(
  { paused_until: until, status = "paused" }: Infer<typeof ManagedSubscriptionChange>,
  report: Report,
) {
  if (until !== undefined && status !== "paused") report("Needs status paused.", "/paused_until");
}

/** Reports an endpoint to which callbacks are never sent. */
export function checkReachable({ refuseEndpoint }: Pick<Services, "refuseEndpoint">) {
  return (endpoint: string, report: Report) => {
    const refusal = refuseEndpoint(new URL(endpoint));
    if (refusal !== undefined) report(refusal);
  };
}

/** A token of the user's own login sees all subscriptions of the user; an app's, the app's own. */
export function ownerOf({ sub, clientId }: Caller) {
  return { owner: sub, app: isOwnLogin(clientId) ? undefined : clientId };
}

/** Returns a subscription by id, only the caller's if one is given; throws Problem 404. */
export async function getSubscription(database: Database, id: string, caller?: Caller) {
  return found(await findSubscription(database, id, caller && ownerOf(caller)), "subscription");
}

/** Returns the scopes granted to the caller's subscriptions: by own login all of the user's. */
export async function grantedScopes(
  database: Database,
  { sub, clientId, scopes }: Caller,
): Promise<readonly string[]> {
  return isOwnLogin(clientId) ? (await findUser(database, sub))?.scopes ?? [] : scopes;
}

/** Throws Problem 403 where the caller may not receive an event. */
export async function checkEventAllowed(database: Database, event: string, caller: Caller) {
  const needed = event.startsWith(OWN_PREFIX)
    ? [BACKEND_SCOPE]
    : await findEventScopes(database, event);
  const granted = await grantedScopes(database, caller);
  if (needed.every((scope) => covers(granted, scope))) return;
  throw new Problem(403, "forbidden_event", `The event needs scope ${needed.join(" ")}.`, {
    challenge: { error: "insufficient_scope", scopes: [CONSUMER_SCOPE, ...needed] },
  });
}
