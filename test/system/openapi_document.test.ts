import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { asFields, findOpenApiErrors, lookUp } from "../helpers/openapi_rules.ts";
import { bearer } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { type Fields, startOpenApiStage } from "./openapi_stage.ts";

const { gatepost, document, operations, findOperation, checkResponse, stop } =
  await startOpenApiStage();
after(stop);

test("the document follows the rules of OpenAPI 3.1", () => {
  assert.deepEqual(findOpenApiErrors(document), []);
});

test("no operation id equals the name of a schema, whatever the case", () => {
  // Generators name types and files after both, and some file systems ignore the case.
  const schemas = Object.keys(asFields(asFields(document["components"])["schemas"]))
    .map((name) => name.toLowerCase());
  const ids = operations.map(([, , { operationId }]) => String(operationId));
  assert.deepEqual(ids.filter((id) => schemas.includes(id.toLowerCase())), []);
  assert.deepEqual(ids.filter((id) => !/^[a-z]\w*$/i.test(id)), [], "names in any language");
});

test("a hosted endpoint is documented with its scope, parameters, limit and events", () => {
  const [path, , operation] = findOperation("POST", "/orders/1") ?? [];
  assert.match(path ?? "", /^\/orders\/\{\w+\}$/);
  assert.deepEqual(operation?.["security"], [{ token: ["orders"] }, { oauth2: ["orders"] }]);
  assert.match(String(operation?.["description"]), /65536 bytes/);
  assert.match(String(operation?.["description"]), /`order\.created`: An order was placed/);
  const [, , listing] = findOperation("GET", "/orders") ?? [];
  assert.deepEqual(listing?.["security"], [{ token: [] }, { oauth2: [] }]);
  const [, , ping] = findOperation("GET", "/ping") ?? [];
  assert.deepEqual(ping?.["security"], []);
});

test("declared events, and those of the service, are webhooks with their headers", () => {
  const webhooks = asFields(document["webhooks"]);
  const names = Object.keys(webhooks);
  const events = ["order.created", "gatepost.delivery.failed", "gatepost.subscription.disabled"];
  for (const name of events) {
    assert.ok(names.includes(name), name);
  }
  const post = asFields(asFields(webhooks["order.audited"])["post"]);
  assert.equal(post["summary"], "An order was looked at");
  assert.match(JSON.stringify(post["parameters"]), /"webhook-signature"/);
});

test("every operation has `security`, which is empty for a public one", () => {
  const callbacks = [
    ...Object.values(asFields(document["webhooks"])),
    ...operations.flatMap(([, , { callbacks: each }]) => Object.values(asFields(each)))
      .flatMap((each) => Object.values(asFields(each))),
  ].map((item) => asFields(asFields(item)["post"]));
  assert.ok(callbacks.length > 3);
  for (const { security } of callbacks) assert.deepEqual(security, []);
  for (const [path, method, { security }] of operations) {
    assert.ok(Array.isArray(security), `${method} ${path}`);
  }
  const open = operations.filter(([, , { security }]) => String(security) === "")
    .map(([path]) => path);
  for (const path of ["/consumer/login", "/system/health", "/.well-known/jwks.json", "/ping"]) {
    assert.ok(open.includes(path), path);
  }
});

describe("an operation or event that needs a scope", () => {
  const readDocument = async (path: string, token?: string) => {
    const headers = token === undefined ? {} : bearer(token);
    const response = await gatepost.api.get(path, headers);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("vary"), "Authorization");
    const control = token === undefined ? "no-cache" : "private, no-cache";
    assert.equal(response.headers.get("cache-control"), control);
    return readObject(response);
  };
  const read = async (token?: string) => {
    const own = await readDocument("/openapi.json", token);
    assert.deepEqual(findOpenApiErrors(own), []);
    return own;
  };
  const reads = async (scopes: readonly string[]) =>
    read(await gatepost.login(await gatepost.createUser({ scopes })));
  const paths = (own: Fields) => Object.keys(asFields(own["paths"]));
  const events = (own: Fields) => Object.keys(asFields(own["webhooks"]));

  test("is not in the anonymous document", async () => {
    const own = await read();
    assert.ok(paths(own).includes("/ping") && paths(own).includes("/backend/user"));
    assert.deepEqual(paths(own).filter((path) => path.startsWith("/orders")), []);
    assert.ok(events(own).includes("order.created"));
    assert.ok(!JSON.stringify(own).includes("order.audited"));
  });

  test("is in the document for a token that has the scope, and for no other", async () => {
    const poor = await reads(["consumer"]);
    assert.ok(paths(poor).includes("/orders"), "it takes any token");
    assert.ok(!paths(poor).some((path) => path.startsWith("/orders/")));
    const rich = await reads(["consumer", "orders"]);
    assert.ok(paths(rich).some((path) => path.startsWith("/orders/")));
    assert.ok(!JSON.stringify(rich).includes("order.audited"));
    assert.ok(events(await reads(["consumer", "backend"])).includes("order.audited"));
    assert.ok(events(await reads(["orders", "audit"])).includes("order.audited"));
  });

  test("is in the document of events for a token that has the scope alone", async () => {
    const channels = async (token?: string) =>
      Object.keys(asFields((await readDocument("/asyncapi.json", token))["channels"]));
    const open = ["order_created", "gatepost_delivery_failed", "gatepost_subscription_disabled"];
    assert.deepEqual(await channels(), open);
    const user = await gatepost.createUser({ scopes: ["orders", "audit"] });
    for (const token of [gatepost.adminToken, await gatepost.login(user)]) {
      assert.ok((await channels(token)).includes("order_audited"));
    }
  });

  test("is not shown for an invalid token", async () => {
    const response = await gatepost.api.get("/openapi.json", bearer("nonsense"));
    assert.equal(response.status, 401);
    checkResponse("GET", "/openapi.json", response);
  });

  test("has the same operation id in every document that has it", async () => {
    const ids = (own: Fields) =>
      new Map(Object.entries(asFields(own["paths"])).flatMap(([path, item]) =>
        Object.entries(asFields(item)).map(([method, operation]) =>
          [`${method} ${path}`, asFields(operation)["operationId"]] as const
        )
      ));
    const all = ids(document);
    for (const [where, id] of ids(await read())) assert.equal(all.get(where), id, where);
  });
});

test("the only server of the document is the address of the service", () => {
  assert.deepEqual(document["servers"], [{ url: gatepost.issuer }]);
});

test("the OAuth flows list the scopes of endpoint modules with their descriptions", () => {
  const path = "#/components/securitySchemes/oauth2/flows/clientCredentials/scopes";
  const flows = lookUp(document, path);
  const names = Object.keys(asFields(flows));
  for (const name of ["consumer", "backend", "orders"]) assert.ok(names.includes(name), name);
  assert.equal(asFields(flows)["orders"], "Place orders");
});

test("only operations that need a scope declare a 403", () => {
  const statuses = (path: string) =>
    Object.keys(asFields(lookUp(document, `#/paths/~1${path.replaceAll("/", "~1")}/get/responses`)))
      .filter((status) => /^40[13]$/.test(status));
  assert.deepEqual(statuses("authorization/whoami"), ["401"]);
  assert.deepEqual(statuses("backend/config"), ["401", "403"]);
});
