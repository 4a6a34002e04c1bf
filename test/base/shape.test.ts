import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseJson } from "../../src/base/json.ts";
import { Problem } from "../../src/base/problem.ts";
import {
  ANYTHING,
  COUNT,
  described,
  FLAG,
  listOf,
  manyOf,
  matching,
  named,
  nullable,
  object,
  oneOf,
  optional,
  parseShape,
  record,
  refined,
  type Shape,
  shown,
  TEXT,
  text,
  withChange,
  withMembers,
} from "../../src/base/shape.ts";
import { pointersOf } from "../helpers/problem.ts";

const SHORT = text((value) => value.length <= 3 ? undefined : "Is too long.", { maxLength: 3 });
const HUNDRED = Array.from({ length: 100 }, (_, index) => String(index));
const SWITCH = oneOf("on", "off");

/** A value with the result of its parsing, or with the pointers of its errors. */
type Row = [what: string, shape: Shape<unknown>, value: unknown, parsed: unknown];
type BadRow = [what: string, shape: Shape<unknown>, value: unknown, pointers: readonly string[]];

describe("a shape parses", () => {
  const rows: Row[] = [
    ["a text", TEXT, "x", "x"],
    ["an empty text as a text", TEXT, "", ""],
    ["half of a surrogate pair in a text without a check", TEXT, "a\ud83d", "a\ud83d"],
    ["a text that passes its check", SHORT, "abc", "abc"],
    ["a text that matches the pattern", matching(/^a+$/, "Must be a."), "aa", "aa"],
    ["one of several words", SWITCH, "on", "on"],
    ["true", FLAG, true, true],
    ["false", FLAG, false, false],
    ["any value", ANYTHING, { b: [1, null] }, { b: [1, null] }],
    ["null where anything is allowed", ANYTHING, null, null],
    ["a list", listOf(SHORT), ["x", "y"], ["x", "y"]],
    ["an empty list", listOf(SHORT), [], []],
    ["a repeated item once", listOf(SHORT), ["y", "x", "y"], ["y", "x"]],
    ["100 items", listOf(TEXT), HUNDRED, HUNDRED],
    ["null for a nullable shape", nullable(SHORT), null, null],
    ["a value for a nullable shape", nullable(SHORT), "x", "x"],
    ["an object without members", object({}), {}, {}],
    ["the members of an object", object({ a: TEXT, b: FLAG }), { a: "x", b: true },
      { a: "x", b: true }],
    ["objects in objects", object({ a: object({ b: listOf(TEXT) }) }), { a: { b: ["x"] } },
      { a: { b: ["x"] } }],
    ["a record without its unknown members", record({ a: TEXT }), { a: "x", b: 1 }, { a: "x" }],
    ["no inherited member", record({ toString: optional(TEXT) }), {}, {}],
    ["an optional member that is given", object({ a: optional(SHORT) }), { a: "x" }, { a: "x" }],
    ["an optional member that is missing", object({ a: optional(SHORT) }), {}, {}],
    ["a default", object({ a: optional(SHORT, "y") }), {}, { a: "y" }],
    ["a default that is false or empty", object({
      a: optional(FLAG, false),
      b: optional(TEXT, ""),
      c: optional(listOf(TEXT), []),
    }), {}, { a: false, b: "", c: [] }],
    ["a value in place of a default", object({ a: optional(SHORT, "y") }), { a: "x" }, { a: "x" }],
    ["null for an optional member", object({ a: optional(nullable(SHORT)) }), { a: null },
      { a: null }],
    ["null in place of a default", object({ a: optional(nullable(SHORT), "y") }), { a: null },
      { a: null }],
    ["a text with a description, a name and a check",
      described("A.", named("A", refined(SHORT, () => {}))), "x", "x"],
  ];
  for (const [what, shape, value, parsed] of rows) {
    test(what, () => assert.deepEqual(parseShape(shape, value, "body"), parsed));
  }
});

