import { randomBytes } from "../base/secret.ts";

const [TIME_DIGITS, RANDOM_DIGITS] = [12, 12];
let digits = "";
let last = { ms: 0, time: "" };

/**
 * Returns a new id for a request: 24 hexadecimal digits, of the time in milliseconds and
 * randomness. So stored ids append to their index instead of scattering over it. To save time,
 * randomness is made for many ids at once, and the time is formatted once a millisecond.
 */
export function newRequestId(): string {
  if (digits === "") digits = randomBytes(252).toString("hex"); // for 42 ids
  const random = digits.slice(0, RANDOM_DIGITS);
  digits = digits.slice(RANDOM_DIGITS);
  const ms = Date.now();
  if (ms !== last.ms) last = { ms, time: ms.toString(16).padStart(TIME_DIGITS, "0") };
  return last.time + random;
}

/** Returns the id that came with a request, if it is safe to log and to send back. */
export function readRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && /^[A-Za-z0-9._:-]{1,128}$/.test(header) ? header : undefined;
}
