import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenApi, type HostedOperation } from "../../../src/api/system/openapi.ts";
import { asFields, findOpenApiFaults, lookUp } from "../../helpers/openapi_rules.ts";

function hosted(method: string, text: string, exportName = "run"): HostedOperation {
  return {
    method,
    pattern: { text },
    scopes: ["orders"],
    maxBodyBytes: undefined,
    emits: [],
    exportName,
  };
}

function documentOf(...endpoints: HostedOperation[]): Readonly<Record<string, unknown>> {
  return createOpenApi({
    version: "1.2.3",
    issuer: "https://api.example.com",
    routes: [],
    hosted: endpoints,
    events: [],
    scopes: ["consumer", "backend", "orders"],
    scopeWords: new Map([["orders", { description: "Place orders" }]]),
  }, () => true);
}

test("methods of one path shape are one path item, whatever their parameters are called", () => {
  const document = documentOf(
    hosted("GET", "/orders/:id", "read"),
    hosted("POST", "/orders/:order", "change"),
    hosted("DELETE", "/orders/*", "remove"),
    hosted("GET", "/orders/:id/lines/:line", "readLine"),
    hosted("PUT", "/orders/:order/lines/:number", "putLine"),
  );

  assert.deepEqual(findOpenApiFaults(document), []);
  const paths = asFields(document["paths"]);
  assert.deepEqual(Object.keys(paths), ["/orders/{id}", "/orders/{id}/lines/{line}"]);
  assert.deepEqual(Object.keys(asFields(paths["/orders/{id}"])), ["get", "post", "delete"]);
  for (const method of ["get", "post", "delete"]) {
    const parameters = lookUp(document, `#/paths/~1orders~1{id}/${method}/parameters`);
    assert.deepEqual(
      parameters,
      [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
    );
  }
  // The author's own name is still told.
  const description = lookUp(document, "#/paths/~1orders~1{id}/post/description");
  assert.match(String(description), /\/orders\/:order/);
});

test("the document, which anybody may read, does not tell where the server's files are", () => {
  const endpoint = { ...hosted("GET", "/orders"), file: "/srv/gatepost/endpoints/orders.ts" };

  assert.doesNotMatch(JSON.stringify(documentOf(endpoint)), /orders\.ts|\/srv/);
});

test("operation ids are unique, whatever modules call their exports", () => {
  const names = ["run", "run", "run_2", "größe", "gr_e", "default", "toString"];
  const document = documentOf(...names.map((name, at) => hosted("GET", `/${at}`, name)));

  assert.deepEqual(findOpenApiFaults(document), []);
  const ids = Object.values(asFields(document["paths"]))
    .map((item) => asFields(asFields(item)["get"])["operationId"]);
  assert.equal(new Set(ids).size, names.length);
});

test("every pattern that an endpoint may have gives a valid path", () => {
  const patterns =
    ["/", "/a/:b(\\d+)", "/a/:b?", "/f/*", "/g/:rest*", "/h{/:x}?", "/i.:ext", "/j\\:k"];
  const document = documentOf(...patterns.map((text, at) => hosted("POST", text, `run${at}`)));

  assert.deepEqual(findOpenApiFaults(document), []);
});
