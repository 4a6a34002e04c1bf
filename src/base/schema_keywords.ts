import { authored, that } from "./authored.ts";
import { isJson } from "./json.ts";
import { isPlainObject, type Members } from "./plain_object.ts";
import { FLAG, type Infer, isRecord, oneOf, optional, TEXT } from "./shape.ts";
import { isTime } from "./time.ts";

/** JSON's types by name: the test for a value, and what an error calls it. */
export const TYPES: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  string: [(value) => typeof value === "string", "a string"],
  number: [Number.isFinite, "a number"],
  integer: [Number.isInteger, "an integer"],
  boolean: [(value) => typeof value === "boolean", "true or false"],
  null: [(value) => value === null, "null"],
  array: [Array.isArray, "a list"],
  object: [isRecord, "an object"],
};

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const EMAIL = new RegExp(`^[\\w.!#$%&'*+/=?^\`{|}~-]{1,64}@${LABEL}(?:\\.${LABEL})*$`, "i");
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
/** RFC 3986 §2 and §3.1: a scheme, and ASCII alone. */
const URI = /^[a-z][a-z0-9+.-]*:[!#-;=?-[\]_a-z~]*$/i;

/** Formats by name: the test for a text, and what an error calls it. */
export const FORMATS: Readonly<Record<string, readonly [(text: string) => boolean, string]>> = {
  "date": [(text) => isTime(`${text}T00:00:00Z`), "a date as in 2030-01-31"],
  "date-time": [isTime, "a time as in 2030-01-31T12:00:00Z"],
  "email": [(text) => text.length <= 254 && EMAIL.test(text), "an email address"],
  "uri": [(text) => URI.test(text) && URL.canParse(text), "an absolute URI"],
  "uuid": [(text) => UUID.test(text), "a UUID"],
};

function keyword<T>(isRight: (value: unknown) => boolean, what: string) {
  return optional(that<T>(isRight, what));
}

const WORDS = optional(TEXT);
const SWITCH = optional(FLAG);
const NUMBER = keyword<number>(Number.isFinite, "a number");
const COUNT = keyword<number>((value) => Number.isInteger(value) && Number(value) >= 0,
  "a whole number");
const VALUE = keyword<unknown>(isJson, "a JSON value");
const VALUES = keyword<readonly unknown[]>((value) => isFilled(value) && isJson(value),
  "a list of JSON values");

/** The keywords of JSON Schema that are supported. */
export const KEYWORDS = authored({
  type: keyword<string | readonly string[]>(
    (value) => isFilled(value) ? value.every(isTypeName) && isSet(value) : isTypeName(value),
    `one or several of ${Object.keys(TYPES).join(", ")}`,
  ),
  enum: VALUES,
  const: VALUE,
  anyOf: keyword<readonly unknown[]>(isFilled, "a list of schemas"),
  properties: keyword<Members>(isPlainObject, "an object of schemas"),
  required: keyword<readonly string[]>((value) =>
    Array.isArray(value) && value.every((name) => typeof name === "string") && isSet(value),
    "a list of names, each once"),
  additionalProperties: keyword<unknown>((value) => typeof value === "boolean" || isRecord(value),
    "true, false or a schema"),
  items: keyword<unknown>(isRecord, "a schema"),
  minItems: COUNT,
  maxItems: COUNT,
  uniqueItems: SWITCH,
  minLength: COUNT,
  maxLength: COUNT,
  pattern: WORDS,
  format: optional(oneOf(...Object.keys(FORMATS))),
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: NUMBER,
  exclusiveMaximum: NUMBER,
  multipleOf: keyword<number>((value) => Number.isFinite(value) && Number(value) > 0,
    "a number above 0"),
  default: VALUE,
  title: WORDS,
  description: WORDS,
  examples: VALUES,
  deprecated: SWITCH,
});

export type Keywords = Infer<typeof KEYWORDS>;

function isFilled(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0;
}

/** Whether no name repeats (JSON Schema Validation §6.1.1, §6.5.3): validators refuse repeats. */
function isSet(values: readonly unknown[]): boolean {
  return new Set(values).size === values.length;
}

function isTypeName(value: unknown): boolean {
  return typeof value === "string" && Object.hasOwn(TYPES, value);
}
