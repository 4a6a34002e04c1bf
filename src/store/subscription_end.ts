import { CONSOLE_APP, isBuiltIn } from "../oauth/principal.ts";
import { ENDS, LAST_ENDING } from "./authority.ts";
import { type Change, updateWhere } from "./audit.ts";
import { AT_MOST, BATCH, walkKeys } from "./batch.ts";
import type { Database } from "../database/database.ts";
import { paceWrites } from "../database/pace_writes.ts";
import { hasRow } from "../database/rows.ts";
import { listOf, sql, type Sql } from "../database/sql.ts";
import { announceDisabled } from "./events.ts";
import { IS_OPEN } from "./subscriptions.ts";

/**
 * Holds while an ended subscription has deliveries to cancel: its end cancels one batch at most.
 * Until then its `dueAtMs` stays, and none of them is claimed or shown as pending. Deliveries in
 * flight are left out: their attempts say whether they arrive.
 */
const TO_CLEAR = sql`s.status IN ('disabled', 'deleted') AND s.dueAtMs IS NOT NULL`;

/** Holds for the first batch of the subscriptions that are still to be cleared. */
const NEXT_TO_CLEAR = sql`s.seq IN
  (SELECT s.seq FROM subscriptions s WHERE ${TO_CLEAR} ORDER BY s.seq ${AT_MOST})`;

/** Deletes a subscription and cancels its pending deliveries. */
export function deleteSubscription(id: string, nowMs: number): Change[] {
  const isLeft = sql`id = ${id} AND status <> 'deleted'`;
  return [
    updateWhere(sql`subscriptions`, sql`status = 'deleted'`, isLeft),
    ...cancelPending(sql`s.id = ${id}`, nowMs),
  ];
}

/** Disables a subscription, dispatches the event of that, and cancels pending deliveries. */
export function disableSubscription(id: string, reason: string, nowMs: number): Sql[] {
  return [...disable(sql`s.id = ${id}`, reason, nowMs), ...cancelPending(sql`s.id = ${id}`, nowMs)];
}

/** A user, an app, or a user through an app. */
export type Parties =
  | { readonly user: string; readonly app?: string }
  | { readonly user?: never; readonly app: string };

/** What ends: a grant, a user through an app, or all of a user or an app (`login`: own logins). */
export type Ending = Parties | { readonly grant: string };

/** How subscriptions end; all but `reason` is for an end of all of a user or an app only. */
export interface SubscriptionsEnd {
  /** In plain words, for their owners. */
  readonly reason: string;
  /** Spares subscriptions that a user made by own login. */
  readonly sparesOwn?: boolean;
  /** Ends only subscriptions that were granted any of these. */
  readonly scopes?: readonly string[];
  /** Deletes them: nobody is left who could make them active again. */
  readonly deletes?: boolean;
}

/**
 * Ends subscriptions together with what made them. They are disabled, which dispatches an event;
 * their pending deliveries are cancelled; and only a new grant makes them active again. All end at
 * the commit, but only the rows of the first few hundred change then. The others follow later
 * (`clearEndedSubscriptions`).
 */
export function endSubscriptions(
  ending: Ending,
  { reason, sparesOwn = false, scopes, deletes = false }: SubscriptionsEnd,
  nowMs: number,
): Sql[] {
  const grantApp = sql`(SELECT g.app FROM grants g WHERE g.id = s.grantId)`;
  if ("grant" in ending) {
    // A subscription made in the console is the user's own, and outlives the console's grant.
    const ofGrant = sql`s.grantId = ${ending.grant} AND ${grantApp} IS NOT ${CONSOLE_APP}`;
    return end(ofGrant, false, reason, nowMs);
  }
  const { user, app } = ending;
  const owner = user === undefined ? app : user;
  if (user !== undefined && app !== undefined) {
    // Also those that another app made and the user's login set active. The plus avoids the index
    // by app: a principal has few subscriptions, while an app may have very many.
    const ofBoth = sql`s.principal = ${user} AND s.status <> 'deleted'
      AND (+s.app = ${app} OR ${grantApp} = nullif(${app}, ${CONSOLE_APP}))`;
    return end(ofBoth, false, reason, nowMs);
  }
  const first = sql`s.seq IN (SELECT seq FROM subscriptions WHERE ${ownedBy(owner)} ${AT_MOST})
    AND ${isEndedBy(LAST_ENDING)}`;
  return [
    sql`INSERT INTO subscription_endings (owner, own, scopes, deletes, reason)
      VALUES (${owner}, ${sparesOwn ? 0 : 1}, ${scopes ? JSON.stringify(scopes) : null},
        ${deletes ? 1 : 0}, ${reason})`,
    ...end(first, deletes, reason, nowMs),
  ];
}

function ownedBy(owner: string): Sql {
  const isApp = isBuiltIn(owner) || /^[ai]/.test(owner); // or an issuer
  return sql`${isApp ? sql`app` : sql`principal`} = ${owner} AND status <> 'deleted'`;
}

function isEndedBy(ending: Sql | number): Sql {
  return sql`EXISTS (SELECT 1 FROM subscription_endings x WHERE x.seq = ${ending} AND ${ENDS})`;
}

