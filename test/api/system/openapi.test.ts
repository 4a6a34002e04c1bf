import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Operation } from "../../../src/api/operation.ts";
import { createOpenApi } from "../../../src/api/system/openapi.ts";
import { toTemplates } from "../../../src/api/system/openapi_operation.ts";
import { shown } from "../../../src/base/shape.ts";
import { asFields, findOpenApiErrors, lookUp } from "../../helpers/openapi_rules.ts";
import { sampleOperation } from "../../helpers/operation.ts";

function hosted(method: Operation["method"], path: string, more: Partial<Operation> = {}) {
  const rest = { id: `${method} ${path}`, responses: {}, emits: [], ...more };
  return sampleOperation({ method, path, access: ["orders"], ...rest });
}

function documentOf(...operations: Operation[]): Readonly<Record<string, unknown>> {
  return createOpenApi(operations, {
    config: { profile: "none", authorizationServer: true },
    issuer: "https://api.example.com",
    events: [],
    scopes: ["consumer", "backend", "orders"],
    scopeWords: new Map([["orders", { description: "Place orders", grave: false }]]),
  }, () => true);
}

test("methods of one path shape are one path item, whatever their parameters are called", () => {
  const document = documentOf(
    hosted("GET", "/orders/:id"),
    hosted("POST", "/orders/:order"),
    hosted("DELETE", "/orders/*"),
    hosted("GET", "/orders/:id/lines/:line"),
    hosted("PUT", "/orders/:order/lines/:number"),
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

test("a wildcard has a name that client generators can use for a variable", () => {
  const params = shown({ type: "object", properties: { 0: { description: "Its path" } } });
  const document = documentOf(hosted("GET", "/files/*/(\\d+)", { input: { params } }));

  assert.deepEqual(findOpenApiErrors(document), []);
  assert.deepEqual(Object.keys(asFields(document["paths"])), ["/files/{unnamed-0}/{unnamed-1}"]);
  const item = lookUp(document, "#/paths/~1files~1{unnamed-0}~1{unnamed-1}/get");
  const { parameters, operationId } = asFields(item);
  assert.deepEqual(parameters, [
    { name: "unnamed-0", in: "path", description: "Its path", required: true, schema: {} },
    { name: "unnamed-1", in: "path", required: true, schema: { type: "string" } },
  ]);
  assert.equal(operationId, "get_files_by_0_by_1"); // without "unnamed"
});

test("every pattern that an endpoint may have gives a valid path", () => {
  const patterns =
    ["/", "/a/:b(\\d+)", "/a/:b?", "/f/*", "/g/:rest*", "/h{/:x}?", "/i.:ext", "/j\\:k"];
  const document = documentOf(...patterns.map((text) => hosted("POST", text)));

  assert.deepEqual(findOpenApiErrors(document), []);
});

// a URLPattern's pathname, OpenAPI's templates
const TEMPLATES: readonly [pattern: string, ...templates: string[]][] = [
  ["/", "/"],
  ["/orders/:id", "/orders/{id}"],
  ["/a/:b/c/:d", "/a/{b}/c/{d}"],
  ["/files/*", "/files/{0}"],
  ["/:id(\\d+)", "/{id}"],
  ["/:id(\\d(?:a|7)+)/x", "/{id}/x"],
  ["/(\\d+)/(a|7+)", "/{0}/{1}"],
  ["/:name.json", "/{name}.json"],
  ["/a\\:b", "/a:b"],
  ["/a\\{b\\}\\?", "/a%7Bb%7D%3F"],
  ["/cat/:a/:b?", "/cat/{a}/{b}", "/cat/{a}"],
  ["/a{/:b}?", "/a/{b}", "/a"],
  ["/a{.json}?", "/a.json", "/a"],
  ["/a/:b(\\d+)?/c", "/a/{b}/c", "/a/c"],
  ["/a/:rest*", "/a/{rest}", "/a"],
  ["/a/:rest+", "/a/{rest}"],
  ["/a/*?", "/a/{0}", "/a"],
  ["/:a?", "/{a}"],
  ["/a/:b?/:c?", "/a/{b}/{c}", "/a/{b}", "/a/{c}", "/a"],
];

for (const [pattern, ...templates] of TEMPLATES) {
  test(`toTemplates() makes ${templates.join(" and ")} of ${pattern}`, () => {
    assert.deepEqual(toTemplates(pattern), templates);
    for (const template of templates) {
      const path = template.replace(/\{.*?\}/g, "77");
      assert.ok(new URLPattern({ pathname: pattern }).test({ pathname: path }), path);
    }
  });
}

describe("an optional segment", () => {
  const cat = hosted("GET", "/cat/:a/:b?");
  const ids = (document: Readonly<Record<string, unknown>>) =>
    Object.entries(asFields(document["paths"])).map(([path, item]) =>
      [path, asFields(asFields(item)["get"])["operationId"]]
    );

  test("becomes two paths, each with its own parameters and operation id", () => {
    const document = documentOf(cat);
    assert.deepEqual(findOpenApiErrors(document), []);
    assert.deepEqual(ids(document), [
      ["/cat/{a}/{b}", "get_cat_by_a_by_b"],
      ["/cat/{a}", "get_cat_by_a"],
    ]);
  });

  test("does not replace an endpoint that has precedence on one of its paths", () => {
    const document = documentOf(hosted("GET", "/cat/:a", { summary: "One cat" }), cat);
    assert.deepEqual(findOpenApiErrors(document), []);
    const summary = lookUp(document, "#/paths/~1cat~1{a}/get/summary");
    assert.equal(summary, "One cat");
  });
});

test("the id of a hosted endpoint does not depend on the others or their order", () => {
  const endpoints = ["/a/:b?", "/a/:c", "/a/b", "/d"].map((path) => hosted("GET", path));
  const idOf = (document: object, path: string) =>
    lookUp(document, `#/paths/${path.replaceAll("/", "~1")}/get/operationId`);
  const all = documentOf(...endpoints);
  for (const path of ["/a/b", "/d"]) {
    assert.equal(idOf(documentOf(hosted("GET", path)), path), idOf(all, path));
    assert.equal(idOf(documentOf(...endpoints.toReversed()), path), idOf(all, path));
  }
});

describe("the document of a hosted endpoint", () => {
  const ID = { type: "integer", description: "A number" };
  const describe = (more: Partial<Operation>, method: Operation["method"] = "POST") => {
    const document = documentOf(hosted(method, "/orders/:id", more));
    assert.deepEqual(findOpenApiErrors(document), []);
    return asFields(lookUp(document, `#/paths/~1orders~1{id}/${method.toLowerCase()}`));
  };
  const types = (operation: object) =>
    Object.keys(asFields(lookUp(operation, "#/requestBody/content")));

  test("shows its parameters under the names that the path has", () => {
    const params = shown({ type: "object", properties: { order: ID } });
    const document = documentOf(
      hosted("GET", "/orders/:id"),
      hosted("PUT", "/orders/:order", { input: { params } }),
    );
    assert.deepEqual(lookUp(document, "#/paths/~1orders~1{id}/put/parameters"), [{
      name: "id",
      in: "path",
      description: "A number",
      required: true,
      schema: { type: "integer" },
    }]);
  });

  test("shows each member of its query as a parameter, optional with a default", () => {
    const query = shown({
      type: "object",
      properties: { q: ID, limit: { type: "integer", default: 10 }, page: { type: "string" } },
      required: ["q", "limit"],
    });
    const { parameters, responses } = describe({ input: { query } }, "GET");
    assert.deepEqual([parameters].flat().slice(1), [
      { name: "q", in: "query", description: "A number", required: true,
        schema: { type: "integer" } },
      { name: "limit", in: "query", schema: { type: "integer", default: 10 } },
      { name: "page", in: "query", schema: { type: "string" } },
    ]);
    assert.ok(asFields(responses)["400"]);
  });

  test("shows a member of its query that is required and nothing else", () => {
    const query = shown({ type: "object", properties: { a: {} }, required: ["a", "b"] });
    const { parameters } = describe({ input: { query } }, "GET");
    assert.deepEqual([parameters].flat().slice(1), [
      { name: "a", in: "query", required: true, schema: {} },
      { name: "b", in: "query", required: true, schema: { type: "string" } },
    ]);
  });

  test("leaves out a query that is not an object", () => {
    const { parameters } = describe({ input: { query: shown({ anyOf: [{}] }) } }, "GET");
    assert.equal([parameters].flat().length, 1);
  });

  test("shows that a wrong Idempotency-Key is refused", () => {
    const { parameters, responses } = describe({ idempotent: true }, "DELETE");
    const { name, schema } = asFields([parameters].flat()[1]);
    assert.equal(name, "Idempotency-Key");
    assert.ok(asFields(schema)["pattern"]);
    assert.ok(asFields(responses)["400"]);
  });

  test("shows its body for the accepted media types, and for no other", () => {
    const body = shown({ type: "object", properties: { a: { type: "string" } } });
    const operation = describe({ input: { body }, takesForms: true });
    const form = "application/x-www-form-urlencoded";
    assert.deepEqual(operation["requestBody"], {
      required: true,
      content: { "application/json": { schema: body.schema }, [form]: { schema: body.schema } },
    });
    for (const status of ["400", "413", "415"]) {
      assert.ok(asFields(operation["responses"])[status], status);
    }
    assert.deepEqual(types(describe({ input: { body } })), ["application/json"]);
    assert.deepEqual(types(describe({})), ["application/json", "*/*"]);
    assert.deepEqual(types(describe({ takesForms: true })), ["application/json", form, "*/*"]);
    assert.equal(asFields(describe({})["requestBody"])["required"], undefined);
    assert.equal(describe({}, "GET")["requestBody"], undefined);
  });

  test("shows its output as the response, or any 2XX of any type without an output", () => {
    const output = shown({ type: "object", properties: { ok: { type: "boolean" } } });
    const responses = asFields(describe({ responses: { 200: output } })["responses"]);
    assert.deepEqual(
      lookUp(responses, "#/200/content/application~1json/schema"),
      output.schema,
    );
    assert.equal(responses["2XX"], undefined);
    assert.deepEqual(
      lookUp(describe({}), "#/responses/2XX/content"),
      { "application/json": { schema: {} }, "*/*": {} },
    );
  });
});

test("an event's schema and example are in its webhook", () => {
  const data = shown({ type: "object", properties: { n: { type: "number" } } });
  const document = createOpenApi([], {
    config: { profile: "none", authorizationServer: true },
    issuer: "https://api.example.com",
    events: [
      { name: "order.created", description: "Placed", scope: [], data, example: { n: 1 } },
      { name: "order-created", description: "Another", scope: [], example: null },
    ],
    scopes: [],
    scopeWords: new Map(),
  }, () => false);
  assert.deepEqual(findOpenApiErrors(document), []);
  const { post } = asFields(lookUp(document, "#/webhooks/order.created"));
  assert.equal(asFields(post)["operationId"], "on_order_created");
  assert.deepEqual(
    lookUp(post, "#/requestBody/content"),
    { "application/json": { schema: data.schema, example: { n: 1 } } },
  );
  assert.deepEqual(
    lookUp(document, "#/webhooks/order-created/post/requestBody/content"),
    { "application/json": { schema: {}, example: null } },
  );
});
