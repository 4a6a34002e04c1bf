import { newId } from "../base/id.ts";
import { type Event, EVENT_STATUSES, type EventSummary, OWN_PREFIX } from "../event/event.ts";
import { BACKEND_SCOPE } from "../oauth/principal.ts";
import { declaredScopes, mayReceive, NEEDED_BY_EVENT } from "./authority.ts";
import { type Database, limitTo, type Page, type Pagination } from "../database/database.ts";
import { type FilterOf, findRow, parseScopes, queryPage, type RowOf } from "../database/rows.ts";
import { andIs, listOf, ofStatus, sql, type Sql, sqlText } from "../database/sql.ts";
import type { Change } from "./audit.ts";
import { type ClaimOfDelivery, isClaimed } from "./deliveries.ts";
import { IS_OPEN, LAST_SUBSCRIPTION } from "./subscriptions.ts";

const COLUMNS = sql`id, name, status, subject, scopes, createdAtMs`;

/** An event by id, with its data as JSON. */
export async function findEvent(database: Database, id: string) {
  const select = sql`SELECT ${COLUMNS}, data AS json FROM events WHERE id = ${id}`;
  const row = await findRow<RowOf<EventSummary> & { readonly json: string }>(database, select);
  return row && parseScopes(row);
}

/** Events, newest first. */
export function listEvents(
  database: Database,
  { name, status }: FilterOf<EventSummary, "name" | "status">,
  page: Pagination,
): Promise<Page<EventSummary>> {
  const any = sql`SELECT ${COLUMNS} FROM events
    WHERE id < ${page.before}${andIs(sql`name`, name)}`;
  const select = ofStatus(any, status, name === undefined ? [] : EVENT_STATUSES);
  return queryPage(database, select, page, parseScopes<RowOf<EventSummary>>);
}

/** The columns that are left are id, name, time, scopes, subject, data and key. */
const DISPATCH = sql`INSERT INTO events
    (status, lastSubscription, id, name, createdAtMs, scopes, subject, data, key)
  SELECT 'pending', ${LAST_SUBSCRIPTION}`;

/**
 * Stores an event for the subscriptions at this commit, with the scopes that are declared then.
 * Changes no row where there is an event of its name and key.
 */
export function insertEvent({ id, name, json, subject, key, createdAtMs }: Event): Change {
  // The `WHERE` keeps SQLite from reading `ON` as part of a join.
  const insert = sql`${DISPATCH}, ${id}, ${name}, ${createdAtMs}, ${declaredScopes(name)},
      ${subject ?? null}, ${json}, ${key ?? null}
    WHERE true ON CONFLICT (name, key) WHERE key IS NOT NULL DO NOTHING`;
  if (key === undefined) return insert;
  const isThere = sql`SELECT 1 FROM events WHERE name = ${name} AND key = ${key}`;
  return { ...insert, when: sql`NOT EXISTS (${isThere})` };
}

/** The id of the event of this name and key. */
export async function findEventByKey(database: Database, name: string, key: string) {
  const select = sql`SELECT id FROM events WHERE name = ${name} AND key = ${key}`;
  return (await findRow<{ id: string }>(database, select))?.id;
}

/** What a subscriber to an event of the service itself must be allowed. */
const OWN_EVENT_SCOPES = sqlText(JSON.stringify([BACKEND_SCOPE]));

/**
 * Dispatches `gatepost.delivery.failed` if the claim still holds and the delivery is not one of an
 * event of the service itself. Belongs before the statements that record the failure.
 */
export function announceFailedDelivery(claimed: ClaimOfDelivery, nowMs: number): Sql {
  return sql`${DISPATCH}, ${newId("e", nowMs)}, ${`${OWN_PREFIX}delivery.failed`}, ${nowMs},
      ${OWN_EVENT_SCOPES}, NULL,
      json_object('delivery', d.id, 'subscription', s.id, 'event', e.name), NULL
    FROM (SELECT * FROM deliveries WHERE ${isClaimed(claimed)}) d
      JOIN events e ON e.id = d.event JOIN subscriptions s ON s.seq = d.subscription
    WHERE NOT ${isOwnEvent(sql`e.name`)}`;
}

/** Dispatches `gatepost.subscription.disabled` for subscriptions `s`, before they are disabled. */
export function announceDisabled(condition: Sql, reason: string, nowMs: number): Sql {
  // One id for all would not do: the last digits are each subscription's number.
  return sql`${DISPATCH}, ${newId("e", nowMs).slice(0, 17)} || printf('%08x', s.seq),
      ${`${OWN_PREFIX}subscription.disabled`}, ${nowMs}, ${OWN_EVENT_SCOPES}, NULL,
      json_object('subscription', s.id, 'event', s.event, 'reason', ${reason}), NULL
    FROM subscriptions s WHERE ${condition} AND NOT ${isOwnEvent(sql`s.event`)}`;
}

function isOwnEvent(name: Sql): Sql {
  return sql`substr(${name}, 1, ${OWN_PREFIX.length}) = ${OWN_PREFIX}`;
}

