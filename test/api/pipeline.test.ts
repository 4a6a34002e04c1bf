import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse, HttpRequest } from "../../src/base/http_message.ts";
import type { Log, LogFields } from "../../src/base/log.ts";
import { Problem } from "../../src/base/problem.ts";
import { object, optional, record, TEXT } from "../../src/base/shape.ts";
import type { Bearer } from "../../src/api/bearer.ts";
import { corsPolicy, PAGES_OF_APPS } from "../../src/api/cors.ts";
import type { Operation } from "../../src/api/operation.ts";
import { createPipeline } from "../../src/api/pipeline.ts";
import type { LimitRequest } from "../../src/api/rate_limit.ts";
import { createRouter, type Router } from "../../src/api/router.ts";
import { pagination } from "../../src/api/pagination.ts";
import { OAuthError } from "../../src/oauth/errors.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { sampleRequest } from "../helpers/http_request.ts";
import { sampleOperation } from "../helpers/operation.ts";

const ISSUER = "https://api.northwind.example";
const ORIGIN = "https://spa.example";
const CALLER: Caller = {
  sub: "u1",
  kind: "user",
  clientId: "a1",
  scopes: [],
  grantId: "g1",
  jti: "g12",
  expiresAtMs: 1,
};

interface Stage {
  ask(request?: Partial<HttpRequest>): Promise<HttpResponse>;
  readonly observed: (readonly [string, string, number, number])[];
  readonly logged: (readonly [string, LogFields])[];
}

const bearer: Bearer = {
  verify: () => Promise.resolve(undefined),
  async authenticate() {
    throw new Problem(401, "unauthorized", "No.", { headers: { "WWW-Authenticate": "Bearer" } });
  },
};

/** A pipeline with one public operation at /x, whose clock advances by 1.23456 ms per call. */
function openStage(
  handle: () => HttpResponse,
  more: Partial<Operation> = {},
  basePath = "",
  routers?: readonly [Router, ...Router[]],
): Stage {
  const observed: (readonly [string, string, number, number])[] = [];
  const logged: (readonly [string, LogFields])[] = [];
  const write = (msg: string, fields: LogFields = {}) => void logged.push([msg, fields]);
  const log: Log = { debug: write, info: write, warn: write, error: write };
  let nowMs = 0;
  const operation = sampleOperation({ cors: PAGES_OF_APPS, handle: async () => handle(), ...more });
  const pipeline = createPipeline({
    routers: routers ?? [createRouter([operation])],
    bearer,
    issuer: ISSUER,
    isOriginAllowed: async (origin) => origin === ORIGIN,
    site: { name: "Northwind", host: "api.northwind.example", basePath },
    limit: () => undefined,
    maxBodyBytes: 100,
    log,
    now: () => nowMs += 1.23456,
    observe: (...seen) => void observed.push(seen),
  });
  return {
    observed,
    logged,
    ask: (request = {}) =>
      pipeline(sampleRequest({ path: "/x", ...request })),
  };
}

/** The header's values, whatever the case of its name. */
function valuesOf(response: HttpResponse, name: string): (string | string[])[] {
  return Object.entries(response.headers ?? {}).filter(([key]) => key.toLowerCase() === name)
    .map(([, value]) => value);
}

test("no header is sent twice, whatever headers the handler sets", async () => {
  const headers = {
    "X-Content-Type-Options": "sniff",
    "X-Request-Id": "mine",
    "content-type": "text/plain",
    "Vary": "Accept, Origin",
    "Access-Control-Allow-Origin": "*",
  };
  const { ask } = openStage(() => ({ status: 200, headers, body: "x" }));
  const response = await ask({ headers: { origin: ORIGIN } });
  assert.deepEqual(valuesOf(response, "x-content-type-options"), ["nosniff"]);
  assert.deepEqual(valuesOf(response, "x-request-id"), ["r1"]);
  assert.deepEqual(valuesOf(response, "content-type"), ["text/plain"]);
  assert.deepEqual(valuesOf(response, "vary"), ["Origin, Accept"]);
  assert.deepEqual(valuesOf(response, "access-control-allow-origin"), ["*"]);
});

test("several values of one header are all kept", async () => {
  const headers = { "Set-Cookie": ["a=1", "b=2"] };
  const { ask } = openStage(() => ({ status: 200, headers }));
  assert.deepEqual(valuesOf(await ask(), "set-cookie"), [["a=1", "b=2"]]);
});

test("every response has a request id and nosniff, refusals too", async () => {
  for (const request of [{}, { path: "/nowhere" }, { method: "TRACE" }, { path: "/%2f" }]) {
    const response = await openStage(() => ({ status: 200 })).ask(request);
    assert.deepEqual(valuesOf(response, "x-request-id"), ["r1"]);
    assert.deepEqual(valuesOf(response, "x-content-type-options"), ["nosniff"]);
  }
});

test("the log and the metrics get each request once, with the route's pattern", async () => {
  const { ask, logged, observed } = openStage(() => ({ status: 200 }));
  await ask({ query: "secret=1" });
  await ask({ path: "/secret" });
  const line = { method: "GET", ms: 1.23, request_id: "r1", sub: undefined };
  assert.deepEqual(logged, [
    ["request", { ...line, route: "/x", status: 200 }],
    ["request", { ...line, route: "", status: 404 }],
  ]);
  assert.deepEqual(observed.map(([route, method, status]) => [route, method, status]), [
    ["/x", "GET", 200],
    ["", "GET", 404],
  ]);
  assert.ok(Math.abs((observed[0]?.[3] ?? 0) - 1.23456) < 1e-9);
});

