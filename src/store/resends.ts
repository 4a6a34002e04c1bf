import { idBound } from "../base/id.ts";
import { type Database, FIRST_PAGE, limitTo } from "../database/database.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import { earlierDue, IS_OPEN } from "./subscriptions.ts";

/** How many deliveries one batch sends again, so that no other write waits for long. */
const BATCH = 500;

/** A delivery that tests one subscription. */
export interface TestDelivery {
  /** The subscription's id. */
  readonly subscription: string;
  /** The id of the event that is made for it. */
  readonly event: string;
  readonly delivery: string;
  readonly json: string;
}

/**
 * Stores an event of the subscription's name that only this subscription gets, with its delivery.
 * The first statement changes no row where the subscription is disabled or gone.
 */
export function insertTestDelivery(test: TestDelivery, nowMs: number): Sql[] {
  const { subscription, event, delivery, json } = test;
  const isSendable = sql`id = ${subscription} AND ${IS_OPEN}`;
  return [
    sql`INSERT INTO events (id, name, data, subject, scopes, status, lastSubscription, fannedOut,
        createdAtMs)
      SELECT ${event}, event, ${json}, principal, '[]', 'distributed', seq, seq, ${nowMs}
      FROM subscriptions WHERE ${isSendable}`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
      SELECT ${delivery}, ${event}, seq, 'pending', ${nowMs}
      FROM subscriptions WHERE ${isSendable}`,
    sql`UPDATE subscriptions SET dueAtMs = ${earlierDue(nowMs)} WHERE ${isSendable}`,
  ];
}

/**
 * Sends deliveries that have failed again, each with a fresh budget. The first statement changes
 * one row for each; others, and those whose subscription has ended, stay as they are.
 */
export function resendDeliveries(ids: readonly string[], nowMs: number): Sql[] {
  return [
    sql`UPDATE deliveries
      SET status = 'pending', attempt = 0, dueAtMs = ${nowMs}, finishedAtMs = NULL
      WHERE id IN ${listOf(ids)} AND status = 'failed' AND EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.seq = deliveries.subscription AND s.${IS_OPEN})`,
    sql`UPDATE subscriptions SET dueAtMs = ${earlierDue(nowMs)} WHERE seq IN
      (SELECT subscription FROM deliveries WHERE id IN ${listOf(ids)} AND status = 'pending')`,
  ];
}

/** Which failed deliveries are meant; members that are absent do not count. */
export interface FailedSelection {
  /** Of events dispatched at that time or later. */
  readonly sinceMs: number | undefined;
  /** Of events dispatched before that time. */
  readonly untilMs: number | undefined;
  /** The subscription's id. */
  readonly subscription: string | undefined;
}

/**
 * The ids of failed deliveries, oldest first, in batches that `resendDeliveries` takes. Each batch
 * is looked for when it is asked for; a delivery comes up once, also if it fails again meanwhile.
 */
export async function* findFailed(
  database: Database,
  { sinceMs, untilMs, subscription }: FailedSelection,
): AsyncGenerator<string[], void, void> {
  const end = untilMs === undefined ? FIRST_PAGE : idBound("d", untilMs);
  const ofOne = subscription === undefined ? sql``
    : sql`AND subscription = (SELECT seq FROM subscriptions WHERE id = ${subscription})`;
  for (let after = sinceMs === undefined ? "" : idBound("d", sinceMs); ;) {
    const rows = await database.query<{ id: string }>(
      sql`SELECT id FROM deliveries
        WHERE status = 'failed' AND id > ${after} AND id < ${end} ${ofOne}
        ORDER BY id ${limitTo(BATCH)}`,
    );
    const last = rows.at(-1);
    if (!last) return;
    after = last.id;
    yield rows.map(({ id }) => id);
  }
}
