import type { AttemptOutcome, NextState } from "../event/delivery.ts";
import { type Database, sql, type Statement } from "./database.ts";
import { EARLIER_TURN } from "./subscriptions.ts";

/** What is known of a subscriber: its last attempt succeeded, failed, or there has been none yet. */
export type Standing = "new" | "proven" | "failing";

/** Every standing. */
export const STANDINGS: readonly Standing[] = ["new", "proven", "failing"];

/** A subscription with work that is due: its lane in the distributor. */
export interface DueLane {
  readonly subscription: number;
  readonly standing: Standing;
}

/**
 * Subscriptions of one standing with due work, the one that has waited longest first. Those that
 * cannot take more now are left out by their numbers.
 */
export function listDueLanes(
  database: Database,
  options: {
    readonly standing: Standing;
    readonly except: readonly number[];
    readonly limit: number;
    readonly nowMs: number;
  },
): Promise<DueLane[]> {
  const { standing, except, limit, nowMs } = options;
  return database.query<DueLane>(
    `SELECT seq AS subscription, standing FROM subscriptions
     WHERE status = 'active' AND due_at IS NOT NULL AND due_at <= ?1 AND standing = ?4
       AND seq NOT IN (SELECT value FROM json_each(?2))
     ORDER BY due_at LIMIT ?3`,
    [nowMs, JSON.stringify(except), limit, standing],
  );
}

/** When the next work is due that is not due yet, in milliseconds since 1970. */
export async function findNextDue(database: Database, nowMs: number): Promise<number | undefined> {
  const rows = await database.query<{ dueAtMs: number }>(
    STANDINGS.map((standing) =>
      `SELECT * FROM (SELECT due_at AS dueAtMs FROM subscriptions
         WHERE status = 'active' AND due_at IS NOT NULL AND due_at > ?1 AND standing = '${standing}'
         ORDER BY due_at LIMIT 1)`
    ).join(" UNION ALL ") + " ORDER BY 1 LIMIT 1",
    [nowMs],
  );
  return rows[0]?.dueAtMs;
}

/** Where a subscription's turn is after something of its work has changed. `?1` is its number. */
const NEXT_TURN = (ifDue: string) =>
  `(SELECT CASE WHEN min(d.due_at) <= ?2 THEN ${ifDue} ELSE min(d.due_at) END
    FROM deliveries d WHERE d.subscription = ?1 AND d.status = 'pending')`;

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
  await database.write(requests.flatMap(({ subscription, count }) => [
    sql(
      `UPDATE deliveries SET claim = ?4, due_at = ?5 WHERE id IN
         (SELECT id FROM deliveries WHERE subscription = ?1 AND status = 'pending' AND due_at <= ?2
            AND EXISTS (SELECT 1 FROM subscriptions WHERE seq = ?1 AND status = 'active')
          ORDER BY due_at LIMIT ?3)`,
      subscription,
      nowMs,
      count,
      claim,
      leaseUntilMs,
    ),
    sql(
      `UPDATE subscriptions SET due_at = ${NEXT_TURN("?2")} WHERE seq = ?1`,
      subscription,
      nowMs,
    ),
  ]));
  return database.query<ClaimedDelivery>(
    "SELECT id, subscription FROM deliveries WHERE claim = ?1 AND due_at = ?2 ORDER BY id",
    [claim, leaseUntilMs],
  );
}

/**
 * A claimed delivery as it is now, at the last moment before it is sent; undefined when it may not
 * be any more: its subscription has been paused or has ended since, or less than `enoughMs` of its
 * lease is left.
 */
export async function findSendable(
  database: Database,
  id: string,
  claim: string,
  options: { readonly enoughMs: number; readonly nowMs: number },
): Promise<SendableDelivery | undefined> {
  const rows = await database.query<SendableDelivery>(
    `SELECT d.id, d.subscription, d.attempt, e.name AS event, e.data AS json, s.endpoint,
       s.secret, s.old_secret AS oldSecret, s.old_secret_until AS oldSecretUntilMs,
       s.id AS subscriptionId
     FROM deliveries d JOIN events e ON e.id = d.event JOIN subscriptions s ON s.seq = d.subscription
     WHERE d.id = ?1 AND d.claim = ?2 AND d.due_at >= ?3 AND s.status = 'active'`,
    [id, claim, options.nowMs + options.enoughMs],
  );
  return rows[0];
}

