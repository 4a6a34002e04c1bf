import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse } from "../../src/base/http_message.ts";
import { Problem } from "../../src/base/problem.ts";
import { shown } from "../../src/base/shape.ts";
import type { LoadedEndpoint } from "../../src/hosting/check_endpoint.ts";
import { hostedOperation } from "../../src/hosting/handle.ts";
import { PAGES_OF_APPS } from "../../src/api/cors.ts";
import { createRouter, type Router } from "../../src/api/router.ts";
import { createOpenApi } from "../../src/api/system/openapi.ts";
import type { Context } from "../../src/mod.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { hostingServices, loadedEndpoint } from "../helpers/hosting.ts";
import { asFields, findOpenApiErrors, lookUp } from "../helpers/openapi_rules.ts";
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

test("an endpoint with scopes becomes an operation that needs them all", () => {
  const find = routerOf(endpoint("GET", "/orders/:id", ["orders", "read"]));
  assert.deepEqual(find("GET", "/orders/7")?.operation?.access, ["orders", "read"]);
});

test("an endpoint with an empty list of scopes needs a token, and is not public", () => {
  const find = routerOf(endpoint("GET", "/orders", []));
  assert.deepEqual(find("GET", "/orders")?.operation?.access, []);
});

test("an endpoint without scopes is public", () => {
  const find = routerOf(endpoint("GET", "/orders", undefined));
  assert.equal(find("GET", "/orders")?.operation?.access, "public");
});

test("an operation has the path of the pattern for the log, not the requested path", () => {
  const find = routerOf(endpoint("GET", "/orders/:id", []));
  assert.equal(find("GET", "/orders/secret")?.operation?.path, "/orders/:id");
});

test("every hosted operation allows CORS and uses problem details for errors", () => {
  const find = routerOf(endpoint("GET", "/orders", []));
  const operation = find("GET", "/orders")?.operation;
  assert.equal(operation?.cors, PAGES_OF_APPS);
  assert.ok(operation.errors === undefined || operation.errors === "problem");
});

test("a 401 that a handler throws names the scopes of its endpoint (RFC 6750 §3)", async () => {
  const refuse = () => Promise.reject({ status: 401 });
  const find = routerOf(endpoint("GET", "/orders", ["orders", "read"], refuse));
  await assert.rejects(call(find, "GET", "/orders", CALLER), (problem) => {
    assert.ok(problem instanceof Problem);
    assert.match(String(problem.headers["WWW-Authenticate"]), /^Bearer .*scope="orders read"/);
    return true;
  });
});

test("the OpenAPI document does not reveal the paths of the server's files", () => {
  const file = "/srv/gatepost/endpoints/orders.ts";
  const services = hostingServices();
  const operation = hostedOperation({ ...endpoint("GET", "/orders", []), file }, services);
  const { issuer } = services;
  const config = { profile: "none", authorizationServer: true } as const;
  const own = { config, issuer, events: [], scopes: [], scopeWords: new Map() };
  const document = createOpenApi([operation], own, () => true);

  assert.match(JSON.stringify(document), /Hosted at/);
  assert.doesNotMatch(JSON.stringify(document), /orders\.ts|\/srv/);
});

test("the OpenAPI document describes what an endpoint declares", () => {
  const services = hostingServices();
  const output = shown({ type: "object", properties: { ok: { type: "boolean" } } });
  const operation = hostedOperation({
    ...endpoint("POST", "/v1/orders/:id", []),
    summary: "Change an order",
    input: { params: shown({ type: "object", properties: { id: { type: "integer" } } }) },
    output,
    takesForms: true,
    limit: { count: 1, windowMs: 1_000, by: "caller" },
  }, services);
  const { issuer } = services;
  const config = { profile: "none", authorizationServer: true } as const;
  const own = { config, issuer, events: [], scopes: [], scopeWords: new Map() };
  const document = createOpenApi([operation], own, () => true);

  assert.deepEqual(findOpenApiErrors(document), []);
  const post = asFields(lookUp(document, "#/paths/~1v1~1orders~1{id}/post"));
  assert.deepEqual(
    [post["operationId"], post["summary"]],
    ["post_v1_orders_id", "Change an order"],
  );
  const schema = { type: "integer" };
  assert.deepEqual(post["parameters"], [{ name: "id", in: "path", required: true, schema }]);
  assert.ok(lookUp(post, "#/requestBody/content/application~1x-www-form-urlencoded"));
  for (const status of ["200", "201"]) {
    const schema = lookUp(post, `#/responses/${status}/content/application~1json/schema`);
    assert.deepEqual(schema, output.schema);
  }
  const limited = lookUp(document, String(lookUp(post, "#/responses/429/$ref")));
  const headers = Object.keys(asFields(asFields(limited)["headers"]));
  for (const name of ["Retry-After", "RateLimit", "RateLimit-Policy"]) {
    assert.ok(headers.includes(name), name);
  }
});

test("the OpenAPI document has the output at each success status of a method", () => {
  const output = shown({ type: "object" });
  const services = hostingServices();
  const statuses = (["GET", "POST", "PUT", "PATCH", "DELETE"] as const).map((method) =>
    Object.keys(hostedOperation({ ...endpoint(method, "/x", []), output }, services).responses)
  );
  const created = ["200", "201"];
  assert.deepEqual(statuses, [["200"], created, created, created, ["200"]]);
});

test("a callback of this service is refused, one of another Gatepost is not", async () => {
  const services = hostingServices({ deliveries: ["d1"] });
  const find = createRouter([hostedOperation(endpoint("POST", "/hook", undefined), services)]);
  const ask = (agent: string, id: string) =>
    call(find, "POST", "/hook", undefined, { headers: { "user-agent": agent, "webhook-id": id } });
  await assert.rejects(ask("Gatepost/1.0", "d1"), (problem) => {
    assert.ok(problem instanceof Problem);
    assert.deepEqual([problem.status, problem.code], [403, "own_callback"]);
    return true;
  });
  assert.equal((await ask("Gatepost/1.0", "d2")).status, 204);
  assert.equal((await ask("Proxy/1.0", "d1")).status, 204);
});

function endpoint(
  method: LoadedEndpoint["method"],
  path: string,
  scopes: readonly string[] | undefined,
  handle: (context: Context<unknown>) => unknown = () => undefined,
): LoadedEndpoint {
  return loadedEndpoint({
    method,
    path,
    ...(scopes ? { scope: scopes } : { public: true }),
    handle,
  });
}

function routerOf(...endpoints: LoadedEndpoint[]): Router {
  const services = hostingServices();
  return createRouter(endpoints.map((each) => hostedOperation(each, services)));
}

/** Calls the operation that is found, as the pipeline does. */
function call(
  find: Router,
  method: string,
  path: string,
  caller: Caller | undefined,
  more: Parameters<typeof sampleRequest>[0] = {},
): Promise<HttpResponse> {
  const match = find(method, path);
  assert.ok(match?.operation);
  const { operation, params } = match;
  return operation.handle({
    request: sampleRequest({ method, path, ...more }),
    params,
    caller,
    query: {},
    body: undefined,
    authenticateAgain: () => Promise.resolve(),
  });
}
