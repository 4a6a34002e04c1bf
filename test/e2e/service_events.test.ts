import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type EventStage,
  readItems,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import { newName, readObject } from "../helpers/gatepost.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const DISABLE_AFTER_MS = 1000;

let stage: EventStage;
/** Of the administrator, for what the service itself has to tell. */
let failed: StagedSubscription;
let disabled: StagedSubscription;
before(async () => {
  stage = await startEventStage({
    GATEPOST_DISABLE_AFTER: `${DISABLE_AFTER_MS}ms`,
    GATEPOST_DISTRIBUTE_INTERVAL: "1h", // whatever dispatches wakes the distributor
  });
  failed = await stage.subscribe(stage.admin, "gatepost.delivery.failed");
  disabled = await stage.subscribe(stage.admin, "gatepost.subscription.disabled");
});
after(() => stage.stop());

/** What was reported of a subscription so far. */
function told(by: StagedSubscription, { id }: StagedSubscription): Record<string, unknown>[] {
  return stage.receiver.requests(by.path).map(({ body }) => JSON.parse(String(body)))
    .filter(({ subscription }) => subscription === id);
}

/** Waits until a subscription's disabling was reported, which must be once, and returns that. */
async function tellsDisabled(subscription: StagedSubscription): Promise<unknown> {
  await until(() => told(disabled, subscription).length > 0);
  const [first, ...more] = told(disabled, subscription);
  assert.deepEqual(more, []);
  assert.equal(first?.["event"], subscription.event);
  return first?.["reason"];
}

/** "disabled" and so on; undefined where there is none any more. */
async function statusOf({ id }: StagedSubscription): Promise<unknown> {
  const response = await stage.call("GET", `/backend/subscription/${id}`, stage.admin);
  return response.status === 404 ? undefined : readObject(response)["status"];
}

describe("gatepost.delivery.failed", () => {
  test("tells of a delivery whose last resend has failed, once", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500);
    await stage.dispatch(subscription.event, 1);
    const [delivery] = await stage.deliveries(subscription, "failed");
    await until(() => told(failed, subscription).length > 0);
    assert.deepEqual(told(failed, subscription), [{
      delivery: delivery?.["id"],
      subscription: subscription.id,
      event: subscription.event,
    }]);
  });

  test("does not tell of an attempt that is followed by another", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500, 204);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "delivered");
    await sleep(200); // longer than a round of the distributor
    assert.deepEqual(told(failed, subscription), []);
  });
});

