import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "./problem.ts";

/** The methods that a route may have. HEAD and OPTIONS are derived from them. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
/** Every method that any path accepts, in the form of the Allow header. */
export const ALL_METHODS = [...METHODS, "HEAD", "OPTIONS"].join(", ");

/** One HTTP request as a plain record: sockets stay in http/, handlers are tested without one. */
export interface HttpRequest {
  /** Goes out as X-Request-Id and into every log line about this request. */
  readonly id: string;
  readonly method: string;
  /** The path, with the path of the base URL, still percent-encoded: "/orders/a%20b". */
  readonly path: string;
  /** The raw query without its "?", "" where there is none. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  /** The IP address of the client behind any trusted proxies. */
  readonly address: string;
  /** Aborts when nobody waits for the response. */
  readonly signal: AbortSignal;
  /** Whether the client has left before the response, or closed its side of the connection. */
  readonly isGone: boolean;
  abort(): void;
  /** The whole body, read at most once; throws Problem 413 past `maxBytes`. */
  readBody(maxBytes: number): Promise<Buffer>;
}

/** What a handler returns; a string body is UTF-8. No two headers' names differ by case alone. */
export interface HttpResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | string[]>> | undefined;
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array> | undefined;
}

/** Whether a header may bear this name: a token (RFC 9110 §5.6.2). */
export function isHeaderName(text: string): boolean {
  return /^[\w!#$%&'*+\-.^`|~]+$/.test(text);
}

/** Whether a body comes with the request (RFC 9112 §6.3). */
export function hasBody({ headers }: Pick<HttpRequest, "headers">): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"]) > 0;
}

/** Problem 413 for a body of more bytes. */
export function tooLarge(maxBytes: number): Problem {
  return new Problem(413, "too_large", `The body is larger than ${maxBytes} bytes.`);
}

/** The reason of a cancelled stream, which code that still writes to the stream receives. */
export const STREAM_ENDED = new Error("Nobody reads this stream any more.");

/**
 * Cancels a stream that is not sent. The request's `signal` aborts first, so that the source can
 * stop before the stream closes. An error of the cancellation changes nothing for the client.
 */
export function discardStream(request: Pick<HttpRequest, "abort">, body: ReadableStream): void {
  request.abort();
  body.cancel(STREAM_ENDED).catch(() => {});
}
