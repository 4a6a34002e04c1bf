import { type Database, limitTo } from "../database/database.ts";
import { findValue } from "../database/rows.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import type { EventSummary } from "../event/event.ts";
import { mayReceive, NEEDED_BY_EVENT } from "./authority.ts";
import { type ClaimedDelivery, type DueQueue, QUEUE } from "./deliveries.ts";
import { IS_OPEN } from "./subscriptions.ts";

/** An event that does not have all its deliveries yet. */
export interface PendingEvent extends Pick<EventSummary, "id" | "name"> {
  readonly subject: string | null;
  /** The scopes that a subscriber needs, a JSON array. */
  readonly needed: string;
  /** The number of the last subscription that it is for, and of the last that has its delivery. */
  readonly lastSubscription: number;
  readonly fannedOut: number;
}

const SELECT_PENDING = sql`SELECT id, name, subject, ${NEEDED_BY_EVENT} AS needed,
  lastSubscription, fannedOut FROM events e WHERE status = 'pending'`;

/** Events to fan out, by id: some of the oldest, and some of the newest, which need not wait. */
export async function listPendingEvents(
  database: Database,
  { oldest, newest }: { readonly oldest: number; readonly newest: number },
): Promise<PendingEvent[]> {
  const rows = await database.query<PendingEvent>(
    sql`${SELECT_PENDING} ORDER BY id ${limitTo(oldest)}`,
  );
  const last = rows[oldest - 1];
  if (last) {
    const after = sql`${SELECT_PENDING} AND id > ${last.id} ORDER BY id DESC ${limitTo(newest)}`;
    rows.push(...(await database.query<PendingEvent>(after)).reverse());
  }
  return rows;
}

/** The subscriptions of an event that get their deliveries next. */
export interface FanOutPart {
  readonly event: PendingEvent;
  /** The number of the last one. */
  readonly end: number;
  /** Some of them with nothing else due: their new deliveries can be sent at once. */
  readonly idle: readonly DueQueue[];
}

/** Finds the next part of an event: `limit` subscriptions at most, `idleLimit` of them idle. */
export async function findFanOutPart(
  database: Database,
  event: PendingEvent,
  { limit, idleLimit, nowMs }: Readonly<Record<"limit" | "idleLimit" | "nowMs", number>>,
): Promise<FanOutPart> {
  const { subject, needed, lastSubscription } = event;
  const [last, idle] = await Promise.all([
    subject === null ? findValue<number>(
      database,
      sql`SELECT seq FROM subscriptions s WHERE ${isInPart(event, lastSubscription)}
        ORDER BY seq LIMIT 1 OFFSET ${limit - 1}`,
    ) : undefined,
    idleLimit === 0 ? [] : database.query<DueQueue>(
      sql`SELECT ${QUEUE} FROM subscriptions s
        WHERE ${isInPart(event, lastSubscription)} AND s.status = 'active'
          AND (s.dueAtMs IS NULL OR s.dueAtMs > ${nowMs}) AND ${mayReceive(needed)}
        ${limitTo(Math.min(limit, idleLimit))}`,
    ),
  ]);
  const end = last ?? lastSubscription;
  return { event, end, idle: idle.filter(({ subscription }) => subscription <= end) };
}

/** Holds for the event's subscriptions `s` up to `end` that have no delivery of it yet. */
function isInPart({ name, subject, fannedOut }: PendingEvent, end: number): Sql {
  // A principal has few subscriptions. The plus keeps SQLite from walking through all of the event.
  return subject === null
    ? sql`s.event = ${name} AND s.seq > ${fannedOut} AND s.seq <= ${end} AND s.${IS_OPEN}`
    : sql`s.event = ${name} AND +s.seq > ${fannedOut} AND +s.seq <= ${end} AND s.${IS_OPEN}
      AND s.principal = ${subject} AND s.status <> 'deleted'`;
}

/** A part, and the subscriptions whose new deliveries are claimed at once. */
export type ClaimedPart = Omit<FanOutPart, "idle"> & { readonly claimed: readonly number[] };

/**
 * Makes the deliveries of some parts and advances their events, in one batch. For each event only
 * one process succeeds. Returns the deliveries that it has claimed; compare `claimsOf`.
 */
export async function fanOut(
  database: Database,
  parts: readonly ClaimedPart[],
  claim: string,
  leaseUntilMs: number,
  nowMs: number,
): Promise<ClaimedDelivery[]> {
  const makeDeliveries = ({ event, end, claimed }: ClaimedPart): readonly Sql[] => {
    const { id, needed, fannedOut } = event;
    const part = isInPart(event, end);
    // As `deliveryId` makes it.
    const delivery = sql`${`d${id.slice(1)}`} || printf('%08x', s.seq)`;
    const isClaimed = sql`s.seq IN ${listOf(claimed)}`;
    return [
      sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, claim)
        SELECT ${delivery}, ${id}, s.seq, 'pending', iif(${isClaimed}, ${leaseUntilMs}, ${nowMs}),
          iif(${isClaimed}, ${claim}, NULL) FROM subscriptions s
        WHERE ${part} AND ${mayReceive(needed)} AND EXISTS (SELECT 1 FROM events
          WHERE id = ${id} AND status = 'pending' AND fannedOut = ${fannedOut})`,
      sql`UPDATE subscriptions AS s SET dueAtMs = iif(${isClaimed}, ${leaseUntilMs}, ${nowMs})
        WHERE ${part} AND EXISTS (SELECT 1 FROM deliveries d WHERE d.id = ${delivery}
          AND d.status = 'pending' AND (s.dueAtMs IS NULL OR s.dueAtMs > d.dueAtMs))`,
      sql`UPDATE events SET fannedOut = ${end},
          status = iif(${end} >= lastSubscription, 'distributed', 'pending')
        WHERE id = ${id} AND status = 'pending' AND fannedOut = ${fannedOut}`,
    ];
  };
  const batches = parts.map(makeDeliveries);
  const changes = await database.write(batches.flat());
  let at = 0;
  return parts.flatMap(({ event, claimed }, index) => {
    const made = changes[at];
    at += batches[index]?.length ?? 0;
    if (made === 0) return []; // another process was faster
    return claimed.map((subscription) => (
      { id: deliveryId(event.id, subscription), subscription }
    ));
  });
}

/** The id of an event's delivery to the subscription of this number: there can never be two. */
export function deliveryId(event: string, subscription: number): string {
  return `d${event.slice(1)}${subscription.toString(16).padStart(8, "0")}`;
}
