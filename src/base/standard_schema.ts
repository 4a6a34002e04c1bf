import { inlineReferences } from "./inline_references.ts";
import type { Members } from "./plain_object.ts";
import { isRecord, LIST_LIMIT, pointerTo, type Report, type Schema, type Shape } from "./shape.ts";

/** Returns the `~standard` of a Standard Schema v1 (a function may be one), else undefined. */
export function standardOf(schema: unknown): Members | undefined {
  if (typeof schema !== "function" && !isRecord(schema)) return undefined;
  const standard: unknown = Reflect.get(schema, "~standard");
  const isStandard = isRecord(standard) && standard["version"] === 1 &&
    typeof standard["validate"] === "function";
  return isStandard ? standard : undefined;
}

/**
 * Makes a shape of a Standard Schema (https://standardschema.dev). Its `parse` may return a
 * promise, and throws what the library throws. Documents show the JSON Schema of its `side`, or
 * `{}` where the library has none.
 */
export function fromStandard(standard: Members, side: "input" | "output"): Shape<unknown> {
  const take = (result: unknown, report: Report): unknown => {
    const { issues: found, value } = Object(result); // ArkType's result is the array of issues
    if (found === undefined && !("value" in Object(result))) {
      throw new TypeError("A schema's validate() returned no result.");
    }
    if (found === undefined) return value;
    const issues = [found].flat().filter(isRecord);
    for (const { message, path } of issues.slice(0, LIST_LIMIT)) {
      report(String(message), pointerTo([path ?? []].flat().map(keyOf)));
    }
    if (issues.length === 0) report("Is not valid.");
    return undefined;
  };
  return {
    schema: documentOf(standard["jsonSchema"], side),
    definitions: {},
    parse(value, report) {
      const result = call(standard, "validate", value);
      return typeof Object(result).then === "function"
        ? Promise.resolve(result).then((each) => take(each, report))
        : take(result, report);
    },
  };
}

function call(object: Members, name: string, given: unknown): unknown {
  return Reflect.apply(object[name] as () => unknown, object, [given]);
}

function documentOf(converters: unknown, side: "input" | "output"): Schema {
  try {
    const target = "draft-2020-12";
    const whole = isRecord(converters) ? call(converters, side, { target }) : {};
    const { $schema: _dialect, ...schema } = isRecord(whole) ? whole : {};
    return inlineReferences(schema);
  } catch {
    return {}; // the schema has what JSON Schema cannot express, or is too large
  }
}

/** Returns the name in a step of an issue's path: the step itself, or its `key`. */
function keyOf(step: unknown): PropertyKey {
  return isRecord(step) ? String(step["key"]) : String(step);
}
