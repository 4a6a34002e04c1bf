import type { Caller } from "./context.ts";
import type { Method } from "./endpoint.ts";

/**
 * Calls an endpoint as a request would, without a socket: the check of token and scope, the reader
 * of bodies, schemas, `before`, the handler and the response are the server's own. Each call
 * has a database in memory for its events. Left out: limits, and what its folder exports as
 * `before` and `onError`. What the server would log as a warning or an error goes to stderr.
 *
 * Rejects where the endpoint is one that `gatepost check` would refuse, and where a response with
 * 200 or 201 is not what its `output` says.
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
  /** The path's parameters, not encoded; a wildcard's is called "0". */
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: URLSearchParams | Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
  /** Sent as JSON, unless it is text, bytes, a Blob, FormData or URLSearchParams. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Who calls an endpoint with a scope: a user with all of its scopes, changed as given. Null sends
   * no token. A `sub` that is to be the subject of an event is an id, such as "u12345678".
   */
  readonly caller?: Partial<Caller> | null;
}

type QueryValue = string | number | boolean;

/** The response, and the events that have been stored. */
export interface CallResult<Body> {
  readonly status: number;
  readonly headers: Headers;
  /**
   * Parsed JSON; a text where its type is `text/…`, a ReadableStream of bytes where that is
   * `text/event-stream`; a Uint8Array of any other; undefined without one. `Body` is what you
   * expect: nothing checks it.
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