describe("gatepost.subscription.disabled", () => {
  test("reports a last attempt that was answered with 410", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 410);
    await stage.dispatch(subscription.event, 1);
    await stage.receiver.waitFor(2, PATIENCE_MS, subscription.path);
    assert.equal(await tellsDisabled(subscription), "gone");
    assert.equal(await statusOf(subscription), "disabled");
    await stage.deliveries(subscription, "failed");
  });

  test("does not disable for a 410 that a resend makes good", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 410, 204);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "delivered");
    assert.equal(await statusOf(subscription), "active");
  });

  test("tells of one whose attempts have all failed for GATEPOST_DISABLE_AFTER", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500);
    const beginning = Date.now();
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "failed");
    if (Date.now() - beginning < DISABLE_AFTER_MS) {
      assert.equal(await statusOf(subscription), "active");
    }
    await sleep(DISABLE_AFTER_MS);
    await stage.dispatch(subscription.event, 2);
    assert.equal(await tellsDisabled(subscription), "failing");
    await stage.deliveries(subscription, "failed", "failed");
    assert.equal(stage.receiver.count(subscription.path), 4, "each is resent once");
    const path = `/consumer/subscription/${subscription.id}`;
    const record = readObject(await stage.call("GET", path, token));
    assert.equal(record["disabled_reason"], "failing");
  });

  test("does not disable one whose resend is due yet, however long it has failed", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500, 500, 500, 204);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "failed");
    await sleep(DISABLE_AFTER_MS);
    await stage.dispatch(subscription.event, 2);
    await stage.deliveries(subscription, "delivered", "failed");
    assert.equal(await statusOf(subscription), "active");
  });

  test("does not disable a subscription that had a success in between", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500, 500, 204, 500);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "failed");
    await sleep(DISABLE_AFTER_MS);
    await stage.dispatch(subscription.event, 2);
    await stage.deliveries(subscription, "delivered", "failed");
    await stage.dispatch(subscription.event, 3);
    await stage.deliveries(subscription, "failed", "delivered", "failed");
    assert.equal(await statusOf(subscription), "active");
  });

  test("tells of all of a user who is disabled, and of one who is deleted", async () => {
    const user = await stage.gatepost.createUser();
    const token = await stage.gatepost.login(user);
    const one = await stage.subscribe(token, newName("e"));
    const two = await stage.subscribe(token, newName("e"));
    await stage.gatepost.change(user, { status: "disabled" });
    for (const subscription of [one, two]) {
      assert.match(String(await tellsDisabled(subscription)), /user/);
      assert.equal(await statusOf(subscription), "disabled");
    }

    const leaver = await stage.gatepost.createUser();
    const three = await stage.subscribe(await stage.gatepost.login(leaver), newName("e"));
    await stage.call("DELETE", `/backend/user/${leaver.id}`, stage.admin);
    assert.match(String(await tellsDisabled(three)), /user/);
    assert.equal(await statusOf(three), undefined);
  });

  test("tells of those of an app that is disabled, and of one that is deleted", async () => {
    for (const end of ["disabled", "deleted"]) {
      const app = await stage.gatepost.createApp();
      const response = await stage.gatepost.token(app, { grant_type: "client_credentials" });
      const token = String(readObject(response)["access_token"]);
      const subscription = await stage.subscribe(token, newName("e"));
      if (end === "disabled") await stage.gatepost.change(app, { status: "disabled" });
      else await stage.call("DELETE", `/backend/app/${app.id}`, stage.admin);
      assert.match(String(await tellsDisabled(subscription)), /app/);
      assert.equal(await statusOf(subscription), end === "disabled" ? end : undefined);
    }
  });

  test("tells of those of an app that a user withdraws from", async () => {
    const user = await stage.gatepost.createUser();
    const app = await stage.gatepost.createApp({ grants: ["password"] });
    const { username, password } = user;
    const fields = { grant_type: "password", username, password };
    const token = String(readObject(await stage.gatepost.token(app, fields))["access_token"]);
    const subscription = await stage.subscribe(token, newName("e"));
    const login = await stage.gatepost.login(user);
    await stage.call("DELETE", `/consumer/grant/${app.id}`, login);
    assert.match(String(await tellsDisabled(subscription)), /grant/);
  });

  test("tells of a subscription that an administrator disables, once however often", async () => {
    const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"));
    for (let times = 0; times < 3; times++) {
      const path = `/backend/subscription/${subscription.id}`;
      await stage.call("PATCH", path, stage.admin, { status: "disabled" });
    }
    await tellsDisabled(subscription);
    await sleep(200); // longer than a round of the distributor
    await tellsDisabled(subscription);
  });

  test("does not tell of one that its owner deletes", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"));
    await stage.call("DELETE", `/consumer/subscription/${subscription.id}`, token);
    await sleep(200); // longer than a round of the distributor
    assert.deepEqual(told(disabled, subscription), []);
  });
});

test("the service's events are never about subscriptions to themselves", async () => {
  const token = await stage.newConsumer(["consumer", "backend"]);
  const own = [
    await stage.subscribe(token, "gatepost.delivery.failed", 410),
    await stage.subscribe(token, "gatepost.subscription.disabled", 410),
  ];
  const cause = await stage.subscribe(token, newName("e"), 410);
  await stage.dispatch(cause.event, 1);
  await tellsDisabled(cause);
  for (const subscription of own) {
    await until(async () => await statusOf(subscription) === "disabled");
  }
  await sleep(200); // longer than a round of the distributor
  for (const subscription of own) {
    assert.deepEqual(told(failed, subscription), []);
    assert.deepEqual(told(disabled, subscription), []);
  }
});

test("only who has scope backend is notified", async () => {
  const user = await stage.gatepost.createUser({ scopes: ["consumer", "backend"] });
  const token = await stage.gatepost.login(user);
  const subscription = await stage.subscribe(token, "gatepost.delivery.failed");
  await stage.gatepost.change(user, { scopes: ["consumer"] });
  const cause = await stage.subscribe(await stage.newConsumer(), newName("e"), 500);
  await stage.dispatch(cause.event, 1);
  await until(() => told(failed, cause).length > 0);
  const path = `/backend/delivery?subscription=${subscription.id}`;
  assert.deepEqual(readItems(await stage.call("GET", path, stage.admin)), []);
});
