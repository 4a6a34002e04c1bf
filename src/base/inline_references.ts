import { isRecord, type Schema } from "./shape.ts";

/** How many parts an inlined schema may have: each definition may be copied many times. */
const MAX_PARTS = 10_000;

/**
 * Returns a JSON Schema with each reference replaced by its target: in a document of many schemas
 * it would lead elsewhere. A reference to a schema that contains it becomes `{}`, which accepts
 * anything. Throws RangeError for too large a result, TypeError for a missing target.
 */
export function inlineReferences({ $defs, ...root }: Schema): Schema {
  let parts = 0;

  function inlineIn(schema: Schema, above: readonly string[]): Schema {
    return Object.fromEntries(
      Object.entries(schema).map(([name, value]) => [name, inline(value, above)]),
    );
  }

  function inline(value: unknown, above: readonly string[]): unknown {
    if (++parts > MAX_PARTS) throw new RangeError("The schema is too large.");
    if (Array.isArray(value)) return value.map((each) => inline(each, above));
    if (!isRecord(value)) return value;
    const { $ref: reference, ...own } = value;
    if (typeof reference !== "string") return inlineIn(value, above);
    if (above.includes(reference)) return {};
    const target = inline(find({ ...root, $defs }, reference), [...above, reference]);
    return { ...Object(target), ...inlineIn(own, above) };
  }

  return Object(inline(root, ["#"]));
}

/** Finds the target of a reference: a JSON Pointer as a fragment (RFC 6901 §6). */
function find(root: Schema, reference: string): Schema {
  const [start, ...steps] = decodeURIComponent(reference).split("/");
  const found = steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((at, step) => isRecord(at) ? at[step] : undefined, root);
  if (start !== "#" || !isRecord(found)) throw new TypeError(`There is no ${reference}.`);
  return found;
}
