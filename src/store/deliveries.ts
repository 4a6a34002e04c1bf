import { type Database, limitTo, sql, type Statement } from "./database.ts";
import { mayReceive, NEEDED_BY_EVENT } from "./authority.ts";
import { EARLIER_TURN } from "./subscriptions.ts";

/**
 * What is known of a subscriber: its last attempt succeeded, and attempts take a second at most or
 * are slow, or it failed, or there has been none yet.
 */
export type Standing = "new" | "proven" | "slow" | "failing";

/** Every standing. */
export const STANDINGS: readonly Standing[] = ["new", "proven", "slow", "failing"];

/** A subscription with work that is due: its lane in the distributor. */
export interface DueLane {
  readonly subscription: number;
  readonly standing: Standing;
  readonly principal: string;
  /** The moving mean of its attempts' durations, in milliseconds. */
  readonly meanMs: number;
}

/**
 * Subscriptions of one standing with due work, the one that has waited longest first. Those that
 * cannot take more now, and those of principals that cannot, are left out.
 */
export function listDueLanes(
  database: Database,
  options: {
    readonly standing: Standing;
    readonly except: {
      readonly subscriptions: readonly number[];
      readonly principals: readonly string[];
    };
    readonly limit: number;
    readonly nowMs: number;
  },
): Promise<DueLane[]> {
  const { standing, except, limit, nowMs } = options;
  return database.query<DueLane>(
    `SELECT seq AS subscription, health AS standing, principal, mean_ms AS meanMs
     FROM subscriptions
     WHERE status = 'active' AND due_at IS NOT NULL AND due_at <= ?1 AND health = ?5
       AND seq NOT IN (SELECT value FROM json_each(?2))
       AND principal NOT IN (SELECT value FROM json_each(?3))
     ORDER BY due_at ${limitTo("?4")}`,
    [
      nowMs,
      JSON.stringify(except.subscriptions),
      JSON.stringify(except.principals),
      limit,
      standing,
    ],
  );
}

/** When the next work is due that is not due yet, in milliseconds since 1970. */
export async function findNextDue(database: Database, nowMs: number): Promise<number | undefined> {
  const rows = await database.query<{ dueAtMs: number }>(
    STANDINGS.map((standing) =>
      `SELECT * FROM (SELECT due_at AS dueAtMs FROM subscriptions
         WHERE status = 'active' AND due_at IS NOT NULL AND due_at > ?1 AND health = '${standing}'
         ORDER BY due_at LIMIT 1)`
    ).join(" UNION ALL ") + " ORDER BY 1 LIMIT 1",
    [nowMs],
  );
  return rows[0]?.dueAtMs;
}

/**
 * Moves the turns of subscriptions on after something of their work has changed: to `ifDue` where
 * something is due already, else to when it will be. `?2` is now.
 */
export function moveTurns(
  subscriptions: Iterable<number>,
  ifDue: string,
  nowMs: number,
): Statement {
  return sql(
    `UPDATE subscriptions SET due_at =
       (SELECT CASE WHEN min(d.due_at) <= ?2 THEN ${ifDue} ELSE min(d.due_at) END
        FROM deliveries d WHERE d.subscription = seq AND d.status = 'pending')
     WHERE seq IN (SELECT value FROM json_each(?1))`,
    JSON.stringify([...new Set(subscriptions)]),
    nowMs,
  );
}

/** How many deliveries of one subscription to claim. */
export interface ClaimRequest {
  readonly subscription: number;
  readonly count: number;
}

/** A delivery whose turn has come; what its attempt needs is read when it is sent. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly subscription: number;
}

/** A claimed delivery, with all that its attempt needs. */
export interface SendableDelivery extends ClaimedDelivery {
  /** Attempts recorded so far. */
  readonly attempt: number;
  readonly event: string;
  readonly json: string;
  readonly endpoint: string;
  /** As the seal closed it. */
  readonly secret: string;
  readonly oldSecret: string | null;
  readonly oldSecretUntilMs: number | null;
  readonly subscriptionId: string;
}

/**
 * Takes due deliveries for one process until its lease ends: until then they are due to nobody, and
 * after that, should the process have died, to everybody. Each subscription goes to the end of the
 * queue. What it answers is found by the end of its lease, so no two claims of a process may have
 * the same.
 */
