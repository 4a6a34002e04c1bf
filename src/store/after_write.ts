import { OutcomeUnknownError, UnavailableError } from "../database/database.ts";

/** Of a read that follows a write: where it cannot be done, what was written is stored. */
export function afterWrite<Result>(read: Promise<Result>): Promise<Result> {
  return read.catch((cause: unknown) => {
    if (!(cause instanceof UnavailableError)) throw cause;
    throw new OutcomeUnknownError(`What was stored cannot be read: ${cause.message}`);
  });
}
