import {
  ALL_METHODS,
  hasBody,
  type HttpResponse,
  type HttpRequest,
} from "../base/http_message.ts";
import type { Log } from "../base/log.ts";
import { Problem } from "../base/problem.ts";
import { OAuthError } from "../oauth/errors.ts";
import type { Caller } from "../oauth/principal.ts";
import { UnavailableError } from "../database/database.ts";
import { prefersHtml } from "../http/accept.ts";
import { type Bearer, bearerChallenge } from "./bearer.ts";
import { addCors, type IsOriginAllowed, optionsResponse } from "./cors.ts";
import { errorPage } from "./pages/error_page.ts";
import { jsonResponse, NO_STORE, problemResponse } from "../http/respond.ts";
import { readBody, readQuery } from "./input.ts";
import type { Operation } from "./operation.ts";
import type { LimitRequest } from "./rate_limit.ts";
import type { Services } from "../services.ts";
import { checkPath, type Router, type RouteMatch } from "./router.ts";
import { OUTCOME_UNKNOWN, unavailable } from "./unavailable.ts";

interface PipelineOptions extends Pick<Services, "issuer" | "site" | "log"> {
  readonly bearer: Pick<Bearer, "authenticate">;
  /** Only `own` serves its paths. For any other path the first router with an operation counts. */
  readonly routers: readonly [own: Router, ...rest: Router[]];
  readonly isOriginAllowed: IsOriginAllowed;
  readonly limit: LimitRequest;
  readonly maxBodyBytes: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** Called with every response, for the metrics. */
  readonly observe: (route: string, method: string, status: number, ms: number) => void;
}

interface Progress {
  match?: RouteMatch;
  caller?: Caller;
  /** The rate-limit headers of the response. */
  quotas?: HttpResponse["headers"];
}

/** The status in the log and the metrics if the client disconnected before its response. */
const GONE_STATUS = 499;

/**
 * Makes the pipeline of every request: path → operation → token and scope → limits → query and body
 * → handler → response. No other place turns errors into responses, adds CORS headers or writes the
 * log line of a request. The pipeline never throws.
 */
export function createPipeline(
  { bearer, issuer, site, log, routers, isOriginAllowed, limit, maxBodyBytes, now, observe }:
    PipelineOptions,
): (request: HttpRequest) => Promise<HttpResponse> {
  const [findOwn, ...rest] = routers;

  function findRoute(method: string, path: string): RouteMatch | undefined {
    const own = findOwn(method, path);
    if (own) return own;
    for (const find of rest) {
      const match = find(method, path);
      if (match?.operation) return match;
    }
    const others = rest.flatMap((find) => find(method, path) ?? []); // matches of other methods
    const methods = [...new Set(others.flatMap((match) => match.methods))];
    return others[0] && { ...others[0], methods };
  }

  /** Like `carryOut` not async: each promise on the way would slow every request. */
  function respondTo(request: HttpRequest, progress: Progress) {
    // RFC 9110 §9.3.7: OPTIONS * asks about the server itself.
    const isOfServer = request.method === "OPTIONS" && request.path === "*";
    if (isOfServer) return { status: 204, headers: { Allow: ALL_METHODS } };
    const path = localPath(request.path, site.basePath);
    const match = findRoute(request.method, path);
    if (!match) throw new Problem(404, "not_found", "There is nothing at this path.");
    progress.match = match;
    const { operation, methods, params } = match;
    if (request.method === "OPTIONS") {
      const wanted = request.headers["access-control-request-method"] ?? "";
      const { sibling } = findRoute(wanted, path) ?? match;
      return optionsResponse(request, methods, sibling.cors, isOriginAllowed);
    }
    if (!operation) {
      throw new Problem(405, "method_not_allowed", `This path takes ${methods.join(", ")}.`, {
        headers: { Allow: methods.join(", ") },
      });
    }
    const { access } = operation;
    const carryOutFor = (caller?: Caller) => carryOut(operation, request, params, caller, progress);
    const checked = access === "public" ? undefined : bearer.authenticate(request, access);
    return checked instanceof Promise ? checked.then(carryOutFor) : carryOutFor(checked);
  }

  function carryOut(
    operation: Operation,
    request: HttpRequest,
    params: RouteMatch["params"],
    caller: Caller | undefined,
    progress: Progress,
  ): Promise<HttpResponse> {
    const { access } = operation;
    if (caller) progress.caller = caller;
    const limited = limit(operation, caller, request);
    if (limited) {
      progress.quotas = limited.headers;
      if (limited.refusal) throw limited.refusal;
    }
    // A body may arrive slowly, and the token may have ended meanwhile.
    const authenticateAgain = () => {
      if (access === "public" || !hasBody(request)) return undefined;
      const again = bearer.authenticate(request, access);
      return again instanceof Promise ? again : undefined;
    };
    // OAuth and pages have rules of their own for parameters that are missing, repeated or wrong.
    const isParsed = operation.errors === undefined || operation.errors === "problem";
    const query = operation.query && isParsed ? readQuery(request.query, operation.query) : {};
    const context = { request, params, caller, query, body: undefined, authenticateAgain };
    if (!operation.body) return operation.handle(context);
    return readBody(operation.body, request, maxBodyBytes).then(async (body) => {
      await authenticateAgain();
      return operation.handle({ ...context, body });
    });
  }

  function errorResponse(error: unknown, request: HttpRequest, match: RouteMatch | undefined) {
    const errors = match?.sibling.errors;
    const problem = toProblem(error, request, log);
    switch (match ? errors : errorsOfNoRoute(problem, request)) {
      case "oauth": { // RFC 6749 §5.2
        const { status, code: error, message, headers } = toOAuthError(problem);
        const json = { error, error_description: message };
        return jsonResponse(status, json, { ...NO_STORE, ...headers });
      }
      case "page": {
        const { status, title, message: detail } = problem;
        const page = errorPage({ site, status, title, detail, requestId: request.id });
        return { ...page, headers: { ...page.headers, ...problem.headers } };
      }
      default: {
        const { challenge } = problem;
        const response = problemResponse(problem, request.id);
        if (!challenge) return response;
        const added = bearerChallenge(issuer, request.path, challenge);
        return { ...response, headers: { ...response.headers, ...added } };
      }
    }
  }

  return async (request) => {
    const startedMs = now();
    const progress: Progress = {};
    let response: HttpResponse;
    try {
      response = await respondTo(request, progress);
    } catch (error) {
      response = errorResponse(error, request, progress.match);
    }
    const status = request.isGone ? GONE_STATUS : response.status;
    const { match, caller, quotas } = progress;
    const route = match?.sibling.path ?? "";
    const exactMs = now() - startedMs;
    observe(route, request.method, status, exactMs);
    const ms = Math.round(exactMs * 100) / 100;
    const { method, id: request_id } = request;
    log.info("request", { method, route, status, ms, request_id, sub: caller?.sub });
    // Assigned one by one: members behind a spread in a literal cost several times as much.
    const headers: Record<string, string | string[]> = { ...response.headers };
    if (quotas) Object.assign(headers, quotas);
    headers["X-Request-Id"] = request_id;
    headers["X-Content-Type-Options"] = "nosniff";
    const policy = method === "OPTIONS" ? undefined : match?.sibling.cors;
    const adding = policy && addCors(headers, request, policy, isOriginAllowed);
    if (adding) await adding;
    return { status: response.status, headers, body: response.body };
  };
}

