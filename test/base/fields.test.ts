import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldName, recordOf, toFields } from "../../src/base/fields.ts";
import { FLAG, nullable, optional, record, TEXT } from "../../src/base/shape.ts";
import { TIME } from "../../src/base/time.ts";

const toThing = recordOf(record({
  id: TEXT,
  jwks_uri: nullable(TEXT),
  is_on: FLAG,
  created_at: TIME,
  signs_from: TIME,
  published_until: nullable(TIME),
  failing_since: optional(TIME),
  last_error: optional(TEXT),
}));
const THING = {
  id: "t1",
  jwksUri: null,
  isOn: false,
  createdAtMs: 0,
  signsFromMs: 1_500,
  publishedUntilMs: null,
};

test("fieldName() writes a member in camel case, and adds Ms to a time", () => {
  const members = ["id", "redirect_uris", "created_at", "next_attempt_at", "since", "format"];
  assert.deepEqual(members.map(fieldName),
    ["id", "redirectUris", "createdAtMs", "nextAttemptAtMs", "sinceMs", "format"]);
});

test("recordOf() writes null for a nullable member and leaves out an optional one", () => {
  assert.deepEqual(toThing({ ...THING, lastError: null }), {
    id: "t1",
    jwks_uri: null,
    is_on: false,
    created_at: "1970-01-01T00:00:00.000Z",
    signs_from: "1970-01-01T00:00:01.500Z",
    published_until: null,
  });
  const failing = toThing({ ...THING, failingSinceMs: 1, lastError: "timeout" });
  assert.equal(failing.failing_since, "1970-01-01T00:00:00.001Z");
  assert.equal(failing.last_error, "timeout");
});

test("recordOf() writes only own fields, and only those that the shape names", () => {
  const item = Object.assign(Object.create({ lastError: "inherited" }), THING, { phc: "$argon2" });
  assert.deepEqual(Object.keys(toThing(item)),
    ["id", "jwks_uri", "is_on", "created_at", "signs_from", "published_until"]);
});

test("toFields() renames the given members and adds no others", () => {
  assert.deepEqual(toFields({ jwks_uri: null, paused_until: 5, name: undefined }),
    { jwksUri: null, pausedUntilMs: 5, name: undefined });
});
