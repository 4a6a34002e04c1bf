import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "../../../src/api/operation.ts";
import { createOpenApi } from "../../../src/api/system/openapi.ts";
import { toTemplate } from "../../../src/api/system/openapi_operation.ts";
import { asFields, findOpenApiErrors, lookUp } from "../../helpers/openapi_rules.ts";
import { sampleOperation } from "../../helpers/operation.ts";

function hosted(method: Operation["method"], path: string, exportName = "run"): Operation {
  return sampleOperation({ id: exportName, method, path, access: ["orders"], emits: [] });
}

function documentOf(...operations: Operation[]): Readonly<Record<string, unknown>> {
  return createOpenApi(operations, {
    issuer: "https://api.example.com",
    events: [],
    scopes: ["consumer", "backend", "orders"],
    scopeWords: new Map([["orders", { description: "Place orders", grave: false }]]),
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

  assert.deepEqual(findOpenApiErrors(document), []);
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
  // The author's own name is still shown.
  const description = lookUp(document, "#/paths/~1orders~1{id}/post/description");
  assert.match(String(description), /\/orders\/:order/);
});

test("operation ids are unique, whatever modules call their exports", () => {
  const names = ["run", "run", "run_2", "größe", "gr_e", "default", "toString"];
  const document = documentOf(...names.map((name, at) => hosted("GET", `/${at}`, name)));

  assert.deepEqual(findOpenApiErrors(document), []);
  const ids = Object.values(asFields(document["paths"]))
    .map((item) => asFields(asFields(item)["get"])["operationId"]);
  assert.equal(new Set(ids).size, names.length);
});

test("every pattern that an endpoint may have gives a valid path", () => {
  const patterns =
    ["/", "/a/:b(\\d+)", "/a/:b?", "/f/*", "/g/:rest*", "/h{/:x}?", "/i.:ext", "/j\\:k"];
  const document = documentOf(...patterns.map((text, at) => hosted("POST", text, `run${at}`)));

  assert.deepEqual(findOpenApiErrors(document), []);
});

// a URLPattern's pathname, OpenAPI's template
const TEMPLATES: readonly [pattern: string, text: string][] = [
  ["/", "/"],
  ["/orders/:id", "/orders/{id}"],
  ["/a/:b/c/:d", "/a/{b}/c/{d}"],
  ["/files/*", "/files/{0}"],
  ["/:id(\\d+)", "/{id}"],
  ["/:id(\\d(?:a|b)+)/x", "/{id}/x"],
  ["/(\\d+)/(a|b)", "/{0}/{1}"],
  ["/:name.json", "/{name}.json"],
  ["/a{/:b}?", "/a/{b}"],
  ["/a/:rest*", "/a/{rest}"],
  ["/a\\:b", "/a:b"],
];

for (const [pattern, text] of TEMPLATES) {
  test(`toTemplate() makes ${text} of ${pattern}`, () => assert.equal(toTemplate(pattern), text));
}
