import type { RateLimit } from "../base/rate.ts";
import type { CorsPolicy } from "../api/cors.ts";

/** The limit of an endpoint, or why it is none in `reasons`. */
export function checkLimit(
  _value: unknown,
  _scopes: readonly string[] | undefined,
  _reasons: string[],
): RateLimit | undefined {
  return undefined;
}

/** Which pages may call an endpoint. */
export function checkCors(_value: unknown, _reasons: string[]): CorsPolicy | undefined {
  return undefined;
}
