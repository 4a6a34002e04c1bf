import type { Seal } from "../base/seal.ts";
import { SUBSCRIPTION_LIMIT, type Subscription } from "../event/subscription.ts";
import { type Database, type Page, pageOf, type PageRequest, sql, type Statement } from "./database.ts";

const columns = `seq, id, principal, app, event, endpoint, status,
  disabled_reason AS disabledReason, created_at AS createdAtMs`;

/** Whose subscriptions are meant: a principal's; of those, where `app` is given, that app's. */
export interface SubscriptionOwner {
  readonly principal: string;
  readonly app: string | undefined;
}

function ownedBy({ app }: SubscriptionOwner): string {
  return `principal = ?1 AND status <> 'deleted'${app === undefined ? "" : " AND app = ?2"}`;
}

/** A subscription of one owner. */
export async function findSubscription(
  database: Database,
  owner: SubscriptionOwner,
  id: string,
): Promise<Subscription | undefined> {
  const rows = await database.query<Subscription>(
    `SELECT ${columns} FROM subscriptions WHERE id = ?3 AND ${ownedBy(owner)}`,
    [owner.principal, owner.app ?? null, id],
  );
  return rows[0];
}

/** The subscriptions of one owner, newest first. */
export async function listSubscriptions(
  database: Database,
  owner: SubscriptionOwner,
  page: PageRequest,
): Promise<Page<Subscription>> {
  const rows = await database.query<Subscription>(
    `SELECT ${columns} FROM subscriptions WHERE ${ownedBy(owner)} AND id < ?3
     ORDER BY id DESC LIMIT ?4`,
    [owner.principal, owner.app ?? null, page.before, page.limit + 1],
  );
  return pageOf(rows, page);
}

/** A subscription as it is first stored. */
export type SubscriptionRecord = Omit<Subscription, "seq" | "status" | "disabledReason"> & {
  readonly secret: string;
};

/**
 * Stores a subscription unless its principal has as many as one may have: then 0 rows change.
 * ConflictError when the principal has the same event and endpoint already.
 */
export function insertSubscription(subscription: SubscriptionRecord, seal: Seal): Statement {
  const { id, principal, app, event, endpoint, createdAtMs } = subscription;
  return sql(
    `INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, created_at)
     SELECT ?1, ?2, ?3, ?4, ?5, 'active', ?6, ?7
     WHERE (SELECT count(*) FROM subscriptions WHERE principal = ?2 AND status <> 'deleted') < ?8`,
    id,
    principal,
    app,
    event,
    endpoint,
    seal.close(subscription.secret, id),
    createdAtMs,
    SUBSCRIPTION_LIMIT,
  );
}

/** Changes endpoint and status; activating forgets why it was disabled and that it failed. */
export function updateSubscription(
  id: string,
  endpoint: string,
  status: Subscription["status"],
): Statement {
  return sql(
    `UPDATE subscriptions SET endpoint = ?2, status = ?3,
       disabled_reason = CASE ?3 WHEN 'disabled' THEN disabled_reason END,
       failing_since = CASE WHEN ?3 = 'active' AND status <> 'active' THEN NULL
         ELSE failing_since END
     WHERE id = ?1 AND status <> 'deleted'`,
    id,
    endpoint,
    status,
  );
}

/** Gives a subscription a new secret; the old one signs beside it until `oldUntilMs`. */
export function replaceSubscriptionSecret(
  id: string,
  secret: string,
  oldUntilMs: number,
  seal: Seal,
): Statement {
  return sql(
    `UPDATE subscriptions SET old_secret = secret, old_secret_until = ?3, secret = ?2
     WHERE id = ?1 AND status <> 'deleted'`,
    id,
    seal.close(secret, id),
    oldUntilMs,
  );
}

/** Ends a subscription and cancels what it has not been sent. */
export function deleteSubscription(id: string, nowMs: number): Statement[] {
  return [
    cancelPending("id = ?1", [id], nowMs),
    sql(
      "UPDATE subscriptions SET status = 'deleted', due_at = NULL WHERE id = ?1 AND status <> 'deleted'",
      id,
    ),
  ];
}

/** Disables a subscription and cancels what it has not been sent. */
export function disableSubscription(id: string, reason: string, nowMs: number): Statement[] {
  return [
    cancelPending("id = ?1 AND status <> 'deleted'", [id], nowMs),
    sql(
      `UPDATE subscriptions SET status = 'disabled', disabled_reason = ?2, due_at = NULL
       WHERE id = ?1 AND status IN ('active', 'paused')`,
      id,
      reason,
    ),
  ];
}

/** Disables every subscription of a user or app, or of a user through one app. */
export function disableSubscriptionsOf(
  who: { readonly principal?: string; readonly app?: string },
  reason: string,
  nowMs: number,
): Statement[] {
  const where = [
    ...(who.principal === undefined ? [] : ["principal = ?1"]),
    ...(who.app === undefined ? [] : ["app = ?2"]),
    "status IN ('active', 'paused')",
  ].join(" AND ");
  const params = [who.principal ?? null, who.app ?? null];
  return [
    cancelPending(where, params, nowMs),
    sql(
      `UPDATE subscriptions SET status = 'disabled', disabled_reason = ?3, due_at = NULL
       WHERE ${where}`,
      ...params,
      reason,
    ),
  ];
}

function cancelPending(
  where: string,
  params: readonly (string | null)[],
  nowMs: number,
): Statement {
  return sql(
    `UPDATE deliveries SET status = 'cancelled', finished_at = ?9, claim = NULL
     WHERE status = 'pending' AND subscription IN (SELECT seq FROM subscriptions WHERE ${where})`,
    ...params,
    ...Array<null>(8 - params.length).fill(null),
    nowMs,
  );
}
