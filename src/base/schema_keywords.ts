import { encodeJson } from "./json.ts";
import { nearest } from "./nearest.ts";
import { isTime } from "./time.ts";

/** The names of JSON's types, with what has each and what an error calls it. */
export const TYPES: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  string: [isText, "a string"],
  number: [Number.isFinite, "a number"],
  integer: [Number.isInteger, "an integer"],
  boolean: [isFlag, "true or false"],
  null: [(value) => value === null, "null"],
  array: [Array.isArray, "a list"],
  object: [isRecord, "an object"],
};

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const EMAIL = new RegExp(`^[\\w.!#$%&'*+/=?^\`{|}~-]{1,64}@${LABEL}(?:\\.${LABEL})*$`, "i");
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
/** RFC 3986 §2 and §3.1: a scheme, and ASCII alone. */
const URI = /^[a-z][a-z0-9+.-]*:[!#-;=?-[\]_a-z~]*$/i;

/** What a text of a format is, and what an error calls it. */
export const FORMATS: Readonly<Record<string, readonly [(text: string) => boolean, string]>> = {
  "date": [(text) => isTime(`${text}T00:00:00Z`), "a date as in 2030-01-31"],
  "date-time": [isTime, "a time as in 2030-01-31T12:00:00Z"],
  "email": [(text) => text.length <= 254 && EMAIL.test(text), "an email address"],
  "uri": [(text) => URI.test(text) && URL.canParse(text), "an absolute URI"],
  "uuid": [(text) => UUID.test(text), "a UUID"],
};

/** What a keyword's value must be, in words too. */
interface Rule<T> {
  readonly what: string;
  readonly isRight: (value: unknown) => boolean;
  /** For the type alone. */
  readonly value?: T;
}

function rule<T>(what: string, isRight: (value: unknown) => boolean): Rule<T> {
  return { what, isRight };
}

const TEXT = rule<string>("a string", isText);
const FLAG = rule<boolean>("true or false", isFlag);
const NUMBER = rule<number>("a number", Number.isFinite);
const COUNT = rule<number>("a whole number", (value) =>
  Number.isInteger(value) && Number(value) >= 0);
const VALUE = rule<unknown>("a JSON value", isJson);
const VALUES = rule<readonly unknown[]>("a list of JSON values", (value) =>
  isFilled(value) && isJson(value));

const RULES = {
  type: rule<string | readonly string[]>(
    `one or several of ${Object.keys(TYPES).join(", ")}`,
    (value) => isFilled(value) ? value.every(isTypeName) : isTypeName(value),
  ),
  enum: VALUES,
  const: VALUE,
  anyOf: rule<readonly unknown[]>("a list of schemas", isFilled),
  properties: rule<Readonly<Record<string, unknown>>>("an object of schemas", isRecord),
  required: rule<readonly string[]>("a list of names", (value) =>
    Array.isArray(value) && value.every(isText)),
  additionalProperties: rule<unknown>("true, false or a schema", (value) =>
    isFlag(value) || isRecord(value)),
  items: rule<unknown>("a schema", isRecord),
  minItems: COUNT,
  maxItems: COUNT,
  uniqueItems: FLAG,
  minLength: COUNT,
  maxLength: COUNT,
  pattern: TEXT,
  format: rule<string>(`one of ${Object.keys(FORMATS).join(", ")}`, (value) =>
    isText(value) && Object.hasOwn(FORMATS, value)),
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: NUMBER,
  exclusiveMaximum: NUMBER,
  multipleOf: rule<number>("a number above 0", (value) =>
    Number.isFinite(value) && Number(value) > 0),
  default: VALUE,
  title: TEXT,
  description: TEXT,
  examples: VALUES,
  deprecated: FLAG,
};

/** The keywords of a schema, each as its rule has it. */
export type Keywords = {
  readonly [K in keyof typeof RULES]?: (typeof RULES)[K] extends Rule<infer T> ? T : never;
};

const rules = new Map<string, Rule<unknown>>(Object.entries(RULES));

/** The keywords of a schema that are right; what is wrong with others is added to `reasons`. */
export function readKeywords(
  schema: Readonly<Record<string, unknown>>,
  where: string,
  reasons: string[],
): Keywords {
  const given = Object.entries(schema).filter(([name, value]) => {
    if (value === undefined) return false;
    const rule = rules.get(name);
    if (rule === undefined) {
      const near = nearest(name, [...rules.keys()]);
      const hint = near === undefined ? "" : `; did you mean "${near}"?`;
      reasons.push(`${where} has "${name}", which is not taken of JSON Schema${hint}`);
      return false;
    }
    const isRight = rule.isRight(value);
    if (!isRight) reasons.push(`${where}.${name} must be ${rule.what}`);
    return isRight;
  });
  return Object.fromEntries(given);
}

/** Whether a value is an object of JSON. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isFlag(value: unknown): boolean {
  return typeof value === "boolean";
}

function isFilled(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0;
}

function isTypeName(value: unknown): boolean {
  return isText(value) && Object.hasOwn(TYPES, value);
}

function isJson(value: unknown): boolean {
  try {
    return encodeJson(value) !== "";
  } catch {
    return false;
  }
}
