import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "../../src/api/operation.ts";
import { Problem } from "../../src/base/problem.ts";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { OAuthError } from "../../src/oauth/errors.ts";
import { openStage, valuesOf } from "./pipeline_stage.ts";

// what is thrown, the shape of errors, the status, what the body says
type Thrown = [what: unknown, errors: Operation["errors"], status: number, says: RegExp];
const THROWN: readonly Thrown[] = [
  [new Problem(409, "conflict", "No."), "problem", 409, /urn:gatepost:problem:conflict/],
  [new Error("secret"), "problem", 500, /urn:gatepost:problem:internal/],
  ["secret", "problem", 500, /urn:gatepost:problem:internal/],
  [new UnavailableError("secret"), "problem", 503, /urn:gatepost:problem:unavailable/],
  [new OAuthError("invalid_grant", "No."), "oauth", 400, /"error":"invalid_grant"/],
  [new Problem(415, "unsupported_media_type", "No."), "oauth", 400, /"error":"invalid_request"/],
  [new Problem(413, "too_large", "No."), "oauth", 413, /"error":"invalid_request"/],
  [new Problem(429, "throttled", "No."), "oauth", 429, /"error":/],
  [new UnavailableError("secret"), "oauth", 503, /"error":"temporarily_unavailable"/],
  [new OutcomeUnknownError("secret"), "problem", 503, /urn:gatepost:problem:outcome_unknown/],
  [new OutcomeUnknownError("secret"), "oauth", 503,
    /"temporarily_unavailable".*"It is not known whether this was stored\. Repeat it; /],
  [new OutcomeUnknownError("secret"), "page", 503, /It is not known whether this was stored/],
  [new Error("secret"), "oauth", 500, /"error":"server_error"/],
  [new Problem(403, "foreign_form", "No."), "page", 403, /<h1/],
  [new Error("secret"), "page", 500, /<h1/],
];

for (const [thrown, errors, status, says] of THROWN) {
  const name = thrown instanceof Error ? `${thrown.name} ${thrown.message}` : String(thrown);
  test(`a thrown ${name} becomes ${status} in the shape ${errors}`, async () => {
    const { ask } = openStage(() => {
      throw thrown;
    }, { errors: errors ?? "problem" });
    const response = await ask();
    assert.equal(response.status, status);
    assert.match(String(response.body), says);
    assert.doesNotMatch(String(response.body), /secret/);
    if (status === 503) assert.deepEqual(valuesOf(response, "retry-after"), ["2"]);
  });
}

test("a 503 says that nothing was stored, unless the request is a GET", async () => {
  for (const [method, detail] of [
    ["GET", "Storage is unavailable."],
    ["POST", "Storage is unavailable; this was not stored."],
  ] as const) {
    const { ask } = openStage(() => {
      throw new UnavailableError("gone");
    }, { method });
    assert.equal(JSON.parse(String((await ask({ method })).body)).detail, detail);
  }
});

test("after a disconnect an error is 499, and a refusal is only logged as 499", async () => {
  const statuses: unknown[] = [];
  for (const thrown of [new Error("aborted"), new Problem(409, "conflict", "No.")]) {
    const { ask, logged } = openStage(() => {
      throw thrown;
    });
    statuses.push((await ask({ isGone: true })).status, logged.at(-1)?.[1]["status"]);
  }
  assert.deepEqual(statuses, [499, 499, 409, 499]);
});

test("an unknown path is a page for a browser, a problem document for a program", async () => {
  const { ask } = openStage(() => ({ status: 200 }));
  const chromium = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
  const page = "text/html; charset=utf-8";
  const problem = "application/problem+json";
  for (const [method, accept, type] of [
    ["GET", chromium, page],
    ["HEAD", chromium, page],
    ["POST", chromium, problem],
    ["GET", "*/*", problem],
    ["GET", "application/json, text/html", problem],
    ["GET", undefined, problem],
  ] as const) {
    const response = await ask({ method, path: "/nowhere", headers: { accept } });
    assert.equal(response.status, 404);
    assert.deepEqual(valuesOf(response, "content-type"), [type], `${method} ${accept}`);
  }
  const found = await ask({ method: "DELETE", headers: { accept: chromium } });
  assert.deepEqual(valuesOf(found, "content-type"), [problem]);
});