/** Ends the subscriptions `s` of the condition. */
function end(condition: Sql, deletes: boolean, reason: string, nowMs: number): Sql[] {
  return [
    ...disable(condition, reason, nowMs),
    sql`UPDATE subscriptions AS s SET granted = '[]' WHERE ${condition}`,
    ...cancelPending(condition, nowMs),
    ...deletes ? [sql`UPDATE subscriptions AS s SET status = 'deleted' WHERE ${condition}`] : [],
  ];
}

/**
 * Disables the subscription of a claimed delivery that fails now, if the rule says so and the claim
 * still holds. Returns statements to run `before` and `after` those that record the failure.
 */
export function disableAfterFailure(
  subscription: number,
  isClaimed: Sql,
  rule:
    /** The endpoint responded to the last attempt with 410: it wants no more events. */
    | { readonly goneEndpoint: string }
    /** Every attempt has failed since then or longer; 0: failures do not disable it. */
    | { readonly failingSinceMs: number },
  nowMs: number,
): { readonly before: Sql[]; readonly after: Sql[] } {
  const [holds, reason] = "goneEndpoint" in rule
    ? [sql`s.endpoint = ${rule.goneEndpoint}`, "gone"] as const
    : [sql`s.failingSinceMs <= ${rule.failingSinceMs}`, "failing"] as const;
  const one = sql`s.seq = ${subscription}`;
  const failed = sql`${one} AND ${holds} AND EXISTS (SELECT 1 FROM deliveries WHERE ${isClaimed})`;
  return { before: disable(failed, reason, nowMs), after: cancelPending(one, nowMs) };
}

/**
 * Cancels the pending deliveries of a disabled subscription that is to be active again, claimed
 * ones too: none of them is sent again. False if there are more than fit a request.
 */
export async function clearSubscription(
  database: Database,
  id: string,
  nowMs: number,
): Promise<boolean> {
  for (let batches = 0; batches < 20; batches++) {
    const [cancelled = 0] = await database.write([
      ...cancelPending(sql`s.id = ${id}`, nowMs),
      // The pluses make SQLite search the claimed deliveries: this subscription may have very many.
      sql`UPDATE deliveries SET status = 'cancelled', claim = NULL, finishedAtMs = ${nowMs}
        WHERE +status = 'pending' AND claim IS NOT NULL AND +subscription =
          (SELECT seq FROM subscriptions WHERE id = ${id} AND status = 'disabled')`,
    ]);
    if (cancelled < BATCH) return true;
  }
  return false;
}

/**
 * Disables ended subscriptions and cancels their pending deliveries, step by step. After each step
 * it pauses three times as long as the step took: every process on the database does this.
 */
export async function clearEndedSubscriptions(
  database: Database,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  const { write } = paceWrites(database, 3);
  type Row = Record<"seq" | "deletes", number> & Record<"owner" | "reason", string>;
  const endings = await database.query<Row>(
    sql`SELECT seq, owner, deletes, reason FROM subscription_endings ORDER BY seq ${AT_MOST}`,
  );
  for (const { seq, owner, deletes, reason } of endings) {
    const where = ownedBy(owner);
    const rows = { table: sql`subscriptions`, key: sql`seq`, where, after: 0 };
    for await (const part of walkKeys(database, rows)) {
      if (signal.aborted) return;
      const ended = sql`s.seq IN ${listOf(part)} AND ${isEndedBy(seq)}`;
      await write(end(ended, deletes === 1, reason, now()));
    }
    await write([sql`DELETE FROM subscription_endings WHERE seq = ${seq}`]);
  }
  const selectLeft = sql`SELECT 1 FROM subscriptions s WHERE ${TO_CLEAR} LIMIT 1`;
  while (!signal.aborted && await hasRow(database, selectLeft)) {
    await write(cancelPending(NEXT_TO_CLEAR, now()));
  }
}

/** Disables the subscriptions `s` of the condition that are open. */
function disable(condition: Sql, reason: string, nowMs: number): Sql[] {
  const open = sql`${condition} AND s.${IS_OPEN}`;
  return [
    announceDisabled(open, reason, nowMs),
    sql`UPDATE subscriptions AS s SET status = 'disabled', disabledReason = ${reason}
      WHERE ${open}`,
  ];
}

function cancelPending(condition: Sql, nowMs: number): Sql[] {
  return [
    sql`UPDATE deliveries SET status = 'cancelled', finishedAtMs = ${nowMs} WHERE id IN
      (SELECT d.id FROM subscriptions s CROSS JOIN deliveries d
          ON d.subscription = s.seq AND d.status = 'pending' AND d.claim IS NULL
        WHERE ${condition} AND ${TO_CLEAR} ${AT_MOST})`,
    sql`UPDATE subscriptions SET dueAtMs = NULL WHERE seq IN (SELECT s.seq FROM subscriptions s
      WHERE ${condition} AND ${TO_CLEAR} AND NOT EXISTS (SELECT 1 FROM deliveries d
        WHERE d.subscription = s.seq AND d.status = 'pending' AND d.claim IS NULL) ${AT_MOST})`,
  ];
}
