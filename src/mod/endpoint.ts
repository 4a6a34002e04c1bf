import type { Caller, Context, Dispatch, JsonMembers, Logger } from "./context.ts";
import type { AnySchema } from "./schema.ts";

/** The method of an endpoint. A GET endpoint also serves HEAD; the service answers OPTIONS. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * An endpoint. With `scope` it needs an access token, and `caller` is the token's subject. With
 * `public: true` it needs no token, and `caller` is undefined. Neither or both is a load error.
 * Write `satisfies Endpoint`, which lets tests call `handle`, or use {@link DefineEndpoint}, which
 * infers the types from the endpoint's schemas.
 *
 * `Body` is the type that you expect. Without a schema nothing checks it, and a caller may send any
 * JSON.
 */
export type Endpoint<Body = JsonMembers | null | undefined> =
  & EndpointBase
  & (
    | {
      /** A scope, or scopes that the token must all have; `[]` accepts any valid token. */
      readonly scope: string | readonly string[];
      readonly public?: never;
      handle(context: Context<Body, Caller> & Added): unknown;
    }
    | {
      readonly public: true;
      readonly scope?: never;
      handle(context: Context<Body, undefined> & Added): unknown;
    }
  );

/** The members that a `before` has added to the context. */
type Added = { readonly [name: string]: any };

/**
 * The members that all endpoints have. Any other member, such as a misspelt one, is a load error.
 *
 * `handle` returns or resolves with one of these:
 * - An {@link Answer}, which is a plain object with an integer `status` and no other keys than an
 *   answer's.
 * - `undefined`, which becomes 204.
 * - A web `Response`, which passes through with its stream. Headers that the server sets are left
 *   out, and so is `Content-Encoding` if it came from `fetch`, which has decoded the body.
 * - Any other value, which becomes 200 with the value as JSON, even `{ status: "active" }`. A
 *   stream, Blob or ArrayBuffer is an error (500) unless it is in a `Response`. An Error counts as
 *   thrown.
 *
 * A response of HTML, SVG or other XML gets a Content-Security-Policy if it has none, because
 * hosted pages share an origin with the sign-in pages, where their scripts must not act.
 *
 * If `handle` throws or rejects with a {@link Refusal}, or with an Error that has one as `refusal`,
 * the response is the refusal. Any other error becomes what {@link OnError} returns, or 500; it is
 * logged with the request's id, and the caller learns nothing of it.
 *
 * Dispatched events are stored together, durably, before the first byte of the response. None is
 * stored if `handle` throws or refuses, or the status is 500 or more. If they cannot be stored, the
 * caller gets 503.
 */
export interface EndpointBase {
  readonly method: Method;
  /**
   * A URLPattern pathname that starts with "/" and does not end with it: `/orders`, `/orders/:id`,
   * `/files/*`. If several patterns match, they are compared segment by segment: a literal comes
   * before a parameter, a parameter before a wildcard. Two endpoints with the same method and shape
   * are a load error. So is a first segment that the service uses itself, such as `console`, which
   * no parameter matches.
   */
  readonly path: string;
  /** The purpose of the endpoint in one line, for OpenAPI. */
  readonly summary?: string;
  /**
   * The schemas of its input. Other input is refused with a 400 that lists every error. In path
   * parameters, query and forms, texts become numbers and booleans if the schema says so.
   */
  readonly input?: Input;
  /** The schema of a 200 or 201, for documents and tests; the server does not check it. */
  readonly output?: AnySchema;
  /** "form" accepts forms, which are refused with 415 otherwise. JSON is always accepted. */
  readonly accepts?: readonly ("json" | "form")[];
  /**
   * The events that it dispatches, for the catalogue that consumers see. To subscribe to an event
   * with a `scope`, a consumer needs all of its scopes; other endpoints that declare the event must
   * declare the same.
   */
  readonly emits?: Emits;
  /**
   * Whether it accepts an Idempotency-Key. For 24 hours, a repeated request gets the first response
   * and runs nothing. A web Response, or more than 256 KiB, is then an error (500), and
   * `dispatch.flush` always rejects. Only for endpoints with `emits` and a method other than GET.
   */
  readonly idempotent?: boolean;
  /**
   * Runs before `handle`, after the check of token and input. It may refuse as `handle` does. The
   * members that it returns are added to the context; `status` and names that the context already
   * has are not allowed. A module's `export function before(context)` runs for every endpoint in
   * its folder and below, the outermost first.
   */
  before?(context: any): unknown;
  /** How often it may be called; more calls are refused with 429. Each process counts by itself. */
  readonly limit?: RateLimit;
  /** Which pages of other origins may call it, instead of the pages of registered apps. */
  readonly cors?: CorsRule;
  /**
   * The largest request body, such as "64KiB"; a larger one is refused with 413. It replaces
   * GATEPOST_MAX_BODY, and the 64KiB of forms.
   */
  readonly maxBody?: string;
}

