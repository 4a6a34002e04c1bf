import { inspect } from "node:util";

/** Returns the message of a thrown value. An Error's message may be no string. */
export function messageOf(error: unknown): string {
  return String(error instanceof Error ? error.message : error);
}

const SHORT = { depth: 1, breakLength: Infinity, maxStringLength: 500, customInspect: false };

/** Returns a thrown value as an Error: other values say little in a log, or cannot be logged. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new TypeError(`Threw ${inspect(thrown, SHORT)}`);
}