describe("a shape reports with its pointer", () => {
  const rows: BadRow[] = [
    ["a number in place of a text", TEXT, 1, [""]],
    ["null in place of a text", TEXT, null, [""]],
    ["a list in place of a text", TEXT, ["x"], [""]],
    ["half of a surrogate pair in a text with a check", SHORT, "a\ud83d", [""]],
    ["a text that fails its check", SHORT, "abcd", [""]],
    ["a text that does not match the pattern", matching(/^a+$/, "Must be a."), "ab", [""]],
    ["another word", SWITCH, "ON", [""]],
    ["null in place of a word", SWITCH, null, [""]],
    ["the name of an inherited member in place of a word", SWITCH, "toString", [""]],
    ["null in place of a flag", FLAG, null, [""]],
    ["a text in place of a flag", FLAG, "true", [""]],
    ["null for an optional member", object({ a: optional(TEXT) }), { a: null }, ["/a"]],
    ["a wrong value for a nullable shape", nullable(SHORT), 1, [""]],
    ["a text in place of a list", listOf(SHORT), "x", [""]],
    ["null in place of a list", listOf(SHORT), null, [""]],
    ["an object in place of a list", listOf(SHORT), { 0: "x" }, [""]],
    ["each wrong item of a list", listOf(SHORT), ["x", 1, "long!", null], ["/1", "/2", "/3"]],
    ["a list of 101 items, not its items", listOf(SHORT), Array.from({ length: 101 }, () => 1),
      [""]],
    ["a member that is missing", object({ a: TEXT }), {}, ["/a"]],
    ["an unknown member", object({ a: TEXT }), { a: "x", b: 1 }, ["/b"]],
    ["unknown members with inherited names", object({}), { constructor: 1, valueOf: 1 },
      ["/constructor", "/valueOf"]],
    ["__proto__ as an unknown member", object({ a: optional(TEXT) }),
      JSON.parse('{"__proto__": {"a": 1}}'), ["/__proto__"]],
    ["names with / and ~ (RFC 6901 §3)", object({ "a/b~c": FLAG }), { "a/b~c": 1, "~/": 1 },
      ["/a~1b~0c", "/~0~1"]],
    ["members of items of a member", object({ a: object({ b: listOf(object({ c: TEXT })) }) }),
      { a: { b: [{ c: "x" }, { c: 1, d: 1 }, {}] } }, ["/a/b/1/c", "/a/b/1/d", "/a/b/2/c"]],
    ["all errors at once, known members first", object({ a: TEXT, b: FLAG, d: TEXT }),
      { z: 1, a: 1, b: "x" }, ["/a", "/b", "/d", "/z"]],
  ];
  for (const [what, shape, value, pointers] of rows) {
    test(what, () => assert.deepEqual(pointersIn(shape, value), pointers));
  }
  for (const value of [null, true, 1, "text", [], [{}], undefined]) {
    test(`${JSON.stringify(value)} in place of an object`, () => {
      assert.deepEqual(pointersIn(object({ a: TEXT }), value), [""]);
      assert.deepEqual(pointersIn(record({ a: TEXT }), value), [""]);
    });
  }
});

test("a member __proto__ in JSON gives a record neither members nor a prototype", () => {
  const shape = record({ a: optional(TEXT) });
  const parsed = parseShape(shape, JSON.parse('{"__proto__": {"a": "x"}}'), "body");
  assert.deepEqual(Object.keys(parsed), []);
  assert.equal(parsed.a, undefined);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
  assert.throws(() => parseJson(Buffer.from('{"__proto__": {}}')), Problem);
});

test("a shape with a member __proto__ parses it as an own member", () => {
  const shape = object({ ["__proto__"]: TEXT });
  const parsed = parseShape(shape, JSON.parse('{"__proto__": "x"}'), "body");
  assert.deepEqual(Object.entries(parsed), [["__proto__", "x"]]);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
});

test("a record does not read unknown members, of which a body may have 90,000", () => {
  const value = { a: "x", get b() { return assert.fail("b was read"); } };
  assert.deepEqual(parseShape(record({ a: TEXT }), value, "body"), { a: "x" });
});

test("withChange() copies a record with the given members, even null, and the others", () => {
  const before: { a: string; b: number | null; c: number | null } = { a: "x", b: 1, c: null };
  const after = withChange(before, { a: undefined, b: null, c: 2 });
  assert.deepEqual(after, { a: "x", b: null, c: 2 });
  assert.deepEqual(before, { a: "x", b: 1, c: null });
});

test("parseShape() throws a Problem 400 that names the part and details each error", () => {
  const shape = object({ a: TEXT, b: SWITCH });
  assert.throws(() => parseShape(shape, { b: "x" }, "query"), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.status, error.code], [400, "invalid"]);
    assert.match(error.message, /query/);
    assert.deepEqual(error.errors, [
      { pointer: "/a", detail: "Is required." },
      { pointer: "/b", detail: "Must be one of: on, off." },
    ]);
    return true;
  });
});

test("a shape reports at most 100 errors, those of known members first", () => {
  const members = Array.from({ length: 100_000 }, (_, index) => [`a${index}`, 1] as const);
  const pointers = pointersIn(object({ b: TEXT }), Object.fromEntries(members));
  assert.equal(pointers.length, 100);
  assert.deepEqual(pointers.slice(0, 2), ["/b", "/a0"]);
});

test("an error never contains the value", () => {
  const shape = object({ password: TEXT, word: SWITCH, short: SHORT });
  const value = { password: ["hunter2"], word: "hunter2", short: "hunter2" };
  assert.throws(() => parseShape(shape, value, "body"), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.equal(error.errors.length, 3);
    assert.doesNotMatch(JSON.stringify([error.message, error.errors]), /hunter2/);
    return true;
  });
});

