import { STREAM_ENDED } from "../base/http_message.ts";
import type { Log } from "../base/log.ts";
import { createRepeatCheck } from "../base/repeated.ts";

const WARNING = "an endpoint feeds a stream that has ended; stop on signal or cancel";

/**
 * Makes the check whether an error that nobody caught is only that an endpoint module fed a web
 * stream that had ended (Streams standard §4.6.3), since its client has gone or sent HEAD. The
 * stream refuses such a chunk before it changes anything, and anybody can cause it: the process
 * need not end. The log warns once a minute at most, because a timer may cause it again and again.
 */
export function createLateChunkCheck(log: Log): (error: unknown) => boolean {
  const isNew = createRepeatCheck(() => performance.now());
  return (error) => {
    const isLate = error === STREAM_ENDED || (error instanceof TypeError && "code" in error &&
      error.code === "ERR_INVALID_STATE" && /node:internal\/webstreams\//.test(error.stack ?? ""));
    if (isLate && isNew(WARNING)) log.warn(WARNING, { error });
    return isLate;
  };
}
