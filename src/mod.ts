/**
 * The types of endpoint modules: the code that Gatepost hosts behind its tokens.
 *
 * A module is a `.ts`, `.mts`, `.js` or `.mjs` file in the folder GATEPOST_ENDPOINTS. Every plain
 * object that it exports with the fields of an {@link Endpoint} or a {@link Cronjob} is taken;
 * other exports are left alone, and so are names that start with a dot, `node_modules`,
 * declarations (`.d.ts`) and tests (`.test.ts`, `.spec.ts`). Import from here with `import type`:
 * it vanishes when the module runs, so a module needs neither this package installed beside it nor
 * a `package.json`.
 *
 * @example
 * ```ts
 * import type { Endpoint } from "gatepost";
 *
 * export const createOrder: Endpoint = {
 *   method: "POST",
 *   path: "/orders/:id",
 *   scope: "orders",
 *   emits: { "order.created": "An order was placed" },
 *   async handle({ params, body, caller, dispatch }) {
 *     const order = { ...body, id: params.id, by: caller.sub };
 *     dispatch("order.created", order);
 *     return { status: 201, body: order };
 *   },
 * };
 * ```
 */

import type { Log } from "./base/log.ts";

export type { Log as Logger };

/** Methods an endpoint may have. GET's endpoint serves HEAD too; OPTIONS is the service's. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * One endpoint: with `scope` it needs an access token and `caller` is who the token speaks for;
 * with `public: true` it needs none and `caller` is undefined. Neither or both is a load error.
 *
 * `Body` is what you expect callers to send. Nothing checks it: a caller may send any JSON, so
 * validate it, and throw `{ status: 400, detail: "…" }` for what you do not take.
 */
export type Endpoint<Body = JsonMembers | null | undefined> =
  | ProtectedEndpoint<Body>
  | PublicEndpoint<Body>;

/** An endpoint that needs an access token. */
export interface ProtectedEndpoint<Body = JsonMembers | null | undefined> extends EndpointBase {
  /**
   * The scope that the token must carry, or a list of which it must carry every one.
   * `[]` takes any valid token.
   */
  readonly scope: string | readonly string[];
  readonly public?: never;
  /** Handles one request; see {@link EndpointBase} for what it may return and throw. */
  handle(context: Context<Body, Caller>): unknown;
}

/** An endpoint that anyone may call, without a token. */
export interface PublicEndpoint<Body = JsonMembers | null | undefined> extends EndpointBase {
  readonly public: true;
  readonly scope?: never;
  /** Handles one request; see {@link EndpointBase} for what it may return and throw. */
  handle(context: Context<Body, undefined>): unknown;
}

/**
 * What both kinds of endpoint have. No other field may be there: a misspelt one stops the start.
 *
 * `handle` returns, or promises:
 * - an {@link Answer}: a plain object with an integer `status` from 200 to 599 and no keys but
 *   `status`, `headers` and `body`;
 * - `undefined`: 204;
 * - a web `Response`, which passes through with its stream, if it has one. Its `Content-Length`,
 *   `X-Request-Id`, and the headers of one hop (`Connection`, `Transfer-Encoding` …), are the
 *   server's and are left out; so is the `Content-Encoding` of one that came from `fetch`, which
 *   has decoded it already;
 * - anything else: 200 with that value as JSON. `{ status: "active" }` is such a value. A stream,
 *   Blob or ArrayBuffer is an error (500): return it in a `Response`.
 *
 * A response of HTML, SVG or other XML goes out with `Content-Security-Policy: sandbox allow-
 * scripts allow-forms allow-popups`, unless it has a policy of its own: hosted pages share an
 * origin with the sign-in pages, and their scripts must not act there. A policy of your own takes
 * that over.
 *
 * `handle` throws, or rejects with:
 * - a plain object (not an Error) {@link Refusal}: that 4xx, as problem details;
 * - anything else, any Error whatever its `status`: 500. It is logged with the request's id and
 *   the caller learns nothing of it.
 *
 * Dispatched events are stored together, durably, before the response goes out, also before the
 * first byte of a stream. If `handle` throws, or the status is 500 or more, none of them is. If
 * they cannot be stored, none is and the caller gets 503.
 */
export interface EndpointBase {
  readonly method: Method;
  /**
   * A URLPattern pathname that starts with "/" and does not end with one: `/orders`, `/orders/:id`,
   * `/files/*`. Where several match, segment by segment a literal goes before a parameter and
   * a parameter before a wildcard. Two endpoints on one method and shape are a load error, and so
   * is a first segment of the service's own: authorization, consumer, backend, system, console,
   * .well-known, openapi.json.
   */
  readonly path: string;
  /**
   * The events that it dispatches, for the catalogue that consumers see. An event with a `scope`
   * can be subscribed to with every one of those scopes alone; other endpoints that declare it must
   * agree.
   */
  readonly emits?: Readonly<Record<string, string | EventDeclaration>>;
  /**
   * The largest request body, such as "64KiB"; 413 beyond it. In place of GATEPOST_MAX_BODY, and
   * for forms in place of their 64KiB.
   */
  readonly maxBody?: string;
}

