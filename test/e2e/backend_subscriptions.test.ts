import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { startEventStage } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const stage = await startEventStage();
after(() => stage.stop());
const { get, patch, audited } = stage;
const consumer = await stage.newConsumer();

describe("/backend/subscription", () => {
  test("lists the subscriptions of all principals, newest first, in pages", async () => {
    const ids = [
      await stage.subscribe(consumer, newName("e")),
      await stage.subscribe(await stage.newConsumer(), newName("e")),
    ].map(({ id }) => id);
    const first = await get("/backend/subscription?limit=1");
    const cursor = String(readObject(first)["next_cursor"]);
    const second = await get(`/backend/subscription?limit=1&cursor=${cursor}`);
    const items = [...readItems(first), ...readItems(second)];
    assert.deepEqual(items.map(({ id }) => id), ids.toReversed());
    assert.equal(new Set(items.map(({ principal }) => principal)).size, 2);
    assert.ok(items.every((item) => item["status"] === "active" && item["app"] === "login"));
    assert.ok(!first.text.includes("whsec_"));
  });

  test("shows a subscription, pauses it, changes its endpoint and activates it", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const path = `/backend/subscription/${subscription.id}`;
    assert.equal(readObject(await get(path))["event"], subscription.event);
    const paused = await patch(path, { status: "paused" });
    assert.deepEqual([paused.status, readObject(paused)["status"]], [200, "paused"]);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "pending");
    const hook = `/${newName("hook")}`;
    const active = await patch(path, { status: "active", endpoint: stage.receiver.url + hook });
    assert.equal(readObject(active)["endpoint"], stage.receiver.url + hook);
    await stage.receiver.waitFor(1, PATIENCE_MS, hook);
    assert.deepEqual(
      await audited(subscription.id),
      ["subscription.create", "subscription.change", "subscription.change"],
    );
  });

  test("disables a subscription with a reason and cancels its pending deliveries", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const path = `/backend/subscription/${subscription.id}`;
    await patch(path, { status: "paused" });
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "pending");
    const record = readObject(await patch(path, { status: "disabled" }));
    const { status, disabled_reason: reason } = record;
    assert.deepEqual([status, typeof reason], ["disabled", "string"]);
    const own = await stage.call("GET", `/consumer/subscription/${subscription.id}`, consumer);
    assert.equal(readObject(own)["disabled_reason"], reason);
    await stage.deliveries(subscription, "cancelled");
    const active = readObject(await patch(path, { status: "active" }));
    assert.equal(active["status"], "active");
    assert.ok(!("disabled_reason" in active));
  });

  test("does not activate a subscription whose user is disabled", async () => {
    const user = await stage.gatepost.createUser();
    const subscription = await stage.subscribe(await stage.gatepost.login(user), newName("e"));
    await stage.gatepost.change(user, { status: "disabled" });
    const path = `/backend/subscription/${subscription.id}`;
    assert.equal(readObject(await get(path))["status"], "disabled");
    assertProblem(await patch(path, { status: "active" }), 409);
    await stage.gatepost.change(user, { status: "active" });
    assert.equal((await patch(path, { status: "active" })).status, 200);
  });

  test("refuses an endpoint that its owner could not set, and invalid members", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const path = `/backend/subscription/${subscription.id}`;
    for (const endpoint of ["ftp://a.example/", "http://10.0.0.1/", stage.gatepost.server.url]) {
      assert.deepEqual(assertProblem(await patch(path, { endpoint }), 400), ["/endpoint"]);
    }
    const wrong = await patch(path, { status: "gone", event: "other" });
    assert.deepEqual(assertProblem(wrong, 400), ["/event", "/status"]);
    assert.deepEqual(await audited(subscription.id), ["subscription.create"]);
  });

  test("one of eight simultaneous deletions succeeds, and only that one is audited", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const user = await stage.gatepost.createUser();
    const app = await stage.gatepost.createApp();
    const targets = [
      ["subscription", subscription.id],
      ["user", user.id],
      ["app", app.id],
    ] as const;
    for (const [kind, id] of targets) {
      const path = `/backend/${kind}/${id}`;
      const responses = await Promise.all(
        Array.from({ length: 8 }, () => stage.call("DELETE", path, stage.admin)),
      );
      assert.deepEqual(
        responses.map(({ status }) => status).sort(),
        [204, ...Array<number>(7).fill(404)],
      );
      assert.equal((await audited(id)).filter((action) => action === `${kind}.delete`).length, 1);
    }
  });

  test("refuses an endpoint that the owner already has for the same event", async () => {
    const event = newName("e");
    const one = await stage.subscribe(consumer, event);
    const two = await stage.subscribe(consumer, event);
    const change = { endpoint: stage.receiver.url + one.path };
    assertProblem(await patch(`/backend/subscription/${two.id}`, change), 409);
  });

  test("deletes a subscription, for its owner too", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const path = `/backend/subscription/${subscription.id}`;
    assert.equal((await stage.call("DELETE", path, stage.admin)).status, 204);
    assertProblem(await get(path), 404);
    const own = `/consumer/subscription/${subscription.id}`;
    assertProblem(await stage.call("GET", own, consumer), 404);
    assertProblem(await stage.call("DELETE", path, stage.admin), 404);
    const actions = await audited(subscription.id);
    assert.deepEqual(actions, ["subscription.create", "subscription.delete"]);
  });
});
