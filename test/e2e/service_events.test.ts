import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type EventStage,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { readItems, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const DISABLE_AFTER_MS = 1000;

let stage: EventStage;
/** The administrator's subscriptions to the events of the service itself. */
let failed: StagedSubscription;
let disabled: StagedSubscription;
before(async () => {
  stage = await startEventStage({
    GATEPOST_DISABLE_AFTER: `${DISABLE_AFTER_MS}ms`,
    GATEPOST_DISTRIBUTE_INTERVAL: "1h", // every dispatch wakes the distributor
  });
  failed = await stage.subscribe(stage.admin, "gatepost.delivery.failed");
  disabled = await stage.subscribe(stage.admin, "gatepost.subscription.disabled");
});
after(() => stage.stop());

/** What was reported of a subscription so far. */
function reported(by: StagedSubscription, { id }: StagedSubscription): Record<string, unknown>[] {
  return stage.receiver.requests(by.path).map(({ body }) => JSON.parse(String(body)))
    .filter(({ subscription }) => subscription === id);
}

/** Waits until a subscription is reported disabled, exactly once, and returns the reason. */
async function waitForReason(subscription: StagedSubscription): Promise<unknown> {
  await until(() => reported(disabled, subscription).length > 0);
  const [first, ...more] = reported(disabled, subscription);
  assert.deepEqual(more, []);
  assert.equal(first?.["event"], subscription.event);
  return first?.["reason"];
}

/** A subscription's status, such as "disabled"; undefined once it is deleted. */
async function statusOf({ id }: StagedSubscription): Promise<unknown> {
  const response = await stage.call("GET", `/backend/subscription/${id}`, stage.admin);
  return response.status === 404 ? undefined : readObject(response)["status"];
}

describe("gatepost.delivery.failed", () => {
  test("reports a delivery once when its last resend has failed", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500);
    await stage.dispatch(subscription.event, 1);
    const [delivery] = await stage.deliveries(subscription, "failed");
    await until(() => reported(failed, subscription).length > 0);
    assert.deepEqual(reported(failed, subscription), [{
      delivery: delivery?.["id"],
      subscription: subscription.id,
      event: subscription.event,
    }]);
  });

  test("does not report a failed attempt when the resend succeeds", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500, 204);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "delivered");
    await sleep(200); // longer than a round of the distributor
    assert.deepEqual(reported(failed, subscription), []);
  });
});

