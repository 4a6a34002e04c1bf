import { randomBytes } from "./secret.ts";
import { matching, type Shape } from "./shape.ts";

const TIME_DIGITS = 9; // base 36: enough until the year 5188
const ORDER_DIGITS = 3;
const ORDER_LIMIT = 36 ** ORDER_DIGITS;
const RANDOM_DIGITS = 12; // 62 bits, made in two halves: a number holds each exactly

let lastMs = 0;
let order = 0;

/**
 * A new id: the kind's letter, the time in milliseconds, a counter and randomness, all lower-case
 * base 36. Ids of one process sort in the order they were made, so rows keyed by them append to an
 * index instead of scattering over it, and "newest first" is a walk backwards.
 */
export function newId(kind: string, nowMs: number): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    order = 0;
  } else if (++order === ORDER_LIMIT) {
    lastMs++; // more than 46,656 ids in a millisecond, or a clock that stops or steps back
    order = 0;
  }
  return kind +
    lastMs.toString(36).padStart(TIME_DIGITS, "0") +
    order.toString(36).padStart(ORDER_DIGITS, "0") +
    randomDigits() + randomDigits();
}

/** Half of the random digits. They come from 48 bits: no value is likelier by 1 in 100,000. */
function randomDigits(): string {
  const digits = RANDOM_DIGITS / 2;
  return (randomBytes(6).readUIntBE(0, 6) % 36 ** digits).toString(36).padStart(digits, "0");
}

/** The number of characters of every id, its letter included. */
export const ID_LENGTH = 1 + TIME_DIGITS + ORDER_DIGITS + RANDOM_DIGITS;

/** When an id was made, in milliseconds since 1970; for text that `isId` accepted. */
export function idTimeMs(id: string): number {
  return parseInt(id.slice(1, 1 + TIME_DIGITS), 36);
}

/** Returns a bound between ids of the kind made before `timeMs` and those made then or later. */
export function idBound(kind: string, timeMs: number): string {
  return kind + Math.max(0, timeMs).toString(36).padStart(TIME_DIGITS, "0");
}

/** Whether the text has the form of an id of this kind. */
export function isId(kind: string, text: string): boolean {
  return text.length === ID_LENGTH && text.startsWith(kind) && /^[a-z][0-9a-z]+$/.test(text);
}

/** An id of this kind in JSON, in a query or in a response. */
export function idOf(kind: string): Shape<string> {
  return matching(new RegExp(`^${kind}[0-9a-z]{${ID_LENGTH - 1}}$`), "Must be an id.");
}
