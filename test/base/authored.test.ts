import assert from "node:assert/strict";
import { test } from "node:test";
import { authored, readAs, that } from "../../src/base/authored.ts";
import { parseDuration } from "../../src/base/duration.ts";
import { optional, TEXT } from "../../src/base/shape.ts";

const JOB = authored({
  name: TEXT,
  note: optional(TEXT),
  every: optional(readAs(parseDuration, "a duration"), 1),
  run: optional(that((value) => typeof value === "function", "a function")),
});

function errorsOf(value: unknown): string[] {
  const errors: string[] = [];
  JOB.parse(value, (detail, pointer = "") => errors.push(`${pointer} ${detail}`));
  return errors;
}

test("an undefined member counts as missing: optional, required or with a default", () => {
  const given = { name: "a", note: undefined, every: undefined };
  assert.deepEqual(JOB.parse(given, assert.fail), { name: "a", every: 1 });
  assert.deepEqual(JOB.parse({ name: "a", every: "1s", run: isNaN }, assert.fail),
    { name: "a", every: 1_000, run: isNaN });
  assert.deepEqual(errorsOf({ name: undefined }), ["/name Is required."]);
});

test("an unknown member is an error", () => {
  assert.deepEqual(errorsOf({ name: "a", evry: "1s", x: 1 }), [
    "/evry Unknown member.",
    "/x Unknown member.",
  ]);
});

test("a value of the wrong kind is an error that names the right kind", () => {
  assert.deepEqual(errorsOf("a"), [" Must be an object."]);
  assert.deepEqual(errorsOf({ name: "a", every: Object.create(null), run: 1 }), [
    "/every Must be a duration.",
    "/run Must be a function.",
  ]);
});
