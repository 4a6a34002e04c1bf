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

/** What a shape makes of a value, and the pointers of its errors. */
type Row = [what: string, shape: Shape<unknown>, value: unknown, parsed: unknown];
type BadRow = [what: string, shape: Shape<unknown>, value: unknown, pointers: readonly string[]];

describe("a shape parses", () => {
  const rows: Row[] = [
    ["a text", TEXT, "x", "x"],
    ["an empty text as a text", TEXT, "", ""],
    ["half of a character where nothing is checked", TEXT, "a\ud83d", "a\ud83d"],
    ["a text that fits", SHORT, "abc", "abc"],
    ["a text of the form", matching(/^a+$/, "Must be a."), "aa", "aa"],
    ["a word", SWITCH, "on", "on"],
    ["true", FLAG, true, true],
    ["false", FLAG, false, false],
    ["any value", ANYTHING, { b: [1, null] }, { b: [1, null] }],
    ["null where anything goes", ANYTHING, null, null],
    ["a list", listOf(SHORT), ["x", "y"], ["x", "y"]],
    ["an empty list", listOf(SHORT), [], []],
    ["a repeated item once", listOf(SHORT), ["y", "x", "y"], ["y", "x"]],
    ["100 items", listOf(TEXT), HUNDRED, HUNDRED],
    ["null where it may be", nullable(SHORT), null, null],
    ["another than null where null may be", nullable(SHORT), "x", "x"],
    ["an object without members", object({}), {}, {}],
    ["the members of an object", object({ a: TEXT, b: FLAG }), { a: "x", b: true },
      { a: "x", b: true }],
    ["objects in objects", object({ a: object({ b: listOf(TEXT) }) }), { a: { b: ["x"] } },
      { a: { b: ["x"] } }],
    ["a record without what it does not know", record({ a: TEXT }), { a: "x", b: 1 }, { a: "x" }],
    ["no inherited member", record({ toString: optional(TEXT) }), {}, {}],
    ["an optional member that is there", object({ a: optional(SHORT) }), { a: "x" }, { a: "x" }],
    ["an optional member that is missing", object({ a: optional(SHORT) }), {}, {}],
    ["a default", object({ a: optional(SHORT, "y") }), {}, { a: "y" }],
    ["a default that is false or empty", object({
      a: optional(FLAG, false),
      b: optional(TEXT, ""),
      c: optional(listOf(TEXT), []),
    }), {}, { a: false, b: "", c: [] }],
    ["another than the default", object({ a: optional(SHORT, "y") }), { a: "x" }, { a: "x" }],
    ["null apart from missing", object({ a: optional(nullable(SHORT)) }), { a: null }, { a: null }],
    ["null in place of a default", object({ a: optional(nullable(SHORT), "y") }), { a: null },
      { a: null }],
    ["what a description, a name or a check is put to",
      described("A.", named("A", refined(SHORT, () => {}))), "x", "x"],
  ];
  for (const [what, shape, value, parsed] of rows) {
    test(what, () => assert.deepEqual(parseShape(shape, value, "body"), parsed));
  }
});