test("HEAD is answered where GET is; 405 lists the methods of the path", async () => {
  const { ask } = openStage(() => ({ status: 200, body: "x" }));
  assert.equal((await ask({ method: "HEAD" })).status, 200);
  const refused = await ask({ method: "POST" });
  assert.equal(refused.status, 405);
  assert.deepEqual(valuesOf(refused, "allow"), ["GET, HEAD, OPTIONS"]);
});

test("a path in several routers has the methods of all, unless the first one has it", async () => {
  const at = (method: Operation["method"], status: number) =>
    sampleOperation({ method, handle: async () => ({ status }) });
  const own = createRouter([at("POST", 201)]);
  const more = createRouter([at("GET", 202), at("POST", 203)]);
  const alone = openStage(() => ({ status: 200 }), {}, "", [own, more]);
  assert.equal((await alone.ask({ method: "GET" })).status, 405);
  const { ask } = openStage(() => ({ status: 200 }), {}, "", [createRouter([]), own, more]);
  for (const [method, status] of [["POST", 201], ["GET", 202], ["HEAD", 202]] as const) {
    assert.equal((await ask({ method })).status, status, method);
  }
  for (const [method, status] of [["DELETE", 405], ["OPTIONS", 204]] as const) {
    const response = await ask({ method });
    assert.equal(response.status, status);
    assert.deepEqual(valuesOf(response, "allow"), ["POST, OPTIONS, GET, HEAD"]);
  }
});

test("OPTIONS * lists the methods of the server; other methods of * are refused", async () => {
  const { ask } = openStage(() => ({ status: 200 }));
  const options = await ask({ method: "OPTIONS", path: "*" });
  assert.equal(options.status, 204);
  assert.deepEqual(valuesOf(options, "allow"), ["GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"]);
  assert.equal((await ask({ path: "*" })).status, 400);
});

test("an allowed origin may read responses, refusals too; no other origin may", async () => {
  const { ask } = openStage(() => {
    throw new Problem(409, "conflict", "No.");
  });
  const allowed = await ask({ headers: { origin: ORIGIN } });
  assert.equal(allowed.status, 409);
  assert.deepEqual(valuesOf(allowed, "access-control-allow-origin"), [ORIGIN]);
  const other = await ask({ headers: { origin: "https://evil.example" } });
  assert.deepEqual(valuesOf(other, "access-control-allow-origin"), []);
  assert.deepEqual(valuesOf(other, "vary"), ["Origin"]);
});

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

test("with a base path nothing outside it is found except metadata", async () => {
  const stage = openStage(() => ({ status: 200 }), { path: "/.well-known/x" }, "/base");
  assert.equal((await stage.ask({ path: "/base/.well-known/x" })).status, 200);
  assert.equal((await stage.ask({ path: "/.well-known/x/base" })).status, 200);
  assert.equal((await stage.ask({ path: "/.well-known/x" })).status, 404);
  assert.equal((await stage.ask({ path: "/basex/.well-known/x" })).status, 404);
});

/** A pipeline that accepts a token `checks` times, with one operation that needs a token. */
function openProtectedStage(
  checks: number,
  more: Partial<Operation>,
  limit: LimitRequest = () => undefined,
) {
  let left = checks;
  const ended: Bearer = {
    ...bearer,
    authenticate: async (request, scopes) =>
      left-- > 0 ? CALLER : await bearer.authenticate(request, scopes),
  };
  const operation = sampleOperation({ method: "POST", access: [], ...more });
  const pipeline = createPipeline({
    routers: [createRouter([operation])],
    bearer: ended,
    issuer: ISSUER,
    isOriginAllowed: () => Promise.resolve(false),
    site: { name: "Northwind", host: "api.northwind.example", basePath: "" },
    limit,
    maxBodyBytes: 100,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    now: () => 0,
    observe: () => {},
  });
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

test("a preflight gets the CORS policy of the method that it asks for", async () => {
  const open = sampleOperation({ cors: corsPolicy(["https://shop.example"], ["X-Cart"]) });
  const closed = sampleOperation({ method: "POST" });
  const pipeline = createPipeline({
    routers: [createRouter([open, closed])],
    bearer,
    issuer: ISSUER,
    isOriginAllowed: () => Promise.resolve(false),
    limit: () => ({ headers: QUOTAS, refusal: REFUSAL }), // never called
    site: { name: "Northwind", host: "api.northwind.example", basePath: "" },
    maxBodyBytes: 100,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    now: () => 0,
    observe: () => {},
  });
  const ask = async (method: string | undefined) => {
    const origin = "https://shop.example";
    const asked = method === undefined ? {} : { "access-control-request-method": method };
    const headers = { origin, ...asked };
    const response = await pipeline(sampleRequest({ method: "OPTIONS", path: "/x", headers }));
    assert.equal(response.status, 204);
    return response.headers?.["Access-Control-Allow-Headers"];
  };
  for (const method of ["GET", "HEAD", "DELETE", "nonsense", undefined]) {
    assert.match(String(await ask(method)), /, X-Cart$/);
  }
  assert.equal(await ask("POST"), undefined);
});
