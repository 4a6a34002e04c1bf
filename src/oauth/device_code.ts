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

/** When a device polled last, and how long it must wait since. */
export interface Poll {
  readonly atMs: number;
  readonly intervalMs: number;
}

/** Whether a poll comes too early: then the device waits longer from now on (RFC 8628 §3.5). */
export function isTooEarly({ atMs, intervalMs }: Poll, nowMs: number): boolean {
  // One of a later time was before the clock was set back.
  return nowMs >= atMs && nowMs - atMs < intervalMs - POLL_SLACK_MS;
}
