import { inspect } from "node:util";

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const SHORT = { depth: 1, breakLength: Infinity, maxStringLength: 500, customInspect: false };

/** What was thrown, as an Error: other values say little in a log, or cannot stand there. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new TypeError(`Threw ${inspect(thrown, SHORT)}`);
}
