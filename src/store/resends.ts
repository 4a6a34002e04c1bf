import { idBound } from "../base/id.ts";
import { type Change, updateWhere } from "./audit.ts";
import { walkKeys } from "./batch.ts";
import { type Database, FIRST_PAGE } from "../database/database.ts";
import type { FilterOf } from "../database/rows.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import { earlierDue, IS_OPEN } from "./subscriptions.ts";

/** Stores an event for one subscription, with its delivery; at first 0 rows change if it ended. */
export function insertTestDelivery(
  { subscription, event, delivery, json }:
    Readonly<Record<"subscription" | "event" | "delivery" | "json", string>>,
  nowMs: number,
): Sql[] {
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

/** Sends failed deliveries again; the first statement changes one row for each that can be. */
export function resendDeliveries(ids: readonly string[], nowMs: number): Change[] {
  return [
    updateWhere(sql`deliveries`, sql`status = 'pending', attempt = 0, dueAtMs = ${nowMs},
        finishedAtMs = NULL`,
      sql`id IN ${listOf(ids)} AND status = 'failed' AND EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.seq = deliveries.subscription AND s.${IS_OPEN})`),
    sql`UPDATE subscriptions SET dueAtMs = ${earlierDue(nowMs)} WHERE seq IN
      (SELECT subscription FROM deliveries WHERE id IN ${listOf(ids)} AND status = 'pending')`,
  ];
}

/**
 * The ids of failed deliveries of events from `sinceMs` on and before `untilMs`, oldest first, in
 * batches; each comes once, also if it fails again.
 */
export function findFailed(
  database: Database,
  { sinceMs, untilMs, subscription }:
    FilterOf<Record<"sinceMs" | "untilMs", number> & Record<"subscription", string>>,
): AsyncIterable<string[]> {
  const end = untilMs === undefined ? FIRST_PAGE : idBound("d", untilMs);
  const after = sinceMs === undefined ? "" : idBound("d", sinceMs);
  const ofOne = subscription === undefined ? sql``
    : sql`AND subscription = (SELECT seq FROM subscriptions WHERE id = ${subscription})`;
  const where = sql`status = 'failed' AND id < ${end} ${ofOne}`;
  return walkKeys(database, { table: sql`deliveries`, key: sql`id`, where, after });
}
