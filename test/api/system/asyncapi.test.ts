import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createAsyncApi } from "../../../src/api/system/asyncapi.ts";
import { shown } from "../../../src/base/shape.ts";
import type { DeclaredEvent } from "../../../src/event/event.ts";
import { findSchemaErrors } from "../../helpers/json_schema.ts";
import { asFields, lookUp } from "../../helpers/openapi_rules.ts";

const DATA = shown({ type: "object", properties: { n: { type: "number" } }, required: ["n"] });
const EVENTS: readonly DeclaredEvent[] = [
  { name: "order.created", description: "Placed", scope: [], data: DATA, example: { n: 1 } },
  { name: "order_created", description: "Another", scope: [] },
  { name: "order.audited", description: "Seen", scope: ["audit"] },
];
const OWN = ["gatepost.delivery.failed", "gatepost.subscription.disabled"];

function documentOf({ issuer = "https://api.example.com", scopes = ["audit"] } = {}) {
  return createAsyncApi(
    { events: EVENTS, issuer },
    (needed) => needed.every((scope) => scopes.includes(scope)),
  );
}

/** Every entry of a map of the document. */
function entries(document: object, name: string) {
  return Object.entries(asFields(lookUp(document, `#/${name}`)))
    .map(([id, entry]) => ({ id, entry: asFields(entry) }));
}

test("each event is a channel with a message, and an operation that sends it", () => {
  const document = documentOf();
  assert.equal(document["asyncapi"], "3.0.0");
  const channels = entries(document, "channels");
  const addresses = channels.map(({ entry }) => entry["address"]);
  assert.deepEqual(addresses, [...EVENTS.map(({ name }) => name), ...OWN]);
  for (const { id, entry } of channels) {
    assert.match(id, /^[A-Za-z0-9._-]+$/);
    const [[name = "", each] = []] = Object.entries(asFields(entry["messages"]));
    const message = asFields(each);
    assert.equal(message["name"], entry["address"]);
    assert.equal(message["contentType"], "application/json");
    assert.match(name, /^[A-Za-z0-9._-]+$/);
  }
  const operations = entries(document, "operations");
  assert.deepEqual(
    operations.map(({ entry }) => [entry["action"], asFields(entry["channel"])["$ref"]]),
    channels.map(({ id }) => ["send", `#/channels/${id}`]),
  );
});

test("a message has its event's schema and example, and the headers of every callback", () => {
  const document = documentOf();
  const message = asFields(lookUp(document, "#/channels/order_created/messages/order_created"));
  assert.deepEqual(message["payload"], DATA.schema);
  assert.deepEqual(message["examples"], [{ payload: { n: 1 } }]);
  const headers = asFields(lookUp(document, String(asFields(message["headers"])["$ref"])));
  assert.equal(headers["type"], "object");
  for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature", "gatepost-event"]) {
    assert.ok([headers["required"]].flat().includes(name), name);
    assert.ok(asFields(asFields(headers["properties"])[name])["type"], name);
  }
  const other = "order__5f_created";
  const plain = asFields(lookUp(document, `#/channels/${other}/messages/${other}`));
  assert.deepEqual(plain["payload"], {});
  assert.ok(!("examples" in plain));
});

test("every schema of the document is valid, and its references can be resolved", () => {
  const document = documentOf();
  const schemas = [
    ...entries(document, "components/schemas").map(({ entry }) => entry),
    ...entries(document, "channels")
      .flatMap(({ entry }) => Object.values(asFields(entry["messages"])).map(asFields))
      .flatMap(({ payload, headers }) => [payload, headers]),
  ];
  assert.ok(schemas.length > EVENTS.length);
  for (const schema of schemas) {
    assert.deepEqual(findSchemaErrors(schema, (name) => lookUp(document, name), ""), []);
  }
});

test("an event that needs a scope is hidden from callers who lack it", () => {
  assert.ok(!JSON.stringify(documentOf({ scopes: [] })).includes("audited"));
});

describe("the document names the service as its server", () => {
  test("with its port", () => {
    const document = documentOf({ issuer: "http://127.0.0.1:8080" });
    const server = asFields(lookUp(document, "#/servers/gatepost"));
    assert.deepEqual([server["host"], server["protocol"]], ["127.0.0.1:8080", "http"]);
    assert.ok(!("pathname" in server));
  });
  test("with its path", () => {
    const document = documentOf({ issuer: "https://example.com/api" });
    const server = asFields(lookUp(document, "#/servers/gatepost"));
    assert.deepEqual(
      [server["host"], server["protocol"], server["pathname"]],
      ["example.com", "https", "/api"],
    );
  });
});
