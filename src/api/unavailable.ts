import { Problem } from "../base/problem.ts";
import { OutcomeUnknownError } from "../database/database.ts";

/** The code of the only 503 after which something may have been stored. */
export const OUTCOME_UNKNOWN = "outcome_unknown";

/** When to try again what the service cannot do now. */
export const RETRY_AFTER = { "Retry-After": "2" };

/**
 * The problem of what could not be stored, for this cause: it says whether it may have been;
 * without `what`, of what was only to be read.
 */
export function unavailable(cause: unknown, what?: string): Problem {
  const [code, detail] = cause instanceof OutcomeUnknownError
    ? [OUTCOME_UNKNOWN,
      `It is not known whether ${what ?? "this"} was stored: look before you repeat it.`]
    : ["unavailable", `Storage is unavailable${what ? `; ${what} was not stored` : ""}.`];
  return new Problem(503, code, detail, { headers: RETRY_AFTER, cause });
}