/** The names of the processes that hold claims. */
export async function listClaims(database: Database): Promise<string[]> {
  const rows = await database.query<{ claim: string }>(
    "SELECT DISTINCT claim FROM deliveries WHERE claim IS NOT NULL",
  );
  return rows.map(({ claim }) => claim);
}

/** All that one process has claimed. */
export function listClaimed(database: Database, claim: string): Promise<ClaimedDelivery[]> {
  return database.query<ClaimedDelivery>(
    "SELECT id, subscription FROM deliveries WHERE claim = ?1",
    [claim],
  );
}

/** One attempt, as it is recorded. */
export interface AttemptRecord {
  readonly delivery: string;
  readonly subscription: number;
  readonly claim: string;
  /** The endpoint that it called. */
  readonly endpoint: string;
  /** Its number: 1 for the first. */
  readonly attempt: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
  readonly snippet: string | undefined;
  readonly next: NextState;
}

/** Records an attempt and moves its delivery on; nothing where another process has taken it over. */
export function recordAttempt(record: AttemptRecord, nowMs: number): Statement[] {
  const { delivery, subscription, claim, outcome, next } = record;
  const answered = outcome.kind === "answer";
  const succeeded = next.status === "delivered";
  const standing = succeeded ? "proven" : "failing";
  return [
    sql(
      `INSERT INTO attempts (delivery, at, attempt, status, error, duration_ms, snippet)
       SELECT ?1, ?3, ?4, ?5, ?6, ?7, ?8 FROM deliveries
       WHERE id = ?1 AND claim = ?2 AND status = 'pending' ON CONFLICT DO NOTHING`,
      delivery,
      claim,
      record.startedAtMs,
      record.attempt,
      answered ? outcome.status : null,
      answered ? null : outcome.error,
      record.durationMs,
      record.snippet ?? null,
    ),
    // An attempt says nothing of an endpoint that has taken the place of the one it called.
    sql(
      `UPDATE subscriptions SET standing = '${standing}', failing_since = ?5
       WHERE seq = ?1 AND endpoint = ?4 AND standing <> '${standing}' AND EXISTS
         (SELECT 1 FROM deliveries WHERE id = ?2 AND claim = ?3 AND status = 'pending')`,
      subscription,
      delivery,
      claim,
      record.endpoint,
      succeeded ? null : nowMs,
    ),
    sql(
      `UPDATE deliveries SET status = ?3, attempt = ?4, due_at = ?5, finished_at = ?6, claim = NULL
       WHERE id = ?1 AND claim = ?2 AND status = 'pending'`,
      delivery,
      claim,
      next.status,
      record.attempt,
      next.status === "pending" ? next.dueAtMs : nowMs,
      next.status === "pending" ? null : nowMs,
    ),
    sql(
      `UPDATE subscriptions SET due_at = ${NEXT_TURN(EARLIER_TURN)} WHERE seq = ?1`,
      subscription,
      nowMs,
    ),
  ];
}

/** Gives claimed deliveries back unsent: they are due at once again, for anybody. */
export function releaseDeliveries(
  deliveries: readonly ClaimedDelivery[],
  claim: string,
  nowMs: number,
): Statement[] {
  const subscriptions = new Set(deliveries.map(({ subscription }) => subscription));
  return [
    sql(
      `UPDATE deliveries SET claim = NULL, due_at = ?3
       WHERE id IN (SELECT value FROM json_each(?1)) AND claim = ?2 AND status = 'pending'`,
      JSON.stringify(deliveries.map(({ id }) => id)),
      claim,
      nowMs,
    ),
    ...subscriptions.values().map((seq) =>
      sql(`UPDATE subscriptions SET due_at = ${NEXT_TURN(EARLIER_TURN)} WHERE seq = ?1`, seq, nowMs)
    ),
  ];
}
