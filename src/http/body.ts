import { hasBody, type HttpRequest } from "../base/exchange.ts";
import { type Form, MAX_FORM_BYTES, parseForm } from "../base/form.ts";
import { type JsonOptions, type JsonValue, parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";

/** Whether a request says that a body comes with it, by its type or its framing. */
export function bringsBody(request: HttpRequest): boolean {
  return request.headers["content-type"] !== undefined || hasBody(request);
}

/** The JSON of a body; throws Problem 400, 413 or 415. */
export async function readJson(
  request: HttpRequest,
  maxBytes: number,
  options: JsonOptions = {},
): Promise<JsonValue> {
  const type = mediaType(request);
  if (type !== "application/json" && !/^application\/[\w.-]+\+json$/.test(type ?? "")) {
    throw new Problem(415, "unsupported_media_type", "Send the body as application/json.", {
      headers: { Accept: "application/json" },
    });
  }
  return parseJson(await request.readBody(maxBytes), options);
}

/** The form of a body, or undefined when it is not well-formed; throws Problem 413 or 415. */
export async function readForm(request: HttpRequest): Promise<Form | undefined> {
  if (mediaType(request) !== "application/x-www-form-urlencoded") {
    throw new Problem(
      415,
      "unsupported_media_type",
      "Send the body as application/x-www-form-urlencoded.",
    );
  }
  return parseForm(await request.readBody(MAX_FORM_BYTES));
}

/**
 * The media type of a body in lower case, or undefined when it is missing, has a charset that is
 * not UTF-8, or is encoded (RFC 9110 §8.3, §8.4).
 */
function mediaType({ headers }: HttpRequest): string | undefined {
  const [type = "", ...parameters] = (headers["content-type"] ?? "").split(";");
  const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/i.exec(text)?.[1])
    .find((name) => name !== undefined);
  const encoding = headers["content-encoding"] ?? "identity";
  const plain = (charset ?? "utf-8").toLowerCase() === "utf-8" && encoding === "identity";
  return plain ? type.trim().toLowerCase() : undefined;
}
