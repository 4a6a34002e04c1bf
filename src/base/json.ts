import { malformed } from "./problem.ts";
import { decodeUtf8 } from "./utf8.ts";

/** A value of JSON (RFC 8259). */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** How many arrays and objects may be inside each other. */
const MAX_DEPTH = 64;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [ARRAY_START, ARRAY_END, OBJECT_START, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Finds a member named `__proto__`, however it is escaped, in valid JSON text. There an escaped
 * quote always follows a backslash, and an opening quote never does.
 */
const PROTO_MEMBER = new RegExp(
  String.raw`(?<!\\)"${[..."__proto__"].map(spellings).join("")}"\s*:`,
);

/** Matches every number past the range of a double (1.8e308), and few others. */
const HUGE_NUMBER = /(?:^|[\s:,[])-?(?:\d{300}|\d+(?:\.\d+)?[eE]\+?0*[1-9]\d)/;

/** In JSON: an escape, an unescaped quote, or an integer that a double may not hold exactly. */
const QUOTE_OR_INTEGER = /\\.|"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/**
 * Returns the value of JSON text (RFC 8259), read strictly: UTF-8 without a byte order mark, at
 * most 64 nested arrays and objects, no member named `__proto__` (escaped or not), no number past
 * the range of a double. Of two members with one name the last counts. With `exactIntegers` a
 * number past the range becomes infinite, as does an integer that a double does not hold exactly.
 * `encodeJson` refuses infinity, so no inexact number is passed on (RFC 8259 §6). Takes linear
 * time.
 *
 * @throws {Problem} 400 `malformed`; its detail repeats nothing of the input.
 */
export function parseJson(bytes: Uint8Array, { exactIntegers = false } = {}): JsonValue {
  if (bytes.length === 0) throw malformed("The body is empty; it must be JSON.");
  if (nestsTooDeep(bytes)) {
    throw malformed(`The body nests deeper than ${MAX_DEPTH} arrays and objects.`);
  }
  const text = decodeUtf8(bytes); // a byte order mark is for JSON.parse() to refuse
  if (text === undefined) throw malformed("The body is not UTF-8.");
  const value = parseText(text);
  if (PROTO_MEMBER.test(text)) throw malformed("The body has a member named __proto__.");
  if (!exactIntegers && HUGE_NUMBER.test(text) && !isJson(value)) {
    throw malformed("The body has a number past the range of a double.");
  }
  return exactIntegers && /\d{16}/.test(text) ? parseText(withoutInexact(text)) : value;
}

/**
 * Returns `data` as JSON.stringify() does: members that are undefined, functions or symbols are
 * left out, and in arrays they become null.
 *
 * @throws {TypeError} for what JSON cannot hold: undefined, a function or a symbol as the whole,
 * a BigInt, a cycle, NaN or an infinity anywhere, a Promise, a Map or anything else whose content
 * would be lost, or more nesting than the stack can walk.
 */
export function encodeJson(data: unknown): string {
  const text = stringify(data);
  // NaN and infinities become null, promises and maps become {}: only such text needs the slow
  // check. Its text is returned, since a getter may give another value the second time.
  return text.includes("null") || text.includes("{}") ? stringify(data, refuseLost) : text;
}

/** Whether a media type in lower case, without parameters, is JSON: `+json` too (RFC 6839 §3.1). */
export function isJsonType(type: string): boolean {
  return type === "application/json" || /^[\w.-]+\/[\w.-]+\+json$/.test(type);
}

/** Whether `encodeJson` accepts the data. */
export function isJson(data: unknown): boolean {
  try {
    return encodeJson(data) !== "";
  } catch {
    return false;
  }
}

function stringify(data: unknown, replacer?: (name: string, value: unknown) => unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(data, replacer);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new TypeError("The data is too deep or too long for JSON.", { cause });
  }
  if (text === undefined) throw new TypeError(`JSON cannot hold ${typeof data}.`);
  return text;
}

function refuseLost(_name: string, value: unknown): unknown {
  const isNumber = typeof value === "number" || value instanceof Number;
  if (isNumber && !Number.isFinite(Number(value))) {
    throw new TypeError("JSON cannot hold NaN or an infinity.");
  }
  if (isEmptied(value)) {
    const what = Object.prototype.toString.call(value); // "[object Map]"
    throw new TypeError(`JSON cannot hold ${what}: await it, or make an object or array of it.`);
  }
  return value;
}

/**
 * Whether JSON would write an instance of a class as `{}`: a Map, Promise, Error, Blob, Headers or
 * an author's own class, even with methods of its own. JSON sees no member that holds its content.
 */
function isEmptied(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = !prototype || Object.getPrototypeOf(prototype) === null; // of any realm
  return !isPlain && Object.values(value).every((member) => typeof member === "function");
}

/** Counts on the bytes, before any value is built: multi-byte characters have none below 0x80. */
function nestsTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) inString = !inString;
    else if (inString) {
      if (byte === BACKSLASH) index++;
    } else if (byte === ARRAY_START || byte === OBJECT_START) {
      if (++depth > MAX_DEPTH) return true;
    } else if (byte === ARRAY_END || byte === OBJECT_END) depth--;
  }
  return false;
}

/**
 * Returns the text with `1e999`, which is infinite, for each integer that a double does not hold
 * exactly. A reviver also gets each number's text, but takes a hundred times as long.
 */
function withoutInexact(text: string): string {
  let inString = false;
  return text.replace(QUOTE_OR_INTEGER, (token) => {
    if (token === '"') inString = !inString;
    return inString || token.length < 16 || isExact(token) ? token : "1e999";
  });
}

function isExact(digits: string): boolean {
  const value = Number(digits);
  return Number.isFinite(value) && BigInt(digits) === BigInt(value);
}

function parseText(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // No cause: the engine's message quotes the input, which may hold a password.
    throw malformed("The body is not JSON.");
  }
}

/** Every way to write one ASCII character in a JSON string, as a pattern. */
function spellings(character: string): string {
  const code = character.charCodeAt(0).toString(16).padStart(4, "0");
  return String.raw`(?:${character}|\\u(?i:${code}))`;
}
