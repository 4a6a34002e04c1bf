import type { HttpResponse, HttpRequest } from "../base/http_message.ts";

/** Whether pages of this origin may call the service. */
export type IsOriginAllowed = (origin: string) => Promise<boolean>;

/** Whose pages may read a response: those of allowed origins, or of any where it is public. */
export type CorsPolicy = IsOriginAllowed | "anyone";

const EXPOSED = {
  "Access-Control-Expose-Headers": "Location, Retry-After, WWW-Authenticate, X-Request-Id",
};
const TO_ANYONE = { "Access-Control-Allow-Origin": "*", ...EXPOSED };

/**
 * A response's headers, with those that let a page of an allowed origin read it (Fetch standard,
 * CORS protocol). Its own headers of that name count, and Vary is merged (RFC 9110 §12.5.5).
 */
export async function withCors(
  headers: HttpResponse["headers"],
  request: HttpRequest,
  policy: CorsPolicy,
): Promise<NonNullable<HttpResponse["headers"]>> {
  if (policy === "anyone") return { ...TO_ANYONE, ...headers };
  const Vary = headers?.["Vary"] === undefined ? "Origin" : mergeVary("Origin", headers["Vary"]);
  if (request.headers.origin === undefined) return { ...headers, Vary };
  return { ...await corsHeaders(request, policy), ...headers, Vary };
}

async function corsHeaders(
  { headers: { origin } }: HttpRequest,
  policy: CorsPolicy,
): Promise<Record<string, string>> {
  if (policy === "anyone") return TO_ANYONE;
  // Where it cannot be found out, programs that are not browsers still get the response.
  const isKnown = origin !== undefined && await policy(origin).catch(() => false);
  if (!isKnown) return { Vary: "Origin" };
  return { Vary: "Origin", "Access-Control-Allow-Origin": origin, ...EXPOSED };
}

function mergeVary(...values: readonly (string | string[])[]): string {
  const names = values.flat().flatMap((value) => value.split(",")).map((name) => name.trim());
  return [...new Set(names)].join(", ");
}

/** The response to a preflight or any other OPTIONS: what the path takes, and from whom. */
export async function optionsResponse(
  request: HttpRequest,
  methods: readonly string[],
  policy: CorsPolicy | undefined,
): Promise<HttpResponse> {
  const allow = methods.join(", ");
  const cors = policy ? await corsHeaders(request, policy) : {};
  const preflight = "Access-Control-Allow-Origin" in cors && {
    "Access-Control-Allow-Methods": allow,
    // The wildcard is every name but one (Fetch standard, CORS-preflight fetch).
    "Access-Control-Allow-Headers":
      policy === "anyone" ? "*, Authorization" : "Authorization, Content-Type, X-Request-Id",
    "Access-Control-Max-Age": "600",
  };
  return { status: 204, headers: { Allow: allow, ...cors, ...preflight } };
}
