import { type Attempt, type Delivery, DELIVERY_STATUSES } from "../event/delivery_record.ts";
import { type Database, limitTo, type Page, type Pagination } from "../database/database.ts";
import { type FilterOf, findRow, findValue, pageOf } from "../database/rows.ts";
import { andIs, ofStatus, sql } from "../database/sql.ts";

/** What is left of a subscription that has ended is as good as cancelled, but what is in flight. */
const STATUS = sql`iif(d.status = 'pending' AND d.claim IS NULL
  AND s.status IN ('disabled', 'deleted'), 'cancelled', d.status)`;

const COLUMNS = sql`d.id, d.event, e.name AS eventName, s.id AS subscription, ${STATUS} AS status,
  d.attempt, e.createdAtMs, d.finishedAtMs,
  iif(${STATUS} = 'pending' AND d.claim IS NULL, d.dueAtMs, NULL) AS dueAtMs`;

const PARTIES = sql`CROSS JOIN events e ON e.id = d.event
  CROSS JOIN subscriptions s ON s.seq = d.subscription`;

/** A delivery by id. */
export function findDelivery(database: Database, id: string): Promise<Delivery | undefined> {
  return findRow(database, sql`SELECT ${COLUMNS} FROM deliveries d ${PARTIES} WHERE d.id = ${id}`);
}

/** Deliveries, newest first; a page may lack some that ended subscriptions have left. */
export async function listDeliveries(
  database: Database,
  { status, subscription, event }: FilterOf<Delivery, "status" | "subscription" | "event">,
  page: Pagination,
): Promise<Page<Delivery>> {
  const selectSeq = sql`SELECT seq FROM subscriptions WHERE id = ${subscription ?? null}`;
  const seq = subscription === undefined ? undefined : await findValue<number>(database, selectSeq);
  if (subscription !== undefined && seq === undefined) return { items: [], next: undefined };
  // The ids of an event's deliveries all begin like its own; the tilde sorts after what follows.
  const first = event === undefined ? "" : `d${event.slice(1)}`;
  const last = `${first}~`;
  const before = page.before < last ? page.before : last;
  const any = sql`SELECT * FROM deliveries
    WHERE id > ${first} AND id < ${before}${andIs(sql`subscription`, seq)}`;
  const select = ofStatus(any, status, seq === undefined ? [] : DELIVERY_STATUSES);
  const rows = await database.query<Delivery>(
    sql`SELECT ${COLUMNS} FROM (${select} ORDER BY id DESC ${limitTo(page.limit + 1)}) d ${PARTIES}
      ORDER BY d.id DESC`,
  );
  const { items, next } = pageOf(rows, page);
  return { items: items.filter((item) => item.status === (status ?? item.status)), next };
}

/** More are not shown: a delivery can be sent again by hand any number of times. */
const MAX_ATTEMPTS = 100;
const RECENT = 200;

/** The attempts of a delivery, the first one first; of very many the last hundred. */
export async function listAttempts(database: Database, delivery: string): Promise<Attempt[]> {
  const rows = await database.query<AttemptRow>(
    sql`SELECT ${ATTEMPT} FROM attempts a WHERE delivery = ${delivery}
      ORDER BY startedAtMs DESC, attempt DESC ${limitTo(MAX_ATTEMPTS)}`,
  );
  return rows.reverse().map(toAttempt);
}

/** The attempts since then of a subscription's newest deliveries: 200 at most, the last first. */
export async function listAttemptsSince(
  database: Database,
  subscription: number,
  sinceMs: number,
): Promise<Attempt[]> {
  const any = sql`SELECT id FROM deliveries WHERE subscription = ${subscription}`;
  const newest = sql`${ofStatus(any, undefined, DELIVERY_STATUSES)} ORDER BY id DESC`;
  const rows = await database.query<AttemptRow>(
    sql`SELECT ${ATTEMPT} FROM (${newest} ${limitTo(RECENT)}) d
      CROSS JOIN attempts a ON a.delivery = d.id WHERE a.startedAtMs >= ${sinceMs}
      ORDER BY a.startedAtMs DESC ${limitTo(RECENT)}`,
  );
  return rows.map(toAttempt);
}

type AttemptRow = Omit<Attempt, "outcome"> & { status: number | null; error: string | null };
const ATTEMPT = sql`startedAtMs AS atMs, attempt, status, error, durationMs, snippet`;

function toAttempt({ status, error, ...rest }: AttemptRow): Attempt {
  return {
    ...rest,
    outcome: status === null
      ? { kind: "error", error: error ?? "other" }
      : { kind: "response", status },
  };
}
