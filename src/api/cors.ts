import type { HttpResponse, HttpRequest } from "../base/http_message.ts";

/** Whether pages of this origin may call the service. */
export type IsOriginAllowed = (origin: string) => Promise<boolean>;

/** Whose pages may read an answer: those of allowed origins, or of any where it is public. */
export type CorsPolicy = IsOriginAllowed | "anyone";

const VARY = "Origin";
const EXPOSED = {
  "Access-Control-Expose-Headers": "Location, Retry-After, WWW-Authenticate, X-Request-Id",
};
const TO_ANYONE = { "Access-Control-Allow-Origin": "*", ...EXPOSED };

/**
 * An answer's headers, with those that let a page of an allowed origin read it (Fetch standard,
 * CORS protocol). What the answer says of that itself counts; Vary is what all have a part in (RFC
 * 9110 §12.5.5).
 */
export async function withCors(
  headers: HttpResponse["headers"],
  request: HttpRequest,
  policy: CorsPolicy,
): Promise<NonNullable<HttpResponse["headers"]>> {
  if (policy === "anyone") return { ...TO_ANYONE, ...headers };
  const Vary = headers?.["Vary"] === undefined ? VARY : mergeVary(VARY, headers["Vary"]);
  if (request.headers.origin === undefined) return { ...headers, Vary };
  return { ...await corsHeaders(request, policy), ...headers, Vary };
}

async function corsHeaders(
  { headers: { origin } }: HttpRequest,
  policy: CorsPolicy,
): Promise<Record<string, string>> {
  if (policy === "anyone") return TO_ANYONE;
  // Where it cannot be found out, the answer is as good for everyone else.
  const isKnown = origin !== undefined && await policy(origin).catch(() => false);
  if (!isKnown) return { Vary: VARY };
  return { Vary: VARY, "Access-Control-Allow-Origin": origin, ...EXPOSED };
}

function mergeVary(...values: readonly (string | string[])[]): string {
  const names = values.flat().flatMap((value) => value.split(",")).map((name) => name.trim());
  return [...new Set(names)].join(", ");
}

/** The answer to a preflight or any other OPTIONS: what the path takes, and from whom. */
export async function optionsResponse(
  request: HttpRequest,
  methods: readonly string[],
  policy: CorsPolicy | undefined,
): Promise<HttpResponse> {
  const allow = methods.join(", ");
  const cors = policy ? await corsHeaders(request, policy) : {};
  // The wildcard stands for every name but one (Fetch standard, CORS-preflight fetch).
  const names = policy === "anyone"
    ? "*, Authorization"
    : "Authorization, Content-Type, X-Request-Id";
  const preflight = "Access-Control-Allow-Origin" in cors
    ? {
      "Access-Control-Allow-Methods": allow,
      "Access-Control-Allow-Headers": names,
      "Access-Control-Max-Age": "600",
    }
    : {};
  return { status: 204, headers: { Allow: allow, ...cors, ...preflight } };
}
