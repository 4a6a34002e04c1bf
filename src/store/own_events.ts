import { newId } from "../base/id.ts";
import { OWN_PREFIX } from "../event/event.ts";
import { BACKEND_SCOPE } from "../oauth/principal.ts";
import { sql, type Sql, type SqlValue } from "../database/sql.ts";
import { LAST_SUBSCRIPTION } from "./subscriptions.ts";

/** What a subscriber must be allowed to be told of them. */
export const OWN_EVENT_SCOPES = JSON.stringify([BACKEND_SCOPE]);

/**
 * Which subscriptions are meant: an SQL condition on `s` with parameters from ?1 to ?4 at most, and
 * their values in order.
 */
export interface SubscriptionSelection {
  readonly where: string;
  readonly params: readonly (string | number | null)[];
}

/** The values of a statement: the selection's as ?1 to ?4, and from ?5 what follows. */
export function selectionParams(
  { params }: SubscriptionSelection,
  ...more: readonly SqlValue[]
): SqlValue[] {
  return [...params, ...Array<null>(4 - params.length).fill(null), ...more];
}

/** The event's id and name, `upto` as `insertEvent` has it, and what it needs. */
const COLUMNS = "events (id, name, data, scopes, status, lastSubscription, createdAtMs)";

/** A delivery that some process has claimed. */
export interface ClaimOfDelivery {
  readonly delivery: string;
  readonly claim: string;
}

/**
 * Dispatches `gatepost.delivery.failed` if the claim still holds and the delivery is not one of an
 * event of the service itself. Belongs before the statements that record the failure.
 */
export function announceFailedDelivery(
  { delivery, claim }: ClaimOfDelivery,
  nowMs: number,
): Sql {
  return sql(
    `INSERT INTO ${COLUMNS}
     SELECT ?3, ?4 || 'delivery.failed',
       json_object('delivery', d.id, 'subscription', s.id, 'event', e.name),
       '${OWN_EVENT_SCOPES}', 'pending', ${LAST_SUBSCRIPTION}, ?5
     FROM deliveries d
       JOIN events e ON e.id = d.event JOIN subscriptions s ON s.seq = d.subscription
     WHERE d.id = ?1 AND d.claim = ?2 AND d.status = 'pending'
       AND substr(e.name, 1, length(?4)) <> ?4`,
    delivery,
    claim,
    newId("e", nowMs),
    OWN_PREFIX,
    nowMs,
  );
}

/**
 * Dispatches `gatepost.subscription.disabled` for each of the selected subscriptions but those to
 * events of the service itself. Belongs before the statement that disables them.
 */
export function announceDisabled(
  selection: SubscriptionSelection,
  reason: string,
  nowMs: number,
): Sql {
  // One id for all would not do: the last digits are each subscription's number.
  return sql(
    `INSERT INTO ${COLUMNS}
     SELECT substr(?5, 1, 17) || printf('%08x', s.seq), ?6 || 'subscription.disabled',
       json_object('subscription', s.id, 'event', s.event, 'reason', ?7),
       '${OWN_EVENT_SCOPES}', 'pending', ${LAST_SUBSCRIPTION}, ?8
     FROM subscriptions s WHERE ${selection.where} AND substr(s.event, 1, length(?6)) <> ?6`,
    ...selectionParams(selection, newId("e", nowMs), OWN_PREFIX, reason, nowMs),
  );
}
