import { inspect } from "node:util";

/** The message of whatever was thrown, which may be an Error whose message is no text. */
export function messageOf(error: unknown): string {
  return String(error instanceof Error ? error.message : error);
}

const SHORT = { depth: 1, breakLength: Infinity, maxStringLength: 500, customInspect: false };

/** What was thrown, as an Error: other values say little in a log, or cannot stand there. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new TypeError(`Threw ${inspect(thrown, SHORT)}`);
}