describe("a shape names by its pointer", () => {
  const rows: BadRow[] = [
    ["a number that is no text", TEXT, 1, [""]],
    ["null that is no text", TEXT, null, [""]],
    ["a list that is no text", TEXT, ["x"], [""]],
    ["half of a character where that is checked", SHORT, "a\ud83d", [""]],
    ["a text that is bad", SHORT, "abcd", [""]],
    ["a text of another form", matching(/^a+$/, "Must be a."), "ab", [""]],
    ["another word", SWITCH, "ON", [""]],
    ["null that is no word", SWITCH, null, [""]],
    ["an inherited word", SWITCH, "toString", [""]],
    ["null that is no flag", FLAG, null, [""]],
    ["a text that is no flag", FLAG, "true", [""]],
    ["null that may not be", object({ a: optional(TEXT) }), { a: null }, ["/a"]],
    ["what is neither null nor right", nullable(SHORT), 1, [""]],
    ["a text that is no list", listOf(SHORT), "x", [""]],
    ["null that is no list", listOf(SHORT), null, [""]],
    ["an object that is no list", listOf(SHORT), { 0: "x" }, [""]],
    ["each bad item by its place", listOf(SHORT), ["x", 1, "long!", null], ["/1", "/2", "/3"]],
    ["101 items, and none of them", listOf(SHORT), Array.from({ length: 101 }, () => 1), [""]],
    ["a member that is missing", object({ a: TEXT }), {}, ["/a"]],
    ["a member that nothing knows", object({ a: TEXT }), { a: "x", b: 1 }, ["/b"]],
    ["an inherited name as a member that nothing knows", object({}), { constructor: 1, valueOf: 1 },
      ["/constructor", "/valueOf"]],
    ["__proto__ as a member that nothing knows", object({ a: optional(TEXT) }),
      JSON.parse('{"__proto__": {"a": 1}}'), ["/__proto__"]],
    ["names with / and ~ (RFC 6901 §3)", object({ "a/b~c": FLAG }), { "a/b~c": 1, "~/": 1 },
      ["/a~1b~0c", "/~0~1"]],
    ["what lies deep", object({ a: object({ b: listOf(object({ c: TEXT })) }) }),
      { a: { b: [{ c: "x" }, { c: 1, d: 1 }, {}] } }, ["/a/b/1/c", "/a/b/1/d", "/a/b/2/c"]],
    ["all at once, what it knows first", object({ a: TEXT, b: FLAG, d: TEXT }),
      { z: 1, a: 1, b: "x" }, ["/a", "/b", "/d", "/z"]],
  ];
  for (const [what, shape, value, pointers] of rows) {
    test(what, () => assert.deepEqual(pointersIn(shape, value), pointers));
  }
  for (const value of [null, true, 1, "text", [], [{}], undefined]) {
    test(`${JSON.stringify(value)} that is not an object`, () => {
      assert.deepEqual(pointersIn(object({ a: TEXT }), value), [""]);
      assert.deepEqual(pointersIn(record({ a: TEXT }), value), [""]);
    });
  }
});

test("JSON with a member __proto__ neither names a shape's member nor makes a prototype", () => {
  const shape = record({ a: optional(TEXT) });
  const parsed = parseShape(shape, JSON.parse('{"__proto__": {"a": "x"}}'), "body");
  assert.deepEqual(Object.keys(parsed), []);
  assert.equal(parsed.a, undefined);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
  assert.throws(() => parseJson(Buffer.from('{"__proto__": {}}')), Problem);
});

test("a member __proto__ that a shape has is an own one", () => {
  const shape = object({ ["__proto__"]: TEXT });
  const parsed = parseShape(shape, JSON.parse('{"__proto__": "x"}'), "body");
  assert.deepEqual(Object.entries(parsed), [["__proto__", "x"]]);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
});

test("what a record does not know is not read, since a body may have 90,000 such members", () => {
  const value = { a: "x", get b() { return assert.fail("it is read"); } };
  assert.deepEqual(parseShape(record({ a: TEXT }), value, "body"), { a: "x" });
});

test("withChange() lays what is given over a record, null too, and leaves the rest", () => {
  const before: { a: string; b: number | null; c: number | null } = { a: "x", b: 1, c: null };
  const after = withChange(before, { a: undefined, b: null, c: 2 });
  assert.deepEqual(after, { a: "x", b: null, c: 2 });
  assert.deepEqual(before, { a: "x", b: 1, c: null });
});

