import assert from "node:assert/strict";
import { test } from "node:test";
import { findErrors, findSchemaErrors } from "./json_schema.ts";

const schemas: Readonly<Record<string, unknown>> = {
  "#/a": { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
};
const resolve = (reference: string) => schemas[reference];

// a schema, a valid value, an invalid value
const CASES: readonly [schema: Record<string, unknown>, good: unknown, bad: unknown][] = [
  [{ type: "string" }, "a", 1],
  [{ type: "integer" }, 1, 1.5],
  [{ type: "number" }, 1.5, "1"],
  [{ type: "boolean" }, false, 0],
  [{ type: "null" }, null, 0],
  [{ type: "array", items: { type: "string" } }, ["a"], [1]],
  [{ type: "object" }, {}, []],
  [{ type: ["string", "null"] }, null, 1],
  [{ $ref: "#/a" }, { id: "1" }, {}],
  [{ properties: { a: { type: "string" } }, required: ["a"] }, { a: "" }, {}],
  [{ properties: { a: {} }, additionalProperties: false }, { a: 1 }, { b: 1 }],
  [{ enum: ["a", "b"] }, "b", "c"],
  [{ const: 1 }, 1, 2],
  [{ anyOf: [{ type: "string" }, { type: "null" }] }, null, 1],
  [{ oneOf: [{ type: "number" }, { type: "integer" }] }, 1.5, 1],
  [{ allOf: [{ minLength: 2 }, { maxLength: 3 }] }, "abc", "abcd"],
  [{ pattern: "^a" }, "ab", "ba"],
  [{ not: { pattern: "^a" } }, "ba", "ab"],
  [{ maxItems: 1 }, [1], [1, 2]],
  [{ maxLength: 1 }, "\u{1f600}", "ab"],
  [{ minimum: 1, maximum: 2 }, 2, 3],
  [{ exclusiveMinimum: 1 }, 2, 1],
  [{ exclusiveMaximum: 2 }, 1, 2],
  [{ multipleOf: 0.5 }, 1.5, 0.7],
  [{ minItems: 1 }, [1], []],
  [{ uniqueItems: true }, [{ a: 1 }, { a: 2 }], [{ a: 1 }, { a: 1 }]],
  [{ additionalProperties: { type: "string" } }, { a: "" }, { a: 1 }],
  [{ minProperties: 1 }, { a: 1 }, {}],
  [{ maxProperties: 0 }, {}, { a: 1 }],
  [{ format: "date-time" }, "2030-01-31T12:00:00.000Z", "2030-01-31"],
  [{ format: "uri" }, "https://a.example/", "a"],
  [{ format: "uri" }, "https://xn--mnchen-3ya.example/", "https://münchen.example/"],
];

for (const [schema, good, bad] of CASES) {
  test(`findErrors() tells valid from invalid values of ${JSON.stringify(schema)}`, () => {
    assert.deepEqual(findSchemaErrors(schema, resolve, "#"), []);
    assert.deepEqual(findErrors(schema, good, { resolve }), []);
    assert.equal(findErrors(schema, bad, { resolve }).length > 0, true);
  });
}

test("findErrors() finds undeclared members at any depth when it is strict", () => {
  const list = { type: "array", items: { $ref: "#/a" } };
  const schema = { allOf: [{ $ref: "#/a" }, { properties: { list } }] };
  const value = { id: "1", list: [{ id: "2", more: 1 }] };
  assert.deepEqual(findErrors(schema, value, { resolve }), []);
  assert.deepEqual(findErrors(schema, value, { resolve, strict: true }), [
    "/list/0/more is not declared",
  ]);
});

const BAD_SCHEMAS: readonly Record<string, unknown>[] = [
  { type: "text" },
  { propertees: {} },
  { type: "integer", default: "1" },
  { $ref: "#/nowhere" },
  { properties: { a: {} }, required: ["b"] },
  { pattern: "(" },
  { enum: [] },
  { items: { type: "x" } },
  { anyOf: [] },
  { format: "hostname" },
  { minLength: -1 },
];

for (const schema of BAD_SCHEMAS) {
  test(`findSchemaErrors() refuses ${JSON.stringify(schema)}`, () => {
    assert.equal(findSchemaErrors(schema, resolve, "#").length, 1);
  });
}
