import { type FieldError, Problem } from "../base/problem.ts";
import { statusText } from "../base/status_text.ts";
import type { OnError } from "../mod.ts";
import type { AnyContext } from "./check.ts";
import { isPlainObject, type Members } from "./check_fields.ts";
import { isStatus, readHeaders } from "./result.ts";

/** When to try again what the service cannot do now. */
export const RETRY_AFTER = { "Retry-After": "2" };

/** What failed. */
interface Failure {
  readonly error: unknown;
  /** What an `onError` threw in its place. */
  readonly on_error?: unknown;
}

const REFUSAL_KEYS = ["status", "detail", "errors", "headers"];

/** Headers of the body, which is the service's. */
const OF_THE_BODY = ["content-type", "content-encoding"];

/** Whether a handler's result was meant to be thrown; any other may be an answer, or data. */
export function isReturnedRefusal(result: unknown): boolean {
  return isPlainObject(result) && ("detail" in result || "errors" in result) &&
    findRefusal(result) !== undefined &&
    Object.keys(result).every((key) => REFUSAL_KEYS.includes(key));
}

/** The refusal that was thrown, or that an own Error has; undefined for anything else. */
export function findRefusal(thrown: unknown): Members | undefined {
  const given = thrown instanceof Error && "refusal" in thrown ? thrown.refusal : thrown;
  return isPlainObject(given) && isStatus(given["status"], 400, 599) ? given : undefined;
}

/**
 * What a request ends with that threw: the refusal that this is, or that the first of `onError`
 * makes of it, or else a failure.
 *
 * @param challenge of a 401
 */
export async function settle(
  thrown: unknown,
  onError: readonly OnError[],
  context: AnyContext,
  challenge: Readonly<Record<string, string>>,
): Promise<Problem | Failure> {
  const first = judge(thrown, challenge);
  let last = first;
  for (const hook of onError) {
    if (last instanceof Problem) return last;
    last = judge(await ask(hook, last.error, context), challenge);
  }
  if (first instanceof Problem || last instanceof Problem || last.error === first.error) {
    return last;
  }
  return { ...first, on_error: last.error };
}

/** What takes the error's place, which is itself where `onError` returned nothing. */
async function ask(onError: OnError, error: unknown, context: AnyContext): Promise<unknown> {
  try {
    const made: unknown = await onError(error, context);
    if (made === undefined) return error;
    return findRefusal(made) ? made : new TypeError("onError() must return a refusal or nothing.");
  } catch (replaced) {
    return replaced;
  }
}

/** Only a refusal that the author wrote, or one of the service's own, reaches the caller. */
function judge(
  thrown: unknown,
  challenge: Readonly<Record<string, string>>,
): Problem | Failure {
  if (thrown instanceof Problem) return thrown;
  try {
    const refusal = findRefusal(thrown);
    return refusal ? toProblem(refusal, challenge) : { error: thrown };
  } catch (error) {
    return { error };
  }
}

function toProblem(
  { status, detail, headers: given, errors }: Members,
  challenge: Readonly<Record<string, string>>,
): Problem {
  const title = statusText(Number(status));
  const code = title.toLowerCase().replace(/[^a-z]+/g, "_");
  const defaults = status === 401 ? challenge : status === 429 ? RETRY_AFTER : {};
  const headers = readHeaders(given);
  for (const name of OF_THE_BODY) {
    if (name in headers) throw new TypeError(`The header ${name} is the server's to set.`);
  }
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
