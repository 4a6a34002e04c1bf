import { idTimeMs } from "../base/id.ts";
import type { Seal } from "../base/seal.ts";
import { type Caller, LOGIN_APP } from "../oauth/principal.ts";
import { declaredScope, LAST_ENDING, mayReceive } from "./authority.ts";
import {
  SUBSCRIPTION_LIMIT,
  type Subscription,
  type SubscriptionChange,
} from "../event/subscription.ts";
import { type Database, type Page, pageOf, type Pagination } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { arePartiesActive } from "./grants.ts";

/** Of a subscription that has not ended: what is dispatched is sent to it, or waits for it. */
export const IS_OPEN = "status IN ('active', 'paused')";

/** The number of the last subscription that there is. */
export const LAST_SUBSCRIPTION = "(SELECT ifnull(max(seq), 0) FROM subscriptions)";

/** When the turn of a subscription comes that has something due from `?2` on. */
export const EARLIER_TURN = "min(ifnull(dueAtMs, ?2), ?2)";

const COLUMNS = `seq, id, principal, app, event, endpoint, status,
  disabledReason, createdAtMs`;

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
  page: Pagination,
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
  page: Pagination,
): Promise<Page<Subscription>> {
  const rows = await database.query<Subscription>(
    `SELECT ${COLUMNS} FROM subscriptions WHERE id < ?1 AND status <> 'deleted'
     ORDER BY id DESC LIMIT ?2`,
    [page.before, page.limit + 1],
  );
  return pageOf(rows, page);
}

/** What a subscription lives by: the grant of a token, and the scopes of that token. */
export interface SubscriptionGrant {
  readonly id: string;
  /** Undefined for a token of the login endpoint: what its user has counts as granted. */
  readonly scopes: readonly string[] | undefined;
}

/** What a subscription lives by that the caller makes or sets active. */
export function grantOf({ grantId, clientId, scopes }: Caller): SubscriptionGrant {
  return { id: grantId, scopes: clientId === LOGIN_APP ? undefined : scopes };
}

/** A subscription as it is first stored. */
export type SubscriptionRecord = Omit<Subscription, "seq" | "status" | "disabledReason"> & {
  readonly secret: string;
  readonly grant: SubscriptionGrant;
};

/**
 * Stores a subscription unless its principal has as many as one may have, the grant that it is made
 * by has ended, or it may not receive what is declared of its event: then 0 rows change.
 * ConflictError when the principal has the same event and endpoint already.
 */
export function insertSubscription(subscription: SubscriptionRecord, seal: Seal): Sql {
  const { id, principal, app, event, endpoint, createdAtMs, grant } = subscription;
  return sql(
    `INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
       grantId, granted, grantedAfter)
     SELECT ?1, s.principal, s.app, ?4, ?5, 'active', ?6, ?7, s.grantId, s.granted, s.grantedAfter
     FROM (SELECT ?2 AS principal, ?3 AS app, ?9 AS grantId, ?11 AS granted,
       ${LAST_ENDING} AS grantedAfter) s
     WHERE (SELECT count(*) FROM subscriptions WHERE principal = ?2 AND status <> 'deleted') < ?8
       AND ${isGrantActive("?9", "?10")} AND ${mayReceive(declaredScope("?4"))}`,
    id,
    principal,
    app,
    event,
    endpoint,
    seal.encrypt(subscription.secret, id),
    createdAtMs,
    SUBSCRIPTION_LIMIT,
    ...grantParams(grant),
  );
}

/** A grant's id, its time, and its scopes. */
function grantParams({ id, scopes }: SubscriptionGrant) {
  return [id, idTimeMs(id), scopes === undefined ? null : JSON.stringify(scopes)] as const;
}

/** Whether a grant, its user and its app still stand. */
export async function hasActiveGrant(database: Database, grantId: string): Promise<boolean> {
  const rows = await database.query(
    `SELECT 1 WHERE ${isGrantActive("?1", "?2")}`,
    [grantId, idTimeMs(grantId)],
  );
  return rows.length > 0;
}

/** Holds at commit: the grant of a token, made at that time, its user and its app still stand. */
function isGrantActive(id: string, madeAtMs: string): string {
  return `EXISTS (SELECT 1 FROM grants g WHERE g.id = ${id} AND g.revokedAtMs IS NULL
    AND ${arePartiesActive("g.user", "g.app", madeAtMs)})`;
}

/**
 * Changes endpoint, status or both; activating and a new endpoint forget that it failed. With the
 * grant of its owner's token, what becomes active, or is disabled no more, lives by that from now
 * on; without one, what a user made by own login has what its user has.
 * A disabled one stays as it is, and 0 rows change, while something of it is still to be cancelled,
 * and where it may receive nothing; nor does any change by a token whose grant has ended.
 */
export function updateSubscription(
  id: string,
  { endpoint, status }: SubscriptionChange,
  grant?: SubscriptionGrant,
): Sql {
  const isGranted = `(?4 IS NOT NULL OR app = '${LOGIN_APP}')
    AND (?3 = 'active' OR (?3 = 'paused' AND status = 'disabled'))`;
  return sql(
    `UPDATE subscriptions SET endpoint = ifnull(?2, endpoint), status = ifnull(?3, status),
       grantId = s.grantId, granted = s.granted, grantedAfter = s.grantedAfter,
       disabledReason = CASE ifnull(?3, status) WHEN 'disabled' THEN disabledReason END,
       failingSinceMs = CASE WHEN ifnull(?2, endpoint) <> endpoint
         OR (?3 = 'active' AND status <> 'active') THEN NULL ELSE failingSinceMs END,
       hasSucceeded = CASE WHEN ifnull(?2, endpoint) <> endpoint
         OR (?3 = 'active' AND status <> 'active') THEN 0 ELSE hasSucceeded END,
       meanMs = CASE WHEN ifnull(?2, endpoint) <> endpoint
         OR (?3 = 'active' AND status <> 'active') THEN 0 ELSE meanMs END
     FROM (SELECT seq, principal, app,
         iif(${isGranted}, ifnull(?4, grantId), grantId) AS grantId,
         iif(${isGranted}, ?6, granted) AS granted,
         iif(${isGranted}, ${LAST_ENDING}, grantedAfter) AS grantedAfter
       FROM subscriptions WHERE id = ?1) s
     WHERE subscriptions.seq = s.seq AND status <> 'deleted'
       AND (ifnull(?3, 'disabled') = 'disabled' OR status <> 'disabled'
         OR (dueAtMs IS NULL AND ${mayReceive("'[]'")}))
       AND (?4 IS NULL OR ${isGrantActive("?4", "?5")})`,
    id,
    endpoint ?? null,
    status ?? null,
    ...grant === undefined ? [null, null, null] : grantParams(grant),
  );
}

/**
 * Gives a subscription a new secret; the old one signs beside it until `oldUntilMs`. 0 rows change
 * while the one before still does, since no more than two sign.
 */
export function replaceSubscriptionSecret(
  id: string,
  secret: string,
  { oldUntilMs, nowMs, seal }: {
    readonly oldUntilMs: number;
    readonly nowMs: number;
    readonly seal: Seal;
  },
): Sql {
  return sql`UPDATE subscriptions SET oldSecret = secret, oldSecretUntilMs = ${oldUntilMs}, secret = ${seal.encrypt(secret, id)}
     WHERE id = ${id} AND status <> 'deleted' AND ifnull(oldSecretUntilMs, 0) <= ${nowMs}`;
}
