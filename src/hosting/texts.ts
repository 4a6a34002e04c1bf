import { below, isRecord, type Report, type Shape } from "../base/shape.ts";
import { standardOf } from "../base/standard_schema.ts";

/** Names with their values, as a path, a query or a form has them. */
export type Texts = Iterable<readonly [name: string, value: string]>;

/** A number as JSON has it (RFC 8259 §6). */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * The shape of texts (see {@link Texts}) whose members are numbers, booleans and arrays where their
 * JSON Schema says so, and texts elsewhere. A library's schema gets texts, and arrays of those that
 * are repeated: it knows itself what to make of them.
 */
export function ofTexts(shape: Shape<unknown>, source: unknown): Shape<unknown> {
  const isStandard = standardOf(source) !== undefined;
  const { properties, additionalProperties } = shape.schema;
  const schemaOf = (name: string): unknown =>
    isRecord(properties) && Object.hasOwn(properties, name)
      ? properties[name]
      : additionalProperties;
  return {
    ...shape,
    parse(value, report) {
      const byName = Map.groupBy(value as Texts, ([name]) => name);
      const entries = [...byName].map(([name, pairs]) => {
        const values = pairs.map(([, text]) => text);
        if (isStandard) return [name, values.length === 1 ? values[0] : values];
        return [name, fromTexts(schemaOf(name), values, below(report, name))];
      });
      return shape.parse(Object.fromEntries(entries), report);
    },
  };
}

function fromTexts(schema: unknown, values: readonly string[], report: Report): unknown {
  const types = typesOf(schema);
  if (types.includes("array")) {
    const items = typesOf(isRecord(schema) ? schema["items"] : undefined);
    return values.map((text) => fromText(items, text));
  }
  if (values.length > 1) {
    if (types.length === 0) return values;
    report("Must be given once.");
  }
  return fromText(types, values[0] ?? "");
}

/** A text that is nothing of these types stays one, for the schema to refuse. */
function fromText(types: readonly string[], text: string): unknown {
  if (types.includes("string")) return text;
  if (types.includes("boolean") && (text === "true" || text === "false")) return text === "true";
  const isNumber = types.some((type) => type === "number" || type === "integer") &&
    NUMBER.test(text) && (!/^-?\d+$/.test(text) || Number.isSafeInteger(Number(text)));
  return isNumber ? Number(text) : text;
}

/** The types that a schema names, or that its values have; none where it takes any. */
function typesOf(schema: unknown): readonly string[] {
  if (!isRecord(schema)) return [];
  const { type, anyOf, enum: words } = schema;
  if (type !== undefined) return [type].flat().map(String);
  if (Array.isArray(anyOf)) return anyOf.flatMap(typesOf);
  return [words ?? schema["const"] ?? []].flat().map((value) => typeof value);
}
