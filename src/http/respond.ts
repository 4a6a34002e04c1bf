import type { HttpResponse } from "../base/http_message.ts";
import type { Problem } from "../base/problem.ts";

/** Keeps a response out of every cache (RFC 6749 §5.1). */
export const NO_STORE = { "Cache-Control": "no-store", Pragma: "no-cache" } as const;

/** A JSON response; kept out of caches unless `headers` are given. */
export function jsonResponse(
  status: number,
  json: unknown,
  headers: HttpResponse["headers"] = NO_STORE,
): HttpResponse {
  const body = JSON.stringify(json);
  return { status, headers: { "Content-Type": "application/json", ...headers }, body };
}

/** Problem details (RFC 9457). */
export function problemResponse(problem: Problem, requestId: string): HttpResponse {
  const { status, title, message, errors, headers } = problem;
  return {
    status,
    headers: {
      "Content-Type": "application/problem+json",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "X-Request-Id": requestId,
      ...headers,
    },
    body: JSON.stringify({
      type: `urn:gatepost:problem:${problem.code}`,
      title,
      status,
      detail: message,
      request_id: requestId,
      ...(errors.length > 0 && { errors }),
    }),
  };
}
