import { Problem } from "../base/problem.ts";
import { statusText } from "../base/status_text.ts";
import { isPlainObject } from "./check_fields.ts";
import { isStatus } from "./result.ts";

/** When to try again what the service cannot do now. */
export const RETRY_AFTER = { "Retry-After": "2" };

/** Only a refusal that the author wrote, or one of the service's own, reaches the caller. */
export function toRefusal(
  error: unknown,
  challenge: Readonly<Record<string, string>>,
): Problem | undefined {
  if (error instanceof Problem) return error;
  const { status, detail } = isPlainObject(error) ? error : {};
  if (!isStatus(status, 400, 499)) return undefined;
  const title = statusText(status);
  const code = title.toLowerCase().replace(/[^a-z]+/g, "_");
  const headers = status === 401 ? challenge : status === 429 ? RETRY_AFTER : {};
  return new Problem(status, code, typeof detail === "string" ? detail : title, { headers });
}
