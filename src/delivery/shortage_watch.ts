import type { Log } from "../base/log.ts";
import { createRepeatCheck } from "../base/repeated.ts";

const PAUSE_MS = 1_000;
const REPORTED_MS = 5_000;
const WARNING = "callbacks wait for what this process lacks";

/** What the service lacks now, as far as calls have failed for it. */
export type ShortageWatch = ReturnType<typeof createShortageWatch>;

/** Makes the watch of one distributor; it warns once a minute, by a clock that is never set. */
export function createShortageWatch(log: Pick<Log, "warn">, elapsedMs: () => number) {
  let last: { readonly code: string; readonly atMs: number } | undefined;
  const isNew = createRepeatCheck(elapsedMs);
  const sinceMs = () => last === undefined ? Infinity : elapsedMs() - last.atMs;

  return {
    /** A call was not made for this shortage; nothing more is sent for a moment. */
    note(code: string): void {
      last = { code, atMs: elapsedMs() };
      if (isNew(WARNING)) log.warn(WARNING, { code });
    },
    /** How long nothing is sent, in whole milliseconds, as they are stored. */
    pauseMs: () => Math.max(0, Math.ceil(PAUSE_MS - sinceMs())),
    /** The code of the last shortage, where it was within the last seconds. */
    current: () => sinceMs() < REPORTED_MS ? last?.code : undefined,
  };
}
