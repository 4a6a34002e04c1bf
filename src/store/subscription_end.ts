import { type Database, sql, type Statement } from "./database.ts";
import {
  announceDisabled,
  type ClaimOfDelivery,
  selectionParams,
  type SubscriptionSelection,
} from "./own_events.ts";

/**
 * A subscription that ends has its pending deliveries cancelled: so many with it, the rest in
 * batches of as many. Until then its `due_at` stays, and nothing of it is claimed or shown as
 * pending.
 */
const BATCH = 500;

const TO_CLEAR = "s.status IN ('disabled', 'deleted') AND s.due_at IS NOT NULL";
const HAS_PENDING = `EXISTS (SELECT 1 FROM deliveries d
  WHERE d.subscription = s.seq AND d.status = 'pending')`;

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

/** Disables every subscription of a user or app, or of a user through one app, likewise. */
export function disableSubscriptionsOf(
  who: { readonly principal: string; readonly app?: string } | {
    readonly principal?: never;
    readonly app: string;
  },
  reason: string,
  nowMs: number,
): Statement[] {
  const { principal, app } = who;
  const conditions = [
    ...principal === undefined ? [] : [{ column: "s.principal", id: principal }],
    // A principal has few: the plus keeps SQLite from going through all of the app's instead.
    ...app === undefined ? [] : [{ column: principal === undefined ? "s.app" : "+s.app", id: app }],
  ];
  const selection = {
    where: conditions.map(({ column }, index) => `${column} = ?${index + 1}`).join(" AND ") +
      " AND s.status <> 'deleted'", // as the index of principals says
    params: conditions.map(({ id }) => id),
  };
  return [...disable(selection, reason, nowMs), ...cancelPending(selection, nowMs)];
}

/** Why a subscription may have to be disabled after a delivery has failed for good. */
export interface FailureRule {
  /** Its last attempt was answered with 410: the subscriber wants no more. */
  readonly isGone: boolean;
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
  { isGone, failingSinceMs }: FailureRule,
  nowMs: number,
): { readonly before: Statement[]; readonly after: Statement[] } {
  if (!isGone && failingSinceMs === undefined) return { before: [], after: [] };
  const selection = {
    where: `s.seq = ?1 ${isGone ? "" : "AND s.failing_since <= ?4"} AND EXISTS (SELECT 1
      FROM deliveries WHERE id = ?2 AND claim = ?3 AND status = 'pending')`,
    params: [subscription, delivery, claim, ...isGone ? [] : [failingSinceMs ?? null]],
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
    where: `${selection.where} AND s.status IN ('active', 'paused')`,
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
      `UPDATE deliveries SET status = 'cancelled', finished_at = ?5, claim = NULL WHERE id IN
         (SELECT d.id FROM subscriptions s
            CROSS JOIN deliveries d ON d.subscription = s.seq AND d.status = 'pending'
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
