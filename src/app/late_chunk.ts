import { STREAM_ENDED } from "../base/http_message.ts";
import type { Log } from "../base/log.ts";
import { createRepeatCheck } from "../base/repeated.ts";

const WARNING = "an endpoint feeds a stream that has ended; stop on signal or cancel";

/**
 * Makes the check whether an uncaught error only says that an endpoint module fed a web stream
 * after its end (Streams standard §4.6.3), because the client has left or sent HEAD. The process
 * need not end then: the stream refuses such a chunk without any change, and any client can cause
 * it. The log warns once a minute at most, because a timer may repeat the error.
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
