import assert from "node:assert/strict";
import { cp, mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { asFields, findOpenApiErrors, lookUp } from "../helpers/openapi_rules.ts";
import { createDataFolder, runNode } from "../helpers/process.ts";
import { bearer } from "../helpers/requests.ts";

const JSON_SCHEMA = "#/content/application~1json/schema";
const ROOT = join(import.meta.dirname, "../..");
const SHOP = join(ROOT, "scripts/demo/shop");

let folder: string;
let gatepost: Gatepost;
before(async () => {
  folder = await createDataFolder();
  const SHOP_DATABASE = join(folder, "shop.db");
  gatepost = await startGatepost({ env: { GATEPOST_ENDPOINTS: SHOP, SHOP_DATABASE } });
});
after(async () => {
  await gatepost.stop();
  await rm(folder, { recursive: true });
});

const ORDER = ["id", "reference", "sku", "quantity", "total_cents", "status"];
/** The members of each operation's response, from which clients are generated. */
const OUTPUTS: Readonly<Record<string, readonly string[]>> = {
  "get /shop/products": ["items"],
  "get /shop/products/{sku}": ["sku", "name", "price_cents", "stock"],
  "post /shop/orders": ORDER,
  "get /shop/orders/{id}": ORDER,
  "post /shop/orders/{id}/cancel": ORDER,
  "post /shop/products/{sku}/reviews": ["stars", "words"],
  "post /shop/returns": ["id", "photo_bytes"],
};

test("OpenAPI has each operation, with its request body and its response", async () => {
  const document = (await gatepost.api.get("/openapi.json", bearer(gatepost.adminToken))).json();
  assert.deepEqual(findOpenApiErrors(document), []);
  const paths = asFields(asFields(document)["paths"]);
  const own = Object.keys(paths).filter((path) => path.startsWith("/shop/"));
  assert.equal(own.length, 13);
  for (const [operation, names] of Object.entries(OUTPUTS)) {
    const [method = "", path = ""] = operation.split(" ");
    const { responses } = asFields(asFields(paths[path])[method]);
    const codes = asFields(responses);
    const schema = asFields(lookUp(codes["200"] ?? codes["201"], JSON_SCHEMA));
    const target = typeof schema["$ref"] === "string" ? lookUp(document, schema["$ref"]) : schema;
    assert.deepEqual(Object.keys(asFields(asFields(target)["properties"])), names, operation);
  }
  const create = asFields(asFields(paths["/shop/orders"])["post"]);
  assert.equal(create["summary"], "Place an order");
  const body = asFields(lookUp(create["requestBody"], JSON_SCHEMA));
  assert.deepEqual(body["required"], ["reference", "sku"]);
});

test("AsyncAPI has a channel for each event, with its data", async () => {
  const document = (await gatepost.api.get("/asyncapi.json", bearer(gatepost.adminToken))).json();
  const text = JSON.stringify(document);
  assert.equal(asFields(document)["asyncapi"], "3.0.0");
  for (const name of ["order.placed", "order.cancelled", "return.wanted", "newsletter.wanted"]) {
    assert.ok(text.includes(`"shop.${name}"`), name);
  }
  assert.match(text, /"total_cents":\{"type":"integer"/);
});

test("the shop passes strict type checks and its tests where Gatepost is installed", async () => {
  const place = join(folder, "package");
  await cp(SHOP, place, { recursive: true });
  await mkdir(join(place, "node_modules"));
  for (const name of ["gatepost", "@types"]) {
    const target = name === "gatepost" ? ROOT : join(ROOT, "node_modules", name);
    await symlink(target, join(place, "node_modules", name));
  }
  const types = await runNode([join(ROOT, "node_modules/typescript/bin/tsc"), "-p", place]);
  assert.deepEqual([types.code, types.stdout], [0, ""]);
  const tests = await runNode(["--test", join(place, "orders.test.ts")]);
  assert.equal(tests.code, 0, tests.stdout);
  assert.match(tests.stdout, /^. pass 3$/m);
});