export async function claimDeliveries(
  database: Database,
  requests: readonly ClaimRequest[],
  claim: string,
  leaseUntilMs: number,
  nowMs: number,
): Promise<ClaimedDelivery[]> {
  if (requests.length === 0) return [];
  const counts = Map.groupBy(requests, ({ count }) => count); // a LIMIT cannot be one of a row's
  await database.write([
    ...counts.entries().map(([count, lanes]) =>
      sql(
        `UPDATE deliveries SET claim = ?4, due_at = ?5 WHERE id IN
           (SELECT d.id FROM json_each(?1) lane CROSS JOIN deliveries d WHERE d.id IN
             (SELECT id FROM deliveries
              WHERE subscription = lane.value AND status = 'pending' AND due_at <= ?2
                AND EXISTS (SELECT 1 FROM subscriptions WHERE seq = lane.value AND status = 'active')
              ORDER BY due_at ${limitTo("?3")}))`,
        JSON.stringify(lanes.map(({ subscription }) => subscription)),
        nowMs,
        count,
        claim,
        leaseUntilMs,
      )
    ),
    moveTurns(requests.map(({ subscription }) => subscription), "?2", nowMs),
  ]);
  return database.query<ClaimedDelivery>(
    "SELECT id, subscription FROM deliveries WHERE claim = ?1 AND due_at = ?2 ORDER BY id",
    [claim, leaseUntilMs],
  );
}

/**
 * Claimed deliveries as they are now, at the last moment before they are sent; without those that
 * may not be any more: the subscription has been paused or has ended since, or may not receive the
 * event, or the lease ends before `enoughUntilMs`.
 */
export function listSendable(
  database: Database,
  ids: readonly string[],
  claim: string,
  enoughUntilMs: number,
): Promise<SendableDelivery[]> {
  return database.query(LIST_SENDABLE, [JSON.stringify(ids), claim, enoughUntilMs]);
}

const LIST_SENDABLE =
  `SELECT d.id, d.subscription, d.attempt, e.name AS event, e.data AS json, s.endpoint,
     s.secret, s.old_secret AS oldSecret, s.old_secret_until AS oldSecretUntilMs,
     s.id AS subscriptionId
   FROM json_each(?1) claimed CROSS JOIN deliveries d ON d.id = claimed.value
     JOIN events e ON e.id = d.event JOIN subscriptions s ON s.seq = d.subscription
   WHERE d.claim = ?2 AND d.due_at >= ?3 AND s.status = 'active'
     AND ${mayReceive(NEEDED_BY_EVENT)}`;

/** Whether there is a delivery of that id, whatever has become of it. */
export async function hasDelivery(database: Database, id: string): Promise<boolean> {
  const rows = await database.query("SELECT 1 FROM deliveries WHERE id = ?1", [id]);
  return rows.length > 0;
}

/** All that one process has claimed. */
export function listClaimed(database: Database, claim: string): Promise<ClaimedDelivery[]> {
  return database.query<ClaimedDelivery>(
    "SELECT id, subscription FROM deliveries WHERE claim = ?1",
    [claim],
  );
}

/**
 * Gives claimed deliveries back unsent: they are due again, at once or then, for anybody; those are
 * cancelled that their subscriptions may not receive any more.
 */
export function releaseDeliveries(
  deliveries: readonly ClaimedDelivery[],
  claim: string,
  nowMs: number,
  dueAtMs = nowMs,
): Statement[] {
  const chosen = JSON.stringify(deliveries.map(({ id }) => id));
  return [
    sql(
      `UPDATE deliveries AS d SET claim = NULL, status = 'cancelled', due_at = ?3, finished_at = ?3
       WHERE id IN (SELECT value FROM json_each(?1)) AND claim = ?2 AND status = 'pending'
         AND NOT EXISTS (SELECT 1 FROM events e JOIN subscriptions s ON s.seq = d.subscription
           WHERE e.id = d.event AND ${mayReceive(NEEDED_BY_EVENT)})`,
      chosen,
      claim,
      nowMs,
    ),
    sql(
      `UPDATE deliveries SET claim = NULL, due_at = ?3
       WHERE id IN (SELECT value FROM json_each(?1)) AND claim = ?2 AND status = 'pending'`,
      chosen,
      claim,
      dueAtMs,
    ),
    moveTurns(deliveries.map(({ subscription }) => subscription), EARLIER_TURN, nowMs),
  ];
}
