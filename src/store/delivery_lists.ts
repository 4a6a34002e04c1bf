import { described, matching, optional, wholeNumber } from "../base/shape.ts";
import {
  type Attempt,
  type Delivery,
  DELIVERY_STATUSES,
  ManagedDelivery,
} from "../event/delivery_record.ts";
import { EVENT_NAME } from "../event/event.ts";
import { type Database, limitTo, type Page } from "../database/database.ts";
import { findRow } from "../database/rows.ts";
import { joinSql, sql, type Sql, sqlText } from "../database/sql.ts";
import {
  asItem,
  type Given,
  is,
  listPart,
  madeBetween,
  startsWith,
  WANTED,
  where,
} from "./list.ts";
import { toUrl } from "./subscriptions.ts";

const { status: STATUS_SHAPE, subscription: SUBSCRIPTION, event: EVENT } = ManagedDelivery.members;

/** A pending delivery of an ended subscription counts as cancelled, unless it is in flight. */
const STATUS = sql`iif(d.status = 'pending' AND d.claim IS NULL
  AND s.status IN ('disabled', 'deleted'), 'cancelled', d.status)`;

/** When a delivery is due: not before its subscription's pause ends; NULL if that has no end. */
const NEXT_ATTEMPT = sql`iif(s.status = 'paused', max(d.dueAtMs, s.pausedUntilMs), d.dueAtMs)`;

const COLUMNS = sql`d.id, d.event, e.name, s.id AS subscription, ${STATUS} AS status,
  d.attempt, e.createdAtMs, d.finishedAtMs, d.lastStatus, d.lastError,
  iif(${STATUS} = 'pending' AND d.claim IS NULL, ${NEXT_ATTEMPT}, NULL) AS nextAttemptAtMs`;

const PARTIES = sql`CROSS JOIN events e ON e.id = d.event
  CROSS JOIN subscriptions s ON s.seq = d.subscription`;

/** A delivery by id, whoever it is for. */
export function findDelivery(database: Database, id: string): Promise<Delivery | undefined> {
  return findRow(database, sql`SELECT ${COLUMNS} FROM deliveries d ${PARTIES} WHERE d.id = ${id}`);
}

/** Holds for the deliveries whose subscription `s` meets the condition. */
export const isOfSubscription = (condition: Sql): Sql =>
  sql`EXISTS (SELECT 1 FROM subscriptions s WHERE s.seq = subscription AND ${condition})`;

const ANSWER = matching(/^(?:[1-9]\d\d|[a-z_]{1,40})$/, "Must be a status or an error.");

/** The list of deliveries, whose filters also select what a resend sends. */
export const DELIVERY_LIST = {
  table: sql`deliveries`,
  columns: sql`*`,
  filters: {
    status: is(sql`status`, STATUS_SHAPE),
    subscription: where(described("A subscription's id.", SUBSCRIPTION), (id) =>
      sql`subscription = (SELECT seq FROM subscriptions WHERE id = ${id})`),
    event: {
      ...optional(EVENT),
      // The ids of an event's deliveries begin like the event's id; the tilde sorts after the rest.
      range: (id: string) => ({ from: `d${id.slice(1)}`, before: `d${id.slice(1)}~` }),
    },
    name: where(described("The event's name.", EVENT_NAME), (name) =>
      isOfSubscription(sql`s.event = ${name}`)),
    endpoint: where(described("The beginning of the endpoint.", WANTED), (beginning) =>
      isOfSubscription(startsWith(sql`s.endpoint`, toUrl(beginning)))),
    answer: where(described("The last response's status, or the last error.", ANSWER), (answer) =>
      answer > "999" ? sql`lastError = ${answer}` : sql`lastStatus = ${Number(answer)}`),
    attempt: is(sql`attempt`, described("Attempts so far.", wholeNumber(0, 4))),
    ...madeBetween("d", "Of events dispatched"),
  },
  indexes: { subscription: DELIVERY_STATUSES, status: [] },
  shown: (rows: Sql) =>
    sql`SELECT ${COLUMNS} FROM (${rows}) d ${PARTIES} ORDER BY d.id DESC`,
  toItem: asItem<Delivery>(),
} as const;

/** Lists deliveries, newest first; a page may lack some that ended subscriptions left pending. */
export async function listDeliveries(
  database: Database,
  given: Given<typeof DELIVERY_LIST.filters>,
): Promise<Page<Delivery>> {
  const { status, endpoint } = given;
  const ofEndpoint = endpoint === undefined ? [] : await database.query<Pick<Delivery, "id">>(
    sql`SELECT id FROM subscriptions WHERE ${startsWith(sql`endpoint`, toUrl(endpoint))} LIMIT 2`,
  );
  const [only] = ofEndpoint;
  if (endpoint !== undefined && only === undefined) return { items: [], next: undefined };
  // A single match is searched by its subscription, which has an index.
  const wanted = only && ofEndpoint.length === 1 ? { subscription: only.id, ...given } : given;
  const { items, next } = await listPart(database, DELIVERY_LIST, wanted);
  return { items: items.filter((item) => item.status === (status ?? item.status)), next };
}

/** How many attempts are shown: a delivery can be resent by hand any number of times. */
const MAX_ATTEMPTS = 100;
const RECENT = 200;

const ATTEMPT = sql`startedAtMs AS timeMs, attempt, status, error, durationMs, snippet`;

/** The last hundred attempts of a delivery, in the order in which they were made. */
export async function listAttempts(database: Database, delivery: string): Promise<Attempt[]> {
  const attempts = await database.query<Attempt>(
    sql`SELECT ${ATTEMPT} FROM attempts a WHERE delivery = ${delivery}
      ORDER BY startedAtMs DESC, attempt DESC ${limitTo(MAX_ATTEMPTS)}`,
  );
  return attempts.reverse();
}

/** The attempts of a subscription's newest deliveries: 200 at most, the last one first. */
export function listLatestAttempts(database: Database, subscription: number): Promise<Attempt[]> {
  // One SELECT for each status, since the index has the status before the id.
  const any = joinSql(DELIVERY_STATUSES.map((status) =>
    sql`SELECT id FROM deliveries
      WHERE subscription = ${subscription} AND status = ${sqlText(status)}`), " UNION ALL ");
  return database.query(
    sql`SELECT ${ATTEMPT} FROM (${any} ORDER BY id DESC ${limitTo(RECENT)}) d
      CROSS JOIN attempts a ON a.delivery = d.id ORDER BY a.startedAtMs DESC ${limitTo(RECENT)}`,
  );
}
