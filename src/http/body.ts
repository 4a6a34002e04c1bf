import { type Form, MAX_FORM_BYTES, parseForm, parsePairs } from "../base/form.ts";
import { hasBody, type HttpRequest, tooLarge } from "../base/http_message.ts";
import { isJsonType, type JsonValue, parseJson } from "../base/json.ts";
import { malformed, Problem } from "../base/problem.ts";
import { decodeUtf8 } from "../base/utf8.ts";

const MEDIA_TYPES = {
  json: "application/json",
  form: "application/x-www-form-urlencoded",
  other: undefined,
} as const;
type Kind = keyof typeof MEDIA_TYPES;

/** Which bodies are accepted. */
export interface BodyRules {
  readonly kinds: readonly Kind[];
  readonly maxBytes: number;
  readonly maxFormBytes: number;
  /** Whether a body of the kind `other` is read at once, and not on demand. */
  readonly readsAll: boolean;
}

/**
 * Returns the JSON of a body, in which integers that a double does not hold exactly are infinite.
 * Undefined where the body `mayBeMissing` and has no bytes. Throws Problem 400, 413 or 415.
 */
export async function readJson(
  request: HttpRequest,
  maxBytes: number,
  mayBeMissing = false,
): Promise<JsonValue | undefined> {
  // Only the end of a chunked body shows that it is empty, and an empty body has no type.
  const bytes = mayBeMissing ? await request.readBody(maxBytes) : undefined;
  if (bytes?.length === 0) return undefined;
  checkType(request, ["json"]);
  return parseJson(bytes ?? await request.readBody(maxBytes), { exactIntegers: true });
}

/** Returns the form of a body, or undefined when it is malformed; throws Problem 413 or 415. */
export async function readForm(request: HttpRequest): Promise<Form | undefined> {
  checkType(request, ["form"]);
  return parseForm(await request.readBody(MAX_FORM_BYTES));
}

/**
 * Reads and parses a body of JSON or a form. A body of another type has no value, and no bytes
 * where it is left to be read on demand. Throws Problem 400 `malformed`, 413, or 415 for a type
 * that is not accepted and for headers that say compressed or not UTF-8.
 */
export async function readAnyBody(
  request: HttpRequest,
  rules: BodyRules,
): Promise<{ readonly value?: JsonValue | URLSearchParams; readonly bytes?: Buffer }> {
  if (!hasBody(request)) return {};
  const kind = checkType(request, rules.kinds);
  const maxBytes = kind === "form" ? rules.maxFormBytes : rules.maxBytes;
  // Also for a body that is left unread: the handler might respond without reading it.
  if (Number(request.headers["content-length"]) > maxBytes) throw tooLarge(maxBytes);
  if (kind === "other" && !rules.readsAll) return {};
  const bytes = await request.readBody(maxBytes);
  if (kind === "other" || bytes.length === 0) return { bytes };
  const isForm = kind === "form";
  return { bytes, value: isForm ? parseFields(decodeUtf8(bytes), "form") : parseJson(bytes) };
}

/** Returns the fields of a query or a form; throws Problem 400 for malformed or undefined text. */
export function parseFields(text: string | undefined, what: string): URLSearchParams {
  const fields = parsePairs(text);
  if (fields) return fields;
  throw malformed(`The ${what} is not well-formed.`);
}

/**
 * The charsets that a body may name: UTF-8 by its usual labels (Encoding standard §4.2). A form is
 * ASCII with escapes of UTF-8, whatever charset a client names (URL standard §5.1).
 */
const CHARSETS = { json: /^utf-?8$/, form: /^(?:utf-?8|us-ascii|iso-8859-1)$/, other: /^/ };

/**
 * Returns the kind of a body by its media type (RFC 9110 §8.3). Case and parameters do not matter,
 * except charset, and every `+json` is JSON (RFC 6839 §3.1). Throws Problem 415 for a kind that is
 * not in `kinds`, and for JSON and forms that are encoded (§8.4) or not UTF-8.
 */
function checkType({ headers }: Pick<HttpRequest, "headers">, kinds: readonly Kind[]): Kind {
  // Nearly every request has one of these types exactly, which needs no parsing.
  const usual = kinds.find((each) => headers["content-type"] === MEDIA_TYPES[each]);
  if (usual && usual !== "other" && headers["content-encoding"] === undefined) return usual;
  const [text = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const type = text.trim();
  const kind = isJsonType(type) ? "json" : type === MEDIA_TYPES.form ? "form" : "other";
  if (!kinds.includes(kind)) {
    const types = kinds.flatMap((each) => MEDIA_TYPES[each] ?? []);
    throw wrongType(`Send the body as ${types.join(" or ")}.`, { Accept: types.join(", ") });
  }
  const charset = parameters.map((each) => /^charset\s*=\s*"?([^"\s]*)"?$/.exec(each.trim())?.[1])
    .find((name) => name !== undefined);
  const isEncoded = (headers["content-encoding"] ?? "identity").toLowerCase() !== "identity";
  const isPlain = CHARSETS[kind].test(charset ?? "utf-8") && !isEncoded;
  if (kind === "other" || isPlain) return kind;
  const accepted = isEncoded ? { "Accept-Encoding": "identity" } : {}; // RFC 9110 §15.5.16
  throw wrongType("The body must be UTF-8, not compressed.", accepted);
}

/** Returns the problem of a body whose type is not accepted. */
export function wrongType(detail: string, headers: Readonly<Record<string, string>> = {}): Problem {
  return new Problem(415, "unsupported_media_type", detail, { headers });
}
