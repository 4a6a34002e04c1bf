import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "gatepost/testing";
import { placeOrder } from "./orders.ts";

test("who places an order gets an event of it", async () => {
  const sub = "u12345678";
  const { status, body, events } = await call(placeOrder, {
    body: { item: "lamp" },
    caller: { sub },
  });
  assert.equal(status, 201);
  assert.partialDeepStrictEqual(body, { item: "lamp", count: 1 });
  assert.partialDeepStrictEqual(events, [{ name: "order.placed", data: body, subject: sub }]);
});

test("an order without an item is refused", async () => {
  const { status, events } = await call(placeOrder, { body: { count: 2 } });
  assert.equal(status, 400);
  assert.deepEqual(events, []);
});

test("to place an order needs the scope", async () => {
  const { status } = await call(placeOrder, { body: { item: "lamp" }, caller: { scopes: [] } });
  assert.equal(status, 403);
});
