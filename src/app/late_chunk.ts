import { STREAM_ENDED } from "../base/http_message.ts";
import type { Log } from "../base/log.ts";

const WARN_EVERY_MS = 60_000;

/**
 * Makes the check whether an error that nobody caught is only that an endpoint module fed a web
 * stream that had ended (Streams standard §4.6.3), since its client has gone or sent HEAD. The
 * stream refuses such a chunk before it changes anything, and anybody can cause it: the process
 * need not end. The log warns once a minute at most, because a timer may cause it again and again.
 */
export function createLateChunkCheck(log: Log): (error: unknown) => boolean {
  let warnedAtMs = -Infinity;
  return (error) => {
    const isLate = error === STREAM_ENDED || (error instanceof TypeError && "code" in error &&
      error.code === "ERR_INVALID_STATE" && /node:internal\/webstreams\//.test(error.stack ?? ""));
    const nowMs = performance.now();
    if (isLate && nowMs - warnedAtMs >= WARN_EVERY_MS) {
      warnedAtMs = nowMs;
      log.warn("an endpoint feeds a stream that has ended; stop on signal or cancel", { error });
    }
    return isLate;
  };
}
