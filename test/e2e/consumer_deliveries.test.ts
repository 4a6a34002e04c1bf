import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";
import { deliveryPath, startDeliveryStage } from "./delivery_stage.ts";

const { stage, consumer, fail, patch, disable } = await startDeliveryStage();
after(() => stage.stop());

describe("GET /consumer/subscription/{id}/delivery", () => {
  test("lists the deliveries of that subscription, newest first, in pages", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await stage.subscribe(consumer, subscription.event);
    for (const n of [1, 2, 3]) await stage.dispatch(subscription.event, { n });
    const all = await stage.deliveries(subscription, "delivered", "delivered", "delivered");

    const path = `/consumer/subscription/${subscription.id}/delivery`;
    const first = await stage.call("GET", `${path}?limit=2`, consumer);
    const cursor = String(readObject(first)["next_cursor"]);
    const second = await stage.call("GET", `${path}?limit=2&cursor=${cursor}`, consumer);
    assert.deepEqual([...readItems(first), ...readItems(second)], all);
    assert.equal(readObject(second)["next_cursor"], null);

    const sent = stage.receiver.requests(subscription.path)
      .toSorted((one, other) => String(other.body).localeCompare(String(one.body)));
    assert.deepEqual(all.map(({ id }) => id), sent.map(({ headers }) => headers["webhook-id"]));
    assert.deepEqual(new Set(all.map(({ event }) => event)), new Set([subscription.event]));
  });

  test("refuses an invalid limit and cursor with both errors", async () => {
    const { id } = await stage.subscribe(consumer, newName("e"));
    const path = `/consumer/subscription/${id}/delivery?limit=201&cursor=A`;
    assert.deepEqual(
      assertProblem(await stage.call("GET", path, consumer), 400),
      ["/cursor", "/limit"],
    );
  });
});

describe("one delivery", () => {
  test("shows its attempts with time, number, status and duration, but no body", async () => {
    const { subscription, delivery } = await fail();
    const response = await stage.call("GET", deliveryPath(subscription, delivery), consumer);
    assert.equal(response.status, 200, response.text);
    const { attempts, ...record } = readObject(response);
    assert.equal(record["status"], "failed");
    assert.equal(record["subscription"], subscription.id);
    assert.ok(Array.isArray(attempts));
    assert.deepEqual(
      attempts.map(({ attempt, status }) => [attempt, status]),
      [[1, 500], [2, 500]],
    );
    for (const { time, duration_ms: ms, ...rest } of attempts) {
      assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.ok(Number.isInteger(ms) && ms >= 0 && ms < PATIENCE_MS);
      assert.deepEqual(Object.keys(rest).sort(), ["attempt", "status"]);
    }
    assert.ok(!response.text.includes("not for you"), response.text);
  });

  test("shows the error of an attempt that had no response", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    stage.receiver.react(subscription.path, { kind: "reset" });
    await stage.dispatch(subscription.event, null);
    const [delivery] = await stage.deliveries(subscription, "failed");
    const response = await stage.call(
      "GET",
      deliveryPath(subscription, delivery?.["id"]),
      consumer,
    );
    const { attempts } = readObject(response);
    assert.ok(Array.isArray(attempts));
    assert.deepEqual(attempts.map(({ error }) => error), ["reset", "reset"]);
    assert.ok(!("status" in attempts[0]));
  });

  test("is also found by its own id, but not below another subscription", async () => {
    const { subscription, delivery } = await fail();
    const own = await stage.call("GET", deliveryPath(subscription, delivery), consumer);
    const short = await stage.call("GET", `/consumer/subscription/delivery/${delivery}`, consumer);
    assert.equal(short.status, 200, short.text);
    assert.deepEqual(short.json(), own.json());
    const other = await stage.subscribe(consumer, newName("e"));
    assertProblem(await stage.call("GET", deliveryPath(other, delivery), consumer), 404);
  });

  test("is 404 for another consumer", async () => {
    const { subscription, delivery } = await fail();
    const stranger = await stage.newConsumer();
    const paths = [
      ["GET", `/consumer/subscription/${subscription.id}/delivery`],
      ["GET", deliveryPath(subscription, delivery)],
      ["GET", `/consumer/subscription/delivery/${delivery}`],
      ["POST", `${deliveryPath(subscription, delivery)}/resend`],
      ["POST", `/consumer/subscription/delivery/${delivery}/resend`],
      ["POST", `/consumer/subscription/${subscription.id}/test`],
    ] as const;
    for (const [method, path] of paths) {
      assertProblem(await stage.call(method, path, stranger), 404);
    }
    assert.equal(stage.receiver.count(subscription.path), 2);
  });

  test("is 404 for an app that did not make its subscription", async () => {
    const { gatepost } = stage;
    const user = await gatepost.createUser();
    const own = await stage.subscribe(await gatepost.login(user), newName("e"));
    const app = await gatepost.createApp({ trusted: true });
    const token = (await gatepost.codeTokens(app, user)).access_token;
    const through = await stage.subscribe(token, own.event);
    await stage.dispatch(own.event, 1);
    const [hidden] = await stage.deliveries(own, "delivered");
    const [shown] = await stage.deliveries(through, "delivered");
    assertProblem(await stage.call("GET", deliveryPath(own, hidden?.["id"]), token), 404);
    const path = deliveryPath(through, shown?.["id"]);
    assert.equal((await stage.call("GET", path, token)).status, 200);
    assert.equal((await stage.call("GET", path, own.token)).status, 200);
  });

  test("needs a token with scope consumer", async () => {
    const { subscription, delivery } = await fail();
    const other = await stage.newConsumer(["orders"]);
    assertProblem(await stage.call("GET", deliveryPath(subscription, delivery), other), 403);
    assertProblem(await stage.gatepost.api.get(deliveryPath(subscription, delivery)), 401);
  });
});

