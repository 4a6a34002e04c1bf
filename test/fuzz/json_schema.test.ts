import assert from "node:assert/strict";
import { test } from "node:test";
import { toShape } from "../../src/base/json_schema.ts";
import { checkAccepted } from "../helpers/accepted.ts";
import { findErrors } from "../helpers/json_schema.ts";
import { openRandom, type Random } from "../helpers/random.ts";

const RUNS = 20_000;
const NAMES = ["a", "b", "__proto__", "toString", "a/b"];
const TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"];

test("a random schema accepts exactly the values that an independent validator accepts", (t) => {
  const random = openRandom(t);
  checkAccepted(t, { runs: RUNS, least: RUNS / 20 }, () => {
    const schema = randomSchema(random, 3);
    const value = randomValue(random, 3);
    const note = `${JSON.stringify(schema)} ${JSON.stringify(value)} (seed ${random.seed})`;
    const reasons: string[] = [];
    const shape = toShape(schema, (detail) => reasons.push(detail));
    assert.deepEqual(reasons, [], note);
    const errors: string[] = [];
    const parsed = shape.parse(value, (detail, pointer = "") => errors.push(pointer + detail));
    const expected = findErrors(schema, value, { resolve: () => undefined });
    assert.equal(errors.length === 0, expected.length === 0, `${note} ${errors.join()}`);
    if (errors.length > 0) return false;
    assert.deepEqual(parsed, value, note);
    return true;
  });
});

function randomSchema(random: Random, depth: number): Readonly<Record<string, unknown>> {
  const inner = () => randomSchema(random, depth - 1);
  const keywords: Readonly<Record<string, () => unknown>> = {
    type: () => random.chance(70) ? random.pick(TYPES)
      : [...new Set([random.pick(TYPES), random.pick(TYPES)])],
    enum: () => [random.pick(["a", 1, true, null]), random.pick(["ab", 2, false])],
    minLength: () => random.below(3),
    maxLength: () => random.below(3),
    pattern: () => random.pick(["^a", "^[ab]*$", "b"]),
    minimum: () => random.below(3),
    maximum: () => random.below(3),
    exclusiveMinimum: () => random.below(3),
    exclusiveMaximum: () => random.below(3),
    multipleOf: () => random.pick([0.5, 1, 2, 3]),
    uniqueItems: () => random.chance(70),
    const: () => random.pick(["a", 1, true, null]),
    minItems: () => random.below(2),
    maxItems: () => random.below(3),
    required: () => [random.pick(NAMES)],
    ...(depth > 0 && {
      anyOf: () => [inner(), inner()],
      items: inner,
      properties: () => Object.fromEntries([[random.pick(NAMES), inner()]]),
    }),
  };
  const names = Array.from({ length: random.below(4) }, () => random.pick(Object.keys(keywords)));
  const entries = names.map((name) => [name, keywords[name]?.()] as const);
  return Object.fromEntries(
    random.chance(20) ? [...entries, ["additionalProperties", random.chance(70) ? false : inner()]]
      : entries,
  );
}

function randomValue(random: Random, depth: number): unknown {
  const inner = () => randomValue(random, depth - 1);
  const kind = random.below(depth > 0 ? 8 : 5);
  if (kind < 5) return random.pick(["", "a", "ab", "😀", 0, 1, 2, 1.5, -1, true, false, null]);
  const values = Array.from({ length: random.below(3) }, inner);
  if (kind === 5) return values;
  return Object.fromEntries(values.map((value) => [random.pick(NAMES), value]));
}
