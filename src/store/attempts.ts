import type { AttemptOutcome, NextState } from "../event/delivery.ts";
import { sql, type Sql } from "../database/sql.ts";
import { moveTurns } from "./deliveries.ts";
import { EARLIER_TURN } from "./subscriptions.ts";

/** One attempt that has ended, as it is recorded. */
export interface AttemptRecord {
  readonly delivery: string;
  readonly subscription: number;
  /** The endpoint that it called. */
  readonly endpoint: string;
  /** Its number: 1 for the first. */
  readonly attempt: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** The mean duration of its subscription's attempts, where that is worth keeping. */
  readonly meanMs: number | undefined;
  readonly outcome: AttemptOutcome;
  readonly snippet: string | undefined;
}

/** Records a failed attempt and moves its delivery on; nothing where another process holds it now. */
export function recordFailure(
  record: AttemptRecord & { readonly next: NextState },
  claim: string,
  nowMs: number,
): Sql[] {
  const { delivery, subscription, outcome, next } = record;
  const answered = outcome.kind === "answer";
  return [
    sql`INSERT INTO attempts (delivery, startedAtMs, attempt, status, error, durationMs, snippet)
       SELECT ${delivery}, ${record.startedAtMs}, ${record.attempt}, ${answered ? outcome.status : null}, ${answered ? null : outcome.error}, ${record.durationMs}, ${record.snippet ?? null} FROM deliveries
       WHERE id = ${delivery} AND claim = ${claim} AND status = 'pending' ON CONFLICT DO NOTHING`,
    // An attempt says nothing of an endpoint that has taken the place of the one it called.
    sql`UPDATE subscriptions SET failingSinceMs = ${nowMs}
       WHERE seq = ${subscription} AND endpoint = ${record.endpoint} AND failingSinceMs IS NULL AND EXISTS
         (SELECT 1 FROM deliveries WHERE id = ${delivery} AND claim = ${claim} AND status = 'pending')`,
    sql`UPDATE deliveries SET status = ${next.status}, attempt = ${record.attempt}, dueAtMs = ${next.status === "pending" ? next.dueAtMs : nowMs}, finishedAtMs = ${next.status === "pending" ? null : nowMs}, claim = NULL
       WHERE id = ${delivery} AND claim = ${claim} AND status = 'pending'`,
    moveTurns([subscription], EARLIER_TURN, nowMs),
    ...keepMeans([record]),
  ];
}

/**
 * Records attempts that have succeeded, with as many statements as for one; nothing of those whose
 * delivery another process has taken over.
 */
export function recordDelivered(
  records: readonly AttemptRecord[],
  claim: string,
  nowMs: number,
): Sql[] {
  const rows = JSON.stringify(records);
  return [
    sql(
      `INSERT INTO attempts (delivery, startedAtMs, attempt, status, durationMs, snippet)
       SELECT d.id, row.value ->> 'startedAtMs', row.value ->> 'attempt', row.value ->> '$.outcome.status',
         row.value ->> 'durationMs', row.value ->> 'snippet'
       FROM ${CLAIMED_ROWS} WHERE TRUE ON CONFLICT DO NOTHING`,
      rows,
      claim,
    ),
    sql(
      `UPDATE subscriptions SET hasSucceeded = 1, failingSinceMs = NULL WHERE seq IN
         (SELECT s.seq FROM ${CLAIMED_ROWS} CROSS JOIN subscriptions s ON s.seq = d.subscription
          WHERE s.endpoint = row.value ->> 'endpoint' AND (NOT s.hasSucceeded OR s.failingSinceMs IS NOT NULL))`,
      rows,
      claim,
    ),
    // The plus: by their ids, and not through all that the process has claimed.
    sql`UPDATE deliveries SET status = 'delivered', attempt = attempt + 1, dueAtMs = ${nowMs},
         finishedAtMs = ${nowMs}, claim = NULL
       WHERE id IN (SELECT value FROM json_each(${JSON.stringify(records.map(({ delivery }) => delivery))})) AND +claim = ${claim} AND status = 'pending'`,
    moveTurns(records.map(({ subscription }) => subscription), EARLIER_TURN, nowMs),
    ...keepMeans(records),
  ];
}

/** Those of subscriptions that answer at once are not worth it: most often there are none. */
function keepMeans(records: readonly AttemptRecord[]): Sql[] {
  return records.flatMap(({ subscription, endpoint, meanMs }) =>
    meanMs === undefined ? [] : sql`UPDATE subscriptions SET meanMs = ${meanMs} WHERE seq = ${subscription} AND endpoint = ${endpoint}`
  );
}

/** The rows of `?1` whose deliveries the process `?2` still holds. */
const CLAIMED_ROWS = `json_each(?1) row CROSS JOIN deliveries d
  ON d.id = row.value ->> 'delivery' AND d.claim = ?2 AND d.status = 'pending'`;
