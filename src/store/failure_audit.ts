import { FAILURES, insertAudit, type NewAuditEntry, trimAudit } from "./audit.ts";
import { BATCH } from "./batch.ts";
import { type Database, OutcomeUnknownError } from "../database/database.ts";

/** The audit entries that anyone can cause: failed logins, client authentications, user codes. */
export type FailureAudit = ReturnType<typeof createFailureAudit>;

/** The same failure from the same place is recorded once in this time. */
const REPEAT_MS = 60_000;
/** How many failures are recorded at once, and after how many milliseconds one more. */
const BURST = 100;
const REFILL_MS = 1000;

/** How many entries of each kind are kept, since anyone can cause them: about 30 MB. */
const KEPT_FAILURES = 100_000;

/**
 * Makes the recorder of failures, which holds some hundred of them in memory at most.
 *
 * @param keep how many of each kind are kept
 */
export function createFailureAudit(database: Database, now: () => number, keep = KEPT_FAILURES) {
  const waiting = new Map<string, { readonly failure: NewAuditEntry; readonly atMs: number }>();
  const recorded = new Map<string, number>();
  let capacity = BURST;
  let grownAtMs = now();

  return {
    /**
     * Keeps a failure until the next flush. It neither waits nor writes, so the response to a
     * failure takes the same time whether it is recorded or not. `from` is the address or network
     * by which failures are counted. Of a flood not every failure is recorded.
     */
    record(from: string, failure: NewAuditEntry): void {
      const key = [failure.action, failure.target, from].join(" ");
      if (waiting.size < BURST && !waiting.has(key)) waiting.set(key, { failure, atMs: now() });
    },
    /**
     * Stores the failures as one batch, and removes the oldest entries beyond the limit. Failures
     * that the database refuses wait for the next flush.
     */
    async flush(): Promise<void> {
      const nowMs = now();
      // The capacity does not shrink when the clock is set back.
      capacity = Math.min(BURST, capacity + Math.max(0, nowMs - grownAtMs) / REFILL_MS);
      grownAtMs = nowMs;
      for (const [key, atMs] of recorded) {
        if (Math.abs(nowMs - atMs) >= REPEAT_MS) recorded.delete(key);
      }
      const fresh = [...waiting].filter(([key]) => !recorded.has(key)).slice(0, capacity);
      waiting.clear();
      if (fresh.length === 0) return;
      await database.write([
        ...fresh.map(([, { failure, atMs }]) => insertAudit(failure, atMs)),
        ...FAILURES.map((action) => trimAudit(action, keep, BATCH)), // BATCH exceeds BURST
      ]).catch((error: unknown) => {
        const isUnsure = error instanceof OutcomeUnknownError; // it might be recorded twice
        if (!isUnsure) for (const [key, each] of fresh) waiting.set(key, each);
        throw error;
      });
      capacity -= fresh.length;
      for (const [key, { atMs }] of fresh) recorded.set(key, atMs);
    },
  };
}
