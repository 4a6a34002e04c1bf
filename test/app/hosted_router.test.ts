import assert from "node:assert/strict";
import { test } from "node:test";
import { hostedRouter } from "../../src/app/hosted_router.ts";
import type { HttpResponse } from "../../src/base/http_message.ts";
import { Problem } from "../../src/base/problem.ts";
import type { LoadedEndpoint } from "../../src/hosting/check.ts";
import { parsePathPattern } from "../../src/api/path_pattern.ts";
import type { Router } from "../../src/api/router.ts";
import type { Context } from "../../src/mod.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { sampleRequest } from "../helpers/http_request.ts";

const CALLER: Caller = {
  sub: "u1",
  kind: "user",
  clientId: "a1",
  scopes: ["orders"],
  grantId: "g1",
  jti: "g12",
  expiresAtMs: 1,
};

test("an endpoint with scopes is a route that needs them all", () => {
  const find = routerOf(endpoint("GET", "/orders/:id", ["orders", "read"]));
  assert.deepEqual(find("GET", "/orders/7")?.route?.access, ["orders", "read"]);
});

test("an endpoint with an empty list of scopes needs a token, and is not public", () => {
  const find = routerOf(endpoint("GET", "/orders", []));
  assert.deepEqual(find("GET", "/orders")?.route?.access, []);
});

test("an endpoint without scopes is public", () => {
  const find = routerOf(endpoint("GET", "/orders", undefined));
  assert.equal(find("GET", "/orders")?.route?.access, "public");
});

test("a route has the pattern's path for the log, never the path that was asked for", () => {
  const find = routerOf(endpoint("GET", "/orders/:id", []));
  assert.equal(find("GET", "/orders/secret")?.route?.path, "/orders/:id");
});

test("every hosted route takes CORS and has problem details for errors", () => {
  const find = routerOf(endpoint("GET", "/orders", []));
  const route = find("GET", "/orders")?.route;
  assert.equal(route?.cors, true);
  assert.ok(route.errors === undefined || route.errors === "problem");
});

test("a 401 that a handler throws names the scopes of its endpoint (RFC 6750 §3)", async () => {
  const refuse = () => Promise.reject({ status: 401 });
  const find = routerOf(endpoint("GET", "/orders", ["orders", "read"], refuse));
  await assert.rejects(call(find, "GET", "/orders", CALLER), (problem) => {
    assert.ok(problem instanceof Problem);
    assert.match(problem.headers["WWW-Authenticate"] ?? "", /^Bearer .*scope="orders read"/);
    return true;
  });
});

test("parameters come decoded, and HEAD finds GET", () => {
  const find = routerOf(endpoint("GET", "/orders/:id", []));
  assert.deepEqual({ ...find("HEAD", "/orders/a%20b")?.params }, { id: "a b" });
  assert.equal(find("HEAD", "/orders/7")?.route?.method, "GET");
});

test("another method finds what the path takes, and what its errors look like", () => {
  const find = routerOf(endpoint("GET", "/orders", []), endpoint("POST", "/orders", []));
  for (const method of ["DELETE", "OPTIONS", "PATCH", "TRACE"]) {
    const match = find(method, "/orders");
    assert.equal(match?.route, undefined, method);
    assert.deepEqual(match?.methods.toSorted(), ["GET", "HEAD", "OPTIONS", "POST"]);
    assert.equal(match?.sibling.cors, true);
  }
});

test("a path that no endpoint has is not found", () => {
  const find = routerOf(endpoint("GET", "/orders", []));
  for (const path of ["/", "/order", "/orders/7", "/orders/"]) {
    assert.equal(find("GET", path), undefined, path);
  }
  assert.equal(routerOf()("GET", "/"), undefined);
});

test("a handler gets the caller of a protected route, without grant and token", async () => {
  const seen: unknown[] = [];
  const find = routerOf(endpoint("GET", "/orders/:id", ["orders"], ({ caller, params }) => {
    seen.push({ ...caller }, { ...params });
    return { ok: true };
  }));
  const answer = await call(find, "GET", "/orders/7", CALLER);
  assert.equal(answer.status, 200);
  assert.deepEqual(seen, [
    { sub: "u1", kind: "user", clientId: "a1", scopes: ["orders"] },
    { id: "7" },
  ]);
});

test("a handler of a public route gets no caller", async () => {
  const seen: unknown[] = [];
  const see = ({ caller }: Context<unknown>) => void seen.push(caller);
  const find = routerOf(endpoint("GET", "/open", undefined, see));
  assert.equal((await call(find, "GET", "/open", CALLER)).status, 204);
  assert.deepEqual(seen, [undefined]);
});

function endpoint(
  method: LoadedEndpoint["method"],
  path: string,
  scopes: readonly string[] | undefined,
  handle: (context: Context<unknown>) => unknown = () => undefined,
): LoadedEndpoint {
  const pattern = parsePathPattern(path, []);
  assert.ok(pattern);
  return {
    file: "orders.ts",
    exportName: "orders",
    method,
    pattern,
    scopes,
    emits: [],
    maxBodyBytes: undefined,
    handle,
  };
}

function routerOf(...endpoints: LoadedEndpoint[]): Router {
  const ignore = () => {};
  return hostedRouter(endpoints, {
    maxBodyBytes: 1_000,
    maxPayloadBytes: 1_000,
    baseUrl: "https://api.example",
    newEventId: () => "e1",
    isPrincipal: () => true,
    commit: () => Promise.resolve(),
    isOwnDelivery: () => Promise.resolve(false),
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
  });
}

/** Calls what is found as the pipeline does. */
function call(find: Router, method: string, path: string, caller: Caller): Promise<HttpResponse> {
  const match = find(method, path);
  assert.ok(match?.route);
  const { route, params } = match;
  const context = { request: sampleRequest({ method, path }), params };
  return route.access === "public" ? route.handle(context) : route.handle({ ...context, caller });
}
