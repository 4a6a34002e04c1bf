import type { Caller } from "./context.ts";
import type { Method } from "./endpoint.ts";

/**
 * Calls an endpoint as the server would, without a socket. Token and scope, body, schemas, `before`
 * and the response are handled by the server's own code. Each call has its own database in memory
 * for events. Left out are limits, and the `before` and `onError` that a folder exports. Warnings
 * and errors of the log go to stderr.
 *
 * Rejects if `gatepost check` would refuse the endpoint, or a response with 200 or 201 does not
 * match its `output`.
 *
 * @example
 * ```ts
 * import { call } from "gatepost/testing";
 *
 * const { status, body, events } = await call(placeOrder, { body: { item: "lamp" } });
 * ```
 */
export type Call = <Body = unknown>(
  endpoint: CallableEndpoint,
  options?: CallOptions,
) => Promise<CallResult<Body>>;

/** An endpoint of any kind. */
export interface CallableEndpoint {
  readonly method: Method;
  readonly path: string;
  handle(context: never): unknown;
}

/** A request at an endpoint. */
export interface CallOptions {
  /** The path's parameters, not encoded; a wildcard is named "0". */
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: URLSearchParams | Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
  /** Sent as JSON unless it is a string, bytes, a Blob, FormData or URLSearchParams. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The caller of an endpoint with a scope: by default a user with all of its scopes, changed by
   * the given members. Null sends no token. To be the subject of an event, `sub` must be an id such
   * as "u12345678".
   */
  readonly caller?: Partial<Caller> | null;
}

type QueryValue = string | number | boolean;

/** The response and the stored events. */
export interface CallResult<Body> {
  readonly status: number;
  readonly headers: Headers;
  /**
   * Parsed JSON; a ReadableStream of bytes for `text/event-stream`; a string for other `text/…`; a
   * Uint8Array for other types; undefined without a body. `Body` is the type that you expect;
   * nothing checks it.
   */
  readonly body: Body;
  /** In the order of their dispatch. */
  readonly events: readonly StoredEvent[];
}

/** An event as its subscribers would get it. */
export interface StoredEvent {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly subject?: string;
  readonly key?: string;
}
