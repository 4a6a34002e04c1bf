import type { HttpAnswer, HttpRequest } from "../base/exchange.ts";

/** Whether pages of this origin may call the service. */
export type IsOriginAllowed = (origin: string) => Promise<boolean>;

const VARY = "Origin";

/**
 * An answer's headers, with those that let a page of an allowed origin read it (Fetch standard, CORS
 * protocol). What the answer says of that itself counts; Vary is what all have a part in
 * (RFC 9110 §12.5.5).
 */
export async function withCors(
  headers: HttpAnswer["headers"],
  request: HttpRequest,
  isAllowed: IsOriginAllowed,
): Promise<NonNullable<HttpAnswer["headers"]>> {
  const Vary = headers?.["Vary"] === undefined ? VARY : mergeVary(VARY, headers["Vary"]);
  if (request.headers.origin === undefined) return { ...headers, Vary };
  return { ...await corsHeaders(request, isAllowed), ...headers, Vary };
}

async function corsHeaders(
  { headers: { origin } }: HttpRequest,
  isAllowed: IsOriginAllowed,
): Promise<Record<string, string>> {
  // Where it cannot be found out, the answer is as good for everyone else.
  const isKnown = origin !== undefined && await isAllowed(origin).catch(() => false);
  if (!isKnown) return { Vary: VARY };
  return {
    Vary: VARY,
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers": "Location, Retry-After, WWW-Authenticate, X-Request-Id",
  };
}

function mergeVary(...values: readonly (string | string[])[]): string {
  const names = values.flat().flatMap((value) => value.split(",")).map((name) => name.trim());
  return [...new Set(names)].join(", ");
}

/** The answer to a preflight or any other OPTIONS: what the path takes, and from whom. */
export async function optionsAnswer(
  request: HttpRequest,
  methods: readonly string[],
  isAllowed: IsOriginAllowed | undefined,
): Promise<HttpAnswer> {
  const allow = methods.join(", ");
  const cors = isAllowed ? await corsHeaders(request, isAllowed) : {};
  const preflight = "Access-Control-Allow-Origin" in cors
    ? {
      "Access-Control-Allow-Methods": allow,
      "Access-Control-Allow-Headers": "Authorization, Content-Type, X-Request-Id",
      "Access-Control-Max-Age": "600",
    }
    : {};
  return { status: 204, headers: { Allow: allow, ...cors, ...preflight } };
}