/**
 * Returns the path below the base path. Metadata of an issuer with a path is also outside the base
 * path: there the path follows the metadata's name (RFC 8414 §3.1, RFC 9728 §3.1).
 */
function localPath(rawPath: string, basePath: string): string {
  const path = checkPath(rawPath);
  if (basePath === "") return path;
  if (path === basePath) return "/";
  if (path.startsWith(`${basePath}/`)) return path.slice(basePath.length);
  const [, metadata, inserted = ""] = /^(\/\.well-known\/[^/]+)(\/.*)/.exec(path) ?? [];
  if (metadata && `${inserted}/`.startsWith(`${basePath}/`)) {
    return metadata + inserted.slice(basePath.length);
  }
  throw new Problem(404, "not_found", "There is nothing at this path.");
}

/** Returns the form of errors for a path without a route: a page for browsers, else a problem. */
function errorsOfNoRoute({ status }: Problem, request: HttpRequest) {
  const isPage = status === 404 && isRead(request) && prefersHtml(request.headers.accept);
  return isPage ? "page" : "problem";
}

function isRead({ method }: HttpRequest): boolean {
  return method === "GET" || method === "HEAD";
}

function toProblem(error: unknown, request: HttpRequest, log: Log): Problem {
  if (error instanceof Problem) return error;
  if (request.isGone) {
    log.debug("request failed after the client disconnected", { request_id: request.id, error });
    return new Problem(GONE_STATUS, "client_gone", "The client disconnected.");
  }
  if (error instanceof UnavailableError) {
    log.warn("storage unavailable", { request_id: request.id, error });
    return unavailable(error, isRead(request) ? undefined : "this");
  }
  log.error("request failed", { request_id: request.id, error });
  return new Problem(500, "internal", "The request failed; the log has more under its request_id.");
}

function toOAuthError(problem: Problem): OAuthError {
  if (problem instanceof OAuthError) return problem;
  const { status, code, message, headers } = problem;
  // A repeat is refused if this request used up a code or a refresh token; else it does no harm.
  const description = code !== OUTCOME_UNKNOWN ? message
    : "It is not known whether this was stored. Repeat it; if that is refused, authorize again.";
  const as = (error: OAuthError["code"], asStatus = status) =>
    new OAuthError(error, description, { status: asStatus, headers });
  if (status === 503 || status === 429) return as("temporarily_unavailable");
  if (status >= 500) return as("server_error");
  if (status === 401) return as("invalid_token"); // RFC 6750 §3.1
  if (status === 403) return as("insufficient_scope");
  // RFC 6749 §5.2: whatever is wrong with the form of a request is invalid_request, status 400.
  return as("invalid_request", status === 415 ? 400 : status);
}
