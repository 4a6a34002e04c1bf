export type AttemptOutcome =
  | {
    readonly kind: "response";
    readonly status: number;
    /** The wait that the response's Retry-After asks for. */
    readonly retryAfterMs?: number | undefined;
  }
  | { readonly kind: "error"; readonly error: string };

/** The state of a delivery after a failed attempt. */
export type NextState =
  | { readonly status: "pending"; readonly dueAtMs: number }
  /** `gone`: the last response was 410, so the subscriber wants no more callbacks. */
  | { readonly status: "failed"; readonly gone: boolean };

/** Recipients must accept all three (RFC 9110 §5.6.7). */
const HTTP_DATES = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/, // IMF-fixdate
  /^[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/, // RFC 850
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/, // asctime
];
const MAX_RETRY_AFTER_MS = 3_600_000;
const JITTER = 0.2;

/** Whether an attempt reached the subscriber: status 2xx and nothing else. */
export function isSuccess(outcome: AttemptOutcome): boolean {
  return outcome.kind === "response" && outcome.status >= 200 && outcome.status <= 299;
}

/**
 * Returns the state of a delivery after its `attempt`-th attempt (1 for the first) has failed. All
 * failures count alike. The delay before a resend varies at random by a fifth, so that deliveries
 * that failed together are not resent together. A Retry-After extends it to at most an hour.
 *
 * @param delaysMs the wait before each resend: as many entries as there are resends
 * @param random a number from 0 to 1
 */
export function afterAttempt(
  attempt: number,
  outcome: AttemptOutcome,
  delaysMs: readonly number[],
  nowMs: number,
  random: number,
): NextState {
  const delayMs = delaysMs[attempt - 1];
  if (delayMs === undefined) {
    return { status: "failed", gone: outcome.kind === "response" && outcome.status === 410 };
  }
  const jitteredMs = delayMs * (1 - JITTER + 2 * JITTER * random);
  const askedMs = outcome.kind === "response" ? outcome.retryAfterMs ?? 0 : 0;
  const waitMs = Math.max(jitteredMs, Math.min(askedMs, MAX_RETRY_AFTER_MS));
  return { status: "pending", dueAtMs: nowMs + Math.round(waitMs) };
}

/** Returns the longest possible wait before a resend, in milliseconds. */
export function longestWaitMs(delaysMs: readonly number[]): number {
  return Math.max(MAX_RETRY_AFTER_MS, Math.max(0, ...delaysMs) * (1 + JITTER));
}

/**
 * Returns the wait in milliseconds that a Retry-After header asks for, as seconds or an HTTP date
 * (RFC 9110 §10.2.3); undefined if it is neither.
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  const value = header.trim(); // fetch keeps trailing blanks, which are not part of it (§5.5)
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const isDate = HTTP_DATES.some((form) => form.test(value));
  // An asctime date has no zone; it is UTC like the others.
  const atMs = isDate ? Date.parse(value.endsWith("GMT") ? value : `${value} GMT`) : NaN;
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
