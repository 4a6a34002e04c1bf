import { randomBytes } from "../base/secret.ts";

const [TIME_DIGITS, RANDOM_DIGITS] = [12, 12];
let digits = "";
let last = { ms: 0, time: "" };

/**
 * A new id for one request: 24 hexadecimal digits, the time in milliseconds and randomness. Stored
 * ids append to their index so, instead of scattering over it. Randomness is made for many at once,
 * and the time is written once a millisecond, which costs less.
 */
export function newRequestId(): string {
  if (digits === "") digits = randomBytes(252).toString("hex"); // 42 times as many
  const random = digits.slice(0, RANDOM_DIGITS);
  digits = digits.slice(RANDOM_DIGITS);
  const ms = Date.now();
  if (ms !== last.ms) last = { ms, time: ms.toString(16).padStart(TIME_DIGITS, "0") };
  return last.time + random;
}

/** An id that came with the request, if it is sane enough to be logged and sent back. */
export function readRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && /^[A-Za-z0-9._:-]{1,128}$/.test(header) ? header : undefined;
}
