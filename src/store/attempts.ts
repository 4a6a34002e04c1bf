import type { AttemptOutcome, NextState } from "../event/delivery.ts";
import { sql, type Statement } from "../database/database.ts";
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
): Statement[] {
  const { delivery, subscription, outcome, next } = record;
  const answered = outcome.kind === "answer";
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
      `UPDATE subscriptions SET standing = 'failing', failing_since = ?5
       WHERE seq = ?1 AND endpoint = ?4 AND standing <> 'failing' AND EXISTS
         (SELECT 1 FROM deliveries WHERE id = ?2 AND claim = ?3 AND status = 'pending')`,
      subscription,
      delivery,
      claim,
      record.endpoint,
      nowMs,
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
): Statement[] {
  const rows = JSON.stringify(records);
  return [
    sql(
      `INSERT INTO attempts (delivery, at, attempt, status, duration_ms, snippet)
       SELECT d.id, row.value ->> 'startedAtMs', row.value ->> 'attempt', row.value ->> '$.outcome.status',
         row.value ->> 'durationMs', row.value ->> 'snippet'
       FROM ${CLAIMED_ROWS} WHERE TRUE ON CONFLICT DO NOTHING`,
      rows,
      claim,
    ),
    sql(
      `UPDATE subscriptions SET standing = 'proven', failing_since = NULL WHERE seq IN
         (SELECT s.seq FROM ${CLAIMED_ROWS} CROSS JOIN subscriptions s ON s.seq = d.subscription
          WHERE s.endpoint = row.value ->> 'endpoint' AND s.standing <> 'proven')`,
      rows,
      claim,
    ),
    // The plus: by their ids, and not through all that the process has claimed.
    sql(
      `UPDATE deliveries SET status = 'delivered', attempt = attempt + 1, due_at = ?3,
         finished_at = ?3, claim = NULL
       WHERE id IN (SELECT value FROM json_each(?1)) AND +claim = ?2 AND status = 'pending'`,
      JSON.stringify(records.map(({ delivery }) => delivery)),
      claim,
      nowMs,
    ),
    moveTurns(records.map(({ subscription }) => subscription), EARLIER_TURN, nowMs),
    ...keepMeans(records),
  ];
}

/** Those of subscriptions that answer at once are not worth it: most often there are none. */
function keepMeans(records: readonly AttemptRecord[]): Statement[] {
  return records.flatMap(({ subscription, endpoint, meanMs }) =>
    meanMs === undefined ? [] : sql(
      "UPDATE subscriptions SET mean_ms = ?3 WHERE seq = ?1 AND endpoint = ?2",
      subscription,
      endpoint,
      meanMs,
    )
  );
}

/** The rows of `?1` whose deliveries the process `?2` still holds. */
const CLAIMED_ROWS = `json_each(?1) row CROSS JOIN deliveries d
  ON d.id = row.value ->> 'delivery' AND d.claim = ?2 AND d.status = 'pending'`;