test("a problem has status, code, what it speaks of, and a sentence for each error", () => {
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

test("no more than 100 errors are named, and what is known is named first", () => {
  const members = Array.from({ length: 100_000 }, (_, index) => [`a${index}`, 1] as const);
  const pointers = pointersIn(object({ b: TEXT }), Object.fromEntries(members));
  assert.equal(pointers.length, 100);
  assert.deepEqual(pointers.slice(0, 2), ["/b", "/a0"]);
});

test("an error never repeats the value", () => {
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

  test("checks the whole where its parts are right", () => {
    assert.deepEqual(parseShape(range, { from: "a", to: "b" }, "body"), { from: "a", to: "b" });
    assert.deepEqual(pointersIn(range, { from: "b", to: "a" }), ["/to"]);
    assert.deepEqual(pointersIn(range, { from: "a", to: "a" }), [""]);
  });
  test("does not see a whole of which a part is wrong or unknown", () => {
    seen.length = 0;
    assert.deepEqual(pointersIn(range, { from: "bbbb", to: "a" }), ["/from"]);
    assert.deepEqual(pointersIn(range, { from: "b", to: "a", by: "c" }), ["/by"]);
    assert.deepEqual(pointersIn(range, null), [""]);
    assert.deepEqual(seen, []);
  });
  test("checks one part whatever the other is", () => {
    const both = object({ a: range, b: TEXT });
    assert.deepEqual(pointersIn(both, { a: { from: "b", to: "a" }, b: 1 }), ["/a/to", "/b"]);
  });
  test("adds to the schema, and keeps the members", () => {
    assert.equal(range.schema["minProperties"], 2);
    assert.deepEqual(Object.keys(range.members), ["from", "to"]);
  });
});

describe("the schema of", () => {
  const rows: [what: string, shape: Shape<unknown>, schema: object][] = [
    ["a text has what is said of it", SHORT, { type: "string", maxLength: 3 }],
    ["a form has its pattern", matching(/^a$/, "."), { type: "string", pattern: "^a$" }],
    ["words has them all", SWITCH, { type: "string", enum: ["on", "off"] }],
    ["a flag", FLAG, { type: "boolean" }],
    ["anything says nothing", ANYTHING, {}],
    ["a list has its limit", listOf(FLAG),
      { type: "array", items: { type: "boolean" }, maxItems: 100 }],
    ["a list in a response has none", manyOf(FLAG), { type: "array", items: { type: "boolean" } }],
    ["what may be null", nullable(FLAG), { anyOf: [{ type: "boolean" }, { type: "null" }] }],
    ["what a response alone holds", shown<1>({ const: 1 }), { const: 1 }],
    ["what is described", described("On.", FLAG), { type: "boolean", description: "On." }],
    ["an object requires what is neither optional nor has a default",
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
    ["an object that requires nothing does not say so", object({}),
      { type: "object", properties: {}, additionalProperties: false }],
    ["a record may have more members", record({ a: FLAG }),
      { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] }],
    ["a name refers to it", named("Flag", FLAG), { $ref: "#/components/schemas/Flag" }],
    ["a record with more members has both", withMembers(named("A", record({})), { b: COUNT }), {
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

describe("the definitions of a shape are those of every name in it:", () => {
  const inner = named("Inner", record({ a: FLAG }));
  const rows: [what: string, shape: Shape<unknown>][] = [
    ["a list", listOf(inner)],
    ["a list in a response", manyOf(inner)],
    ["an optional member", object({ a: optional(inner) })],
    ["a member with a default", object({ a: optional(inner, { a: true }) })],
    ["null or not", nullable(inner)],
    ["a description", described("Inner.", inner)],
    ["a check", refined(inner, () => {})],
    ["more members", withMembers(inner, { b: FLAG })],
    ["of a member that is added", withMembers(record({}), { b: inner })],
    ["deep ones", object({ a: record({ b: nullable(manyOf(inner)) }) })],
  ];
  for (const [what, shape] of rows) {
    test(what, () => assert.deepEqual(Object.keys(shape.definitions), ["Inner"]));
  }
  test("a name in a name", () => {
    const outer = named("Outer", record({ inner }));
    assert.deepEqual(Object.keys(outer.definitions).toSorted(), ["Inner", "Outer"]);
    assert.deepEqual(outer.definitions["Outer"]?.["properties"], { inner: inner.schema });
    assert.deepEqual(outer.definitions["Inner"], record({ a: FLAG }).schema);
  });
  test("one that is named __proto__", () => {
    const { definitions } = object({ a: named("__proto__", FLAG), b: inner });
    assert.deepEqual(Object.keys(definitions), ["__proto__", "Inner"]);
  });
  test("none where nothing is named", () => {
    assert.deepEqual(object({ a: listOf(nullable(TEXT)) }).definitions, {});
  });
});

function pointersIn(shape: Shape<unknown>, value: unknown): string[] {
  return pointersOf(() => parseShape(shape, value, "body"));
}
