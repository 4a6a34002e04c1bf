import { randomBytes } from "../base/secret.ts";

/** How long a device may wait for its user (RFC 8628 §3.2). */
export const DEVICE_CODE_MS = 10 * 60_000;

/** The time between two polls, and how much longer it gets after a poll that came too early. */
export const POLL_INTERVAL_MS = 5_000;

/** How much earlier a poll may arrive, because it travelled faster than the one before. */
const POLL_SLACK_MS = 1_000;

/** RFC 8628 §6.1: no vowels, so that no words arise, and no digits. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const LENGTH = 8;

const format = (code: string) => `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;

/** Returns a code such as `BCDF-GHJK` with 34.6 bits; made from 48, it is biased below 1:10,000. */
export function newUserCode(): string {
  const [base, bits] = [LETTERS.length, randomBytes(6).readUIntBE(0, 6)];
  const digits = (bits % base ** LENGTH).toString(base).padStart(LENGTH, "0");
  return format(digits.replace(/./g, (digit) => LETTERS.charAt(parseInt(digit, base))));
}

/** Returns the code that was typed, in any case and with any separators (RFC 8628 §6.1). */
export function parseUserCode(typed: string): string | undefined {
  const code = typed.toUpperCase().replace(new RegExp(`[^${LETTERS}]`, "g"), "");
  return code.length === LENGTH ? format(code) : undefined;
}

/** A poll of a device; each early poll makes the interval longer for good (RFC 8628 §3.5). */
export type Poll = ReturnType<typeof nextPoll>;

/** Returns the state after a poll at this time. */
export function nextPoll(
  last: { readonly atMs: number; readonly intervalMs: number } | undefined,
  atMs: number,
) {
  const { intervalMs = POLL_INTERVAL_MS } = last ?? {};
  const sinceMs = atMs - (last?.atMs ?? -Infinity); // negative if the clock was set back
  const isEarly = sinceMs >= 0 && sinceMs < intervalMs - POLL_SLACK_MS;
  return { atMs, intervalMs: intervalMs + (isEarly ? POLL_INTERVAL_MS : 0), isEarly };
}
