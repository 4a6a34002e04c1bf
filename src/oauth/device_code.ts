import { randomBytes } from "../base/secret.ts";

/** How long a device may wait for its user (RFC 8628 §3.2). */
export const DEVICE_CODE_MS = 10 * 60_000;

/** From one poll to the next, and how much longer after one that came too early. */
export const POLL_INTERVAL_MS = 5_000;

/** A poll may be so much faster on its way than the one before. */
const POLL_SLACK_MS = 1_000;

/** RFC 8628 §6.1: no vowels, so that no words come up, and no digits. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const LENGTH = 8;

const format = (code: string) => `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;

/** A code such as `BCDF-GHJK`: 34.6 bits; 48 for them make none likelier by 1 in 10,000. */
export function newUserCode(): string {
  const [base, bits] = [LETTERS.length, randomBytes(6).readUIntBE(0, 6)];
  const digits = (bits % base ** LENGTH).toString(base).padStart(LENGTH, "0");
  return format(digits.replace(/./g, (digit) => LETTERS.charAt(parseInt(digit, base))));
}

/** The code that was typed, in any case and with anything between (RFC 8628 §6.1), if it is one. */
export function parseUserCode(typed: string): string | undefined {
  const code = typed.toUpperCase().replace(new RegExp(`[^${LETTERS}]`, "g"), "");
  return code.length === LENGTH ? format(code) : undefined;
}

/** A poll of a device: after one that was early it waits longer, for good (RFC 8628 §3.5). */
export type Poll = ReturnType<typeof nextPoll>;

/** The poll at this time, after the last one. */
export function nextPoll(
  last: { readonly atMs: number; readonly intervalMs: number } | undefined,
  atMs: number,
) {
  const { intervalMs = POLL_INTERVAL_MS } = last ?? {};
  const sinceMs = atMs - (last?.atMs ?? -Infinity); // less than 0 where the clock was set back
  const isEarly = sinceMs >= 0 && sinceMs < intervalMs - POLL_SLACK_MS;
  return { atMs, intervalMs: intervalMs + (isEarly ? POLL_INTERVAL_MS : 0), isEarly };
}
