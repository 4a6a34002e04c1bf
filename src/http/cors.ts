import type { HttpAnswer, HttpRequest } from "../base/exchange.ts";

/** Whether pages of this origin may call the service. */
export type IsOriginAllowed = (origin: string) => Promise<boolean>;

/** The headers that let a page of an allowed origin read the answer (Fetch standard, CORS protocol). */
export async function corsHeaders(
  request: HttpRequest,
  isAllowed: IsOriginAllowed,
): Promise<Record<string, string>> {
  const { origin } = request.headers;
  if (origin === undefined || !await isAllowed(origin)) return { Vary: "Origin" };
  return {
    Vary: "Origin",
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers": "Location, Retry-After, WWW-Authenticate, X-Request-Id",
  };
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
