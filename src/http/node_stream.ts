import type { IncomingMessage, ServerResponse } from "node:http";
import { finished, pipeline } from "node:stream/promises";
import { type HttpRequest, STREAM_ENDED } from "../base/http_message.ts";

const UNREAD_MS = 2_000;

/** Whether a body of this type has no end of its own, and each part of it is waited for. */
export function isEventStream(type: unknown): boolean {
  return /^text\/event-stream\b/i.test(String(type));
}

/**
 * Sends all of a stream of this type; rejects when it breaks or the client goes away. Before its
 * end it drops what is left of an unread request, for two seconds at most: a client that gets RST
 * while it sends may lose its response (RFC 9112 §9.6).
 */
export type SendStream = ReturnType<typeof createStreamSender>;

/**
 * Makes the sender of streams.
 *
 * @param stopping aborts when the server stops: so do the signals of requests whose streams are
 * being sent, and event streams are ended: their clients come back by themselves (HTML standard
 * §9.2.3). All others may go on to their ends
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
      // Whoever feeds the stream may send a last chunk before.
      if (isEndless) setImmediate(cancel);
      else if (request.isGone) outgoing.destroy();
    };
    requests.add(request);
    request.signal.addEventListener("abort", onAbort);
    if (stopping.aborted) request.abort();
    if (request.signal.aborted && isEndless) onAbort();
    // A client waits for the head: it goes with the first bytes, unless those take their time.
    setImmediate(() => outgoing.flushHeaders());
    // Of a connection that closes Node says nothing to a response that waits for its turn.
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

/** Unlike the stream's own iterator this one ends at once when the reader is cancelled. */
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
  await finished(unread.resume(), { signal }).catch(() => {}); // it has taken too long, or left
}
