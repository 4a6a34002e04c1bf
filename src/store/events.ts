import type { Event } from "../event/event.ts";
import { declaredScope, mayReceive, NEEDED_BY_EVENT } from "./authority.ts";
import { type Database, limitTo } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { IS_OPEN, LAST_SUBSCRIPTION } from "./subscriptions.ts";

const INSERT_EVENT =
  `INSERT INTO events (id, name, data, subject, scopes, status, lastSubscription, createdAtMs)
   SELECT ?1, ?2, ?3, ?4, ${declaredScope("?2")}, 'pending', ${LAST_SUBSCRIPTION}, ?5`;

/**
 * Stores a dispatched event; it is meant for the subscriptions that exist at this commit, and needs
 * what is declared of it then.
 */
export function insertEvent(event: Event): Sql {
  return sql(
    INSERT_EVENT,
    event.id,
    event.name,
    event.json,
    event.subject ?? null,
    event.createdAtMs,
  );
}

/** An event on its way to its deliveries. */
export interface PendingEvent {
  readonly id: string;
  readonly name: string;
  readonly subject: string | null;
  /** What a subscriber must be allowed, a JSON array. */
  readonly needed: string;
  /** The last subscription that it is meant for, and the last that has its delivery. */
  readonly lastSubscription: number;
  readonly fannedOut: number;
  /** Whether anyone may be left for it, so that it takes a fan-out. */
  readonly hasSubscribers: boolean;
}

/** Whether an event `e` has subscriptions left, whoever their principals are. */
const HAS_SUBSCRIBERS = `EXISTS (SELECT 1 FROM subscriptions s
  WHERE s.event = e.name AND s.seq > e.fannedOut AND s.seq <= e.lastSubscription AND s.${IS_OPEN})`;

const PENDING_IDS = "SELECT id FROM events WHERE status = 'pending' ORDER BY id";
const LIST_PENDING_EVENTS =
  `SELECT id, name, subject, ${NEEDED_BY_EVENT} AS needed, lastSubscription, fannedOut,
     ${HAS_SUBSCRIBERS} AS hasSubscribers
   FROM events e WHERE status = 'pending' AND id IN (SELECT * FROM (${PENDING_IDS} ${limitTo("?1")})
     UNION SELECT * FROM (${PENDING_IDS} DESC ${limitTo("?2")})) ORDER BY id`;

/**
 * Events that have not been fanned out yet, in the order of their ids: so many of the oldest, and of
 * the newest, which therefore need not wait behind a great many others.
 */
export async function listPendingEvents(
  database: Database,
  { oldest, newest }: { readonly oldest: number; readonly newest: number },
): Promise<PendingEvent[]> {
  type Row = Omit<PendingEvent, "hasSubscribers"> & { hasSubscribers: number };
  const rows = await database.query<Row>(LIST_PENDING_EVENTS, [oldest, newest]);
  return rows.map(({ hasSubscribers, ...rest }) => ({ ...rest, hasSubscribers: hasSubscribers === 1 }));
}

/** Ends the distribution of events that nobody is left for, all at once: most have no subscriber. */
export async function markWithoutSubscribers(
  database: Database,
  events: readonly Pick<PendingEvent, "id">[],
): Promise<void> {
  if (events.length === 0) return;
  await database.write([
    sql(SETTLE_UNHEARD, JSON.stringify(events.map(({ id }) => id))),
  ]);
}

const SETTLE_UNHEARD =
  `UPDATE events AS e SET fannedOut = lastSubscription, status = 'distributed'
   WHERE id IN (SELECT value FROM json_each(?1)) AND status = 'pending' AND NOT ${HAS_SUBSCRIBERS}`;

/**
 * Makes the deliveries of one event for its next subscriptions, at most `limit` of them, in one
 * batch that also moves the event on: of several processes exactly one does each part.
 */
export async function fanOut(
  database: Database,
  event: PendingEvent,
  limit: number,
  nowMs: number,
): Promise<void> {
  const end = event.subject === null ? await findPartEnd(database, event, limit) : event.lastSubscription;
  // A principal has few: the plus keeps SQLite from going through all of the event's instead.
  const part = event.subject === null
    ? `s.event = ?2 AND s.seq > ?3 AND s.seq <= ?4 AND s.${IS_OPEN}`
    : `s.event = ?2 AND +s.seq > ?3 AND +s.seq <= ?4 AND s.${IS_OPEN}
       AND s.principal = ?6 AND s.status <> 'deleted'`;
  // Exactly as many values as the statements have parameters.
  const params = [event.id, event.name, event.fannedOut, end, nowMs,
    ...event.subject === null ? [] : [event.subject]];
  await database.write([
    sql(
      `INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
       SELECT ${DELIVERY_ID}, ?1, s.seq, 'pending', ?5 FROM subscriptions s
       WHERE ${part} AND ${mayReceive(`?${params.length + 1}`)}
         AND EXISTS (SELECT 1 FROM events
           WHERE id = ?1 AND status = 'pending' AND fannedOut = ?3)`,
      ...params,
      event.needed,
    ),
    sql(
      `UPDATE subscriptions AS s SET dueAtMs = ?5
       WHERE ${part} AND (s.dueAtMs IS NULL OR s.dueAtMs > ?5)
         AND EXISTS (SELECT 1 FROM deliveries d WHERE d.id = ${DELIVERY_ID} AND d.status = 'pending')`,
      ...params,
    ),
    sql`UPDATE events SET fannedOut = ${end},
         status = CASE WHEN ${end} >= lastSubscription THEN 'distributed' ELSE 'pending' END
       WHERE id = ${event.id} AND status = 'pending' AND fannedOut = ${event.fannedOut}`,
  ]);
}

/** The id of an event's delivery to the subscription of this number: there can never be two. */
export function deliveryId(event: string, subscription: number): string {
  return `d${event.slice(1)}${subscription.toString(16).padStart(8, "0")}`;
}

/** The same in SQL, of event `?1` and subscription `s`. */
const DELIVERY_ID = "'d' || substr(?1, 2) || printf('%08x', s.seq)";

async function findPartEnd(
  database: Database,
  { name, fannedOut, lastSubscription }: PendingEvent,
  limit: number,
): Promise<number> {
  const rows = await database.query<{ seq: number }>(
    `SELECT seq FROM subscriptions
     WHERE event = ?1 AND seq > ?2 AND seq <= ?3 AND ${IS_OPEN}
     ORDER BY seq LIMIT 1 OFFSET ?4`,
    [name, fannedOut, lastSubscription, limit - 1],
  );
  return rows[0]?.seq ?? lastSubscription;
}
