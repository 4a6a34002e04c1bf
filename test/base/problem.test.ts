import assert from "node:assert/strict";
import { test } from "node:test";
import { checkErrors, invalid, Problem } from "../../src/base/problem.ts";

test("Problem is an Error with a status, a code and a detail", () => {
  const problem = new Problem(404, "not_found", "There is no such app.");
  assert.ok(problem instanceof Error);
  assert.equal(problem.name, "Problem");
  assert.equal(problem.status, 404);
  assert.equal(problem.code, "not_found");
  assert.equal(problem.message, "There is no such app.");
  assert.deepEqual(problem.errors, []);
  assert.deepEqual(problem.headers, {});
});

test("Problem keeps its errors, headers and cause", () => {
  const cause = new Error("disk");
  const errors = [{ pointer: "/name", detail: "Is required." }];
  const headers = { "Retry-After": "2" };
  const problem = new Problem(503, "busy", "Later.", { errors, headers, cause });
  assert.deepEqual(problem.errors, errors);
  assert.deepEqual(problem.headers, headers);
  assert.equal(problem.cause, cause);
});

test("Problem without a cause has no member `cause`", () => {
  assert.equal("cause" in new Problem(400, "invalid", "No."), false);
});

test("Problem's title is the name of the HTTP status (RFC 9457 §3.1.4)", () => {
  const table: [status: number, title: string][] = [
    [400, "Bad Request"],
    [401, "Unauthorized"],
    [404, "Not Found"],
    [413, "Payload Too Large"],
    [429, "Too Many Requests"],
    [503, "Service Unavailable"],
    [499, "Error"],
  ];
  for (const [status, title] of table) assert.equal(new Problem(status, "x", "").title, title);
});

test("checkErrors() does not throw without errors", () => {
  assert.equal(checkErrors([], "app"), undefined);
});

test("checkErrors() throws one Problem 400 with every error", () => {
  const errors = [
    { pointer: "/name", detail: "Is required." },
    { pointer: "/url", detail: "Must be a string." },
  ];
  assert.throws(() => checkErrors(errors, "app"), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.equal(error.status, 400);
    assert.equal(error.code, "invalid");
    assert.match(error.message, /app/);
    assert.deepEqual(error.errors, errors);
    return true;
  });
});

test("invalid() keeps errors up to 64 KiB of text, and always the first one", () => {
  const made = (length: number) => ({ pointer: `/${"x".repeat(length - 5)}`, detail: "Bad." });
  const countOf = (errors: Problem["errors"]) => invalid(errors, "body").errors.length;
  assert.equal(countOf(Array.from({ length: 200 }, () => made(1_024))), 64);
  assert.equal(countOf([made(100_000), made(10)]), 1);
});
