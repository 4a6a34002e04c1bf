import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bearer } from "../../src/api/bearer.ts";
import type { Operation } from "../../src/api/operation.ts";
import { pagination } from "../../src/api/pagination.ts";
import type { LimitRequest } from "../../src/api/rate_limit.ts";
import type { HttpResponse } from "../../src/base/http_message.ts";
import { Problem } from "../../src/base/problem.ts";
import { object, optional, record, TEXT } from "../../src/base/shape.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { sampleRequest } from "../helpers/http_request.ts";
import { sampleOperation } from "../helpers/operation.ts";
import { NO_BEARER, openPipeline } from "./pipeline_stage.ts";

const CALLER: Caller = {
  sub: "u1",
  kind: "user",
  clientId: "a1",
  scopes: [],
  grantId: "g1",
  jti: "g12",
  expiresAtMs: 1,
};

/** A pipeline that accepts a token `checks` times, with one operation that needs a token. */
function openProtectedStage(
  checks: number,
  more: Partial<Operation>,
  limit: LimitRequest = () => undefined,
) {
  let left = checks;
  const ended: Pick<Bearer, "authenticate"> = {
    authenticate: async (request, scopes) =>
      left-- > 0 ? CALLER : await NO_BEARER.authenticate(request, scopes),
  };
  const operation = sampleOperation({ method: "POST", access: [], ...more });
  const pipeline = openPipeline([operation], { bearer: ended, limit });
  return {
    checks: () => checks - left,
    send: (body: string, type = "application/json") =>
      pipeline(sampleRequest({
        method: "POST",
        path: "/x",
        query: "limit=5",
        headers: { "content-type": type, "content-length": String(body.length) },
        body,
      })),
  };
}

test("a token that ends while the body is read is refused; the handler does nothing", async () => {
  let calls = 0;
  const handle = () => Promise.resolve({ status: 200 + calls++ });
  const parsed = openProtectedStage(1, { body: record({ a: TEXT }), handle });
  assert.equal((await parsed.send('{"a":"b"}')).status, 401);
  const alone = openProtectedStage(1, {
    async handle({ request, authenticateAgain }) {
      await request.readBody(100);
      await authenticateAgain();
      return handle();
    },
  });
  assert.equal((await alone.send("x")).status, 401);
  assert.equal(calls, 0);
  const good = openProtectedStage(2, { body: record({ a: TEXT }), handle });
  assert.equal((await good.send('{"a":"b"}')).status, 200);
});

test("a handler gets the parsed query and body", async () => {
  const seen: unknown[] = [];
  const { send } = openProtectedStage(2, {
    query: pagination(),
    body: optional(object({ a: TEXT })),
    handle({ query, body }) {
      seen.push(query, body);
      return Promise.resolve({ status: 204 });
    },
  });
  assert.equal((await send('{"a":"b"}')).status, 204);
  assert.deepEqual(seen, [{ limit: 5 }, { a: "b" }]);
});

test("all errors of a body are listed; its type and size are checked first", async () => {
  const refuse = async (body: string, type?: string) => {
    const stage = openProtectedStage(1, { body: object({ a: TEXT }) });
    const { status, body: response } = await stage.send(body, type);
    assert.equal(stage.checks(), 1, "refused for its body");
    return [status, JSON.parse(String(response)).errors];
  };
  assert.deepEqual(await refuse('{"b":1}'), [400, [
    { pointer: "/a", detail: "Is required." },
    { pointer: "/b", detail: "Unknown member." },
  ]]);
  assert.deepEqual(await refuse("{}", "text/plain"), [415, undefined]);
  assert.deepEqual(await refuse(`"${"x".repeat(100)}"`), [413, undefined]);
});

const QUOTAS = { "RateLimit-Policy": '"user";q=1;w=1', RateLimit: '"user";r=0;t=1' };
const REFUSAL = new Problem(429, "rate_limited", "Too many.", { headers: { "Retry-After": "1" } });

/** A pipeline whose rate limit refuses all requests, or none, and notes whom it counts. */
function openLimitedStage(
  more: Partial<Operation>,
  { checks = 9, refusal }: { checks?: number; refusal?: Problem } = { refusal: REFUSAL },
) {
  const counted: (string | undefined)[] = [];
  const stage = openProtectedStage(checks, more, (_operation, caller) => {
    counted.push(caller?.sub);
    return { headers: QUOTAS, refusal };
  });
  return { ...stage, counted };
}

function quotasOf({ headers = {} }: HttpResponse) {
  return { "RateLimit-Policy": headers["RateLimit-Policy"], RateLimit: headers["RateLimit"] };
}

test("a request past its rate limit gets 429 before its body is read", async () => {
  const read = { isBody: false };
  const body = { ...TEXT, parse: () => String(read.isBody = true) };
  const stage = openLimitedStage({ body });
  const response = await stage.send('"a"');
  assert.deepEqual([response.status, read.isBody, stage.counted], [429, false, ["u1"]]);
  assert.match(String(response.body), /urn:gatepost:problem:rate_limited/);
  assert.equal(response.headers?.["Retry-After"], "1");
  assert.deepEqual(quotasOf(response), QUOTAS);
});

test("a request without a valid token does not count against a rate limit", async () => {
  const stage = openLimitedStage({}, { checks: 0 });
  assert.equal((await stage.send("{}")).status, 401);
  assert.deepEqual(stage.counted, []);
});

test("a request counts once, and its response has RateLimit headers, an error too", async () => {
  const failing = () => Promise.reject(new Error("no"));
  for (const [status, more] of [
    [204, {}],
    [400, { body: TEXT }],
    [500, { handle: failing }],
    [200, { handle: async () => ({ status: 200, headers: { RateLimit: '"other";r=1' } }) }],
  ] as const) {
    const stage = openLimitedStage(more, {});
    const response = await stage.send("{}");
    assert.deepEqual([response.status, stage.counted], [status, ["u1"]]);
    assert.deepEqual(quotasOf(response), QUOTAS);
  }
});

test("an OAuth endpoint past its rate limit responds with an OAuth error", async () => {
  const { status, headers, body } = await openLimitedStage({ errors: "oauth" }).send("a=b");
  assert.deepEqual([status, headers?.["Retry-After"]], [429, "1"]);
  assert.equal(JSON.parse(String(body)).error, "temporarily_unavailable");
});
