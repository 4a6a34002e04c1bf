import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "gatepost/testing";
import { cancel, createOrder, get } from "./orders.ts";
import type { Order } from "./lib/schemas.ts";

process.env["SHOP_DATABASE"] = ":memory:";

const place = (reference: string, more: object = {}) =>
  call<Order>(createOrder, { body: { reference, sku: "table", ...more } });

test("an order is placed once, however often it is sent", async () => {
  const first = await place("a");
  assert.equal(first.status, 201);
  assert.equal(first.headers.get("location"), `/shop/orders/${first.body.id}`);
  const [event] = first.events;
  assert.deepEqual([event?.name, event?.key, event?.data], [
    "shop.order.placed",
    first.body.id,
    first.body,
  ]);
  const again = await place("a");
  assert.deepEqual([again.status, again.body, again.events], [200, first.body, []]);
});

test("an order of too many is refused", async () => {
  const { status, body } = await place("b", { quantity: 100 });
  assert.equal(status, 409);
  assert.partialDeepStrictEqual(body, { errors: [{ pointer: "/quantity" }] });
});

test("a customer cancels an order, and nobody else's", async () => {
  const { body: { id } } = await place("c");
  const params = { id };
  const other = { sub: "u99999999" };
  assert.equal((await call(cancel, { params, caller: other })).status, 404);
  assert.equal((await call(cancel, { params })).status, 200);
  assert.equal((await call<Order>(get, { params })).body.status, "cancelled");
  assert.equal((await call(cancel, { params })).status, 409);
});