describe("refined()", () => {
  const seen: unknown[] = [];
  const range = refined(object({ from: SHORT, to: SHORT }), (value, report) => {
    seen.push(value);
    if (value.from > value.to) report("Must not be before from.", "/to");
    if (value.from === value.to) report("Is empty.");
  }, { minProperties: 2 });

  test("checks an object whose members are valid", () => {
    assert.deepEqual(parseShape(range, { from: "a", to: "b" }, "body"), { from: "a", to: "b" });
    assert.deepEqual(pointersIn(range, { from: "b", to: "a" }), ["/to"]);
    assert.deepEqual(pointersIn(range, { from: "a", to: "a" }), [""]);
  });
  test("does not check an object with a wrong or unknown member", () => {
    seen.length = 0;
    assert.deepEqual(pointersIn(range, { from: "bbbb", to: "a" }), ["/from"]);
    assert.deepEqual(pointersIn(range, { from: "b", to: "a", by: "c" }), ["/by"]);
    assert.deepEqual(pointersIn(range, null), [""]);
    assert.deepEqual(seen, []);
  });
  test("checks a member even if another member is wrong", () => {
    const both = object({ a: range, b: TEXT });
    assert.deepEqual(pointersIn(both, { a: { from: "b", to: "a" }, b: 1 }), ["/a/to", "/b"]);
  });
  test("extends the schema and keeps the members", () => {
    assert.equal(range.schema["minProperties"], 2);
    assert.deepEqual(Object.keys(range.members), ["from", "to"]);
  });
});

describe("the schema of", () => {
  const rows: [what: string, shape: Shape<unknown>, schema: object][] = [
    ["a text has the given keywords", SHORT, { type: "string", maxLength: 3 }],
    ["a text that must match has the pattern", matching(/^a$/, "."),
      { type: "string", pattern: "^a$" }],
    ["one of several words has an enum", SWITCH, { type: "string", enum: ["on", "off"] }],
    ["a flag", FLAG, { type: "boolean" }],
    ["any value is empty", ANYTHING, {}],
    ["a list in a request has a limit", listOf(FLAG),
      { type: "array", items: { type: "boolean" }, maxItems: 100 }],
    ["a list in a response has no limit", manyOf(FLAG),
      { type: "array", items: { type: "boolean" } }],
    ["a nullable shape", nullable(FLAG), { anyOf: [{ type: "boolean" }, { type: "null" }] }],
    ["a shape for responses alone", shown<1>({ const: 1 }), { const: 1 }],
    ["a described shape", described("On.", FLAG), { type: "boolean", description: "On." }],
    ["an object requires the members that are not optional",
      object({ a: FLAG, b: optional(FLAG), c: optional(FLAG, false) }), {
        type: "object",
        properties: {
          a: { type: "boolean" },
          b: { type: "boolean" },
          c: { type: "boolean", default: false },
        },
        required: ["a"],
        additionalProperties: false,
      }],
    ["an object without required members has no `required`", object({}),
      { type: "object", properties: {}, additionalProperties: false }],
    ["a record may have more members", record({ a: FLAG }),
      { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] }],
    ["a named shape is a reference", named("Flag", FLAG), { $ref: "#/components/schemas/Flag" }],
    ["a record with more members is allOf", withMembers(named("A", record({})), { b: COUNT }), {
      allOf: [
        { $ref: "#/components/schemas/A" },
        {
          type: "object",
          properties: { b: { type: "integer", minimum: 0 } },
          required: ["b"],
        },
      ],
    }],
  ];
  for (const [what, shape, schema] of rows) {
    test(what, () => assert.deepEqual(shape.schema, schema));
  }
});

describe("the definitions of a shape hold every named shape in", () => {
  const inner = named("Inner", record({ a: FLAG }));
  const rows: [what: string, shape: Shape<unknown>][] = [
    ["a list", listOf(inner)],
    ["a list in a response", manyOf(inner)],
    ["an optional member", object({ a: optional(inner) })],
    ["a member with a default", object({ a: optional(inner, { a: true }) })],
    ["a nullable shape", nullable(inner)],
    ["a described shape", described("Inner.", inner)],
    ["a shape with a check", refined(inner, () => {})],
    ["a record to which members are added", withMembers(inner, { b: FLAG })],
    ["a member that is added", withMembers(record({}), { b: inner })],
    ["a member of a member", object({ a: record({ b: nullable(manyOf(inner)) }) })],
  ];
  for (const [what, shape] of rows) {
    test(what, () => assert.deepEqual(Object.keys(shape.definitions), ["Inner"]));
  }
  test("a named shape", () => {
    const outer = named("Outer", record({ inner }));
    assert.deepEqual(Object.keys(outer.definitions).toSorted(), ["Inner", "Outer"]);
    assert.deepEqual(outer.definitions["Outer"]?.["properties"], { inner: inner.schema });
    assert.deepEqual(outer.definitions["Inner"], record({ a: FLAG }).schema);
  });
  test("an object, even if the name is __proto__", () => {
    const { definitions } = object({ a: named("__proto__", FLAG), b: inner });
    assert.deepEqual(Object.keys(definitions), ["__proto__", "Inner"]);
  });
  test("an object that has none", () => {
    assert.deepEqual(object({ a: listOf(nullable(TEXT)) }).definitions, {});
  });
});

function pointersIn(shape: Shape<unknown>, value: unknown): string[] {
  return pointersOf(() => parseShape(shape, value, "body"));
}