/** The schemas of an endpoint's input. */
export interface Input {
  /** The schema of the path's parameters, an object. */
  readonly params?: AnySchema;
  /** The schema of the query, an object; a repeated name is an array. */
  readonly query?: AnySchema;
  readonly body?: AnySchema;
}

/**
 * The most calls in a time, such as "100/1m", by each caller, app or client address: 1 to 1000000
 * in whole seconds from 1s to 1d. All calls may come at once; the allowance refills steadily.
 */
export interface RateLimit {
  readonly rate: string;
  /**
   * By default "caller" if the endpoint needs a token, else "address". With "app", the tokens of
   * the login endpoint count as those of one app. An IPv6 address counts as its /64.
   */
  readonly by?: "caller" | "app" | "address";
}

/** Which pages may call an endpoint and read its response. */
export interface CorsRule {
  /** Origins such as "https://shop.example", or "*" for all. */
  readonly origins?: readonly string[] | "*";
  /** Request headers that pages may send besides the usual ones. */
  readonly headers?: readonly string[];
  /** Response headers that pages may read besides the usual ones. */
  readonly expose?: readonly string[];
}

/** Events by name; the value is the description, or a declaration with more members. */
export type Emits = Readonly<Record<string, string | EventDeclaration>>;

/** The declaration of an event. */
export interface EventDeclaration {
  readonly description: string;
  /**
   * The schema of its data; `dispatch` throws a TypeError for other data. Subscribers get the data
   * as the schema returns it, for example with defaults. A library's schema must be synchronous.
   */
  readonly schema?: AnySchema;
  /** An example of its data, for the catalogue and for test deliveries. */
  readonly example?: unknown;
  /** The scope that subscribers need, or several that they all need. */
  readonly scope?: string | readonly string[];
}

/**
 * A module may export this as `scopes`: descriptions of scopes, for the page on which a user allows
 * an app to have them. If two modules describe one scope, they must say the same.
 *
 * @example
 * ```ts
 * export const scopes: Scopes = { "orders:write": "Place and change orders" };
 * ```
 */
export type Scopes = Readonly<Record<string, string | ScopeDeclaration>>;

/** The description of a scope. */
export interface ScopeDeclaration {
  /** What an app with this scope can do, such as "Place and change orders". */
  readonly description: string;
  /** Whether the page warns of the scope. */
  readonly grave?: boolean;
}

/**
 * A cronjob. It runs once per due time and database, however many processes there are, and never
 * twice at the same time. With GATEPOST_CRON=off it does not run.
 */
export interface Cronjob {
  /** 1 to 64 of `A-Za-z0-9._-`, unique, not starting with `gatepost.` */
  readonly name: string;
  /** The time between runs, 1s to 366d: "30s", "5m", "12h", "1d". */
  readonly every: string;
  /** Its events are stored together when it has succeeded. If it throws, only flushed ones are. */
  run(context: CronjobContext): unknown;
}

/** What a cronjob gets. */
export interface CronjobContext {
  readonly dispatch: Dispatch;
  /** Aborts when the service stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}
