import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { createDataFolder } from "../helpers/process.ts";
import { bearer, newAddress, newName } from "../helpers/requests.ts";
import { assertProblem, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const SHOP = join(import.meta.dirname, "../../scripts/demo/shop");
const SECRET = "what the bank and the shop know";
const JSON_TYPE = { "content-type": "application/json" };
const PICTURE = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]);

let folder: string;
let stage: EventStage;
/** A token of the staff, who may do everything in the shop. */
let staff: string;
/** A customer's token. */
let token: string;
before(async () => {
  folder = await createDataFolder();
  stage = await startEventStage({
    GATEPOST_ENDPOINTS: SHOP,
    SHOP_DATABASE: join(folder, "shop.db"),
    SHOP_PAYMENT_SECRET: SECRET,
  });
  staff = await stage.newConsumer(["consumer", "shop:staff", "shop:order"]);
  token = await stage.newConsumer(["consumer", "shop:order"]);
});
after(async () => {
  await stage.stop();
  await rm(folder, { recursive: true });
});

const get = (path: string, headers = {}): Promise<ClientResponse> =>
  stage.gatepost.api.get(path, headers);
const post = (path: string, body: unknown, as = token): Promise<ClientResponse> =>
  stage.call("POST", path, as, body);
const send = (method: string, path: string, headers: Record<string, string>, body = "") =>
  stage.gatepost.api.send(method, path, body === "" ? { headers } : { headers, body });

/** Places a new order of one lamp. */
async function order(as = token): Promise<Readonly<Record<string, unknown>>> {
  const response = await post("/shop/orders", { reference: newName("basket"), sku: "lamp" }, as);
  assert.equal(response.status, 201, response.text);
  return readObject(response);
}

/** The data of all callbacks to a subscription's path. */
const received = (path: string): readonly Readonly<Record<string, unknown>>[] =>
  stage.receiver.requests(path).map(({ body }) => JSON.parse(String(body)));

describe("products", () => {
  test("a query gets the types of its schema, and a wrong one lists every error", async () => {
    const { items } = readObject(await get("/shop/products?max_price_cents=20000&limit=1"));
    assert.deepEqual(items, [{ sku: "chair", name: "Oak chair", price_cents: 12900, stock: 1 }]);
    const wrong = await get("/shop/products?limit=0&max_price_cents=x&colour=red");
    assert.deepEqual(assertProblem(wrong, 400), ["/colour", "/limit", "/max_price_cents"]);
  });

  test("a client that has the current version gets 304", async () => {
    const first = await get("/shop/products/table");
    const etag = first.headers.get("etag") ?? "";
    assert.equal(first.status, 200);
    const again = await get("/shop/products/table", { "if-none-match": `"x", W/${etag}` });
    assert.deepEqual([again.status, again.text], [304, ""]);
  });

  test("a path parameter that breaks its schema is 400, an unknown product 404", async () => {
    assert.deepEqual(assertProblem(await get("/shop/products/LAMP"), 400), ["/sku"]);
    assertProblem(await get("/shop/products/sofa"), 404);
  });

  test("a picture is returned unchanged; a wrong type is 415, too large a body 413", async () => {
    const path = "/shop/products/lamp/image";
    const put = (type: string, body: Uint8Array) =>
      stage.gatepost.api.send("PUT", path, {
        headers: { ...bearer(staff), "content-type": type },
        body,
      });
    assertProblem(await get(path), 404);
    assert.equal((await put("image/png", PICTURE)).status, 204);
    const response = await fetch(stage.gatepost.url + path);
    assert.equal(response.headers.get("content-type"), "image/png");
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), PICTURE);
    assertProblem(await put("text/plain", PICTURE), 415);
    assertProblem(await put("image/png", new Uint8Array(1_048_577)), 413);
    const asCustomer = { ...bearer(token), "content-type": "image/png" };
    assertProblem(await send("PUT", path, asCustomer, "x"), 403);
  });

  test("an array of endpoints in a JavaScript module is served", async () => {
    const path = "/shop/products/table/reviews";
    const review = { stars: 5, words: "Round." };
    assert.equal((await post(path, review)).status, 201);
    assert.deepEqual((await get(path)).json(), [review]);
    assert.deepEqual(assertProblem(await post(path, { stars: 6 }), 400), ["/stars", "/words"]);
  });
});

