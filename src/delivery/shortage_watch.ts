import type { Log } from "../base/log.ts";

const PAUSE_MS = 1_000;
const REPORTED_MS = 5_000;
const WARNING_INTERVAL_MS = 60_000;

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
