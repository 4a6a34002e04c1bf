import { newId } from "../base/id.ts";
import { described } from "../base/shape.ts";
import {
  type Event,
  EVENT_STATUSES,
  EventRecord,
  type EventSummary,
  OWN_PREFIX,
  PRINCIPAL_ID,
} from "../event/event.ts";
import { BACKEND_SCOPE } from "../oauth/principal.ts";
import { declaredScopes } from "./authority.ts";
import type { Database } from "../database/database.ts";
import { findRow, findValue } from "../database/rows.ts";
import { joinSql, sql, type Sql, sqlText } from "../database/sql.ts";
import type { Change } from "./audit.ts";
import { asItem, is, madeBetween, WANTED } from "./list.ts";
import { IS_OPEN } from "./subscriptions.ts";

const COLUMNS = sql`id, name, status, subject, request, source, principal, createdAtMs,
  (SELECT group_concat(value, ' ') FROM json_each(scopes)) AS scope`;

const { name, status } = EventRecord.members;

export const EVENT_LIST = {
  table: sql`events`,
  columns: COLUMNS,
  filters: {
    name: is(sql`name`, described("The event's name.", name)),
    status: is(sql`status`, status),
    subject: is(sql`subject`, described("The only principal that it is for.", PRINCIPAL_ID)),
    request: is(sql`request`, described("The X-Request-Id of the request.", WANTED)),
    source: is(sql`source`, described("The route or cronjob; or backend, or cli.", WANTED)),
    ...madeBetween("e", "Dispatched"),
  },
  indexes: { request: [], name: EVENT_STATUSES, status: [] },
  toItem: asItem<EventSummary>(),
} as const;

/** An event by id, with its data as JSON. */
export function findEvent(database: Database, id: string) {
  const select = sql`SELECT ${COLUMNS}, data AS json FROM events WHERE id = ${id}`;
  return findRow<EventSummary & { readonly json: string }>(database, select);
}

/** Begins the INSERT; the caller adds id, name, time, scopes, subject, data, key and the origin. */
function dispatch(name: Sql | string, isDistributing = true): Sql {
  const status = isDistributing
    ? sql`iif(EXISTS (SELECT 1 FROM subscriptions o
        WHERE o.event = ${name} AND o.${IS_OPEN}), 'pending', 'distributed')`
    : sql`'pending'`;
  return sql`INSERT INTO events (lastSubscription, status, id, name, createdAtMs, scopes, subject,
      data, key, request, source, principal)
    SELECT (SELECT ifnull(max(seq), 0) FROM subscriptions), ${status}`;
}

/** The most events of one statement: each number of events makes another text of SQL. */
export const EVENTS_AT_ONCE = 50;

/** The SQL that is the same for all events, built once. */
const [INSERT, INSERT_PENDING] = [insertOf(true), insertOf(false)];
// The `WHERE` keeps SQLite from reading `ON` as part of a join.
const UNLESS_KNOWN = sql`WHERE true ON CONFLICT (name, key) WHERE key IS NOT NULL DO NOTHING`;

function insertOf(isDistributing: boolean): Sql {
  const name = sql`column2`;
  return sql`${dispatch(name, isDistributing)}, column1, ${name}, column3,
      ${declaredScopes(name)}, column4, column5, column6, column7, column8, column9`;
}

/**
 * Stores events for the subscriptions that exist at this commit, with the scopes declared then.
 * Changes a row for each event, unless one of its name and key exists.
 *
 * @param isDistributing whether a distributor runs here: then an event without a subscriber, as
 * most are, is stored as distributed
 */
export function insertEvents(events: readonly Event[], isDistributing: boolean): Sql {
  const rows = events.map((event) =>
    sql`(${event.id}, ${event.name}, ${event.createdAtMs}, ${event.subject ?? null}, ${event.json},
      ${event.key ?? null}, ${event.request ?? null}, ${event.source ?? null},
      ${event.principal ?? null})`
  );
  const insert = isDistributing ? INSERT : INSERT_PENDING;
  return sql`${insert} FROM (VALUES ${joinSql(rows, ", ")}) ${UNLESS_KNOWN}`;
}

/** Stores one event, which waits for the distributor. */
export function insertEvent(event: Event): Change {
  const { name, key } = event;
  const insert = insertEvents([event], false);
  if (key === undefined) return insert;
  const isThere = sql`SELECT 1 FROM events WHERE name = ${name} AND key = ${key}`;
  return { ...insert, when: sql`NOT EXISTS (${isThere})` };
}

/** The id of the event of this name and key. */
export function findEventByKey(database: Database, name: string, key: string) {
  const select = sql`SELECT id FROM events WHERE name = ${name} AND key = ${key}`;
  return findValue<string>(database, select);
}

/** The scopes that a subscriber to the service's own events needs. */
const OWN_EVENT_SCOPES = sqlText(JSON.stringify([BACKEND_SCOPE]));

/**
 * Dispatches `gatepost.delivery.failed` if the claim still holds and the delivery's event is not
 * one of the service itself. Put it before the statements that record the failure.
 */
export function announceFailedDelivery(isClaimed: Sql, nowMs: number): Sql {
  const name = `${OWN_PREFIX}delivery.failed`;
  return sql`${dispatch(name)}, ${newId("e", nowMs)}, ${name}, ${nowMs},
      ${OWN_EVENT_SCOPES}, NULL,
      json_object('delivery', d.id, 'subscription', s.id, 'event', e.name), NULL, NULL, NULL, NULL
    FROM (SELECT * FROM deliveries WHERE ${isClaimed}) d
      JOIN events e ON e.id = d.event JOIN subscriptions s ON s.seq = d.subscription
    WHERE NOT ${isOwnEvent(sql`e.name`)}`;
}

/** Dispatches `gatepost.subscription.disabled` for subscriptions `s`, before they are disabled. */
export function announceDisabled(condition: Sql, reason: string, nowMs: number): Sql {
  const name = `${OWN_PREFIX}subscription.disabled`;
  // Each event needs an id of its own: the last digits are the subscription's number.
  return sql`${dispatch(name)}, ${newId("e", nowMs).slice(0, 17)} || printf('%08x', s.seq),
      ${name}, ${nowMs}, ${OWN_EVENT_SCOPES}, NULL,
      json_object('subscription', s.id, 'event', s.event, 'reason', ${reason}),
      NULL, NULL, NULL, NULL
    FROM subscriptions s WHERE ${condition} AND NOT ${isOwnEvent(sql`s.event`)}`;
}

function isOwnEvent(name: Sql): Sql {
  return sql`substr(${name}, 1, ${OWN_PREFIX.length}) = ${OWN_PREFIX}`;
}

/** Every event, in the order of dispatch, as its subscribers get it. */
export function listDispatched(
  database: Database,
): Promise<(Pick<Event, "id" | "name" | "json"> & Record<"subject" | "key", string | null>)[]> {
  return database.query(sql`SELECT id, name, subject, key, data AS json FROM events ORDER BY id`);
}
