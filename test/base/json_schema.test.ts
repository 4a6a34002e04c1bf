import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { toShape } from "../../src/base/json_schema.ts";
import type { FieldError } from "../../src/base/problem.ts";
import { KEYWORDS } from "../../src/base/schema_keywords.ts";
import { parseShape, reportTo, type Shape } from "../../src/base/shape.ts";

/** Makes own members with the names of a prototype's. */
const own = (text: string): Record<string, unknown> => JSON.parse(text);

function shapeOf(schema: unknown): Shape<unknown> {
  const reasons: string[] = [];
  const shape = toShape(schema, (detail) => reasons.push(detail));
  assert.deepEqual(reasons, []);
  return shape;
}

function errorsOf(schema: unknown, value: unknown): string[] {
  const errors: FieldError[] = [];
  shapeOf(schema).parse(value, reportTo(errors));
  return errors.map(({ pointer, detail }) => `${pointer} ${detail}`);
}

const PERSON = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name"],
};

describe("a schema accepts", () => {
  const rows: [schema: unknown, value: unknown][] = [
    [{}, null], [{ type: "null" }, null], [{ type: ["string", "null"] }, null],
    [{ type: "integer" }, 1.0], [{ type: "number" }, -1.5], [{ type: "boolean" }, false],
    [{ minLength: 9, minimum: 9, minItems: 9, required: ["a"] }, true],
    [{ type: "string", minLength: 2, maxLength: 2 }, "😀é"], [{ minLength: 0 }, ""],
    [{ type: "string", maxLength: 3 }, "😀😀😀"], [{ pattern: "^.$" }, "😀"],
    [{ enum: ["a", 1, null, { b: 1, a: [2] }] }, { a: [2], b: 1 }], [{ const: 0 }, -0],
    [{ minimum: 1, maximum: 1 }, 1], [{ multipleOf: 0.01 }, 19.99], [{ multipleOf: 3 }, -9],
    [{ multipleOf: 0.07 }, 2.03], [{ multipleOf: 0.5 }, 1e308],
    [{ items: { type: "string" }, uniqueItems: true }, ["1", "2"]],
    [{ uniqueItems: true }, [1, "1", true, "true", null, "null", [1], "[1]", { a: 1 }, { a: 2 }]],
    [{ minItems: 1, maxItems: 1 }, [1]],
    [PERSON, { name: "Ada", more: [1] }], [{ required: ["toString"] }, { toString: 1 }],
    [{ properties: { constructor: { type: "string" } } }, {}],
    [{ anyOf: [{ type: "string" }, { minimum: 3 }] }, 3],
    [{ additionalProperties: { type: "integer" } }, { a: 1, b: 2 }],
    [{ format: "date" }, "2028-02-29"], [{ format: "date-time" }, "2030-01-31T12:00:00.5+02:00"],
    [{ format: "email" }, "ada+l@mail.example.com"], [{ format: "uri" }, "https://é.example"
      .replace("é", "%C3%A9")], [{ format: "uri" }, "urn:isbn:0451450523"],
    [{ format: "uuid" }, "123E4567-e89b-12d3-a456-426614174000"],
  ];
  for (const [schema, value] of rows) {
    test(`${JSON.stringify(value)} for ${JSON.stringify(schema)}`, () => {
      assert.deepEqual(errorsOf(schema, value), []);
      assert.deepEqual(parseShape(shapeOf(schema), value, "body"), value);
    });
  }
});

