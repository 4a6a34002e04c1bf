import { decodeFormText, type Form, MAX_FORM_BYTES, parseForm } from "../base/form.ts";
import { hasBody, type HttpRequest, tooLarge } from "../base/http_message.ts";
import { type JsonValue, parseJson } from "../base/json.ts";
import { malformed, Problem } from "../base/problem.ts";
import { decodeUtf8 } from "../base/utf8.ts";

/** A body that may be of any type. */
interface AnyBody {
  /** JSON, a form, or undefined: of another type, empty or missing. */
  readonly value: JsonValue | URLSearchParams | undefined;
  /** The bytes where they were read; undefined: none came, or they are left unread. */
  readonly bytes: Buffer | undefined;
}

const NO_BODY: AnyBody = { value: undefined, bytes: undefined };

/**
 * The JSON of a body; integers that a double does not hold exactly are infinite in it. Throws
 * Problem 400, 413 or 415.
 */
export async function readJson(request: HttpRequest, maxBytes: number): Promise<JsonValue> {
  const { kind, isPlain } = bodyTypeOf(request);
  if (kind !== "json" || !isPlain) {
    throw wrongType("Send the body as application/json.", { Accept: "application/json" });
  }
  return parseJson(await request.readBody(maxBytes), { exactIntegers: true });
}

/** The form of a body, or undefined when it is not well-formed; throws Problem 413 or 415. */
export async function readForm(request: HttpRequest): Promise<Form | undefined> {
  const { kind, isPlain } = bodyTypeOf(request);
  if (kind !== "form" || !isPlain) {
    throw wrongType("Send the body as application/x-www-form-urlencoded.");
  }
  return parseForm(await request.readBody(MAX_FORM_BYTES));
}

/**
 * Reads and parses a body that is JSON or a form; one of another type is read on demand. Throws
 * Problem 400 `malformed`, 413, or 415 for one that is not taken, or says that it is compressed or
 * not UTF-8.
 */
export async function readAnyBody(request: HttpRequest, limits: {
  readonly maxBytes: number;
  readonly maxFormBytes: number;
  readonly takesForms: boolean;
  readonly takesOthers: boolean;
  readonly readsAll: boolean;
}): Promise<AnyBody> {
  if (!hasBody(request)) return NO_BODY;
  const { kind, isPlain } = bodyTypeOf(request);
  const { takesForms, takesOthers } = limits;
  if (kind === "form" && !takesForms || kind === "other" && !takesOthers) {
    const orForm = takesForms ? " or application/x-www-form-urlencoded" : "";
    throw wrongType(`Send the body as application/json${orForm}.`);
  }
  const maxBytes = kind === "form" ? limits.maxFormBytes : limits.maxBytes;
  // Also where it is left unread: the handler might respond without looking at it.
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (kind === "other" && !limits.readsAll) return NO_BODY;
  if (kind !== "other" && !isPlain) throw wrongType("The body must be UTF-8, not compressed.");
  const bytes = await request.readBody(maxBytes);
  if (kind === "other" || bytes.length === 0) return { value: undefined, bytes };
  const isForm = kind === "form";
  return { bytes, value: isForm ? parseFields(decodeUtf8(bytes), "form") : parseJson(bytes) };
}

/** URLSearchParams itself would take bad escapes, and what is not UTF-8. Throws Problem 400. */
export function parseFields(text: string | undefined, what: string): URLSearchParams {
  if (text !== undefined && decodeFormText(text) !== undefined) return new URLSearchParams(text);
  throw malformed(`The ${what} is not well-formed.`);
}

/**
 * What a request says of its body, and whether that is UTF-8 and not encoded: the media type
 * without regard to case and parameters but the charset (RFC 9110 §8.3; "utf8" is its label too,
 * Encoding standard §4.2), `+json` of any kind (RFC 6839 §3.1), and the coding (§8.4).
 */
function bodyTypeOf({ headers }: Pick<HttpRequest, "headers">) {
  const [text = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const charset = parameters.map((each) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(each)?.[1])
    .find((name) => name !== undefined);
  const coding = headers["content-encoding"] ?? "identity";
  const isPlain = /^utf-?8$/.test(charset ?? "utf-8") && coding.toLowerCase() === "identity";
  const type = text.trim();
  if (type === "application/x-www-form-urlencoded") return { kind: "form", isPlain };
  const isJson = type === "application/json" || /^[\w.-]+\/[\w.-]+\+json$/.test(type);
  return { kind: isJson ? "json" : "other", isPlain };
}

/** A body of a type that is not taken. */
export function wrongType(detail: string, headers: Readonly<Record<string, string>> = {}): Problem {
  return new Problem(415, "unsupported_media_type", detail, { headers });
}
