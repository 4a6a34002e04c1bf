import type { Emits } from "./endpoint.ts";
import type { InferInput } from "./schema.ts";

/** What a handler gets. `request`, `query`, `signal` and `log` are made when they are read. */
export interface Context<
  Body = JsonMembers | null | undefined,
  Who extends Caller | undefined = Caller | undefined,
> {
  /**
   * The path's parameters by name, percent-decoded; a wildcard's is called "0". An optional one
   * that is not in the path is not here either.
   */
  readonly params: Readonly<Record<string, string>>;
  /** The query; empty where there is none. */
  readonly query: URLSearchParams;
  /**
   * Parsed JSON (`application/json`, `…+json`), URLSearchParams of a form
   * (`application/x-www-form-urlencoded`) where the endpoint `accepts` it, undefined without a body
   * or with one of another type: read that from `request`. Broken JSON is rejected with 400.
   */
  readonly body: Body;
  /** A web `Request`. Its body can be read, byte for byte, also where `body` is parsed already. */
  readonly request: Request;
  /** Who calls; undefined on a public endpoint. */
  readonly caller: Who;
  readonly dispatch: Dispatch;
  /** Aborts when the client goes away before its response; pass it to `fetch`. */
  readonly signal: AbortSignal;
  /** The service's log; every line carries the request's id. */
  readonly log: Logger;
  /** The client's IP address, behind trusted proxies. */
  readonly address: string;
  /** The id of the request: goes out as X-Request-Id. */
  readonly requestId: string;
}

/** Writes lines of the log. */
export type Logger = Readonly<
  Record<"debug" | "info" | "warn" | "error", (message: string, fields?: LogFields) => void>
>;

/** What a line says beside its message; never a secret. An Error is written with its stack. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The user, the app acting for itself or the principal that an access token speaks for. */
export interface Caller {
  /** The user's, app's or principal's id: usable as `subject` of a dispatch. */
  readonly sub: string;
  /** A principal is one of another issuer that is registered here. */
  readonly kind: "user" | "app" | "principal";
  /** The app the token was issued to, an app for its own token; of a principal its issuer's id. */
  readonly clientId: string;
  /** What the token carries, not all that the user may do. */
  readonly scopes: readonly string[];
}

/**
 * A value whose members are not known yet: what the parsed body is until you have looked.
 * Reading a member is safe whatever was sent, unless it is null; its type is for you to test.
 */
export interface JsonMembers {
  readonly [member: string]: unknown;
}

/** Dispatches events; `E` are those that the endpoint declares. */
export interface Dispatch<E = Emits> {
  /**
   * Publishes an event to its subscribers and returns the event's id: with a `key` its id if it is
   * stored. That happens once this request or run has succeeded, unless `flush` does it before.
   *
   * @param name 1 to 128 of `A-Za-z0-9._:-`; the log warns once of one that no module declares in
   * `emits`. TypeError for any other, and for names that start with `gatepost.`
   * @param data what subscribers get, as JSON. It is encoded at once: what you change later is not
   * sent. TypeError for what JSON cannot hold or the event's schema does not take, RangeError past
   * GATEPOST_MAX_PAYLOAD, and past 10,000 events of one request or run, or 64 MiB of their data,
   * that are not yet flushed
   * @throws Error when the handler has already settled
   */
  <N extends NameOf<E>>(name: N, data: DataOf<E, N>, options?: DispatchOptions): string;
  /**
   * Stores what has been dispatched so far, durably, and those events stay whatever the response
   * is; or rejects, and then none of them is stored now or later. Left uncaught, that is a 503.
   * While another flush runs it waits for that, and fails if that does. The response waits for one
   * that runs; still, await it: one that has failed before the end is in the log alone.
   *
   * @throws Error when the handler has already settled
   */
  flush(): Promise<void>;
}

type NameOf<E> = keyof E extends never ? string : keyof E & string;
type DataOf<E, N> = N extends keyof E
  ? E[N] extends { readonly schema: infer S } ? InferInput<S> : unknown
  : unknown;

/** Of an event. An option that is there but not valid, even undefined, is a TypeError. */
export interface DispatchOptions {
  /** Deliver to this user's or app's subscriptions alone. */
  readonly subject?: string;
  /**
   * 1 to 256 characters. Of all events of one name and key within GATEPOST_RETENTION, the first
   * is stored and the others are not, whatever their data and subject.
   */
  readonly key?: string;
}

/** A whole response. */
export interface Answer<Body = unknown> {
  /** 200 to 599. */
  readonly status: number;
  /**
   * `set-cookie` may have several values. Content-Length, X-Request-Id and the headers of one hop
   * (Connection, Transfer-Encoding …) are the server's: naming one is an error (500).
   */
  readonly headers?: Readonly<Record<string, string | number | readonly string[]>> | Headers;
  /**
   * JSON, unless it is a string or bytes and `headers` has its `content-type`: then it is sent as
   * it is. Bytes without one are `application/octet-stream`. 204, 205 and 304 have no body.
   */
  readonly body?: Body;
}

/**
 * What refuses a request: `throw { status: 404, detail: "No such order." }`. The caller gets
 * problem details (RFC 9457). Returned with `detail` or `errors` it means the same. An Error of
 * your own refuses with its member `refusal`.
 */
export interface Refusal {
  /** 400 to 599. */
  readonly status: number;
  /** For the caller to read. */
  readonly detail?: string;
  /** What is wrong with which field: a JSON Pointer (RFC 6901). */
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
  /**
   * As an answer's, but Content-Type and Content-Encoding, which are the server's here. A 429 and
   * a 503 have a Retry-After of two seconds without one of yours.
   */
  readonly headers?: Answer["headers"];
}

/**
 * What a module may export as `onError`: it gets what an endpoint of its folder, or one below, has
 * thrown that is no refusal, and may return one. Undefined leaves it to the next folder above, and
 * then to the service: 500. What it throws takes the place of the error.
 */
export type OnError = (
  error: unknown,
  context: Context<unknown>,
) => Refusal | void | Promise<Refusal | void>;