describe("a schema refuses", () => {
  const rows: [schema: unknown, value: unknown, errors: string[]][] = [
    [{}, undefined, [" Is required."]],
    [{ type: "string" }, 1, [" Must be a string."]],
    [{ type: "integer" }, "1", [" Must be an integer."]],
    [{ type: "integer" }, 1.5, [" Must be an integer."]],
    [{ type: "number" }, Infinity, [" Must be a number."]],
    [{ type: ["boolean", "null"] }, 0, [" Must be true or false or null."]],
    [{ type: "object" }, [], [" Must be an object."]],
    [{ type: "array" }, {}, [" Must be a list."]],
    [{ minLength: 2 }, "😀", [" Must have at least 2 characters."]],
    [{ maxLength: 2 }, "abc", [" Must have at most 2 characters."]],
    [{ maxLength: 2 }, "abcdef", [" Must have at most 2 characters."]],
    [{ pattern: "^a+$" }, "ab", [" Must match the pattern ^a+$"]],
    [{ enum: ["a", 1, null] }, "b", [" Must be one of: a, 1, null."]],
    [{ const: { a: 1 } }, { a: 2 }, [' Must be one of: {"a":1}.']],
    [{ minimum: 1, multipleOf: 2 }, -1, [" Must be at least 1.", " Must be a multiple of 2."]],
    [{ maximum: 1, exclusiveMaximum: 1 }, 2, [" Must be at most 1.", " Must be less than 1."]],
    [{ exclusiveMinimum: 1 }, 1, [" Must be more than 1."]],
    [{ multipleOf: 2 }, 2 ** 53 - 1, [" Must be a multiple of 2."]],
    [{ minItems: 1 }, [], [" Must have at least 1 items."]],
    [{ maxItems: 1, items: { type: "null" } }, [1, 2], [" Must have at most 1 items."]],
    [{ uniqueItems: true }, [{ a: 1, b: 2 }, 1, { b: 2, a: 1 }], ["/2 Must be unique."]],
    [{ items: PERSON }, [{ name: 1 }, {}, { name: "x", age: 0.5 }], [
      "/0/name Must be a string.", "/1/name Is required.", "/2/age Must be an integer.",
    ]],
    [{ ...PERSON, additionalProperties: false }, { name: "x", "a/b~": 1, toString: 1 }, [
      "/a~1b~0 Unknown member.", "/toString Unknown member.",
    ]],
    [{ additionalProperties: { type: "string" } }, { a: 1 }, ["/a Must be a string."]],
    [{ required: ["b"], additionalProperties: false }, { b: 1 }, ["/b Unknown member."]],
    [PERSON, { name: undefined }, ["/name Is required."]],
    [{ required: ["b"], additionalProperties: { default: 1 } }, {}, ["/b Is required."]],
    [{ required: ["toString"] }, {}, ["/toString Is required."]],
    [own('{"properties": {"__proto__": {"type": "string"}}}'), own('{"__proto__": 1}'), [
      "/__proto__ Must be a string.",
    ]],
    [{ additionalProperties: false }, own('{"__proto__": 1}'), ["/__proto__ Unknown member."]],
    [{ anyOf: [PERSON, { type: "null" }] }, { age: "x" }, [
      "/name Is required.", "/age Must be an integer.",
    ]],
    [{ anyOf: [PERSON, { type: "object", required: ["x"] }] }, {}, [
      " Must fit one of 2 alternatives.",
    ]],
    [{ format: "date" }, "2027-02-29", [" Must be a date as in 2030-01-31."]],
    [{ format: "date-time" }, "2030-01-31 12:00", [" Must be a time as in 2030-01-31T12:00:00Z."]],
    [{ format: "email" }, "ada@@example", [" Must be an email address."]],
    [{ format: "email" }, "a b@example", [" Must be an email address."]],
    [{ format: "uri" }, "/orders", [" Must be an absolute URI."]],
    [{ format: "uri" }, "https://a b", [" Must be an absolute URI."]],
    [{ format: "uuid" }, "123e4567", [" Must be a UUID."]],
  ];
  for (const [schema, value, errors] of rows) {
    test(`${JSON.stringify(value)} for ${JSON.stringify(schema)}`, () => {
      assert.deepEqual(errorsOf(schema, value), errors);
    });
  }
});

test("missing members get a copy of their default at any depth; the input is unchanged", () => {
  const shape = shapeOf({
    type: "object",
    properties: {
      list: { default: [] },
      flag: { type: "boolean", default: false },
      nothing: { default: null },
      inner: { type: "object", properties: { n: { default: 1 } }, default: {} },
      given: { type: "object", properties: { n: { default: 2 } } },
      items: { items: { type: "object", properties: { n: { default: 3 } } } },
    },
    required: ["flag"],
  });
  const value = { given: {}, items: [{}, { n: 0 }], more: 1 };
  const parsed = parseShape(shape, value, "body");
  assert.deepEqual(parsed, {
    list: [], flag: false, nothing: null, inner: { n: 1 }, given: { n: 2 },
    items: [{ n: 3 }, { n: 0 }], more: 1,
  });
  assert.deepEqual(value, { given: {}, items: [{}, { n: 0 }], more: 1 });
  const again = parseShape(shape, value, "body") as typeof parsed;
  assert.notEqual(Reflect.get(Object(again), "list"), Reflect.get(Object(parsed), "list"));
});

test("multipleOf accepts every multiple of a decimal", () => {
  const values = Array.from({ length: 20_000 }, (_, index) => Number((index * 0.07).toFixed(2)));
  assert.deepEqual(errorsOf({ items: { multipleOf: 0.07 } }, values), []);
  assert.deepEqual(errorsOf({ multipleOf: 0.07 }, 2.031), [" Must be a multiple of 0.07."]);
});

test("uniqueItems compares the items without their defaults", () => {
  const items = { type: "object", properties: { n: { default: 1 } } };
  assert.deepEqual(errorsOf({ items, uniqueItems: true }, [{}, { n: 1 }]), []);
});

