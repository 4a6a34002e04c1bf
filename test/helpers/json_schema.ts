import { isDeepStrictEqual } from "node:util";

/** A validator for tests, of the part of JSON Schema 2020-12 that this project's documents use. */
export type SchemaObject = Readonly<Record<string, unknown>>;

/** Returns the target of a local reference such as "#/components/schemas/App". */
export type Resolve = (reference: string) => unknown;

interface CheckOptions {
  readonly resolve: Resolve;
  /** Whether members that no schema declares are errors. */
  readonly strict?: boolean;
}

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

const FORMATS = ["date", "date-time", "email", "uri", "uuid", "password"];

/** The kind of value of each keyword; any other keyword is an error. */
const KEYWORDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  $ref: isText,
  type: (value) => [value].flat().every((name) => TYPES.includes(String(name))),
  properties: isRecord,
  required: (value) => Array.isArray(value) && value.every(isText) && isUnique(value),
  additionalProperties: (value) => typeof value === "boolean" || isRecord(value),
  items: isRecord,
  enum: (value) => Array.isArray(value) && value.length > 0 && isUnique(value),
  const: () => true,
  anyOf: isSchemaList,
  allOf: isSchemaList,
  oneOf: isSchemaList,
  pattern: (value) => isText(value) && compiles(value),
  format: (value) => FORMATS.includes(String(value)),
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: isNumber,
  not: isRecord,
  maxItems: isCount,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  default: () => true,
  description: isText,
  title: isText,
  examples: Array.isArray,
  deprecated: (value) => typeof value === "boolean",
  uniqueItems: (value) => typeof value === "boolean",
};

/** Returns all errors of a schema itself, with the place of each. */
export function findSchemaErrors(schema: unknown, resolve: Resolve, at: string): string[] {
  if (!isRecord(schema)) return [`${at} is no schema`];
  const errors = Object.entries(schema).flatMap(([keyword, value]) =>
    KEYWORDS[keyword]?.(value) ? [] : [`${at}/${keyword} is not known, or not of its kind`]
  );
  if (isText(schema["$ref"]) && resolve(schema["$ref"]) === undefined) {
    errors.push(`${at}/$ref leads nowhere: ${schema["$ref"]}`);
  }
  if (Object.hasOwn(schema, "default")) {
    errors.push(...findErrors(schema, schema["default"], { resolve }, `${at}/default`));
  }
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  for (const name of listOf(schema["required"])) {
    if (!Object.hasOwn(properties, String(name))) errors.push(`${at} requires ${String(name)}`);
  }
  const inner = [
    ...Object.entries(properties).map(([name, each]) => [`properties/${name}`, each]),
    ...["items", "additionalProperties"].map((name) => [name, schema[name]])
      .filter(([, each]) => isRecord(each)),
    ...["anyOf", "allOf", "oneOf"].flatMap((name) =>
      listOf(schema[name]).map((each, index) => [`${name}/${index}`, each])
    ),
  ];
  return [
    ...errors,
    ...inner.flatMap(([name, each]) => findSchemaErrors(each, resolve, `${at}/${String(name)}`)),
  ];
}

/** Returns all errors of a value against a schema. */
export function findErrors(
  schema: SchemaObject,
  value: unknown,
  options: CheckOptions,
  at = "",
): string[] {
  const errors = findOwnErrors(schema, value, options, at);
  if (options.strict !== true) return errors;
  return [...errors, ...findUndeclared(schema, value, options, at)];
}

