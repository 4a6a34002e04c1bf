import type { Seal } from "../base/seal.ts";
import {
  SUBSCRIPTION_LIMIT,
  type Subscription,
  type SubscriptionChange,
} from "../event/subscription.ts";
import {
  type Database,
  type Page,
  pageOf,
  type PageRequest,
  sql,
  type Statement,
} from "./database.ts";

const COLUMNS = `seq, id, principal, app, event, endpoint, status,
  disabled_reason AS disabledReason, created_at AS createdAtMs`;

/** Whose subscriptions are meant: a principal's; of those, where `app` is given, that app's. */
export interface SubscriptionOwner {
  readonly principal: string;
  readonly app: string | undefined;
}

function ownedBy({ app }: SubscriptionOwner): string {
  // A principal has few: the plus keeps SQLite from going through all of the app's instead.
  return `principal = ?1 AND status <> 'deleted'${app === undefined ? "" : " AND +app = ?2"}`;
}

/** A subscription of one owner. */
export async function findSubscription(
  database: Database,
  owner: SubscriptionOwner,
  id: string,
): Promise<Subscription | undefined> {
  const rows = await database.query<Subscription>(
    `SELECT ${COLUMNS} FROM subscriptions WHERE id = ?3 AND ${ownedBy(owner)}`,
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
    `SELECT ${COLUMNS} FROM subscriptions WHERE ${ownedBy(owner)} AND id < ?3
     ORDER BY id DESC LIMIT ?4`,
    [owner.principal, owner.app ?? null, page.before, page.limit + 1],
  );
  return pageOf(rows, page);
}

/** A subscription, whoever's it is. */
export async function findAnySubscription(
  database: Database,
  id: string,
): Promise<Subscription | undefined> {
  const rows = await database.query<Subscription>(
    `SELECT ${COLUMNS} FROM subscriptions WHERE id = ?1 AND status <> 'deleted'`,
    [id],
  );
  return rows[0];
}

/** Everybody's subscriptions, newest first. */
export async function listAllSubscriptions(
  database: Database,
  page: PageRequest,
): Promise<Page<Subscription>> {
  const rows = await database.query<Subscription>(
    `SELECT ${COLUMNS} FROM subscriptions WHERE id < ?1 AND status <> 'deleted'
     ORDER BY id DESC LIMIT ?2`,
    [page.before, page.limit + 1],
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

/**
 * Changes endpoint, status or both; activating and a new endpoint forget that it failed. A disabled
 * one stays as it is, and 0 rows change, while something of it is still to be cancelled, and when
 * its user or app has ended.
 */
export function updateSubscription(
  id: string,
  { endpoint, status }: SubscriptionChange,
): Statement {
  return sql(
    `UPDATE subscriptions SET endpoint = ifnull(?2, endpoint), status = ifnull(?3, status),
       disabled_reason = CASE ifnull(?3, status) WHEN 'disabled' THEN disabled_reason END,
       failing_since = CASE WHEN ifnull(?2, endpoint) <> endpoint
         OR (?3 = 'active' AND status <> 'active') THEN NULL ELSE failing_since END
     WHERE id = ?1 AND status <> 'deleted'
       AND (ifnull(?3, 'disabled') = 'disabled' OR status <> 'disabled'
         OR (due_at IS NULL AND ${OWNER_STANDS}))`,
    id,
    endpoint ?? null,
    status ?? null,
  );
}

/** Whether the user or app of a subscription, and the app it was made through, are active. */
export async function hasStandingOwner(database: Database, id: string): Promise<boolean> {
  const rows = await database.query(
    `SELECT 1 FROM subscriptions WHERE id = ?1 AND ${OWNER_STANDS}`,
    [id],
  );
  return rows.length > 0;
}

const OWNER_STANDS = `(EXISTS (SELECT 1 FROM users u WHERE u.id = principal AND u.status = 'active')
    OR EXISTS (SELECT 1 FROM apps a WHERE a.id = principal AND a.status = 'active'))
  AND (app = 'login' OR EXISTS (SELECT 1 FROM apps a WHERE a.id = app AND a.status = 'active'))`;

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