describe("resending", () => {
  for (const form of ["by subscription and delivery", "by the delivery alone"]) {
    test(`${form}: sends attempt 1 again with the same webhook-id`, async () => {
      const { subscription, delivery } = await fail(204);
      const path = form === "by subscription and delivery"
        ? deliveryPath(subscription, delivery)
        : `/consumer/subscription/delivery/${delivery}`;
      const response = await stage.call("POST", `${path}/resend`, consumer);
      assert.equal(response.status, 202, response.text);
      const sent = await stage.receiver.waitFor(3, PATIENCE_MS, subscription.path);
      assert.deepEqual(sent.map(({ headers }) => headers["gatepost-attempt"]), ["1", "2", "1"]);
      const ids = new Set(sent.map(({ headers }) => headers["webhook-id"]));
      assert.deepEqual(ids, new Set([delivery]));
      assert.deepEqual(new Set(sent.map(({ body }) => String(body))), new Set(['{"n":1}']));
      await stage.deliveries(subscription, "delivered");
      const { attempts } = readObject(await stage.call("GET", path, consumer));
      assert.ok(Array.isArray(attempts));
      assert.deepEqual(attempts.map(({ attempt, status }) => [attempt, status]), [
        [1, 500],
        [2, 500],
        [1, 204],
      ]);
    });
  }

  test("allows as many attempts again, and then fails again", async () => {
    const { subscription, delivery } = await fail();
    await stage.call("POST", `${deliveryPath(subscription, delivery)}/resend`, consumer);
    await stage.receiver.waitFor(4, PATIENCE_MS, subscription.path);
    await stage.deliveries(subscription, "failed");
    assert.equal(stage.receiver.count(subscription.path), 4);
  });

  test("refuses a delivery that was delivered", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await stage.dispatch(subscription.event, 1);
    const [delivery] = await stage.deliveries(subscription, "delivered");
    const path = `${deliveryPath(subscription, delivery?.["id"])}/resend`;
    for (let tries = 0; tries < 8; tries++) {
      assertProblem(await stage.call("POST", path, consumer), 409); // none counts as a resend
    }
    assert.equal(stage.receiver.count(subscription.path), 1);
  });

  test("refuses a delivery that is pending", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await patch(subscription, { status: "paused" });
    await stage.dispatch(subscription.event, 1);
    const [delivery] = await stage.deliveries(subscription, "pending");
    const path = `${deliveryPath(subscription, delivery?.["id"])}/resend`;
    assertProblem(await stage.call("POST", path, consumer), 409);
  });

  test("refuses a delivery while its subscription is disabled", async () => {
    const { subscription, delivery } = await fail();
    await disable(subscription);
    const path = `${deliveryPath(subscription, delivery)}/resend`;
    assertProblem(await stage.call("POST", path, consumer), 409);
    await stage.deliveries(subscription, "failed");
  });
});

describe("PATCH and DELETE /consumer/subscription/{id}", () => {
  test("activating a paused subscription sends what is pending to the new endpoint", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await patch(subscription, { status: "paused" });
    for (const n of [1, 2, 3]) await stage.dispatch(subscription.event, { n });
    await stage.deliveries(subscription, "pending", "pending", "pending");
    const path = `/${newName("hook")}`;
    await patch(subscription, { status: "active", endpoint: stage.receiver.url + path });
    await stage.receiver.waitFor(3, PATIENCE_MS, path);
    assert.equal(stage.receiver.count(subscription.path), 0);
  });

  test("disabling cancels what is pending, and activating delivers only later events", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await patch(subscription, { status: "paused" });
    await stage.dispatch(subscription.event, "before");
    await stage.deliveries(subscription, "pending");
    await disable(subscription);
    await stage.deliveries(subscription, "cancelled");
    await stage.dispatch(subscription.event, "meanwhile");
    await until(async () => {
      const path = `/backend/event?name=${subscription.event}&status=pending`;
      return readItems(await stage.call("GET", path, stage.admin)).length === 0;
    });
    await patch(subscription, { status: "active" });
    await stage.dispatch(subscription.event, "after");
    const [sent] = await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    assert.equal(String(sent?.body), '"after"');
    await stage.deliveries(subscription, "delivered", "cancelled");
  });

  test("a change of the endpoint leaves a disabled subscription disabled", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await disable(subscription);
    await patch(subscription, { endpoint: `${stage.receiver.url}/${newName("hook")}` });
    const path = `/consumer/subscription/${subscription.id}`;
    const record = readObject(await stage.call("GET", path, consumer));
    assert.equal(record["status"], "disabled");
    assert.equal(typeof record["disabled_reason"], "string");
  });

  test("deleting cancels what is pending", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await patch(subscription, { status: "paused" });
    const event = await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "pending");
    const path = `/consumer/subscription/${subscription.id}`;
    assert.equal((await stage.call("DELETE", path, consumer)).status, 204);
    assertProblem(await stage.call("GET", `${path}/delivery`, consumer), 404);
    const list = await stage.call("GET", `/backend/delivery?event=${event}`, stage.admin);
    const items = readItems(list);
    assert.deepEqual(items.map(({ status }) => status), ["cancelled"]);
  });
});