describe("orders", () => {
  test("a wrong body is 400 with a pointer for each error, and makes no order", async () => {
    const mine = await stage.newConsumer(["shop:order"]);
    const body = { reference: "", sku: 7, quantity: 1.5, colour: "red" };
    const pointers = assertProblem(await post("/shop/orders", body, mine), 400);
    assert.deepEqual(pointers, ["/colour", "/quantity", "/reference", "/sku"]);
    assertProblem(await send("POST", "/shop/orders", { ...bearer(mine), ...JSON_TYPE }, "{"), 400);
    assert.deepEqual(readObject(await stage.call("GET", "/shop/orders", mine))["items"], []);
  });

  test("a form is 415 at an endpoint that does not accept forms", async () => {
    const type = { "content-type": "application/x-www-form-urlencoded" };
    assertProblem(await send("POST", "/shop/orders", { ...bearer(token), ...type }, "a=1"), 415);
  });

  test("each order makes one event, though the handler and the cronjob dispatch it", async () => {
    const placed = await stage.subscribe(staff, "shop.order.placed");
    const cancelled = await stage.subscribe(staff, "shop.order.cancelled");
    const first = await order();
    const repeated = await post("/shop/orders", { reference: first["reference"], sku: "lamp" });
    assert.deepEqual([repeated.status, repeated.json()], [200, first]);
    const second = await order();
    const gone = await post(`/shop/orders/${String(second["id"])}/cancel`, undefined);
    assert.deepEqual(readObject(gone), { ...second, status: "cancelled" });
    // The cronjob dispatches this one; by then it has dispatched whatever else was left.
    await stage.receiver.waitFor(1, PATIENCE_MS, cancelled.path);
    assert.deepEqual(received(cancelled.path), [{ ...second, status: "cancelled" }]);
    await stage.receiver.waitFor(2, PATIENCE_MS, placed.path);
    const ids = received(placed.path).map(({ id }) => id).sort();
    assert.deepEqual(ids, [first["id"], second["id"]].sort());
  });

  test("a consumer without an event's scope may not subscribe to it", async () => {
    const endpoint = `${stage.receiver.url}/hook`;
    const refused = await post("/consumer/subscription", { event: "shop.order.placed", endpoint });
    assertProblem(refused, 403);
  });

  test("an error of the shop's own class gives the response its errors and headers", async () => {
    const body = { reference: newName("basket"), sku: "sofa" };
    assert.deepEqual(assertProblem(await post("/shop/orders", body), 422), ["/sku"]);
    const { id } = await order();
    const payment = JSON.stringify({ order: id });
    const signature = createHmac("sha256", SECRET).update(payment).digest("hex");
    const hook = "/shop/webhooks/payment";
    const signed = { ...JSON_TYPE, "x-payment-signature": signature };
    assert.equal((await send("POST", hook, signed, payment)).status, 204);
    const paid = await post(`/shop/orders/${String(id)}/cancel`, undefined);
    assertProblem(paid, 409);
    assert.equal(paid.headers.get("link"), '</shop/returns>; rel="help"');
  });

  test("a webhook with a wrong signature is 401, without a WWW-Authenticate header", async () => {
    const headers = { ...JSON_TYPE, "x-payment-signature": "00".repeat(32) };
    const response = await send("POST", "/shop/webhooks/payment", headers, '{"order":"none"}');
    // The body's schema is checked first.
    assert.deepEqual(assertProblem(response, 400), ["/order"]);
    const body = JSON.stringify({ order: crypto.randomUUID() });
    const refused = await send("POST", "/shop/webhooks/payment", headers, body);
    assertProblem(refused, 401);
    assert.equal(refused.headers.get("www-authenticate"), null);
  });

  test("another customer's order is 404, and an anonymous request 401", async () => {
    const { id } = await order();
    const other = await stage.newConsumer(["shop:order"]);
    assertProblem(await stage.call("GET", `/shop/orders/${String(id)}`, other), 404);
    assertProblem(await get(`/shop/orders/${String(id)}`), 401);
  });

  test("the folder's `before` refuses the blocked, an endpoint's adds a discount", async () => {
    const { gatepost } = stage;
    const user = await gatepost.createUser({ scopes: ["shop:order"] });
    const theirs = await gatepost.login(user);
    const path = `/shop/customers/${user.id}`;
    const change = { discount_percent: 50 };
    assert.equal((await stage.call("PUT", path, staff, change)).status, 204);
    assert.equal((await order(theirs))["total_cents"], 2495);
    assert.equal((await stage.call("PUT", path, staff, { blocked: true })).status, 204);
    assertProblem(await stage.call("GET", "/shop/orders", theirs), 403);
    assert.equal((await get("/shop/products", bearer(theirs))).status, 200);
  });

  test("the folder's `onError` turns a busy database into a 503", async () => {
    const blocker = new DatabaseSync(join(folder, "shop.db"));
    blocker.exec("BEGIN IMMEDIATE");
    const body = { reference: newName("basket"), sku: "lamp" };
    const refused = await post("/shop/orders", body);
    blocker.close();
    assertProblem(refused, 503);
    assert.equal(refused.headers.get("retry-after"), "1");
    assert.equal((await post("/shop/orders", body)).status, 201);
  });
});

