import type { AttemptOutcome, NextState } from "../event/delivery.ts";
import { type Database, limitTo } from "../database/database.ts";
import { findValue, hasRow } from "../database/rows.ts";
import { joinSql, listOf, sql, type Sql, sqlText } from "../database/sql.ts";
import { mayReceive, NEEDED_BY_EVENT } from "./authority.ts";
import { earlierDue } from "./subscriptions.ts";

/** The last attempt of a subscription: none yet, succeeded (`slow`: mean above 1 s) or failed. */
export type Health = typeof HEALTHS[number];

export const HEALTHS = ["unknown", "healthy", "slow", "failing"] as const;

/** The columns of a `DueQueue`. */
export const QUEUE = sql`seq AS subscription, health, principal, meanMs`;

/** Selects, for each health, the active subscriptions with work that are due first. */
export function dueFirst(column: Sql, count: number, more = sql``): Sql {
  const ofEach = HEALTHS.map((health) =>
    sql`SELECT * FROM (SELECT ${column} FROM subscriptions
      WHERE status = 'active' AND dueAtMs IS NOT NULL${more} AND health = ${sqlText(health)}
      ORDER BY dueAtMs ${limitTo(count)})`
  );
  return joinSql(ofEach, " UNION ALL ");
}

/** A subscription with work that is due: its queue in the distributor. */
export interface DueQueue {
  readonly subscription: number;
  readonly health: Health;
  readonly principal: string;
  /** The moving mean of its attempts' durations, in milliseconds. */
  readonly meanMs: number;
}

/** Subscriptions of one health with due work, the longest-waiting first, without `except`. */
export function listDueQueues(
  database: Database,
  health: Health,
  except: { subscriptions: readonly number[]; principals: readonly string[] },
  limit: number,
  nowMs: number,
): Promise<DueQueue[]> {
  const select = sql`SELECT ${QUEUE} FROM subscriptions
    WHERE status = 'active' AND dueAtMs IS NOT NULL AND dueAtMs <= ${nowMs} AND health = ${health}
      AND seq NOT IN ${listOf(except.subscriptions)}
      AND principal NOT IN ${listOf(except.principals)}
    ORDER BY dueAtMs ${limitTo(limit)}`;
  return database.query<DueQueue>(select);
}

/** When the next work is due after now, or a pause ends, in milliseconds since 1970. */
export function findNextDue(database: Database, nowMs: number): Promise<number | undefined> {
  const select = sql`${dueFirst(sql`dueAtMs`, 1, sql` AND dueAtMs > ${nowMs}`)} UNION ALL
    SELECT * FROM (SELECT pausedUntilMs FROM subscriptions
      WHERE status = 'paused' AND pausedUntilMs IS NOT NULL ORDER BY pausedUntilMs LIMIT 1)
    ORDER BY 1 LIMIT 1`;
  return findValue(database, select);
}

/** Sets when subscriptions are next due: `ifDue` for those with work that is due already. */
export function updateNextDue(
  subscriptions: Iterable<string | number>,
  nowMs: number,
  ifDue: Sql | number = earlierDue(nowMs),
): Sql {
  return sql`UPDATE subscriptions SET dueAtMs =
      (SELECT iif(min(d.dueAtMs) <= ${nowMs}, ${ifDue}, min(d.dueAtMs))
        FROM deliveries d WHERE d.subscription = seq AND d.status = 'pending')
    WHERE seq IN ${listOf(new Set(subscriptions))}`;
}

/** A delivery that a process has claimed; what its attempt needs is read when it is sent. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly subscription: number;
}

/** A claimed delivery, with all that its attempt needs. */
export interface SendableDelivery extends ClaimedDelivery {
  /** The number of its next attempt: 1 for the first, 4 for the last resend. */
  readonly attempt: number;
  readonly event: string;
  readonly json: string;
  readonly endpoint: string;
  /** Encrypted where there is a key. */
  readonly secret: string;
  readonly oldSecret: string | null;
  readonly oldSecretUntilMs: number | null;
  readonly subscriptionId: string;
}

/** How many deliveries of a subscription, by its number, are to be claimed. */
export type ClaimRequest = Readonly<Record<"subscription" | "count", number>>;

const MAY_RECEIVE_EVENT = mayReceive(NEEDED_BY_EVENT);

/** Whether a delivery with that id exists, in any status. */
export function hasDelivery(database: Database, id: string): Promise<boolean> {
  return hasRow(database, sql`SELECT 1 FROM deliveries WHERE id = ${id}`);
}

