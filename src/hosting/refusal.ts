import { toError } from "../base/message_of.ts";
import { isPlainObject, type Members } from "../base/plain_object.ts";
import { type FieldError, Problem } from "../base/problem.ts";
import { statusText } from "../base/status_text.ts";
import { RETRY_AFTER } from "../api/unavailable.ts";
import type { Context, OnError } from "../mod.ts";
import { isStatus, readHeaders } from "./result.ts";

const REFUSAL_KEYS = ["status", "detail", "errors", "headers"];

/** Headers of the body, which the service itself writes. */
const OF_THE_BODY = ["content-type", "content-encoding"];

/** Whether a handler's result is a refusal that was meant to be thrown, not an answer or data. */
export function isReturnedRefusal(result: unknown): boolean {
  return isPlainObject(result) && isStatus(result["status"], 400, 599) &&
    ("detail" in result || "errors" in result) &&
    Object.keys(result).every((key) => REFUSAL_KEYS.includes(key));
}

/** Returns a thrown refusal, or the `refusal` of a thrown Error; undefined for anything else. */
export function findRefusal(thrown: unknown): Members | undefined {
  const given = thrown instanceof Error && "refusal" in thrown ? thrown.refusal : thrown;
  return isPlainObject(given) && isStatus(given["status"], 400, 599) ? given : undefined;
}

/**
 * Returns the problem that ends a request which threw: a refusal by the author or the service, or
 * what the innermost `onError` makes of another error. Throws an error that becomes no problem.
 *
 * @param challenge the headers of a 401
 */
export async function toProblem(
  thrown: unknown,
  [onError, ...outer]: readonly OnError[],
  context: Context<unknown>,
  challenge: Readonly<Record<string, string>>,
): Promise<Problem> {
  if (thrown instanceof Problem) return thrown;
  let error = thrown;
  try {
    const refusal = findRefusal(error);
    if (refusal) return problemOf(refusal, challenge);
  } catch (mistake) {
    error = mistake;
  }
  if (!onError) throw toError(error);
  try {
    const made: unknown = await onError(error, context);
    const isWrong = made !== undefined && !findRefusal(made);
    if (isWrong) throw new TypeError("onError() must return a refusal or nothing.");
    error = made ?? error;
  } catch (replaced) {
    error = replaced;
  }
  return toProblem(error, outer, context, challenge);
}

function problemOf(
  { status, detail, headers: given, errors }: Members,
  challenge: Readonly<Record<string, string>>,
): Problem {
  const title = statusText(Number(status));
  const code = title.toLowerCase().replace(/[^a-z]+/g, "_");
  const defaults = status === 401 ? challenge
    : status === 429 || status === 503 ? RETRY_AFTER : {};
  const headers = readHeaders(given);
  const wrong = OF_THE_BODY.find((name) => name in headers);
  if (wrong !== undefined) throw new TypeError(`The header ${wrong} is the server's to set.`);
  return new Problem(Number(status), code, typeof detail === "string" ? detail : title, {
    headers: { ...defaults, ...headers },
    errors: readErrors(errors),
  });
}

function readErrors(given: unknown = []): readonly FieldError[] {
  if (Array.isArray(given) && given.every(isFieldError)) return given;
  throw new TypeError("A refusal's errors must be a list of { pointer, detail }, both texts.");
}

function isFieldError(value: unknown): value is FieldError {
  return isPlainObject(value) && Object.keys(value).length === 2 &&
    typeof value["pointer"] === "string" && typeof value["detail"] === "string";
}
