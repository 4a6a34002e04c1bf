import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { StagedSubscription } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS } from "../helpers/until.ts";
import { deliveryPath, startDeliveryStage } from "./delivery_stage.ts";

const MODULE = `
  export const publish = {
    method: "POST",
    path: "/publish",
    scope: [],
    emits: {
      "shop.opened": "The shop has opened",
      "order.created": { description: "An order was placed", scope: "orders", example: { id: 7 } },
      "order.paid": { description: "An order was paid", scope: ["orders", "money"] },
    },
    handle() {},
  };`;

const { stage, consumer, fail, patch, disable } = await startDeliveryStage({ "shop.mjs": MODULE });
after(() => stage.stop());

const TEST_BODY = '{"test":true}';

describe("GET /consumer/event", () => {
  const CREATED = {
    name: "order.created",
    description: "An order was placed",
    scope: "orders",
    example: { id: 7 },
  };
  const CATALOGUE = [
    {
      name: "a consumer without an event's scope",
      scopes: ["consumer"],
      events: [{ name: "shop.opened", description: "The shop has opened" }],
    },
    {
      name: "a consumer with the scope of one event",
      scopes: ["consumer", "orders"],
      events: [
        CREATED,
        { name: "shop.opened", description: "The shop has opened" },
      ],
    },
    {
      name: "a consumer with every scope",
      scopes: ["consumer", "orders", "money"],
      events: [
        CREATED,
        { name: "order.paid", description: "An order was paid", scope: "orders money" },
        { name: "shop.opened", description: "The shop has opened" },
      ],
    },
  ] as const;

  for (const { name, scopes, events } of CATALOGUE) {
    test(`shows the events that ${name} may subscribe to`, async () => {
      const token = await stage.newConsumer(scopes);
      const response = await stage.call("GET", "/consumer/event", token);
      assert.deepEqual(readItems(response), events);
      assert.equal(readObject(response)["next_cursor"], null);
    });
  }

  test("has pages", async () => {
    const token = await stage.newConsumer(["consumer", "orders", "money"]);
    const names: unknown[] = [];
    let path = "/consumer/event?limit=2";
    for (let parts = 0; parts < 2; parts++) {
      const response = await stage.call("GET", path, token);
      names.push(readItems(response).map((item) => item["name"]));
      path = `/consumer/event?limit=2&cursor=${String(readObject(response)["next_cursor"])}`;
    }
    assert.deepEqual(names, [["order.created", "order.paid"], ["shop.opened"]]);
  });
});

describe("POST /consumer/subscription/{id}/test", () => {
  const sendTest = ({ id, token }: StagedSubscription) =>
    stage.call("POST", `/consumer/subscription/${id}/test`, token);

  test('delivers {"test": true} to that subscription alone', async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const other = await stage.subscribe(consumer, subscription.event);
    const response = await sendTest(subscription);
    assert.equal(response.status, 202, response.text);
    const [sent] = await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    assert.equal(String(sent?.body), TEST_BODY);
    assert.equal(sent?.headers["gatepost-event"], subscription.event);
    assert.match(String(sent?.headers["webhook-signature"]), /^v1,/);
    const [delivery] = await stage.deliveries(subscription, "delivered");
    assert.equal(delivery?.["id"], sent?.headers["webhook-id"]);
    assert.equal(delivery?.["id"], readObject(response)["id"]);
    const location = new URL(response.location ?? "").pathname;
    assert.equal(readObject(await stage.call("GET", location, consumer))["id"], delivery?.["id"]);
    await stage.deliveries(other);
    assert.equal(stage.receiver.count(other.path), 0);
  });

  test("delivers the example of an event if it has one", async () => {
    const buyer = await stage.newConsumer(["consumer", "orders"]);
    const subscription = await stage.subscribe(buyer, "order.created");
    const response = await sendTest(subscription);
    assert.equal(response.status, 202, response.text);
    const [sent] = await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    assert.equal(String(sent?.body), '{"id":7}');
  });

  test("resends a test that fails, like any delivery", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"), 500, 204);
    await sendTest(subscription);
    await stage.receiver.waitFor(2, PATIENCE_MS, subscription.path);
    await stage.deliveries(subscription, "delivered");
  });

  test("does not send while the subscription is paused", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await patch(subscription, { status: "paused" });
    assert.equal((await sendTest(subscription)).status, 202);
    const other = await stage.subscribe(consumer, newName("e"));
    await sendTest(other);
    await stage.deliveries(other, "delivered"); // so the other test would have been sent too
    await stage.deliveries(subscription, "pending");
    assert.equal(stage.receiver.count(subscription.path), 0);
    await patch(subscription, { status: "active" });
    await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
  });

  test("refuses a test while the subscription is disabled", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await disable(subscription);
    assertProblem(await sendTest(subscription), 409);
    await stage.deliveries(subscription);
  });

  test("sends six of ten simultaneous tests; the others get 429 with Retry-After", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const responses = await Promise.all(Array.from({ length: 10 }, () => sendTest(subscription)));
    assert.deepEqual(
      responses.map(({ status }) => status).sort(),
      [...Array(6).fill(202), ...Array(4).fill(429)],
    );
    for (const response of responses.filter(({ status }) => status === 429)) {
      assertProblem(response, 429);
      const seconds = Number(response.headers.get("retry-after"));
      assert.ok(seconds > 50 && seconds <= 60, String(seconds));
    }
    await stage.deliveries(subscription, ...Array(6).fill("delivered"));
    assert.equal((await sendTest(await stage.subscribe(consumer, newName("e")))).status, 202);
  });

  test("keeps the limit for a subscription that is deleted and made again", async () => {
    const [token, event] = [await stage.newConsumer(), newName("e")];
    const subscription = await stage.subscribe(token, event);
    for (let tests = 0; tests < 6; tests++) {
      assert.equal((await sendTest(subscription)).status, 202);
    }
    await stage.call("DELETE", `/consumer/subscription/${subscription.id}`, token);
    const body = { event, endpoint: stage.receiver.url + subscription.path };
    const response = await stage.call("POST", "/consumer/subscription", token, body);
    const anew = { ...subscription, id: String(readObject(response)["id"]) };
    assertProblem(await sendTest(anew), 429);
  });

  test("limits all subscriptions of a principal together to thirty tests a minute", async () => {
    const token = await stage.newConsumer();
    const statuses: number[] = [];
    for (let subscriptions = 0; subscriptions < 6; subscriptions++) {
      const subscription = await stage.subscribe(token, newName("e"));
      for (let tests = 0; tests < 6; tests++) statuses.push((await sendTest(subscription)).status);
    }
    assert.deepEqual(statuses, [...Array(30).fill(202), ...Array(6).fill(429)]);
    const other = await stage.subscribe(await stage.newConsumer(), newName("e"));
    assert.equal((await sendTest(other)).status, 202);
  });

  test("counts tests and resends together", async () => {
    const { subscription, delivery } = await fail();
    for (let tests = 0; tests < 6; tests++) {
      assert.equal((await sendTest(subscription)).status, 202);
    }
    const path = `${deliveryPath(subscription, delivery)}/resend`;
    const response = await stage.call("POST", path, consumer);
    assertProblem(response, 429);
    assert.ok(Number(response.headers.get("retry-after")) > 0);
  });
});
