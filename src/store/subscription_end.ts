import { type Database, sql, type Statement } from "./database.ts";
import {
  announceDisabled,
  type ClaimOfDelivery,
  selectionParams,
  type SubscriptionSelection,
} from "./own_events.ts";
import { IS_OPEN } from "./subscriptions.ts";

/**
 * A subscription that ends has its pending deliveries cancelled: so many with it, the rest in
 * batches of as many. Until then its `due_at` stays, and nothing of it is claimed or shown as
 * pending. What is in flight is left out: whether it arrives is told by its attempt.
 */
const BATCH = 500;

const TO_CLEAR = "s.status IN ('disabled', 'deleted') AND s.due_at IS NOT NULL";
const HAS_PENDING = `EXISTS (SELECT 1 FROM deliveries d
  WHERE d.subscription = s.seq AND d.status = 'pending' AND d.claim IS NULL)`;

const EVERY: SubscriptionSelection = { where: "TRUE", params: [] };

function only(id: string): SubscriptionSelection {
  return { where: "s.id = ?1", params: [id] };
}

/** Ends a subscription and cancels what it has not been sent. */
export function deleteSubscription(id: string, nowMs: number): Statement[] {
  return [
    sql("UPDATE subscriptions SET status = 'deleted' WHERE id = ?1 AND status <> 'deleted'", id),
    ...cancelPending(only(id), nowMs),
  ];
}

/** Disables a subscription and cancels what it has not been sent; dispatches the event of it. */
export function disableSubscription(id: string, reason: string, nowMs: number): Statement[] {
  return [...disable(only(id), reason, nowMs), ...cancelPending(only(id), nowMs)];
}

/** Whose subscriptions are meant: a user's or app's, those made through an app, or both. */
export type Subscriber =
  | { readonly principal: string; readonly app?: string }
  | { readonly principal?: never; readonly app: string };

/** Disables every subscription of a user or app, or of a user through one app, likewise. */
export function disableSubscriptionsOf(
  who: Subscriber,
  reason: string,
  nowMs: number,
): Statement[] {
  const selection = selectionOf(who);
  return [...disable(selection, reason, nowMs), ...cancelPending(selection, nowMs)];
}

/** The same for a user or app that is deleted: nobody could make them active again. */
export function deleteSubscriptionsOf(
  who: Subscriber,
  reason: string,
  nowMs: number,
): Statement[] {
  const { where, params } = selectionOf(who);
  return [
    ...disableSubscriptionsOf(who, reason, nowMs),
    sql(`UPDATE subscriptions AS s SET status = 'deleted' WHERE ${where}`, ...params),
  ];
}

function selectionOf({ principal, app }: Subscriber): SubscriptionSelection {
  const conditions = [
    ...principal === undefined ? [] : [{ column: "s.principal", id: principal }],
    // A principal has few: the plus keeps SQLite from going through all of the app's instead.
    ...app === undefined ? [] : [{ column: principal === undefined ? "s.app" : "+s.app", id: app }],
  ];
  return {
    where: conditions.map(({ column }, index) => `${column} = ?${index + 1}`).join(" AND ") +
      " AND s.status <> 'deleted'", // as the index of principals says
    params: conditions.map(({ id }) => id),
  };
}

/** Why a subscription may have to be disabled after a delivery has failed for good. */
export interface FailureRule {
  /** The endpoint that answered its last attempt with 410: it wants no more. */
  readonly goneEndpoint: string | undefined;
  /** Every attempt since then or before has failed; undefined where that does not count. */
  readonly failingSinceMs: number | undefined;
}

/**
 * Disables the subscription of a claimed delivery that fails now, where the rule says so and the
 * claim still holds. What is in `before` goes before the statements that record the failure, what
 * is in `after` behind them.
 */
export function disableAfterFailure(
  { delivery, claim, subscription }: ClaimOfDelivery & { readonly subscription: number },
  { goneEndpoint, failingSinceMs }: FailureRule,
  nowMs: number,
): { readonly before: Statement[]; readonly after: Statement[] } {
  const isGone = goneEndpoint !== undefined;
  const limit = goneEndpoint ?? failingSinceMs;
  if (limit === undefined) return { before: [], after: [] };
  const selection = {
    where: `s.seq = ?1 AND ${isGone ? "s.endpoint = ?4" : "s.failing_since <= ?4"} AND EXISTS
      (SELECT 1 FROM deliveries WHERE id = ?2 AND claim = ?3 AND status = 'pending')`,
    params: [subscription, delivery, claim, limit],
  };
  return {
    before: disable(selection, isGone ? "gone" : "failing", nowMs),
    after: cancelPending({ where: "s.seq = ?1", params: [subscription] }, nowMs),
  };
}

/**
 * Cancels what is left of a disabled subscription, so that it may be active again; false when there
 * is more than a request should wait for. Trying again goes on from there.
 */
export async function clearSubscription(
  database: Database,
  id: string,
  nowMs: number,
): Promise<boolean> {
  for (let batches = 0; batches < 20; batches++) {
    const [cancelled = 0] = await database.write(cancelPending(only(id), nowMs));
    if (cancelled < BATCH) return true;
  }
  return false;
}

/** Cancels, batch after batch, all that is left of subscriptions that have ended. */
export async function clearEndedSubscriptions(
  database: Database,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let changed = BATCH; changed >= BATCH && !signal.aborted;) {
    changed = Math.max(...await database.write(cancelPending(EVERY, nowMs)));
  }
}

function disable(selection: SubscriptionSelection, reason: string, nowMs: number): Statement[] {
  const standing = {
    where: `${selection.where} AND s.${IS_OPEN}`,
    params: selection.params,
  };
  return [
    announceDisabled(standing, reason, nowMs),
    sql(
      `UPDATE subscriptions AS s SET status = 'disabled', disabled_reason = ?5
       WHERE ${standing.where}`,
      ...selectionParams(standing, reason),
    ),
  ];
}

function cancelPending(selection: SubscriptionSelection, nowMs: number): Statement[] {
  const { where } = selection;
  return [
    sql(
      `UPDATE deliveries SET status = 'cancelled', finished_at = ?5 WHERE id IN
         (SELECT d.id FROM subscriptions s
            CROSS JOIN deliveries d
              ON d.subscription = s.seq AND d.status = 'pending' AND d.claim IS NULL
          WHERE ${where} AND ${TO_CLEAR} LIMIT ${BATCH})`,
      ...selectionParams(selection, nowMs),
    ),
    sql(
      `UPDATE subscriptions SET due_at = NULL WHERE seq IN (SELECT s.seq FROM subscriptions s
         WHERE ${where} AND ${TO_CLEAR} AND NOT ${HAS_PENDING} LIMIT ${BATCH})`,
      ...selection.params,
    ),
  ];
}
