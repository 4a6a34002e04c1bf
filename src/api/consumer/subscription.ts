import { newId } from "../../base/id.ts";
import { Problem } from "../../base/problem.ts";
import type { Seal } from "../../base/seal.ts";
import { randomBytes } from "../../base/secret.ts";
import { OWN_PREFIX } from "../../event/event.ts";
import { formatSigningSecret } from "../../event/signature.ts";
import {
  parseNewSubscription,
  parseSubscriptionChange,
  type Subscription,
  SUBSCRIPTION_LIMIT,
} from "../../event/subscription.ts";
import { BACKEND_SCOPE, type Caller, CONSUMER_SCOPE, LOGIN_APP } from "../../oauth/principal.ts";
import { actorOf, insertAuditOfChange } from "../../store/audit.ts";
import { findEventScopes } from "../../store/authority.ts";
import { ConflictError, type Database } from "../../database/database.ts";
import { deleteSubscription } from "../../store/subscription_end.ts";
import {
  findSubscription,
  grantOf,
  hasActiveGrant,
  insertSubscription,
  listSubscriptions,
  replaceSubscriptionSecret,
  type SubscriptionOwner,
} from "../../store/subscriptions.ts";
import { readJson } from "../../http/body.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { emptyResponse, jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";
import { changeSubscription } from "../subscription_change.ts";

/** What the consumer's subscriptions work with. */
export interface SubscriptionOptions {
  readonly database: Database;
  readonly seal: Seal;
  readonly basePath: string;
  readonly maxBodyBytes: number;
  /** Why a well-formed endpoint is never called, or undefined. */
  readonly refuseEndpoint: (url: URL) => string | undefined;
  /** Tells the distributor that there may be work. */
  readonly wake: () => void;
  readonly now: () => number;
}

const OLD_SECRET_MS = 24 * 60 * 60_000;

