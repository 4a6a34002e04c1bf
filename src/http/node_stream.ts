import type { IncomingMessage, ServerResponse } from "node:http";
import { finished, pipeline } from "node:stream/promises";
import { type HttpRequest, STREAM_ENDED } from "../base/http_message.ts";

const UNREAD_MS = 2_000;

/** Whether a body is an event stream by its type: it has no end, and each part is awaited. */
export function isEventStream(type: unknown): boolean {
  return /^text\/event-stream\b/i.test(String(type));
}

/**
 * Sends all of a stream of this type; rejects when the stream breaks or the client goes away.
 * Before its end it drops the rest of an unread request, for two seconds at most. A client that
 * gets RST while it sends may lose its response (RFC 9112 §9.6).
 */
export type SendStream = ReturnType<typeof createStreamSender>;

/**
 * Makes the sender of streams.
 *
 * @param stopping aborts when the server stops. Then the signals of requests whose streams are open
 * abort too. Event streams end, since their clients reconnect by themselves (HTML standard §9.2.3).
 * All other streams may finish
 */
export function createStreamSender(stopping: AbortSignal) {
  const requests = new Set<HttpRequest>();
  stopping.addEventListener("abort", () => {
    for (const request of requests) request.abort();
  });

  return async (
    body: ReadableStream<Uint8Array>,
    type: unknown,
    request: HttpRequest,
    outgoing: ServerResponse,
    unread: IncomingMessage | undefined,
  ): Promise<void> => {
    const reader = body.getReader();
    const cancel = (): void => void reader.cancel(STREAM_ENDED).catch(() => {});
    const isEndless = isEventStream(type);
    const onAbort = (): void => {
      // The source of the stream may send a last chunk first.
      if (isEndless) setImmediate(cancel);
      else if (request.isGone) outgoing.destroy();
    };
    requests.add(request);
    request.signal.addEventListener("abort", onAbort);
    if (stopping.aborted) request.abort();
    if (request.signal.aborted && isEndless) onAbort();
    // A client waits for the head: it goes with the first bytes, unless these are late.
    setImmediate(() => outgoing.flushHeaders());
    // Node does not tell a response that waits for its turn that the connection has closed.
    const { socket } = outgoing.req;
    socket.once("close", cancel);
    if (socket.destroyed) cancel();
    try {
      await pipeline(readAll(reader, unread), outgoing);
    } finally {
      requests.delete(request);
      socket.off("close", cancel);
      cancel();
    }
  };
}

/** Unlike the stream's own iterator, this ends at once when the reader is cancelled. */
async function* readAll(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  unread: IncomingMessage | undefined,
) {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    yield value;
  }
  if (!unread) return;
  const signal = AbortSignal.timeout(UNREAD_MS);
  await finished(unread.resume(), { signal }).catch(() => {}); // the client was too slow, or left
}
