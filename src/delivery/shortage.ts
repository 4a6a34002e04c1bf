import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { Log } from "../base/log.ts";
import { findCode, findIn } from "./failure.ts";

/** What any call would lack: descriptors, memory, an interface that is up. */
const ALWAYS = ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "ENETDOWN"];
const PAUSE_MS = 1_000;
const REPORTED_MS = 5_000;
const WARNING_INTERVAL_MS = 60_000;

/** Whether a code says that this process lacks what any call needs. */
export function isShortage(code: string | undefined): boolean {
  return code !== undefined && ALWAYS.includes(code);
}

/**
 * The code of what the service itself lacked when an exchange failed; undefined where the failure
 * is the subscriber's. Without a network (no address that leads out of this machine) nobody can be
 * reached, so that is a shortage; with one, an address without a route is the subscriber's failure,
 * and so is one of a family that this machine does not use. No local address for a family that it
 * uses means that no port is left.
 *
 * @param families those (4, 6) in which this machine has an address that leads out
 */
export function findShortage(
  error: unknown,
  families: () => ReadonlySet<number> = listFamilies,
): string | undefined {
  const code = findCode(error);
  if (isShortage(code)) return code;
  if (code !== "ENETUNREACH" && code !== "EADDRNOTAVAIL") return undefined;
  const used = families();
  if (used.size === 0) return code;
  const family = isIP(findIn(error, addressOf) ?? "");
  return code === "EADDRNOTAVAIL" && used.has(family) ? code : undefined;
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

/** What the service lacks now, as far as calls have failed for it. */
export type ShortageWatch = ReturnType<typeof createShortageWatch>;

/** Makes the watch of one distributor; it warns once a minute, by a clock that is never set. */
export function createShortageWatch(log: Pick<Log, "warn">, elapsedMs: () => number) {
  let last: { readonly code: string; readonly atMs: number } | undefined;
  let warnedAtMs = -Infinity;
  const sinceMs = () => last === undefined ? Infinity : elapsedMs() - last.atMs;

  return {
    /** A call was not made for this shortage; nothing more is sent for a moment. */
    note(code: string): void {
      last = { code, atMs: elapsedMs() };
      if (last.atMs - warnedAtMs < WARNING_INTERVAL_MS) return;
      warnedAtMs = last.atMs;
      log.warn("callbacks wait for what this process lacks", { code });
    },
    /** How long nothing is sent, in whole milliseconds, as they are stored. */
    pauseMs: () => Math.max(0, Math.ceil(PAUSE_MS - sinceMs())),
    /** The code of the last shortage, where it was within the last seconds. */
    current: () => sinceMs() < REPORTED_MS ? last?.code : undefined,
  };
}
