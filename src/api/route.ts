import type { HttpResponse, HttpRequest, METHODS } from "../base/exchange.ts";
import type { Caller } from "../oauth/principal.ts";

/** Percent-decoded path parameters by name. */
export type PathParams = Readonly<Record<string, string>>;

/** One request at a route that anyone may call. */
export interface PublicContext {
  readonly request: HttpRequest;
  readonly params: PathParams;
}

/** One request at a route that needs an access token. */
export interface ProtectedContext extends PublicContext {
  readonly caller: Caller;
}

interface RouteBase {
  readonly method: (typeof METHODS)[number];
  /** A URLPattern pathname: "/consumer/subscription/:id". */
  readonly path: string;
  /** Which pages of other origins may call it: those of registered apps, or any. */
  readonly cors: boolean | "anyone";
  /** The shape of its errors: problem details (RFC 9457), RFC 6749 §5.2, or a page for people. */
  readonly errors?: "problem" | "oauth" | "page";
  /** What it does, in a few words; goes into the OpenAPI document. */
  readonly summary: string;
}

/** A route without a token. */
export interface PublicRoute extends RouteBase {
  readonly access: "public";
  handle(context: PublicContext): Promise<HttpResponse>;
}

/** A route that needs an access token which carries all of `access`. */
export interface ProtectedRoute extends RouteBase {
  readonly access: readonly string[];
  handle(context: ProtectedContext): Promise<HttpResponse>;
}

/** One method on one path of the interface, and what answers it. */
export type Route = PublicRoute | ProtectedRoute;
