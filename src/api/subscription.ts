import { newId } from "../base/id.ts";
import { Problem } from "../base/problem.ts";
import { randomBytes } from "../base/secret.ts";
import { described, named, type Shape, shown, withMembers } from "../base/shape.ts";
import type { Database } from "../database/database.ts";
import type { Sql } from "../database/sql.ts";
import { OWN_PREFIX } from "../event/event.ts";
import { formatSigningSecret } from "../event/signature.ts";
import {
  type ManagedChange,
  ManagedSubscription,
  managedSubscriptionChange,
  newSubscription,
  type Subscription,
  SUBSCRIPTION_LIMIT,
  subscriptionChange,
  SubscriptionRecord,
  toManagedSubscription,
  toSubscriptionRecord,
} from "../event/subscription.ts";
import { emptyResponse, jsonResponse, NO_STORE } from "../http/respond.ts";
import { BACKEND_SCOPE, type Caller, LOGIN_APP } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { findEventScopes } from "../store/authority.ts";
import {
  clearSubscription,
  deleteSubscription,
  disableSubscription,
} from "../store/subscription_end.ts";
import {
  findSubscription,
  grantOf,
  hasActiveGrant,
  insertSubscription,
  listSubscriptions,
  replaceSubscriptionSecret,
  type SubscriptionOwner,
  updateSubscription,
} from "../store/subscriptions.ts";
import {
  type Actor,
  type Administration,
  type AuditedAction,
  BACKEND,
  checkChanged,
  created,
  found,
  refuseConflict,
  storeAudited,
} from "./backend/administration.ts";
import { CONSUMER, type Operation, operation } from "./operation.ts";
import { listResponse, pageOf, pagination, toPagination } from "./pagination.ts";

type SubscriptionServices = Administration & Pick<Services, "refuseEndpoint">;

const PATH = "/consumer/subscription";
const OLD_SECRET_MS = 24 * 60 * 60_000;

const WithSecret = named("SubscriptionWithSecret", withMembers(SubscriptionRecord, {
  secret: described(
    "Signs callbacks (Standard Webhooks); shown here only.",
    shown<string>({ type: "string", pattern: "^whsec_" }),
  ),
}));

/** /consumer/subscription: those of the caller. */
export function subscriptionOperations(
  services: SubscriptionServices & Pick<Services, "seal">,
): Operation[] {
  const { database, seal, now, refuseEndpoint } = services;
  const taken = "There is a subscription of this event and endpoint already.";

  return [
    operation({
      ...CONSUMER,
      id: "subscribe",
      method: "POST",
      path: PATH,
      summary: "Subscribe to an event",
      body: newSubscription(refuseEndpoint),
      responses: { 201: WithSecret },
      refuses: [409],
      async handle({ body, ...context }) {
        const { caller } = context;
        await checkEventAllowed(database, body.event, caller);
        const createdAtMs = now();
        const id = newId("s", createdAtMs);
        const owner = { principal: caller.sub, app: caller.clientId };
        const subscription = { ...body, ...owner, id, createdAtMs };
        const secret = formatSigningSecret(randomBytes(32));
        const grant = grantOf(caller);
        const insert = insertSubscription({ ...subscription, secret, grant }, seal);
        // Audited for its secret, which is shown here.
        const action = { action: "subscription.create", target: id };
        const [inserted] = await storeAudited(context, [insert], action, services, taken);
        if (inserted !== 1) {
          await checkEventAllowed(database, body.event, caller);
          if (!await hasActiveGrant(database, caller.grantId)) {
            throw new Problem(409, "conflict", "The grant of this token was revoked.");
          }
          throw new Problem(409, "limit", `There are ${SUBSCRIPTION_LIMIT} subscriptions already.`);
        }
        const stored = { ...subscription, status: "active", disabledReason: null } as const;
        return created(services, `${PATH}/${id}`, { ...toSubscriptionRecord(stored), secret });
      },
    }),
    ...sharedOperations({
      base: CONSUMER,
      path: PATH,
      list: { id: "listSubscriptions", summary: "List the caller's subscriptions" },
      get: { id: "getSubscription", summary: "One subscription" },
      change: {
        id: "changeSubscription",
        summary: "Change a subscription's endpoint, pause it or activate it",
      },
      changes: subscriptionChange(refuseEndpoint),
      remove: { id: "unsubscribe", summary: "Unsubscribe" },
      record: SubscriptionRecord,
      toRecord: toSubscriptionRecord,
      taken,
      ownerOf,
    }, services),
    operation({
      ...CONSUMER,
      id: "replaceSigningSecret",
      method: "POST",
      path: `${PATH}/:id/secret`,
      summary: "Replace the signing secret; the old one signs beside it for a day",
      responses: { 200: WithSecret },
      refuses: [409],
      async handle({ params: { id }, ...context }) {
        const subscription = await getSubscription(database, id, context.caller);
        const secret = formatSigningSecret(randomBytes(32));
        const nowMs = now();
        const times = { nowMs, oldUntilMs: nowMs + OLD_SECRET_MS };
        const replace = replaceSubscriptionSecret(id, secret, { ...times, seal });
        const action = { action: "subscription.rotate_secret", target: id };
        const [replaced] = await storeAudited(context, [replace], action, services);
        if (replaced !== 1) {
          await getSubscription(database, id, context.caller); // 404 where it has just been deleted
          throw new Problem(409, "conflict", "The secret before this one still signs.");
        }
        return jsonResponse(200, { ...toSubscriptionRecord(subscription), secret }, NO_STORE);
      },
    }),
  ];
}

