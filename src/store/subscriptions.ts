import { ID_LENGTH, idBound, idTimeMs, isId } from "../base/id.ts";
import type { Seal } from "../base/seal.ts";
import { described, type Infer, matching } from "../base/shape.ts";
import { EVENT_NAME, PRINCIPAL_ID } from "../event/event.ts";
import { LOGIN_APP } from "../oauth/principal.ts";
import { declaredScopes, isPrincipalActive, LAST_ENDING, mayReceive } from "./authority.ts";
import {
  SUBSCRIPTION_LIMIT,
  type Subscription,
  type SubscriptionChange,
  SubscriptionRecord,
} from "../event/subscription.ts";
import { type Database, limitTo, type Page } from "../database/database.ts";
import { findRow, hasRow, NEWEST, pageOf } from "../database/rows.ts";
import { andIs, joinSql, sql, type Sql, sqlText } from "../database/sql.ts";
import { type Change, updateWhere } from "./audit.ts";
import { AT_MOST } from "./batch.ts";
import { notBeforeOf } from "./grants.ts";
import { asItem, beginsWith, type Given, is, narrow, WANTED } from "./list.ts";

/** Holds for a subscription that has not ended: events are sent to it, or wait for it. */
export const IS_OPEN = sql`status IN ('active', 'paused')`;

/** The earlier of `nowMs` and `dueAtMs`; names the table, as deliveries have that column too. */
export function earlierDue(nowMs: number): Sql {
  return sql`min(ifnull(subscriptions.dueAtMs, ${nowMs}), ${nowMs})`;
}

const COLUMNS = sql`seq, id, principal, app, event, endpoint, status, disabledReason, createdAtMs,
  failingSinceMs, iif(status = 'paused', pausedUntilMs, NULL) AS pausedUntilMs`;

/** Finds a subscription by id; with `owner` or `app`, only one that is theirs. */
export function findSubscription(
  database: Database,
  id: string,
  { owner, app }: Pick<Given<typeof SUBSCRIPTION_LIST.filters>, "owner" | "app"> = {},
): Promise<Subscription | undefined> {
  const isWanted = sql`status <> 'deleted'${andIs(sql`principal`, owner)}${andIs(sql`app`, app)}`;
  // The plus makes SQLite search by the id alone.
  const select = sql`SELECT ${COLUMNS} FROM subscriptions WHERE id = ${id} AND +(${isWanted})`;
  return findRow(database, select);
}

/** The beginning of an endpoint, with `https://` added if it has no scheme. */
export const toUrl = (text: string): string => /^https?:/i.test(text) ? text : `https://${text}`;

const IS_LISTED = sql`status <> 'deleted'`;

export const SUBSCRIPTION_LIST = {
  table: sql`subscriptions`,
  columns: COLUMNS,
  always: IS_LISTED,
  filters: {
    owner: is(sql`principal`, described("The user's or app's id.", PRINCIPAL_ID)),
    app: is(sql`app`, described("The app that it was made through.", WANTED)),
    event: is(sql`event`, described("The event's name.", EVENT_NAME)),
    status: is(sql`status`, SubscriptionRecord.members.status),
    q: beginsWith(sql`subscriptions`, sql`endpoint`, "the endpoint", toUrl, IS_LISTED),
  },
  indexes: { owner: [], q: [] },
  toItem: asItem<Subscription>(),
} as const;

/** The next_cursor of a list of subscriptions: an id; of failing ones a time before the id. */
export const SUBSCRIPTION_CURSOR = matching(
  new RegExp(`^s(?:[0-9a-z]{9}s)?[0-9a-z]{${ID_LENGTH - 1}}$`),
  "Must be a next_cursor of this list.",
);