/** An event on its way to its deliveries. */
export interface PendingEvent extends Pick<EventSummary, "id" | "name" | "subject"> {
  /** What a subscriber must be allowed, a JSON array. */
  readonly needed: string;
  /** The last subscription that it is meant for, and the last that has its delivery. */
  readonly lastSubscription: number;
  readonly fannedOut: number;
  /** Whether anyone may be left for it, so that it takes a fan-out. */
  readonly hasSubscribers: boolean;
}

/** Holds where an event `e` has subscriptions left, whoever their principals are. */
const HAS_SUBSCRIBERS = sql`EXISTS (SELECT 1 FROM subscriptions s
  WHERE s.event = e.name AND s.seq > e.fannedOut AND s.seq <= e.lastSubscription AND s.${IS_OPEN})`;

const SELECT_PENDING = sql`SELECT id, name, subject, ${NEEDED_BY_EVENT} AS needed,
  lastSubscription, fannedOut, ${HAS_SUBSCRIBERS} AS hasSubscribers
  FROM events e WHERE status = 'pending'`;

/** Events to fan out, by id: some of the oldest, and some of the newest, which need not wait. */
export async function listPendingEvents(
  database: Database,
  { oldest, newest }: { readonly oldest: number; readonly newest: number },
): Promise<PendingEvent[]> {
  const rows = await database.query<RowOf<PendingEvent>>(
    sql`${SELECT_PENDING} ORDER BY id ${limitTo(oldest)}`,
  );
  const last = rows[oldest - 1];
  if (last) {
    const after = sql`${SELECT_PENDING} AND id > ${last.id} ORDER BY id DESC ${limitTo(newest)}`;
    rows.push(...(await database.query<RowOf<PendingEvent>>(after)).reverse());
  }
  return rows.map((row) => ({ ...row, hasSubscribers: row.hasSubscribers === 1 }));
}

/** Ends the distribution of events without subscribers, all at once: most have none. */
export async function markWithoutSubscribers(
  database: Database,
  events: readonly Pick<PendingEvent, "id">[],
): Promise<void> {
  if (events.length === 0) return;
  const update = sql`UPDATE events AS e SET fannedOut = lastSubscription, status = 'distributed'
    WHERE id IN ${listOf(events.map(({ id }) => id))} AND status = 'pending'
      AND NOT ${HAS_SUBSCRIBERS}`;
  await database.write([update]);
}

/** Makes an event's next deliveries and moves it on in the same batch: only one process does. */
export async function fanOut(
  database: Database,
  event: PendingEvent,
  limit: number,
  nowMs: number,
): Promise<void> {
  const { id, name, subject, fannedOut, lastSubscription } = event;
  const last = subject !== null ? undefined : await findRow<{ seq: number }>(
    database,
    sql`SELECT seq FROM subscriptions
      WHERE event = ${name} AND seq > ${fannedOut} AND seq <= ${lastSubscription} AND ${IS_OPEN}
      ORDER BY seq LIMIT 1 OFFSET ${limit - 1}`,
  );
  const end = last?.seq ?? lastSubscription;
  // A principal has few: the plus keeps SQLite from going through all of the event's instead.
  const part = subject === null
    ? sql`s.event = ${name} AND s.seq > ${fannedOut} AND s.seq <= ${end} AND s.${IS_OPEN}`
    : sql`s.event = ${name} AND +s.seq > ${fannedOut} AND +s.seq <= ${end} AND s.${IS_OPEN}
      AND s.principal = ${subject} AND s.status <> 'deleted'`;
  // As `deliveryId` makes it.
  const delivery = sql`${`d${id.slice(1)}`} || printf('%08x', s.seq)`;
  await database.write([
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
      SELECT ${delivery}, ${id}, s.seq, 'pending', ${nowMs} FROM subscriptions s
      WHERE ${part} AND ${mayReceive(event.needed)} AND EXISTS (SELECT 1 FROM events
        WHERE id = ${id} AND status = 'pending' AND fannedOut = ${fannedOut})`,
    sql`UPDATE subscriptions AS s SET dueAtMs = ${nowMs}
      WHERE ${part} AND (s.dueAtMs IS NULL OR s.dueAtMs > ${nowMs}) AND EXISTS
        (SELECT 1 FROM deliveries d WHERE d.id = ${delivery} AND d.status = 'pending')`,
    sql`UPDATE events SET fannedOut = ${end},
        status = iif(${end} >= lastSubscription, 'distributed', 'pending')
      WHERE id = ${id} AND status = 'pending' AND fannedOut = ${fannedOut}`,
  ]);
}

/** The id of an event's delivery to the subscription of this number: there can never be two. */
export function deliveryId(event: string, subscription: number): string {
  return `d${event.slice(1)}${subscription.toString(16).padStart(8, "0")}`;
}

/** Every event, in the order of dispatch, as its subscribers get it. */
export function listDispatched(
  database: Database,
): Promise<(Pick<Event, "id" | "name" | "json"> & Record<"subject" | "key", string | null>)[]> {
  return database.query(sql`SELECT id, name, subject, key, data AS json FROM events ORDER BY id`);
}
