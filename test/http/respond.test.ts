import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse } from "../../src/base/http_message.ts";
import { Problem } from "../../src/base/problem.ts";
import { jsonResponse, NO_STORE, problemResponse } from "../../src/http/respond.ts";

test("jsonResponse() makes JSON with the given headers", () => {
  const response = jsonResponse(201, { a: [1, "\u00fc"] }, { Location: "/x" });
  assert.equal(response.status, 201);
  assert.deepEqual(response.headers, { "Content-Type": "application/json", Location: "/x" });
  assert.deepEqual(readBody(response), { a: [1, "\u00fc"] });
});

test("NO_STORE keeps a response out of caches, also old ones (RFC 6749 §5.1)", () => {
  assert.deepEqual(NO_STORE, { "Cache-Control": "no-store", Pragma: "no-cache" });
});

test("problemResponse() makes problem details with the request's id (RFC 9457 §3)", () => {
  const response = problemResponse(new Problem(404, "not_found", "There is no such app."), "r7");
  assert.equal(response.status, 404);
  assert.equal(response.headers?.["Content-Type"], "application/problem+json");
  assert.equal(response.headers["X-Request-Id"], "r7");
  assert.equal(response.headers["X-Content-Type-Options"], "nosniff");
  assert.deepEqual(readBody(response), {
    type: "urn:gatepost:problem:not_found",
    title: "Not Found",
    status: 404,
    detail: "There is no such app.",
    request_id: "r7",
  });
});

test("problemResponse() has the errors and the headers of the problem", () => {
  const errors = [{ pointer: "/url", detail: "Is required." }];
  const headers = { "Retry-After": "2" };
  const response = problemResponse(new Problem(503, "busy", "Later.", { errors, headers }), "r1");
  assert.equal(response.headers?.["Retry-After"], "2");
  assert.deepEqual((readBody(response) as { errors: unknown }).errors, errors);
});

test("problemResponse() does not reveal the cause", () => {
  const cause = new Error("secret place");
  const response = problemResponse(new Problem(500, "internal", "It failed.", { cause }), "r1");
  assert.doesNotMatch(JSON.stringify(response), /secret place/);
});

function readBody(response: HttpResponse): unknown {
  assert.equal(typeof response.body, "string");
  return JSON.parse(String(response.body));
}
