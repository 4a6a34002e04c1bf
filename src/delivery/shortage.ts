import { networkInterfaces } from "node:os";
import { isIP } from "node:net";
import type { Log } from "../base/log.ts";
import { findCode, findIn } from "./failure.ts";

/** What any call would lack: descriptors, memory, an interface that is up. */
const ALWAYS = ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "ENETDOWN"];
const PAUSE_MS = 1_000;
const TOLD_MS = 5_000;
const WARNED_MS = 60_000;

/** Whether a code says that this process lacks what any call needs. */
export function isWant(code: string | undefined): boolean {
  return code !== undefined && ALWAYS.includes(code);
}

/**
 * The code of what the service itself lacks where that is why an exchange failed, whoever was
 * called; undefined where the subscriber is the reason. Without a network (not one address that
 * leads out of this machine) nobody can be reached, so that is the service's; with one, an address
 * to which there is no route is the subscriber's, and so is one of a family that is not spoken
 * here. No local address for a family that is spoken means that no port is left.
 *
 * @param families those (4, 6) in which this machine has an address that leads out
 */
export function findWant(
  error: unknown,
  families: () => ReadonlySet<number> = listFamilies,
): string | undefined {
  const code = findCode(error);
  if (isWant(code)) return code;
  if (code !== "ENETUNREACH" && code !== "EADDRNOTAVAIL") return undefined;
  const spoken = families();
  if (spoken.size === 0) return code;
  const family = isIP(findIn(error, addressOf) ?? "");
  return code === "EADDRNOTAVAIL" && spoken.has(family) ? code : undefined;
}

function addressOf(error: Error): string | undefined {
  return "address" in error && typeof error.address === "string" ? error.address : undefined;
}

function listFamilies(): ReadonlySet<number> {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const leadingOut = addresses.filter(({ internal, address }) =>
    !internal && !address.startsWith("fe80:") // link-local: to the next machine and no farther
  );
  return new Set(leadingOut.map(({ address }) => isIP(address)));
}

/** What the service lacks now, as far as calls have met with it. */
export interface WantWatch {
  /** A call was not made for want of it; nothing more is sent for a moment. */
  note(code: string): void;
  /** How long nothing is sent, in milliseconds. */
  pauseMs(): number;
  /** What was lacking within the last seconds. */
  current(): string | undefined;
}

/** Makes the watch of one distributor; it warns once a minute. */
export function createWantWatch(
  { log, now }: { readonly log: Log; readonly now: () => number },
): WantWatch {
  let last: { readonly code: string; readonly atMs: number } | undefined;
  let warnedAtMs = -Infinity;
  const sinceMs = () => last === undefined ? Infinity : now() - last.atMs;

  return {
    note(code) {
      last = { code, atMs: now() };
      if (last.atMs - warnedAtMs < WARNED_MS) return;
      warnedAtMs = last.atMs;
      log.warn("callbacks wait for what this process lacks", { code });
    },
    pauseMs: () => Math.max(0, PAUSE_MS - sinceMs()),
    current: () => sinceMs() < TOLD_MS ? last?.code : undefined,
  };
}
