import type { Log } from "../base/log.ts";
import { createRepeatCheck } from "../base/repeated.ts";

const PAUSE_MS = 1_000;
const REPORTED_MS = 5_000;
const WARNING = "callbacks wait for what this process lacks";

/** What this process lacks now (such as file descriptors), as failed callbacks have shown. */
export type ShortageWatch = ReturnType<typeof createShortageWatch>;

/** Makes the watch of one distributor. It warns once a minute by `elapsedMs`. */
export function createShortageWatch(log: Pick<Log, "warn">, elapsedMs: () => number) {
  let last: { readonly code: string; readonly atMs: number } | undefined;
  const isNew = createRepeatCheck(elapsedMs);
  const sinceMs = () => last === undefined ? Infinity : elapsedMs() - last.atMs;

  return {
    /** Notes that a callback could not be sent for this shortage; sending pauses for a second. */
    note(code: string): void {
      last = { code, atMs: elapsedMs() };
      if (isNew(WARNING)) log.warn(WARNING, { code });
    },
    /** How long sending is still to pause, in whole milliseconds, as the database stores them. */
    pauseMs: () => Math.max(0, Math.ceil(PAUSE_MS - sinceMs())),
    /** The code of the last shortage if it was noted within the last seconds. */
    current: () => sinceMs() < REPORTED_MS ? last?.code : undefined,
  };
}