describe("forms and limits", () => {
  const form = { "content-type": "application/x-www-form-urlencoded" };

  test("a form's fields get the types of its schema, as JSON has them", async () => {
    const body = "email=a%40shop.example&weekly=true";
    const response = await send("POST", "/shop/newsletter", form, body);
    assert.deepEqual([response.status, response.json()], [202, { weekly: true }]);
    const wrong = await send("POST", "/shop/newsletter", form, "email=none&weekly=often");
    assert.deepEqual(assertProblem(wrong, 400), ["/email", "/weekly"]);
  });

  test("a client past an endpoint's rate limit gets 429 with Retry-After", async () => {
    const headers = { ...JSON_TYPE, "x-forwarded-for": newAddress() };
    const ask = () => send("POST", "/shop/newsletter", headers, '{"email":"a@shop.example"}');
    const statuses = [(await ask()).status, (await ask()).status, (await ask()).status];
    assert.deepEqual(statuses, [202, 202, 202]);
    const refused = await ask();
    assertProblem(refused, 429);
    assert.match(refused.headers.get("retry-after") ?? "", /^([1-9]|[1-5]\d|60)$/);
    assert.ok(refused.headers.has("ratelimit") && refused.headers.has("ratelimit-policy"));
    const other = { ...headers, "x-forwarded-for": newAddress() };
    const free = await send("POST", "/shop/newsletter", other, '{"email":"a@shop.example"}');
    assert.equal(free.status, 202);
  });

  test("a handler reads a form with a file, and only its caller gets the event", async () => {
    const mine = await stage.subscribe(token, "shop.return.wanted");
    const theirs = await stage.subscribe(staff, "shop.return.wanted");
    const { id } = await order();
    const upload = new FormData();
    upload.set("photo", new File([PICTURE], "broken.png", { type: "image/png" }));
    const giveBack = () =>
      fetch(`${stage.gatepost.url}/shop/returns`, {
        method: "POST",
        headers: bearer(token),
        body: upload,
      });
    const incomplete = await giveBack();
    assert.equal(incomplete.status, 400);
    assert.match(await incomplete.text(), /"pointer":"\/order"/);
    upload.set("order", String(id));
    const accepted = await giveBack();
    assert.equal(accepted.status, 201);
    assert.match(await accepted.text(), /"photo_bytes":6/);
    await stage.receiver.waitFor(1, PATIENCE_MS, mine.path);
    assert.equal(received(mine.path)[0]?.["order"], id);
    assert.equal(stage.receiver.count(theirs.path), 0);
    assertProblem(await post("/shop/returns", {}), 415);
  });
});

describe("pages of other origins", () => {
  const preflight = (path: string, origin: string) =>
    send("OPTIONS", path, {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,x-basket",
    });

  test("may call an endpoint that names their origin, with its headers", async () => {
    const { headers } = await preflight("/shop/orders", "https://shop.example");
    assert.equal(headers.get("access-control-allow-origin"), "https://shop.example");
    assert.match(headers.get("access-control-allow-headers") ?? "", /\bX-Basket\b/i);
    const origin = { ...bearer(token), origin: "https://shop.example" };
    const response = await stage.gatepost.api.postJson("/shop/orders", {}, origin);
    assert.match(response.headers.get("access-control-expose-headers") ?? "", /X-Orders-Left/i);
  });

  test("may not call an endpoint that names another origin, or none", async () => {
    for (const [path, origin] of [
      ["/shop/orders", "https://other.example"],
      ["/shop/returns", "https://shop.example"],
    ] as const) {
      const { headers } = await preflight(path, origin);
      assert.equal(headers.get("access-control-allow-origin"), null, path);
    }
  });

  test("may read an endpoint that is open to all origins", async () => {
    const { headers } = await get("/shop/products", { origin: "https://any.example" });
    assert.equal(headers.get("access-control-allow-origin"), "*");
  });
});

describe("streams", () => {
  test("an event stream sends changes at once, and ends when its client leaves", async () => {
    const mine = await stage.newConsumer(["shop:order"]);
    const response = await fetch(`${stage.gatepost.url}/shop/orders/feed`, {
      headers: bearer(mine),
    });
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    assert.equal((await reader?.read())?.value, ": welcome\n\n");
    const made = await order(mine);
    const text = (await reader?.read())?.value ?? "";
    assert.deepEqual(JSON.parse(/^event: order\ndata: (.*)\n\n$/.exec(text)?.[1] ?? ""), made);
    await reader?.cancel();
    await order(mine);
    const { lines } = stage.gatepost.server;
    assert.ok(!lines.some((line) => line.includes("stream that has ended")));
  });

  test("a customer downloads their orders as a CSV file", async () => {
    const mine = await stage.newConsumer(["shop:order"]);
    const { id } = await order(mine);
    const response = await get("/shop/orders/table.csv", bearer(mine));
    assert.match(response.headers.get("content-disposition") ?? "", /orders\.csv/);
    const header = "id,sku,quantity,total_cents,status";
    assert.deepEqual(response.text.split("\r\n"), [header, `${String(id)},lamp,1,4990,placed`, ""]);
  });
});
