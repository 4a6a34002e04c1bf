import type { Emits } from "./endpoint.ts";
import type { InferInput } from "./schema.ts";

/** What a handler gets. `request`, `query`, `signal` and `log` are made when first read. */
export interface Context<
  Body = JsonMembers | null | undefined,
  Who extends Caller | undefined = Caller | undefined,
> {
  /**
   * The path's parameters by name, percent-decoded; a wildcard is named "0". An optional parameter
   * that the path does not have is absent.
   */
  readonly params: Readonly<Record<string, string>>;
  /** The query; empty if there is none. */
  readonly query: URLSearchParams;
  /**
   * Parsed JSON (`application/json`, `…+json`), or the URLSearchParams of a form
   * (`application/x-www-form-urlencoded`) if the endpoint `accepts` forms. Undefined without a body
   * or with another type, which can be read from `request`. Broken JSON is rejected with 400.
   */
  readonly body: Body;
  /** A web `Request`. Its body can be read, byte for byte, even if `body` has been parsed. */
  readonly request: Request;
  /** The caller; undefined on a public endpoint. */
  readonly caller: Who;
  readonly dispatch: Dispatch;
  /** Aborts when the client leaves before its response; pass it to `fetch`. */
  readonly signal: AbortSignal;
  /** The service's log; every line carries the request's id. */
  readonly log: Logger;
  /** The client's IP address; behind trusted proxies, the one that they report. */
  readonly address: string;
  /** The id of the request, which the response carries as X-Request-Id. */
  readonly requestId: string;
}

/** Writes lines to the service's log. */
export type Logger = Readonly<
  Record<"debug" | "info" | "warn" | "error", (message: string, fields?: LogFields) => void>
>;

/** Further fields of a log line; never put a secret there. An Error is written with its stack. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The subject of an access token: a user, an app acting for itself, or a principal. */
export interface Caller {
  /** The id of the user, app or principal, which can be the `subject` of a dispatch. */
  readonly sub: string;
  /** A principal is a subject of another issuer's tokens. */
  readonly kind: "user" | "app" | "principal";
  /** The app that the token was issued to; for a principal, the id of its issuer. */
  readonly clientId: string;
  /** The scopes of the token, which may be fewer than those of the user. */
  readonly scopes: readonly string[];
}

/**
 * A parsed body whose members are not known. Reading a member is safe whatever the client sent,
 * except null; test the type of the member before you use it.
 */
export interface JsonMembers {
  readonly [member: string]: unknown;
}

/** Dispatches events; `E` are the events that the endpoint declares. */
export interface Dispatch<E = Emits> {
  /**
   * Publishes an event to its subscribers and returns the event's id. The event is stored when this
   * request or run has succeeded, or earlier by `flush`. With a `key` it may not be stored, because
   * another event has the key.
   *
   * @param name 1 to 128 of `A-Za-z0-9._:-`, not starting with `gatepost.`; anything else is a
   * TypeError. The log warns once of a name that no module declares in `emits`
   * @param data sent to subscribers as JSON. It is encoded at once, so later changes have no
   * effect. TypeError if JSON cannot hold it or the event's schema refuses it; RangeError if it is
   * larger than GATEPOST_MAX_PAYLOAD, or one request or run has more than 10,000 events, or 64 MiB
   * of data, that are not flushed
   * @throws Error if the handler has already settled
   */
  <N extends NameOf<E>>(name: N, data: DataOf<E, N>, options?: DispatchOptions): string;
  /**
   * Stores the events dispatched so far, durably and whatever the response will be. If it rejects,
   * none of them is stored, now or later; an uncaught rejection becomes a 503. A flush waits for
   * one that is under way, and fails if that fails. Always await it: the response waits for a flush
   * under way, but an earlier failure that nobody awaited is only logged.
   *
   * @throws Error if the handler has already settled
   */
  flush(): Promise<void>;
}

type NameOf<E> = keyof E extends never ? string : keyof E & string;
type DataOf<E, N> = N extends keyof E
  ? E[N] extends { readonly schema: infer S } ? InferInput<S> : unknown
  : unknown;

/** Options of an event. An option that is present but not valid, even undefined, is a TypeError. */
export interface DispatchOptions {
  /** Delivers only to the subscriptions of this user, app or principal. */
  readonly subject?: string;
  /**
   * 1 to 256 characters. Of all events with the same name and key within GATEPOST_RETENTION, only
   * the first is stored, whatever the data and subject of the others.
   */
  readonly key?: string;
}

/** A whole response. */
export interface Answer<Body = unknown> {
  /** 200 to 599. */
  readonly status: number;
  /**
   * `set-cookie` may have several values. Content-Length, X-Request-Id and hop-by-hop headers
   * (Connection, Transfer-Encoding …) are set by the server; naming one is an error (500). One that
   * is undefined is left out.
   */
  readonly headers?:
    | Readonly<Record<string, string | number | readonly string[] | undefined>>
    | Headers;
  /**
   * Sent as JSON. A string or bytes with a `content-type` in `headers` are sent as they are; bytes
   * without one are `application/octet-stream`. 204, 205 and 304 have no body.
   */
  readonly body?: Body;
}

/**
 * Refuses a request: `throw { status: 404, detail: "No such order." }`. The caller gets problem
 * details (RFC 9457). Returning it with `detail` or `errors` has the same effect. An Error of your
 * own can carry one as its member `refusal`.
 */
export interface Refusal {
  /** 400 to 599. */
  readonly status: number;
  /** An explanation for the caller. */
  readonly detail?: string;
  /** The errors of fields; `pointer` is a JSON Pointer (RFC 6901). */
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
  /**
   * As in an answer, except Content-Type and Content-Encoding, which the server sets here. A 429 or
   * 503 without Retry-After gets one of two seconds.
   */
  readonly headers?: Answer["headers"];
}

/**
 * A module may export this as `onError`. It gets every error, other than a refusal, that an
 * endpoint in its folder or below has thrown, and may return a refusal. Undefined leaves the error
 * to the next folder above, and at last to the service, which responds with 500. An error that
 * `onError` throws replaces the first.
 */
export type OnError = (
  error: unknown,
  context: Context<unknown>,
) => Refusal | void | Promise<Refusal | void>;