describe("gatepost.subscription.disabled", () => {
  test("reports a subscription whose last attempt gets 410", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 410);
    await stage.dispatch(subscription.event, 1);
    await stage.receiver.waitFor(2, PATIENCE_MS, subscription.path);
    assert.equal(await waitForReason(subscription), "gone");
    assert.equal(await statusOf(subscription), "disabled");
    await stage.deliveries(subscription, "failed");
  });

  test("a subscription stays active when the resend after a 410 succeeds", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 410, 204);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "delivered");
    assert.equal(await statusOf(subscription), "active");
  });

  test("reports a subscription whose attempts all failed for GATEPOST_DISABLE_AFTER", async () => {
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
    assert.equal(await waitForReason(subscription), "failing");
    await stage.deliveries(subscription, "failed", "failed");
    assert.equal(stage.receiver.count(subscription.path), 4, "each is resent once");
    const path = `/consumer/subscription/${subscription.id}`;
    const record = readObject(await stage.call("GET", path, token));
    assert.equal(record["disabled_reason"], "failing");
  });

  test("a subscription that failed for long stays active while a resend is due", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"), 500, 500, 500, 204);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "failed");
    await sleep(DISABLE_AFTER_MS);
    await stage.dispatch(subscription.event, 2);
    await stage.deliveries(subscription, "delivered", "failed");
    assert.equal(await statusOf(subscription), "active");
  });

  test("a failing subscription stays active when one delivery succeeded in between", async () => {
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

  test("reports each subscription of a user who is disabled or deleted", async () => {
    const user = await stage.gatepost.createUser();
    const token = await stage.gatepost.login(user);
    const one = await stage.subscribe(token, newName("e"));
    const two = await stage.subscribe(token, newName("e"));
    await stage.gatepost.change(user, { status: "disabled" });
    for (const subscription of [one, two]) {
      assert.match(String(await waitForReason(subscription)), /user/);
      assert.equal(await statusOf(subscription), "disabled");
    }

    const leaver = await stage.gatepost.createUser();
    const three = await stage.subscribe(await stage.gatepost.login(leaver), newName("e"));
    await stage.call("DELETE", `/backend/user/${leaver.id}`, stage.admin);
    assert.match(String(await waitForReason(three)), /user/);
    assert.equal(await statusOf(three), undefined);
  });

  test("reports the subscription of an app that is disabled or deleted", async () => {
    for (const end of ["disabled", "deleted"]) {
      const app = await stage.gatepost.createApp();
      const response = await stage.gatepost.token(app, { grant_type: "client_credentials" });
      const token = String(readObject(response)["access_token"]);
      const subscription = await stage.subscribe(token, newName("e"));
      if (end === "disabled") await stage.gatepost.change(app, { status: "disabled" });
      else await stage.call("DELETE", `/backend/app/${app.id}`, stage.admin);
      assert.match(String(await waitForReason(subscription)), /app/);
      assert.equal(await statusOf(subscription), end === "disabled" ? end : undefined);
    }
  });

  test("reports the subscription of an app whose grant the user withdraws", async () => {
    const user = await stage.gatepost.createUser();
    const app = await stage.gatepost.createApp({ grants: ["password"] });
    const { username, password } = user;
    const fields = { grant_type: "password", username, password };
    const token = String(readObject(await stage.gatepost.token(app, fields))["access_token"]);
    const subscription = await stage.subscribe(token, newName("e"));
    const login = await stage.gatepost.login(user);
    await stage.call("DELETE", `/consumer/grant/${app.id}`, login);
    assert.match(String(await waitForReason(subscription)), /grant/);
  });

  test("reports a subscription once, however often an administrator disables it", async () => {
    const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"));
    for (let times = 0; times < 3; times++) {
      const path = `/backend/subscription/${subscription.id}`;
      await stage.call("PATCH", path, stage.admin, { status: "disabled" });
    }
    await waitForReason(subscription);
    await sleep(200); // longer than a round of the distributor
    await waitForReason(subscription);
  });

  test("does not report a subscription that its owner deletes", async () => {
    const token = await stage.newConsumer();
    const subscription = await stage.subscribe(token, newName("e"));
    await stage.call("DELETE", `/consumer/subscription/${subscription.id}`, token);
    await sleep(200); // longer than a round of the distributor
    assert.deepEqual(reported(disabled, subscription), []);
  });
});

test("the service never reports a subscription to its own events", async () => {
  const token = await stage.newConsumer(["consumer", "backend"]);
  const own = [
    await stage.subscribe(token, "gatepost.delivery.failed", 410),
    await stage.subscribe(token, "gatepost.subscription.disabled", 410),
  ];
  const cause = await stage.subscribe(token, newName("e"), 410);
  await stage.dispatch(cause.event, 1);
  await waitForReason(cause);
  for (const subscription of own) {
    await until(async () => await statusOf(subscription) === "disabled");
  }
  await sleep(200); // longer than a round of the distributor
  for (const subscription of own) {
    assert.deepEqual(reported(failed, subscription), []);
    assert.deepEqual(reported(disabled, subscription), []);
  }
});

test("a subscriber who loses scope backend gets no more events of the service", async () => {
  const user = await stage.gatepost.createUser({ scopes: ["consumer", "backend"] });
  const token = await stage.gatepost.login(user);
  const subscription = await stage.subscribe(token, "gatepost.delivery.failed");
  await stage.gatepost.change(user, { scopes: ["consumer"] });
  const cause = await stage.subscribe(await stage.newConsumer(), newName("e"), 500);
  await stage.dispatch(cause.event, 1);
  await until(() => reported(failed, cause).length > 0);
  const path = `/backend/delivery?subscription=${subscription.id}`;
  assert.deepEqual(readItems(await stage.call("GET", path, stage.admin)), []);
});