/** Lists failing subscriptions that are not disabled, the one failing for longest first. */
export async function listFailing(
  database: Database,
  given: Given<typeof SUBSCRIPTION_LIST.filters>,
): Promise<Page<Subscription>> {
  const { limit, cursor = NEWEST } = given;
  // The cursor has the time too: its subscription may no longer fail, or be gone.
  const [lastMs, lastId] = [idTimeMs(cursor) || 0, cursor.slice(-ID_LENGTH)];
  const [first = sql`TRUE`, ...others] = narrow(SUBSCRIPTION_LIST.filters, given).conditions
    .map(({ condition }) => condition);
  // The plus leaves SQLite only the index of the first condition: an owner has few.
  const rest = joinSql(others.map((condition) => sql` AND +${condition}`), "");
  const rows = await database.query<Subscription>(
    sql`SELECT ${COLUMNS} FROM subscriptions
      WHERE ${first}${rest} AND ${IS_OPEN} AND status <> 'deleted' AND failingSinceMs IS NOT NULL
      AND (failingSinceMs, id) > (${lastMs}, ${lastId})
      ORDER BY failingSinceMs, id ${limitTo(limit + 1)}`,
  );
  const { items, next } = pageOf(rows, given);
  return { items, next: next && idBound("s", items.at(-1)?.failingSinceMs ?? 0) + next };
}

/** What a subscription depends on: the grant of a token, and the scopes of that token. */
export interface SubscriptionGrant {
  readonly id: string;
  readonly scopes: readonly string[];
}

export type NewSubscription = Pick<
  Subscription,
  "id" | "principal" | "app" | "event" | "endpoint" | "createdAtMs"
> & { readonly secret: string; readonly grant: SubscriptionGrant };

/**
 * Stores a subscription. 0 rows change if its principal has reached the limit, its grant has ended,
 * or it may not receive its event. ConflictError if the event and endpoint exist already.
 */
