import { randomBytes } from "./secret.ts";

const timeDigits = 9; // base 36: enough until the year 5188
const orderDigits = 3;
const orderLimit = 36 ** orderDigits;
const randomDigits = 12; // 62 bits

let lastMs = 0;
let order = 0;

/**
 * A new id: the kind's letter, the time in milliseconds, a counter and randomness, all lower-case base 36.
 * Ids of one process sort in the order they were made, so rows keyed by them append to an index
 * instead of scattering over it, and "newest first" is a walk backwards.
 */
export function newId(kind: string, nowMs: number): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    order = 0;
  } else if (++order === orderLimit) {
    lastMs++; // more than 46,656 in a millisecond, or a clock that stands still or steps back
    order = 0;
  }
  return kind +
    lastMs.toString(36).padStart(timeDigits, "0") +
    order.toString(36).padStart(orderDigits, "0") +
    (randomBytes(8).readBigUInt64BE() % 36n ** BigInt(randomDigits)).toString(36)
      .padStart(randomDigits, "0");
}

/** The number of characters of every id, its letter included. */
export const idLength = 1 + timeDigits + orderDigits + randomDigits;

/** When an id was made, in milliseconds since 1970; for text that `isId` accepted. */
export function idTimeMs(id: string): number {
  return parseInt(id.slice(1, 1 + timeDigits), 36);
}

/** Whether the text has the form of an id of this kind. */
export function isId(kind: string, text: string): boolean {
  return text.length === idLength && text.startsWith(kind) && /^[a-z][0-9a-z]+$/.test(text);
}
