import assert from "node:assert/strict";
import { test } from "node:test";
import { corsPolicy } from "../../src/api/cors.ts";
import type { Operation } from "../../src/api/operation.ts";
import { createRouter } from "../../src/api/router.ts";
import { Problem } from "../../src/base/problem.ts";
import { sampleRequest } from "../helpers/http_request.ts";
import { sampleOperation } from "../helpers/operation.ts";
import { openPipeline, openStage, ORIGIN, valuesOf } from "./pipeline_stage.ts";

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

test("a preflight gets the CORS policy of the method that it asks for", async () => {
  const open = sampleOperation({ cors: corsPolicy(["https://shop.example"], ["X-Cart"]) });
  const closed = sampleOperation({ method: "POST" });
  const pipeline = openPipeline([open, closed], { limit: () => assert.fail("called") });
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

test("with a base path nothing outside it is found except metadata", async () => {
  const stage = openStage(() => ({ status: 200 }), { path: "/.well-known/x" }, "/base");
  assert.equal((await stage.ask({ path: "/base/.well-known/x" })).status, 200);
  assert.equal((await stage.ask({ path: "/.well-known/x/base" })).status, 200);
  assert.equal((await stage.ask({ path: "/.well-known/x" })).status, 404);
  assert.equal((await stage.ask({ path: "/basex/.well-known/x" })).status, 404);
});