test("the default of a member __proto__ and those of a matching alternative are applied", () => {
  const proto = own('{"properties": {"__proto__": {"default": {"a": 1}}}}');
  const parsed = parseShape(shapeOf(proto), { b: 1 }, "body");
  assert.deepEqual(Object.entries(Object(parsed)), [["b", 1], ["__proto__", { a: 1 }]]);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
  const anyOf = [{ type: "null" }, { type: "object", properties: { n: { default: 1 } } }];
  assert.deepEqual(parseShape(shapeOf({ anyOf }), {}, "body"), { n: 1 });
});

test("the schema for documents is the one that was given", () => {
  const schema = { type: "string", title: "T", examples: ["x"], deprecated: true };
  assert.equal(shapeOf(schema).schema, schema);
});

test("all errors of a schema are reported at once, each with its pointer", () => {
  const recursive: Record<string, unknown> = { type: "object" };
  recursive["properties"] = { child: recursive };
  let deep: unknown = {};
  for (let depth = 0; depth < 40; depth++) deep = { items: deep };
  const library = new class ZodString {
    readonly def = { type: "string" };
  }();
  const cases: [schema: unknown, reasons: RegExp[]][] = [
    [true, [/^ Must be a JSON Schema or a Standard Schema\.$/]],
    [[], [/^ Must be/]],
    [library, [/^ Must be a JSON Schema or a Standard Schema\.$/]],
    [{ properties: { a: library }, items: { anyOf: [true] } }, [
      /^\/items\/anyOf\/0 Must be a JSON Schema; only the whole may be a Standard Schema\.$/,
      /^\/properties\/a Must be a JSON Schema; only the whole/,
    ]],
    [{ typ: "string" }, [/^\/typ Unknown member\.$/]],
    [{ $ref: "#/a" }, [/^\/\$ref Unknown member\.$/]],
    [own('{"__proto__": 1, "constructor": 1}'), [/^\/__proto__ /, /^\/constructor /]],
    [{ type: "text" }, [/^\/type Must be one or several of string, number/]],
    [{ type: [] }, [/^\/type Must be/]],
    [{ type: ["null", "null"], required: ["a", "b", "a"] }, [
      /^\/type Must be/,
      /^\/required Must be a list of names, each once\.$/,
    ]],
    [{ type: "constructor" }, [/^\/type Must be/]],
    [{ minLength: -1, maximum: "1", multipleOf: 0 }, [/minLength/, /maximum/, /multipleOf/]],
    [{ enum: [], const: () => 1, required: "a", format: "ip" }, [/enum/, /const/, /requir/, /f/]],
    [{ properties: { a: { items: { anyOf: [{ x: 1 }] } }, b: 1 } }, [
      /^\/properties\/a\/items\/anyOf\/0\/x Unknown member/,
      /^\/properties\/b Must be/,
    ]],
    [{ additionalProperties: { x: 1 }, title: 1 }, [/^\/title/, /^\/additionalProperties\/x Unk/]],
    [{ pattern: "(", items: { pattern: "^(a+)+$" } }, [/^\/pattern Must/, /^\/items\/pattern C/]],
    [{ pattern: "^.*x$" }, [/^\/pattern Could take long/]],
    [{ type: "object", properties: { a: { type: "integer", default: "1" } } }, [
      /^\/properties\/a\/default Must be an integer\.$/,
    ]],
    [{ default: { a: [1] }, properties: { a: { items: { type: "null" } } } }, [
      /^\/default\/a\/0 Must be null\.$/,
    ]],
    [recursive, [/^\/properties\/child Contains itself/]],
    [deep, [/^(\/items){32} Is deeper than 32 schemas\.$/]],
  ];
  for (const [schema, expected] of cases) {
    const reasons: string[] = [];
    toShape(schema, (detail, pointer = "") => reasons.push(`${pointer} ${detail}`));
    assert.equal(reasons.length, expected.length, reasons.join("\n"));
    expected.forEach((reason, index) => assert.match(reasons[index] ?? "", reason));
  }
});

test("validation stops reading the value after 100 errors", () => {
  let looks = 0;
  const members = { get a() { looks++; return 1; } };
  const schema = { items: { type: "object", properties: { a: { type: "string" } } } };
  assert.equal(errorsOf(schema, Array.from({ length: 100_000 }, () => members)).length, 100);
  assert.ok(looks <= 200, String(looks));
});

test("the keywords equal those of the type JsonSchema and of the handbook", () => {
  const read = (path: string) =>
    readFileSync(join(import.meta.dirname, "../../src", path), "utf8");
  const [, members = ""] = /interface JsonSchema \{(.*?)^\}/ms.exec(read("mod/schema.ts")) ?? [];
  const typed = [...members.matchAll(/^  readonly (\w+)\?/gm)].map(([, name]) => name);
  const [table = ""] = /^\| any value .*?^$/ms.exec(read("hosting/README.md")) ?? [];
  const listed = [...table.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const names = Object.keys(KEYWORDS.members).sort();
  assert.deepEqual([typed.sort(), listed.sort()], [names, names]);
});
