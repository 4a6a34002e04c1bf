import { bodyTypeOf } from "./body_type.ts";
import { hasBody, type HttpRequest } from "../base/http_message.ts";
import { type Form, MAX_FORM_BYTES, parseForm } from "../base/form.ts";
import { type JsonValue, parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";

/** Whether a request says that a body comes with it, by its type or its framing. */
export function bringsBody(request: HttpRequest): boolean {
  return request.headers["content-type"] !== undefined || hasBody(request);
}

/**
 * The JSON of a body; integers that a double does not hold exactly are infinite in it. Throws
 * Problem 400, 413 or 415.
 */
export async function readJson(request: HttpRequest, maxBytes: number): Promise<JsonValue> {
  const { kind, isPlain } = bodyTypeOf(request);
  if (kind !== "json" || !isPlain) {
    throw new Problem(415, "unsupported_media_type", "Send the body as application/json.", {
      headers: { Accept: "application/json" },
    });
  }
  return parseJson(await request.readBody(maxBytes), { exactIntegers: true });
}

/** The form of a body, or undefined when it is not well-formed; throws Problem 413 or 415. */
export async function readForm(request: HttpRequest): Promise<Form | undefined> {
  const { kind, isPlain } = bodyTypeOf(request);
  if (kind !== "form" || !isPlain) {
    throw new Problem(
      415,
      "unsupported_media_type",
      "Send the body as application/x-www-form-urlencoded.",
    );
  }
  return parseForm(await request.readBody(MAX_FORM_BYTES));
}
