import { Problem } from "../base/problem.ts";
import { OutcomeUnknownError } from "../database/database.ts";

/** The code of the only 503 after which something may have been stored. */
export const OUTCOME_UNKNOWN = "outcome_unknown";

/** The header that says when to retry what the service cannot do now. */
export const RETRY_AFTER = { "Retry-After": "2" };

/**
 * Makes Problem 503 for a failed write of `what`, or for a failed read without `what`. The detail
 * says whether the write may have been stored.
 */
export function unavailable(cause: unknown, what?: string): Problem {
  const [code, detail] = cause instanceof OutcomeUnknownError
    ? [OUTCOME_UNKNOWN,
      `It is not known whether ${what ?? "this"} was stored: check before you repeat it.`]
    : ["unavailable", `Storage is unavailable${what ? `; ${what} was not stored` : ""}.`];
  return new Problem(503, code, detail, { headers: RETRY_AFTER, cause });
}
