import type { Log } from "../base/log.ts";

const WARN_EVERY_MS = 60_000;

/**
 * Makes the check whether an error that nobody caught is only that an endpoint module fed a web
 * stream that had ended (Streams standard §4.6.3): its client has gone, or asked with HEAD, and
 * a timer of the module does not know. The stream refuses such a chunk before it changes anything,
 * so the process is as sound as before, and anybody can cause it: no reason to end. The log warns
 * once a minute at most, because such a timer fires again and again.
 */
export function createLateChunkCheck(log: Log): (error: unknown) => boolean {
  let warnedAtMs = -Infinity;
  return (error) => {
    const isLate = error instanceof TypeError && "code" in error &&
      error.code === "ERR_INVALID_STATE" && /node:internal\/webstreams\//.test(error.stack ?? "");
    const nowMs = performance.now();
    if (isLate && nowMs - warnedAtMs >= WARN_EVERY_MS) {
      warnedAtMs = nowMs;
      log.warn("an endpoint feeds a stream that has ended; stop on signal or cancel", { error });
    }
    return isLate;
  };
}
