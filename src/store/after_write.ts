import { OutcomeUnknownError, UnavailableError } from "../database/database.ts";

/** For a read after a stored write: throws OutcomeUnknownError in place of UnavailableError. */
export function afterWrite<Result>(read: Promise<Result>): Promise<Result> {
  return read.catch((cause: unknown) => {
    if (!(cause instanceof UnavailableError)) throw cause;
    throw new OutcomeUnknownError(`The stored result cannot be read: ${cause.message}`);
  });
}