export function insertSubscription(subscription: NewSubscription, seal: Seal): Change {
  const { id, principal, app, event, endpoint, secret, createdAtMs, grant } = subscription;
  const allowed = sql`FROM (SELECT ${principal} AS principal, ${app} AS app, ${grant.id} AS grantId,
      ${grantedBy(grant, sql`${app}`)} AS granted, ${LAST_ENDING} AS grantedAfter) s
    WHERE (SELECT count(*) FROM subscriptions
        WHERE principal = ${principal} AND status <> 'deleted') < ${SUBSCRIPTION_LIMIT}
      AND ${isGrantActive(grant.id)} AND ${mayReceive(declaredScopes(event))}`;
  const insert = sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret,
      createdAtMs, grantId, granted, grantedAfter)
    SELECT ${id}, s.principal, s.app, ${event}, ${endpoint}, 'active', ${seal.encrypt(secret, id)},
      ${createdAtMs}, s.grantId, s.granted, s.grantedAfter ${allowed}`;
  return { ...insert, when: sql`EXISTS (SELECT 1 ${allowed})` };
}

/** The scopes of the token; NULL, for all that the user has, if it was made by own login. */
function grantedBy(grant: SubscriptionGrant | undefined, app: Sql): Sql {
  return sql`iif(${app} = ${sqlText(LOGIN_APP)}, NULL, ${JSON.stringify(grant?.scopes ?? [])})`;
}

/** Whether a grant, its user and its app are still active. */
export function hasActiveGrant(database: Database, grantId: string): Promise<boolean> {
  return hasRow(database, sql`SELECT 1 WHERE ${isGrantActive(grantId)}`);
}

/** Holds at commit: the grant of a token, its user and its app (or a principal) are active. */
export function isGrantActive(id: string): Sql {
  if (isId("x", id)) return isPrincipalActive(id);
  return sql`EXISTS (SELECT 1 FROM grants g WHERE g.id = ${id} AND g.revokedAtMs IS NULL
    AND ${notBeforeOf(sql`g.user`, sql`g.app`, sql`g.resource`)} < ${idTimeMs(id)})`;
}

/**
 * Changes endpoint, status or both. Activation and a new endpoint clear the record of failures. A
 * subscription that becomes active, or stops being disabled, depends on `grant` from then on: the
 * grant of its owner's token. Without `grant`, one made by own login has all that its user has. 0
 * rows change if the grant has ended, or for a disabled subscription that still has deliveries to
 * cancel or may receive nothing.
 */
export function updateSubscription(
  id: string,
  change: Infer<typeof SubscriptionChange>,
  grant?: SubscriptionGrant,
): Change {
  const [endpoint, status] = [change.endpoint ?? null, change.status ?? null];
  const until = change.paused_until ?? null;
  const isNew = sql`(ifnull(${endpoint}, endpoint) <> endpoint
    OR (${status} = 'active' AND status <> 'active'))`;
  const isGranted = sql`(${status} = 'active' OR (${status} = 'paused' AND status = 'disabled'))
    AND ${grant === undefined ? sql`app = ${sqlText(LOGIN_APP)}` : sql`TRUE`}`;
  const granted = sql`(SELECT seq, principal, app,
      iif(${isGranted}, ifnull(${grant?.id ?? null}, grantId), grantId) AS grantId,
      iif(${isGranted}, ${grantedBy(grant, sql`app`)}, granted) AS granted,
      iif(${isGranted}, ${LAST_ENDING}, grantedAfter) AS grantedAfter
    FROM subscriptions WHERE id = ${id}) s`;
  const where = sql`subscriptions.seq = s.seq AND status <> 'deleted'
    AND (${status} IS NULL OR status <> 'disabled' OR (dueAtMs IS NULL AND ${mayReceive("[]")}))
    AND ${grant === undefined ? sql`TRUE` : isGrantActive(grant.id)}`;
  const update = sql`UPDATE subscriptions
    SET endpoint = ifnull(${endpoint}, endpoint), status = ifnull(${status}, status),
      pausedUntilMs = iif(${status} IS NULL, pausedUntilMs, ${until}),
      grantId = s.grantId, granted = s.granted, grantedAfter = s.grantedAfter,
      disabledReason = iif(ifnull(${status}, status) = 'disabled', disabledReason, NULL),
      failingSinceMs = iif(${isNew}, NULL, failingSinceMs),
      hasSucceeded = iif(${isNew}, 0, hasSucceeded), meanMs = iif(${isNew}, 0, meanMs)
    FROM ${granted} WHERE ${where}`;
  return { ...update, when: sql`EXISTS (SELECT 1 FROM subscriptions, ${granted} WHERE ${where})` };
}

/** Activates a batch of subscriptions whose pause is over, and clears their record of failures. */
export async function wakePaused(database: Database, nowMs: number): Promise<void> {
  const where = sql`status = 'paused' AND pausedUntilMs <= ${nowMs}`;
  if (!await hasRow(database, sql`SELECT 1 FROM subscriptions WHERE ${where} LIMIT 1`)) return;
  await database.write([sql`UPDATE subscriptions
    SET status = 'active', failingSinceMs = NULL, hasSucceeded = 0, meanMs = 0
    WHERE seq IN (SELECT seq FROM subscriptions WHERE ${where} ${AT_MOST})`]);
}

const OLD_SECRET_MS = 24 * 60 * 60_000;

/** Older secrets that are this long together, sealed, no longer sign: each costs work. */
const OLD_SECRETS_LENGTH = 500;

/** Replaces a secret. Former ones sign too, until a day after the last replacement. */
export function replaceSubscriptionSecret(
  id: string,
  secret: string,
  nowMs: number,
  seal: Seal,
): Change {
  return updateWhere(sql`subscriptions`, sql`oldSecret = secret || iif(oldSecretUntilMs > ${nowMs}
        AND length(oldSecret) < ${OLD_SECRETS_LENGTH}, ' ' || oldSecret, ''),
      oldSecretUntilMs = ${nowMs + OLD_SECRET_MS}, secret = ${seal.encrypt(secret, id)}`,
    sql`id = ${id} AND status <> 'deleted'`);
}
