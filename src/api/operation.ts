import type { HttpRequest, HttpResponse, METHODS } from "../base/http_message.ts";
import type { InferMembers, Members, Shape } from "../base/shape.ts";
import type { RateLimit } from "../base/rate.ts";
import { corsPolicy, type CorsPolicy, PAGES_OF_APPS } from "./cors.ts";
import { jsonResponse } from "../http/respond.ts";
import type { DeclaredEvent } from "../event/event.ts";
import {
  BACKEND_READ_SCOPE,
  BACKEND_SCOPE,
  type Caller,
  CONSUMER_SCOPE,
} from "../oauth/principal.ts";

/** The names of a path's parameters: "/backend/user/:id" has "id". */
type ParamsOf<Path extends string> = string extends Path ? PathParams
  : Path extends `${string}:${infer Name}/${infer Rest}`
    ? { readonly [K in Name]: string } & ParamsOf<Rest>
  : Path extends `${string}:${infer Name}` ? { readonly [K in Name]: string }
  : object;

/** Percent-decoded path parameters by name. */
export type PathParams = Readonly<Record<string, string>>;

/** Who may call: anyone, or a token that carries all of these scopes. */
export type Access = "public" | readonly string[];

/** One request to an operation, with its parsed parts. */
export interface Context<Path extends string, A extends Access, Query, Body> {
  readonly request: HttpRequest;
  readonly params: ParamsOf<Path>;
  readonly caller: A extends "public" ? undefined : Caller;
  readonly query: Query;
  readonly body: Body;
  /**
   * For handlers that read the body themselves. Throws or rejects if the token is no longer valid;
   * returns undefined if there is nothing to wait for.
   */
  readonly authenticateAgain: () => Promise<unknown> | undefined;
}

/** One method on one path: what it takes, who may call it, its responses and its handler. */
export interface Operation<
  Path extends string = string,
  A extends Access = Access,
  Q extends Members = Members,
  Body = unknown,
  Result = HttpResponse,
> {
  /** Unique. The operationId in the OpenAPI document, unless the operation is hosted. */
  readonly id: string;
  readonly method: (typeof METHODS)[number];
  readonly path: Path;
  readonly summary: string;
  readonly access: A;
  /** Which pages of other origins may call it; undefined: none. */
  readonly cors?: CorsPolicy | undefined;
  /** A rate limit in addition to the general ones; "never": not even the general ones apply. */
  readonly limit?: RateLimit | "never" | undefined;
  /** The form of its errors: problem details (RFC 9457), RFC 6749 §5.2, or a page for people. */
  readonly errors?: "problem" | "oauth" | "page";
  readonly query?: Q;
  /** The JSON body; an optional shape if the body may be missing. */
  readonly body?: Shape<Body>;
  /** What the handler responds, by status: a JSON shape, a media type, or undefined for empty. */
  readonly responses: Readonly<Record<number, Shape<unknown> | `${string}/${string}` | undefined>>;
  /** Statuses of errors beside those that follow from access, path, query and body. */
  readonly refuses?: readonly number[];
  /** Whether it takes an Idempotency-Key. */
  readonly idempotent?: boolean;
  /** Other ways to authenticate than an access token of `access`. */
  readonly security?: "client" | "client or token" | "token or none" | "inspector";
  /** Whether the response has a Location; by default a response with status 201 or 303 has one. */
  readonly isLocated?: boolean;
  /** A form that the handler reads itself, as the OAuth endpoints do. */
  readonly form?: Shape<unknown>;
  /** The events that a hosted operation, an endpoint of a module, dispatches; else undefined. */
  readonly emits?: readonly DeclaredEvent[];
  /** The shapes that the handler of a hosted operation reads and checks itself. */
  readonly input?: { readonly [Part in "params" | "query" | "body"]?: Shape<unknown> | undefined };
  /** The largest body that a hosted operation takes; undefined where it sets no limit. */
  readonly maxBodyBytes?: number | undefined;
  /** Whether the body of a hosted operation may be a form too. */
  readonly takesForms?: boolean;
  handle(context: Context<Path, A, InferMembers<Q>, Body>): Promise<Result>;
}

/** What a handler without `returns` returns: a response, or nothing for an empty 204. */
type Declared = HttpResponse | void;

/**
 * Returns a function that makes operations of one kind. They share `common`, unless `rest` says
 * otherwise. The handler's type follows from path, access, query and body. `toRead` is the access
 * of operations with method GET.
 */
function operationsFor<const A extends Access>(
  common: Pick<Operation<string, A>, "access" | "cors" | "limit" | "errors" | "refuses">,
  toRead: NoInfer<A> = common.access,
) {
  return <
    const Path extends string,
    const Q extends Members = Record<never, never>,
    Body = undefined,
    Json = never,
  >(
    method: Operation["method"],
    path: Path,
    id: string,
    summary: string,
    rest: Omit<
      Operation<Path, A, Q, Body, [Json] extends [never] ? Declared : NoInfer<Json>>,
      "method" | "path" | "id" | "summary" | "access" | "cors" | "limit" | "responses"
    > & Partial<Pick<Operation, "responses" | (A extends "public" ? "cors" | "limit" : never)>> & {
      /** The shape of the handler's result, sent as JSON with status 200; replaces `responses`. */
      readonly returns?: Shape<Json>;
    },
  ): Operation => {
    const { returns, ...others } = rest;
    const responses = returns ? { 200: returns } : { 204: undefined };
    const access = method === "GET" ? toRead : common.access;
    const made = { ...common, access, method, path, id, summary, responses, ...others };
    // The cast is safe: only the pipeline calls the handler, with values that these shapes parsed.
    const typed = made as unknown as Operation<string, Access, Members, unknown, Declared>;
    return {
      ...typed,
      async handle(context) {
        const result = await typed.handle(context);
        return returns ? jsonResponse(200, result) : result ?? { status: 204 };
      },
    };
  };
}

/** Whose resources: the caller's own, or everybody's. */
export type Side = "/consumer" | "/backend";

/** Makes an operation of the consumer's own resources: scope `consumer`, and CORS. */
export const consumer = operationsFor({ access: [CONSUMER_SCOPE], cors: PAGES_OF_APPS });

/** Makes an operation of the backend: scope `backend` (`backend:read` for GET), and no CORS. */
export const backend = operationsFor<readonly string[]>(
  { access: [BACKEND_SCOPE] },
  [BACKEND_READ_SCOPE],
);

/** Makes an operation of the service itself, such as its health: public, no CORS, no rate limit. */
export const system = operationsFor({ access: "public", limit: "never" });

/** Makes an operation for discovery: public, with CORS for any origin, and no rate limit. */
export const published =
  operationsFor({ access: "public", cors: corsPolicy("*"), limit: "never" });

/** Makes an operation that anyone may call; without CORS, unless it says so. */
export const anyone = operationsFor({ access: "public" });

/** Makes an operation that an app calls with a form and its credentials (RFC 6749 §2.3.1). */
export const byApp = operationsFor({ access: "public", errors: "oauth", refuses: [401, 429] });

/** Makes an operation for whoever has an access token, of any scope, with CORS. */
export const holder = operationsFor({ access: [], cors: PAGES_OF_APPS });