/** One attempt that has ended, as it is recorded. */
export interface AttemptRecord
  extends Pick<SendableDelivery, "id" | "subscription" | "endpoint" | "attempt"> {
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
  /** The subscription's new mean duration; undefined if the stored one stays. */
  readonly meanMs: number | undefined;
  readonly snippet: string | undefined;
}

/** The operations of one process on deliveries; what it claims bears its name, `claim`. */
export function claimsOf(database: Database, claim: string) {
  const select = (which: Sql) =>
    database.query<ClaimedDelivery>(sql`SELECT id, subscription FROM deliveries
      WHERE claim = ${claim}${which}`);

  /**
   * Holds for the row of a delivery while it is still claimed and has not been resent by hand,
   * after which its attempts are counted anew.
   */
  const isClaimed = ({ id, attempt }: Pick<SendableDelivery, "id" | "attempt">): Sql =>
    sql`id = ${id} AND claim = ${claim} AND status = 'pending' AND attempt = ${attempt - 1}`;

  /** Joins rows of JSON, which begin with a delivery's id, with deliveries `d` still claimed. */
  const claimedOf = (rows: readonly (readonly unknown[])[]) =>
    sql`json_each(${JSON.stringify(rows)}) row CROSS JOIN deliveries d
      ON d.id = row.value ->> 0 AND d.claim = ${claim} AND d.status = 'pending'`;

  /** Stores attempts, runs `moves` on their deliveries, and sets when subscriptions are due. */
  function recordAttempts(records: readonly AttemptRecord[], nowMs: number, moves: readonly Sql[]) {
    const rows = records.map(({ id, startedAtMs, attempt, durationMs, outcome, snippet }) =>
      [id, startedAtMs, attempt, outcome, durationMs, snippet]
    );
    return [
      sql`INSERT INTO attempts (delivery, startedAtMs, attempt, status, error, durationMs, snippet)
        SELECT d.id, row.value ->> 1, row.value ->> 2, row.value ->> '$[3].status',
          row.value ->> '$[3].error', row.value ->> 4, row.value ->> 5
        FROM ${claimedOf(rows)} WHERE TRUE ON CONFLICT DO NOTHING`,
      ...moves,
      updateNextDue(records.map(({ subscription }) => subscription), nowMs),
      // Fast subscriptions keep no mean: most often there is nothing to store.
      ...records.flatMap(({ subscription, endpoint, meanMs }) =>
        meanMs === undefined ? [] : sql`UPDATE subscriptions SET meanMs = ${meanMs}
          WHERE seq = ${subscription} AND endpoint = ${endpoint}`
      ),
    ];
  }

  return {
    isClaimed,
    /**
     * Claims up to `count` due deliveries of each subscription until the lease ends; if the process
     * has died by then, they are due again. Each subscription goes to the end of the queue. The
     * claimed ones are found by `leaseUntilMs`, so no two claims may have the same.
     */
    async claim(requests: readonly ClaimRequest[], leaseUntilMs: number, nowMs: number) {
      const numbersOf = (some: typeof requests) => some.map(({ subscription }) => subscription);
      const counts = Map.groupBy(requests, ({ count }) => count); // a LIMIT cannot depend on a row
      await database.write([
        ...counts.entries().map(([count, queues]) =>
          sql`UPDATE deliveries SET claim = ${claim}, dueAtMs = ${leaseUntilMs} WHERE id IN
            (SELECT d.id FROM json_each(${JSON.stringify(numbersOf(queues))}) queue
              CROSS JOIN deliveries d WHERE d.id IN (SELECT id FROM deliveries
                WHERE subscription = queue.value AND status = 'pending' AND dueAtMs <= ${nowMs}
                  AND EXISTS (SELECT 1 FROM subscriptions
                    WHERE seq = queue.value AND status = 'active')
                ORDER BY dueAtMs ${limitTo(count)}))`
        ),
        updateNextDue(numbersOf(requests), nowMs, nowMs),
      ]);
      return select(sql` AND dueAtMs = ${leaseUntilMs} ORDER BY id`);
    },
    /**
     * Reads claimed deliveries right before they are sent. Leaves out those whose subscription is
     * no longer active or may not receive the event, and those whose lease ends before
     * `enoughUntilMs`.
     */
    listSendable: (ids: readonly string[], enoughUntilMs: number) =>
      database.query<SendableDelivery>(
        sql`SELECT d.id, d.subscription, d.attempt + 1 AS attempt, e.name AS event, e.data AS json,
          s.endpoint, s.secret, s.oldSecret, s.oldSecretUntilMs, s.id AS subscriptionId
        FROM json_each(${JSON.stringify(ids)}) claimed
          CROSS JOIN deliveries d ON d.id = claimed.value
          JOIN events e ON e.id = d.event JOIN subscriptions s ON s.seq = d.subscription
        WHERE d.claim = ${claim} AND d.dueAtMs >= ${enoughUntilMs} AND s.status = 'active'
          AND ${MAY_RECEIVE_EVENT}`,
      ),
    /** All deliveries that are claimed, or only those whose leases end at these times. */
    list: (leases?: readonly number[]) =>
      select(leases ? sql` AND dueAtMs IN ${listOf(leases)}` : sql``),
    /** Releases unsent deliveries, due at `dueAtMs`; cancels those that may not be received. */
    release(deliveries: readonly ClaimedDelivery[], nowMs: number, dueAtMs = nowMs): Sql[] {
      const areClaimed = sql`id IN ${listOf(deliveries.map(({ id }) => id))} AND claim = ${claim}
        AND status = 'pending'`;
      return [
        sql`UPDATE deliveries AS d
          SET claim = NULL, status = 'cancelled', dueAtMs = ${nowMs}, finishedAtMs = ${nowMs}
          WHERE ${areClaimed} AND NOT EXISTS (
            SELECT 1 FROM events e JOIN subscriptions s ON s.seq = d.subscription
            WHERE e.id = d.event AND ${MAY_RECEIVE_EVENT})`,
        sql`UPDATE deliveries SET claim = NULL, dueAtMs = ${dueAtMs} WHERE ${areClaimed}`,
        updateNextDue(deliveries.map(({ subscription }) => subscription), nowMs),
      ];
    },
    /** Records a failed attempt and updates its delivery; nothing if the claim no longer holds. */
    recordFailure(record: AttemptRecord & { readonly next: NextState }, nowMs: number): Sql[] {
      const { id, subscription, endpoint, attempt, outcome, next } = record;
      const claimed = isClaimed(record);
      const [status, error] = outcome.kind === "response" ? [outcome.status, null]
        : [null, outcome.error];
      const [dueAtMs, finishedAtMs] = next.status === "pending" ? [next.dueAtMs, null]
        : [nowMs, nowMs];
      return recordAttempts([record], nowMs, [
        // An attempt says nothing about an endpoint that has replaced the one that it called.
        sql`UPDATE subscriptions SET failingSinceMs = ${nowMs}
          WHERE seq = ${subscription} AND endpoint = ${endpoint} AND failingSinceMs IS NULL
            AND EXISTS (SELECT 1 FROM deliveries WHERE ${claimed})`,
        sql`UPDATE deliveries SET status = ${next.status}, attempt = ${attempt},
            dueAtMs = ${dueAtMs}, finishedAtMs = ${finishedAtMs}, lastStatus = ${status},
            lastError = ${error}, claim = NULL
          WHERE ${claimed}`,
        // A delivery that was resent by hand meanwhile begins with its first attempt.
        sql`UPDATE deliveries SET claim = NULL, dueAtMs = ${nowMs}
          WHERE id = ${id} AND claim = ${claim} AND status = 'pending'`,
      ]);
    },
    /** Records attempts that have succeeded; nothing for deliveries whose claim no longer holds. */
    recordDelivered(records: readonly AttemptRecord[], nowMs: number): Sql[] {
      const endpoints = records.map(({ id, endpoint }) => [id, endpoint]);
      const byStatus = Map.groupBy(records, ({ outcome }) =>
        outcome.kind === "response" ? outcome.status : null);
      return recordAttempts(records, nowMs, [
        sql`UPDATE subscriptions SET hasSucceeded = 1, failingSinceMs = NULL WHERE seq IN
          (SELECT s.seq FROM ${claimedOf(endpoints)}
            CROSS JOIN subscriptions s ON s.seq = d.subscription
            WHERE s.endpoint = row.value ->> 1
              AND (NOT s.hasSucceeded OR s.failingSinceMs IS NOT NULL))`,
        ...byStatus.entries().map(([status, some]) =>
          // The pluses make SQLite search by the ids alone.
          sql`UPDATE deliveries SET status = 'delivered', attempt = attempt + 1,
              dueAtMs = ${nowMs}, finishedAtMs = ${nowMs}, lastStatus = ${status},
              lastError = NULL, claim = NULL
            WHERE id IN ${listOf(some.map(({ id }) => id))} AND +claim = ${claim}
              AND +status = 'pending'`
        ),
      ]);
    },
  };
}
