import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Check, type Fields, openFields } from "../../src/base/fields.ts";
import { parseJson } from "../../src/base/json.ts";
import { type FieldError, Problem } from "../../src/base/problem.ts";

const isShort: Check = (text) => text.length <= 3 ? undefined : "Is too long.";

describe("openFields() refuses what is no object", () => {
  for (const value of [null, true, 1, "text", [], [{}], undefined]) {
    test(JSON.stringify(value) ?? "undefined", () => {
      assert.deepEqual(faultsOf(() => openFields(value)), [
        { pointer: "", detail: "Must be an object." },
      ]);
    });
  }
});

/** What is read of `value`, and the faults that finish() throws for it. */
type Row = [what: string, value: object, read: (fields: Fields) => unknown, expected: unknown,
  pointers: string[]];

describe("fields read", () => {
  const rows: Row[] = [
    ["a required text", { a: "x" }, (f) => f.requiredText("a"), "x", []],
    ["an empty text as a text", { a: "" }, (f) => f.requiredText("a"), "", []],
    ["a required text that is missing", {}, (f) => f.requiredText("a"), "", ["/a"]],
    ["null as no text", { a: null }, (f) => f.requiredText("a"), "", ["/a"]],
    ["a number as no text", { a: 1 }, (f) => f.text("a"), undefined, ["/a"]],
    ["a list as no text", { a: ["x"] }, (f) => f.text("a"), undefined, ["/a"]],
    ["a text that is missing", {}, (f) => f.text("a"), undefined, []],
    ["a text that fits", { a: "abc" }, (f) => f.text("a", isShort), "abc", []],
    ["a text that is bad", { a: "abcd" }, (f) => void f.text("a", isShort), undefined, ["/a"]],
    ["a word", { a: "on" }, (f) => f.word("a", ["on", "off"]), "on", []],
    ["another word", { a: "ON" }, (f) => f.word("a", ["on", "off"]), undefined, ["/a"]],
    ["null as no word", { a: null }, (f) => f.word("a", ["on", "off"]), undefined, ["/a"]],
    ["a word that is missing", {}, (f) => f.word("a", ["on", "off"]), undefined, []],
    ["an inherited word", { a: "toString" }, (f) => f.word("a", ["on"]), undefined, ["/a"]],
    ["a flag", { a: false }, (f) => f.flag("a"), false, []],
    ["a flag that is missing", {}, (f) => f.flag("a"), undefined, []],
    ["null as no flag", { a: null }, (f) => f.flag("a"), undefined, ["/a"]],
    ["a text as no flag", { a: "true" }, (f) => f.flag("a"), undefined, ["/a"]],
    ["a list", { a: ["x", "y"] }, (f) => f.list("a", isShort), ["x", "y"], []],
    ["an empty list", { a: [] }, (f) => f.list("a", isShort), [], []],
    ["a repeated item once", { a: ["y", "x", "y"] }, (f) => f.list("a", isShort), ["y", "x"], []],
    ["a list that is missing", {}, (f) => f.list("a", isShort), undefined, []],
    ["a text as no list", { a: "x" }, (f) => f.list("a", isShort), undefined, ["/a"]],
    ["null as no list", { a: null }, (f) => f.list("a", isShort), undefined, ["/a"]],
    ["an object as no list", { a: { 0: "x" } }, (f) => f.list("a", isShort), undefined, ["/a"]],
    ["each bad item by its place", { a: ["x", 1, "long!", null] },
      (f) => void f.list("a", isShort), undefined, ["/a/1", "/a/2", "/a/3"]],
    ["as many items as may be", { a: ["a", "b"] }, (f) => f.list("a", isShort, 2), ["a", "b"], []],
    ["more items than the limit", { a: ["a", "b", "c"] }, (f) => f.list("a", isShort, 2), undefined,
      ["/a"]],
    ["101 items of a list without a limit", { a: Array.from({ length: 101 }, String) },
      (f) => f.list("a", isShort), undefined, ["/a"]],
    ["any value", { a: { b: [1] } }, (f) => f.value("a"), { b: [1] }, []],
    ["null apart from missing", { a: null }, (f) => [f.has("a"), f.has("b"), f.value("a")],
      [true, false, null], []],
    ["no inherited member", {}, (f) => [f.has("toString"), f.value("constructor")],
      [false, undefined], []],
    ["a fault of the caller", { a: "x" }, (f) => (f.text("a"), f.report("a", "No.")), undefined,
      ["/a"]],
    ["a member that nothing asked for", { a: "x", b: 1 }, (f) => f.text("a"), "x", ["/b"]],
    ["a member that was only looked for as unknown", { a: "x" }, (f) => f.has("a"), true, ["/a"]],
    ["names with / and ~ (RFC 6901 §3)", { "a/b~c": 1 }, (f) => f.flag("a/b~c"), undefined,
      ["/a~1b~0c"]],
    ["__proto__ as unknown", parseJson(Buffer.from('{"constructor": 1}')) as object,
      (f) => f.has("a"), false, ["/constructor"]],
  ];
  for (const [what, value, read, expected, pointers] of rows) {
    test(what, () => {
      const fields = openFields(value);
      assert.deepEqual(read(fields), expected);
      const faults = faultsOf(() => fields.finish("thing"));
      assert.deepEqual(faults.map(({ pointer }) => pointer), pointers);
    });
  }
});

test("finish() throws every fault at once, and names the object", () => {
  const fields = openFields({ a: 1, b: "x", c: 1 });
  fields.text("a");
  fields.flag("b");
  fields.requiredText("d");
  assert.throws(() => fields.finish("app"), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.equal(error.status, 400);
    assert.match(error.message, /app/);
    assert.deepEqual(error.errors.map(({ pointer }) => pointer), ["/a", "/b", "/d", "/c"]);
    assert.ok(error.errors.every(({ detail }) => detail !== ""));
    return true;
  });
});

test("finish() names no more than 100 faults", () => {
  const members = Array.from({ length: 100_000 }, (_, index) => [`a${index}`, 1] as const);
  const fields = openFields(Object.fromEntries(members));
  assert.equal(faultsOf(() => fields.finish("user")).length, 100);
});

test("finish() passes unknown members where it is told to", () => {
  const fields = openFields({ a: "x", b: 1 });
  fields.text("a");
  assert.equal(fields.finish("login", { ignoreUnknown: true }), undefined);
});

test("a fault never repeats the value", () => {
  const fields = openFields({ password: ["hunter2hunter2"] });
  fields.requiredText("password");
  assert.doesNotMatch(JSON.stringify(faultsOf(() => fields.finish("login"))), /hunter2/);
});

function faultsOf(run: () => unknown): readonly FieldError[] {
  try {
    run();
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.equal(error.status, 400);
    assert.equal(error.code, "invalid");
    return error.errors;
  }
}