/** A declared event that needs a scope to be subscribed to. */
export interface EventDeclaration {
  readonly description: string;
  /** One scope, or several of which all are needed. */
  readonly scope?: string | readonly string[];
}

/**
 * What a module may export as `scopes`: scopes in words, for the page on which a user allows an app
 * to have them. Two modules that name one scope must say the same of it.
 *
 * @example
 * ```ts
 * export const scopes: Scopes = { "orders:write": "Place and change orders" };
 * ```
 */
export type Scopes = Readonly<Record<string, string | ScopeDeclaration>>;

/** A scope in words. */
export interface ScopeDeclaration {
  /** What an app that has it can do: "Place and change orders". */
  readonly description: string;
  /** Whether it deserves a second look: the page warns of it. */
  readonly grave?: boolean;
}

/**
 * What a handler gets. Take what you need by name: `request`, `query`, `signal` and `log` are made
 * only when they are read, so a spread of the whole does not copy them.
 */
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
   * The body: parsed JSON (`application/json`, `…+json`), URLSearchParams of a form
   * (`application/x-www-form-urlencoded`), undefined without a body or with one of another type:
   * read that from `request`. Broken JSON is rejected with 400 before the handler is called.
   */
  readonly body: Body;
  /**
   * The request as a web `Request`, made on demand. Its body can be read even where `body` is
   * parsed already, byte for byte, except for GET and HEAD, whose Request cannot have one.
   */
  readonly request: Request;
  /** Who calls; undefined on a public endpoint. */
  readonly caller: Who;
  readonly dispatch: Dispatch;
  /** Aborts when the client goes away before its response; pass it to `fetch`. */
  readonly signal: AbortSignal;
  /** The service's log; every line carries the request's id. */
  readonly log: Log;
}

/** The user, or the app acting for itself, that an access token speaks for. */
export interface Caller {
  /** The user's or app's id: usable as `subject` of a dispatch. */
  readonly sub: string;
  readonly kind: "user" | "app";
  /** The app the token was issued to: for an app's own token its `sub`. */
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

/**
 * Publishes an event to its subscribers and returns the event's id. It is stored with the other
 * events of this request or run once that has succeeded, and not before.
 *
 * @param name 1 to 128 of `A-Za-z0-9._:-`; it need not be declared in `emits`. TypeError for any
 * other, and for names that start with `gatepost.`
 * @param data what subscribers get, as JSON. It is encoded at once: what you change later is not
 * sent. TypeError for what JSON cannot hold, RangeError past GATEPOST_MAX_PAYLOAD, and past 10,000
 * events of one request or run
 * @param options `{ subject }` delivers to that user's or app's subscriptions alone. A `subject`
 * that is there but no id, even undefined, is a TypeError: it never becomes a broadcast
 * @throws Error when the handler has already settled
 */
export type Dispatch = (
  name: string,
  data: unknown,
  options?: { readonly subject: string },
) => string;

/** A whole response. */
export interface Answer {
  /** 200 to 599. */
  readonly status: number;
  /**
   * Header fields; `set-cookie` may have several values. Content-Length, X-Request-Id and
   * the headers of one hop are the server's: naming one is an error (500), and so is a value with
   * a line break.
   */
  readonly headers?: Readonly<Record<string, string | number | readonly string[]>> | Headers;
  /**
   * JSON, unless it is a string or bytes and `headers` has its `content-type`: then it is sent as
   * it is. Bytes without one are `application/octet-stream`. 204, 205 and 304 have no body.
   */
  readonly body?: unknown;
}

/**
 * What a handler may throw to refuse: `throw { status: 404, detail: "No such order." }`.
 * The caller gets problem details (RFC 9457) with that status.
 */
export interface Refusal {
  /** 400 to 499. */
  readonly status: number;
  /** For the caller to read. */
  readonly detail?: string;
}

/**
 * A job of your own: it runs once per due time and database, however many processes there are, and
 * never beside itself. With GATEPOST_CRON=off it does not run.
 */
export interface Cronjob {
  /** 1 to 64 of `A-Za-z0-9._-`, unique, not starting with `gatepost.` */
  readonly name: string;
  /** The time between runs, 1s at least: "30s", "5m", "12h", "1d". */
  readonly every: string;
  /** Its events are stored together once it has succeeded; if it throws, none is. */
  run(context: CronjobContext): unknown;
}

/** What a cronjob gets. */
export interface CronjobContext {
  readonly dispatch: Dispatch;
  /** Aborts when the service stops. */
  readonly signal: AbortSignal;
  readonly log: Log;
}