/** /backend/subscription: everybody's. */
export function managedSubscriptionOperations(services: SubscriptionServices): Operation[] {
  return sharedOperations({
    base: BACKEND,
    path: "/backend/subscription",
    list: { id: "listAllSubscriptions", summary: "List everybody's subscriptions" },
    get: { id: "getAnySubscription", summary: "One subscription" },
    change: {
      id: "changeAnySubscription",
      summary: "Change a subscription's endpoint, pause, activate or disable it",
    },
    changes: managedSubscriptionChange(services.refuseEndpoint),
    remove: {
      id: "deleteAnySubscription",
      summary: "Remove a subscription; what it has not been sent is cancelled",
    },
    record: ManagedSubscription,
    toRecord: toManagedSubscription,
    taken: "Its owner has a subscription of this event and endpoint already.",
  }, services);
}

type Words = Pick<Operation, "id" | "summary">;

/** How subscriptions are seen: those of the caller's own, or everybody's. */
interface View extends Record<"list" | "get" | "change" | "remove", Words> {
  readonly base: { readonly access: readonly string[]; readonly cors: boolean };
  readonly path: "/consumer/subscription" | "/backend/subscription";
  readonly changes: Shape<ManagedChange>;
  readonly record: Shape<unknown>;
  toRecord(subscription: Subscription): object;
  /** Why an endpoint is refused that a subscription of the same event has. */
  readonly taken: string;
  /** Absent: everybody's, and changes are audited. */
  ownerOf?(caller: Caller): SubscriptionOwner;
}

function sharedOperations(view: View, services: SubscriptionServices): Operation[] {
  const { base, path, toRecord, ownerOf } = view;
  const { database, wake, now } = services;
  const item = { ...base, path: `${path}/:id` } as const;
  const find = async (id: string, caller: Caller) =>
    found(await findSubscription(database, id, ownerOf?.(caller)), "subscription");

  async function store(context: Actor, statements: readonly Sql[], action: AuditedAction) {
    if (!ownerOf) return storeAudited(context, statements, action, services, view.taken);
    const changes = await database.write(statements).catch(refuseConflict(view.taken));
    wake();
    return changes;
  }

  return [
    operation({
      ...base,
      ...view.list,
      method: "GET",
      path,
      query: pagination(SubscriptionRecord.members.id),
      responses: { 200: pageOf(view.record) },
      async handle({ query, caller }) {
        const page = await listSubscriptions(database, toPagination(query), ownerOf?.(caller));
        return listResponse(page, toRecord);
      },
    }),
    operation({
      ...item,
      ...view.get,
      method: "GET",
      responses: { 200: view.record },
      async handle({ params, caller }) {
        return jsonResponse(200, toRecord(await find(params.id, caller)), NO_STORE);
      },
    }),
    operation({
      ...item,
      ...view.change,
      method: "PATCH",
      body: view.changes,
      responses: { 200: view.record },
      refuses: [409],
      async handle({ params: { id }, body: { endpoint, status }, ...context }) {
        const { caller } = context;
        const subscription = await find(id, caller);
        if (ownerOf && status === "active") {
          await checkEventAllowed(database, subscription.event, caller);
        }
        const isDisabled = status === "disabled";
        if (!isDisabled && status) await prepareRevival(database, subscription, now());
        const change = { endpoint, status: isDisabled ? undefined : status };
        const [changed] = await store(context, [
          updateSubscription(id, change, ownerOf && grantOf(caller)),
          ...isDisabled ? disableSubscription(id, "administrator", now()) : [],
        ], { action: "subscription.change", target: id });
        if (changed === 0) {
          throw new Problem(409, "conflict", subscription.status === "disabled"
            ? "Its user, its app or the grant that made it has ended."
            : "The subscription has just changed; try again.");
        }
        return jsonResponse(200, toRecord(await find(id, caller)), NO_STORE);
      },
    }),
    operation({
      ...item,
      ...view.remove,
      method: "DELETE",
      responses: { 204: undefined },
      async handle({ params: { id }, ...context }) {
        await find(id, context.caller);
        const action = { action: "subscription.delete", target: id };
        const changes = await store(context, deleteSubscription(id, now()), action);
        checkChanged(changes, "subscription");
        return emptyResponse(204);
      },
    }),
  ];
}

/** A login token sees all that its user has, an app's token what was made through that app. */
function ownerOf({ sub, clientId }: Caller): SubscriptionOwner {
  return { principal: sub, app: clientId === LOGIN_APP ? undefined : clientId };
}

/** The caller's subscription of this id; throws Problem 404, which speaks of `what`. */
export async function getSubscription(
  database: Database,
  id: string,
  caller: Caller,
  what = "subscription",
): Promise<Subscription> {
  return found(await findSubscription(database, id, ownerOf(caller)), what);
}

/** Throws Problem 403 where the caller's token may not receive an event. */
async function checkEventAllowed(database: Database, event: string, caller: Caller): Promise<void> {
  const needed = event.startsWith(OWN_PREFIX)
    ? [BACKEND_SCOPE]
    : await findEventScopes(database, event);
  if (needed.every((scope) => caller.scopes.includes(scope))) return;
  throw new Problem(403, "forbidden_event", `The event needs scope ${needed.join(" ")}.`);
}

/**
 * Cancels what is left of a disabled subscription, so that it may be active again; throws Problem
 * 503 where that takes longer than a request should.
 */
async function prepareRevival(
  database: Database,
  { id, status }: Subscription,
  nowMs: number,
): Promise<void> {
  if (status !== "disabled" || await clearSubscription(database, id, nowMs)) return;
  throw new Problem(503, "unavailable", "Its old deliveries are still being cancelled.", {
    headers: { "Retry-After": "5" },
  });
}
