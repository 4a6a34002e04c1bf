import type { Caller, Context, Dispatch, JsonMembers, Logger } from "./context.ts";
import type { AnySchema } from "./schema.ts";

/** Methods an endpoint may have. GET's endpoint serves HEAD too; OPTIONS is the service's. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * One endpoint: with `scope` it needs an access token and `caller` is who the token speaks for;
 * with `public: true` it needs none and `caller` is undefined. Neither or both is a load error.
 * Write `satisfies Endpoint`, which leaves `handle` callable; {@link DefineEndpoint} infers the
 * types from the endpoint's schemas.
 *
 * `Body` is what you expect callers to send. Nothing checks it without a schema: a caller may send
 * any JSON.
 */
export type Endpoint<Body = JsonMembers | null | undefined> =
  & EndpointBase
  & (
    | {
      /** One, or a list of which the token must carry every one; `[]` takes any valid token. */
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

/** What a `before` has added to the context. */
type Added = { readonly [name: string]: any };

/**
 * What both kinds of endpoint have. No other field may be there: a misspelt one stops the start.
 *
 * `handle` returns, or promises:
 * - an {@link Answer}: a plain object with an integer `status` and no keys but those of one;
 * - `undefined`: 204;
 * - a web `Response`, which passes through with its stream. The headers that are the server's are
 *   left out, and so is the `Content-Encoding` of one that came from `fetch`, which has decoded it;
 * - anything else: 200 with that value as JSON. `{ status: "active" }` is such a value. A stream,
 *   Blob or ArrayBuffer is an error (500): return it in a `Response`. An Error counts as thrown.
 *
 * A response of HTML, SVG or other XML without a policy of its own gets one: hosted pages share an
 * origin with the sign-in pages, and their scripts must not act there.
 *
 * `handle` throws, or rejects with a {@link Refusal}, or an Error with one as `refusal`: that
 * problem details; or anything else, any Error whatever its `status`: what {@link OnError} makes of
 * it, or 500. It is logged with the request's id and the caller learns nothing of it.
 *
 * Dispatched events are stored together, durably, before the first byte of the response; none is
 * where `handle` throws or refuses, or the status is 500 or more. Where they cannot be stored, the
 * caller gets 503.
 */
export interface EndpointBase {
  readonly method: Method;
  /**
   * A URLPattern pathname that starts with "/" and does not end with one: `/orders`, `/orders/:id`,
   * `/files/*`. Where several match, segment by segment a literal goes before a parameter and
   * a parameter before a wildcard. Two endpoints on one method and shape are a load error, and so
   * is a first segment of the service's own, such as `console`, for which no parameter stands.
   */
  readonly path: string;
  /** What it is for, in a line: OpenAPI's summary. */
  readonly summary?: string;
  /**
   * What it takes. Anything else is refused with 400, which lists every error. Of parameters, the
   * query and forms, texts become numbers and booleans as their schema has it.
   */
  readonly input?: Input;
  /** What it returns with 200 or 201, for documents and tests: the server does not check it. */
  readonly output?: AnySchema;
  /** The bodies that are taken beside JSON; without "form" a form is refused with 415. */
  readonly accepts?: readonly ("json" | "form")[];
  /**
   * The events that it dispatches, for the catalogue that consumers see. An event with a `scope`
   * can be subscribed to with every one of those scopes alone; other endpoints that declare it must
   * agree.
   */
  readonly emits?: Emits;
  /**
   * Whether it takes an Idempotency-Key: for 24 hours a repeat gets the first response, and nothing
   * runs. Then a Response or more than 256 KiB is an error (500). `dispatch.flush` always rejects.
   * It is for what has `emits`, by another method than GET.
   */
  readonly idempotent?: boolean;
  /**
   * Runs before `handle`, behind the check of token and input. It may refuse as `handle` does, and
   * returns what is added to the context, or nothing: no `status`, and no name that is there. A
   * module's `export function before(context)` runs for every endpoint of its folder and those
   * below, the outermost first.
   */
  before?(context: any): unknown;
  /** How often it may be called: more is refused with 429. Each process counts for itself. */
  readonly limit?: RateLimit;
  /** Which pages of other origins may call it, in place of those of registered apps. */
  readonly cors?: CorsRule;
  /**
   * The largest request body, such as "64KiB"; 413 beyond it. In place of GATEPOST_MAX_BODY, and
   * for forms in place of their 64KiB.
   */
  readonly maxBody?: string;
}

/** What an endpoint takes. */
export interface Input {
  /** Of the path's parameters: an object. */
  readonly params?: AnySchema;
  /** Of the query: an object. A name that is there more than once is an array. */
  readonly query?: AnySchema;
  readonly body?: AnySchema;
}

/**
 * At most `rate`, such as "100/1m", for each caller, each app or each client address: 1 to 1000000
 * in whole seconds from 1s to 1d. All of it may come at once; it comes back bit by bit.
 */
export interface RateLimit {
  readonly rate: string;
  /**
   * "caller" where the endpoint needs a token, else "address". For "app", the tokens of the login
   * endpoint are those of one app; an IPv6 address stands for its /64.
   */
  readonly by?: "caller" | "app" | "address";
}

/** Which pages may call an endpoint and read its response. */
export interface CorsRule {
  /** Such as "https://shop.example", or "*" for all. */
  readonly origins?: readonly string[] | "*";
  /** Request headers that pages may send beside the usual ones. */
  readonly headers?: readonly string[];
  /** Response headers that pages may read beside the usual ones. */
  readonly expose?: readonly string[];
}

/** Events by name: a description, or more. */
export type Emits = Readonly<Record<string, string | EventDeclaration>>;

/** A declared event with more than its description. */
export interface EventDeclaration {
  readonly description: string;
  /**
   * What its data must be: `dispatch` throws a TypeError for any other. Subscribers get what the
   * schema has made of it, such as defaults. A library's schema must not be asynchronous here.
   */
  readonly schema?: AnySchema;
  /** Data of one, for the catalogue and for test deliveries. */
  readonly example?: unknown;
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
 * A job of your own: it runs once per due time and database, however many processes there are, and
 * never beside itself. With GATEPOST_CRON=off it does not run.
 */
export interface Cronjob {
  /** 1 to 64 of `A-Za-z0-9._-`, unique, not starting with `gatepost.` */
  readonly name: string;
  /** The time between runs, 1s to 366d: "30s", "5m", "12h", "1d". */
  readonly every: string;
  /** Its events are stored together once it has succeeded; if it throws, none but the flushed. */
  run(context: CronjobContext): unknown;
}

/** What a cronjob gets. */
export interface CronjobContext {
  readonly dispatch: Dispatch;
  /** Aborts when the service stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}