/** Subscriptions of the caller: /consumer/subscription. */
export function subscriptionRoutes(options: SubscriptionOptions): ProtectedRoute[] {
  const { database, seal, now } = options;
  const base = { access: [CONSUMER_SCOPE], cors: true } as const;
  const collection = { ...base, path: "/consumer/subscription" };
  const item = { ...base, path: "/consumer/subscription/:id" };

  return [
    {
      ...collection,
      method: "POST",
      summary: "Subscribe to an event",
      async handle({ request, caller }) {
        const body = await readJson(request, options.maxBodyBytes);
        const { event, endpoint } = parseNewSubscription(body, options.refuseEndpoint);
        await checkEventAllowed(database, event, caller);
        const createdAtMs = now();
        const record = {
          id: newId("s", createdAtMs),
          principal: caller.sub,
          app: caller.clientId,
          event,
          endpoint,
          createdAtMs,
        };
        const secret = formatSigningSecret(randomBytes(32));
        const insert = insertSubscription({ ...record, secret, grant: grantOf(caller) }, seal);
        const audited = { ...actorOf(caller, request), action: "subscription.create" };
        const [inserted] = await database.write([
          insert,
          // For its secret, which is shown here.
          insertAuditOfChange({ ...audited, target: record.id }, createdAtMs),
        ]).catch(refuseConflict);
        if (inserted !== 1) {
          await checkEventAllowed(database, event, caller);
          if (!await hasActiveGrant(database, caller.grantId)) {
            throw new Problem(409, "conflict", "What the token came from has just ended.");
          }
          throw new Problem(409, "limit", `There are ${SUBSCRIPTION_LIMIT} subscriptions already.`);
        }
        const response = toRecord({ ...record, status: "active", disabledReason: null });
        const location = `${options.basePath}${collection.path}/${record.id}`;
        return jsonResponse(201, { ...response, secret }, { Location: location, ...NO_STORE });
      },
    },
    {
      ...collection,
      method: "GET",
      summary: "List the caller's subscriptions",
      async handle({ request, caller }) {
        const page = await listSubscriptions(database, readPagination(request), ownerOf(caller));
        return listResponse(page, toRecord);
      },
    },
    {
      ...item,
      method: "GET",
      summary: "One subscription",
      async handle({ params, caller }) {
        return jsonResponse(200, toRecord(await getSubscription(database, caller, params["id"])));
      },
    },
    {
      ...item,
      method: "PATCH",
      summary: "Change a subscription's endpoint, pause it or activate it",
      async handle({ request, params, caller }) {
        const found = await getSubscription(database, caller, params["id"]);
        const body = await readJson(request, options.maxBodyBytes);
        const change = parseSubscriptionChange(body, options.refuseEndpoint);
        if (change.status === "active") await checkEventAllowed(database, found.event, caller);
        await changeSubscription(found, change, {
          database,
          store: async (statements) => (await database.write(statements).catch(refuseConflict))[0],
          wake: options.wake,
          nowMs: now(),
          grant: grantOf(caller),
        });
        return jsonResponse(200, toRecord(await getSubscription(database, caller, found.id)));
      },
    },
    {
      ...item,
      method: "DELETE",
      summary: "Unsubscribe",
      async handle({ params, caller }) {
        const found = await getSubscription(database, caller, params["id"]);
        await database.write(deleteSubscription(found.id, now()));
        return emptyResponse(204);
      },
    },
    {
      ...item,
      path: `${item.path}/secret`,
      method: "POST",
      summary: "Replace the signing secret; the old one signs beside it for a day",
      async handle({ request, params, caller }) {
        const found = await getSubscription(database, caller, params["id"]);
        const secret = formatSigningSecret(randomBytes(32));
        const nowMs = now();
        const times = { nowMs, oldUntilMs: nowMs + OLD_SECRET_MS };
        const replace = replaceSubscriptionSecret(found.id, secret, { ...times, seal });
        const audited = { ...actorOf(caller, request), action: "subscription.rotate_secret" };
        const [replaced] = await database.write([
          replace,
          insertAuditOfChange({ ...audited, target: found.id }, nowMs),
        ]);
        if (replaced !== 1) {
          await getSubscription(database, caller, found.id); // 404 where it has just been deleted
          throw new Problem(409, "conflict", "The secret before this one still signs.");
        }
        return jsonResponse(200, { ...toRecord(found), secret }, NO_STORE);
      },
    },
  ];
}

/** A subscription as consumers see it. */
export function toRecord(subscription: Omit<Subscription, "seq">): Record<string, unknown> {
  const { id, event, endpoint, status, createdAtMs, disabledReason } = subscription;
  return {
    id,
    event,
    endpoint,
    status,
    created_at: new Date(createdAtMs).toISOString(),
    ...(disabledReason !== null && { disabled_reason: disabledReason }),
  };
}

/** A login token sees all that its user has, an app's token what was made through that app. */
export function ownerOf({ sub, clientId }: Caller): SubscriptionOwner {
  return { principal: sub, app: clientId === LOGIN_APP ? undefined : clientId };
}

/** The caller's subscription of this id; throws Problem 404. */
export async function getSubscription(
  database: Database,
  caller: Caller,
  id = "",
): Promise<Subscription> {
  const found = await findSubscription(database, id, ownerOf(caller));
  if (!found) throw new Problem(404, "not_found", "There is no such subscription.");
  return found;
}

/** Throws Problem 403 where the caller's token may not be told of an event. */
async function checkEventAllowed(database: Database, event: string, caller: Caller): Promise<void> {
  const needed = event.startsWith(OWN_PREFIX)
    ? [BACKEND_SCOPE]
    : await findEventScopes(database, event);
  if (needed.every((scope) => caller.scopes.includes(scope))) return;
  throw new Problem(403, "forbidden_event", `The event needs scope ${needed.join(" ")}.`);
}

function refuseConflict(error: unknown): never {
  if (!(error instanceof ConflictError)) throw error;
  throw new Problem(409, "conflict", "There is a subscription of this event and endpoint already.");
}
