import type { HttpResponse, HttpRequest } from "../base/http_message.ts";

/** Whether pages of this origin may call the service. */
export type IsOriginAllowed = (origin: string) => Promise<boolean>;

/** Whose pages may call and read the responses, and which headers they may send and read. */
export interface CorsPolicy {
  /** "*": any origin. A list: exactly these. Undefined: the origins that the service allows. */
  readonly origins: "*" | readonly string[] | undefined;
  readonly allowHeaders: string;
  readonly exposeHeaders: string;
}

/** Request headers that pages may send. */
export const ALLOWED = [
  "Authorization", "Content-Type", "X-Request-Id", "If-Match", "If-None-Match", "Idempotency-Key",
  "MCP-Protocol-Version", "MCP-Session-Id", "Last-Event-ID", // of the Model Context Protocol
  "X-Requested-With", // which Swagger UI sends with its token requests
];
/** Response headers that pages may read. */
export const EXPOSED = [
  "ETag", "Location", "Retry-After", "RateLimit", "RateLimit-Policy", "WWW-Authenticate",
  "X-Request-Id", "MCP-Session-Id",
];

/** Makes a policy. Pages may send `headers` and read `expose` in addition to the usual ones. */
export function corsPolicy(
  origins: CorsPolicy["origins"],
  headers: readonly string[] = [],
  expose: readonly string[] = [],
): CorsPolicy {
  return {
    origins,
    // The wildcard covers every name but Authorization (Fetch standard, CORS-preflight fetch).
    allowHeaders: origins === "*" ? "*, Authorization" : [...ALLOWED, ...headers].join(", "),
    exposeHeaders: [...EXPOSED, ...expose].join(", "),
  };
}

/** The policy for pages of registered apps, and of other origins that the service allows. */
export const PAGES_OF_APPS = corsPolicy(undefined);

/**
 * Adds the headers that let a page of an allowed origin read a response (Fetch standard, CORS
 * protocol). CORS headers that the response already has stay. Vary is merged (RFC 9110 §12.5.5).
 * Returns a promise only if it must wait.
 */
export function addCors(
  headers: Record<string, string | string[]>,
  { headers: { origin } }: HttpRequest,
  { origins, exposeHeaders }: CorsPolicy,
  isOriginAllowed: IsOriginAllowed,
): Promise<void> | undefined {
  const allow = (allowed: string): undefined => {
    headers["Access-Control-Allow-Origin"] ??= allowed;
    headers["Access-Control-Expose-Headers"] ??= exposeHeaders;
  };
  if (origins === "*") return allow("*");
  headers["Vary"] = mergeVary(headers["Vary"]);
  if (origin === undefined) return undefined;
  if (origins) return origins.includes(origin) ? allow(origin) : undefined;
  // If the look-up fails, clients that are not browsers still get the response.
  return isOriginAllowed(origin).catch(() => false).then((isAllowed) => {
    if (isAllowed) allow(origin);
  });
}

function mergeVary(own: string | readonly string[] | undefined): string {
  if (own === undefined) return "Origin"; // the usual case
  const names = [own].flat().flatMap((value) => value.split(",")).map((name) => name.trim());
  return [...new Set(["Origin", ...names])].join(", ");
}

/** Makes the response to a preflight or any other OPTIONS: the methods, and the CORS headers. */
export async function optionsResponse(
  request: HttpRequest,
  methods: readonly string[],
  policy: CorsPolicy | undefined,
  isOriginAllowed: IsOriginAllowed,
): Promise<HttpResponse> {
  const Allow = methods.join(", ");
  const headers: Record<string, string> = { Allow };
  if (policy) await addCors(headers, request, policy, isOriginAllowed);
  const wanted = request.headers["access-control-request-method"] ?? "";
  const preflight = policy && "Access-Control-Allow-Origin" in headers && {
    // Browsers cache this response, and other methods of the path may have another policy.
    "Access-Control-Allow-Methods": methods.includes(wanted) ? wanted : Allow,
    "Access-Control-Allow-Headers": policy.allowHeaders,
    "Access-Control-Max-Age": "600",
  };
  return { status: 204, headers: { ...headers, ...preflight } };
}