function findOwnErrors(
  schema: SchemaObject,
  value: unknown,
  options: CheckOptions,
  at: string,
): string[] {
  const inner = (each: unknown, part: unknown, where: string) =>
    findOwnErrors(isRecord(each) ? each : {}, part, options, where);
  const errors: string[] = [];
  const report = (keyword: string) =>
    void errors.push(`${at || "/"} breaks ${keyword}: ${show(value)}`);

  if (isText(schema["$ref"])) errors.push(...inner(options.resolve(schema["$ref"]), value, at));
  for (const each of listOf(schema["allOf"])) errors.push(...inner(each, value, at));
  for (const keyword of ["anyOf", "oneOf"]) {
    const choices = listOf(schema[keyword]);
    const fitting = choices.filter((each) => inner(each, value, at).length === 0).length;
    const isBroken = keyword === "anyOf" ? fitting === 0 : fitting !== 1;
    if (choices.length > 0 && isBroken) report(keyword);
  }
  const types = [schema["type"] ?? []].flat();
  if (types.length > 0 && !types.some((type) => hasType(value, String(type)))) report("type");
  if (schema["enum"] !== undefined && !listOf(schema["enum"]).includes(value)) report("enum");
  if (Object.hasOwn(schema, "const") && schema["const"] !== value) report("const");
  if (isRecord(schema["not"]) && inner(schema["not"], value, at).length === 0) report("not");
  if (typeof value === "string") {
    const { pattern } = schema;
    if (isText(pattern) && !new RegExp(pattern, "u").test(value)) report("pattern");
    const { length } = [...value]; // JSON Schema counts characters, not code units
    if (length < numberOf(schema["minLength"], 0)) report("minLength");
    if (length > numberOf(schema["maxLength"], Infinity)) report("maxLength");
    if (!hasFormat(value, schema["format"])) report("format");
  }
  if (typeof value === "number") {
    if (value < numberOf(schema["minimum"], -Infinity)) report("minimum");
    if (value > numberOf(schema["maximum"], Infinity)) report("maximum");
    if (value <= numberOf(schema["exclusiveMinimum"], -Infinity)) report("exclusiveMinimum");
    if (value >= numberOf(schema["exclusiveMaximum"], Infinity)) report("exclusiveMaximum");
    const factor = value / numberOf(schema["multipleOf"], value || 1);
    if (!Number.isInteger(factor)) report("multipleOf");
  }
  if (Array.isArray(value)) {
    const isRepeated = (each: unknown, index: number) =>
      value.slice(0, index).some((other) => isDeepStrictEqual(each, other));
    if (value.length > numberOf(schema["maxItems"], Infinity)) report("maxItems");
    if (value.length < numberOf(schema["minItems"], 0)) report("minItems");
    if (schema["uniqueItems"] === true && value.some(isRepeated)) report("uniqueItems");
    value.forEach((each, index) => errors.push(...inner(schema["items"], each, `${at}/${index}`)));
  }
  if (isRecord(value)) {
    const members = Object.keys(value);
    if (members.length < numberOf(schema["minProperties"], 0)) report("minProperties");
    if (members.length > numberOf(schema["maxProperties"], Infinity)) report("maxProperties");
    for (const name of listOf(schema["required"])) {
      if (!Object.hasOwn(value, String(name))) errors.push(`${at}/${String(name)} is missing`);
    }
    const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
    for (const [name, each] of Object.entries(value)) {
      if (Object.hasOwn(properties, name)) {
        errors.push(...inner(properties[name], each, `${at}/${name}`));
      } else if (schema["additionalProperties"] === false) {
        errors.push(`${at}/${name} is not allowed`);
      } else {
        errors.push(...inner(schema["additionalProperties"], each, `${at}/${name}`));
      }
    }
  }
  return errors;
}

/** Finds members, at any depth, that no schema which applies to their object declares. */
function findUndeclared(
  schema: SchemaObject,
  value: unknown,
  options: CheckOptions,
  at: string,
): string[] {
  const applied = collectApplied(schema, value, options);
  if (Array.isArray(value)) {
    const items = applied.map((each) => each["items"]).find(isRecord);
    return items === undefined
      ? []
      : value.flatMap((each, index) => findUndeclared(items, each, options, `${at}/${index}`));
  }
  const declared = applied.map((each) => each["properties"]).filter(isRecord);
  if (!isRecord(value) || declared.length === 0) return [];
  return Object.entries(value).flatMap(([name, each]) => {
    const found = declared.map((properties) => properties[name]).find(isRecord);
    return found === undefined
      ? [`${at}/${name} is not declared`]
      : findUndeclared(found, each, options, `${at}/${name}`);
  });
}

/** A schema with all schemas that it refers to or combines, as far as they apply to the value. */
function collectApplied(
  schema: SchemaObject,
  value: unknown,
  options: CheckOptions,
): SchemaObject[] {
  const referred = isText(schema["$ref"]) ? [options.resolve(schema["$ref"])] : [];
  const chosen = ["anyOf", "oneOf"].flatMap((name) => listOf(schema[name])).filter((each) =>
    isRecord(each) && findOwnErrors(each, value, options, "").length === 0
  );
  const parts = [...referred, ...listOf(schema["allOf"]), ...chosen].filter(isRecord);
  return [schema, ...parts.flatMap((part) => collectApplied(part, value, options))];
}

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isRecord(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function hasFormat(value: string, format: unknown): boolean {
  switch (format) {
    case "date-time":
      return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value);
    case "uri": // RFC 3986 §2: ASCII alone
      return /^[!#-;=?-[\]_a-z~]+$/i.test(value) && URL.canParse(value);
    default:
      return true;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isNumber(value: unknown): boolean {
  return typeof value === "number";
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0;
}

function isSchemaList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isRecord);
}

function isUnique(values: readonly unknown[]): boolean {
  return new Set(values).size === values.length;
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function show(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 100);
}
