import { Problem } from "../base/problem.ts";
import { OutcomeUnknownError, type UnavailableError } from "../database/database.ts";

/** The code of the only 503 after which something may have been stored. */
export const OUTCOME_UNKNOWN = "outcome_unknown";

/** The problem of storage that cannot be reached: it says whether anything was stored. */
export function unavailable(error: UnavailableError): Problem {
  const [code, detail] = error instanceof OutcomeUnknownError
    ? [OUTCOME_UNKNOWN, "It is not known whether this was stored: look before you repeat it."]
    : ["unavailable", "Storage is unavailable; nothing was stored."];
  return new Problem(503, code, detail, { headers: { "Retry-After": "2" } });
}
