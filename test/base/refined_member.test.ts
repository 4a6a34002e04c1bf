import assert from "node:assert/strict";
import { test } from "node:test";
import { refinedMember } from "../../src/base/refined_member.ts";
import { named, object, oneOf, optional, parseShape, TEXT, text } from "../../src/base/shape.ts";
import { pointersOf } from "../helpers/problem.ts";

const SHORT = text((value) => value.length <= 3 ? undefined : "Is too long.");
const base = named("Base", object({ a: optional(SHORT), b: oneOf("x", "y"), c: optional(TEXT) }));
const seen: string[] = [];
const shape = refinedMember(base, "a", (value, report) => {
  seen.push(value);
  if (value === "no") report("Must not be no.");
});
const pointersIn = (value: unknown) => pointersOf(() => parseShape(shape, value, "body"));

test("refinedMember() checks a valid member, even if other members are wrong", () => {
  assert.deepEqual(parseShape(shape, { a: "yes", b: "x" }, "body"), { a: "yes", b: "x" });
  assert.deepEqual(pointersIn({ a: "no", b: "x" }), ["/a"]);
  assert.deepEqual(pointersIn({ a: "no", b: 1, c: 2, d: 3 }), ["/b", "/c", "/d", "/a"]);
});

test("refinedMember() does not check a member that is missing or wrong", () => {
  seen.length = 0;
  assert.deepEqual(pointersIn({ b: "x" }), []);
  assert.deepEqual(pointersIn({ a: "long", b: "x" }), ["/a"]);
  assert.deepEqual(pointersIn({ a: null }), ["/a", "/b"]);
  assert.deepEqual(pointersIn([]), [""]);
  assert.deepEqual(seen, []);
});

test("refinedMember() keeps the schema", () => assert.deepEqual(shape.schema, base.schema));
