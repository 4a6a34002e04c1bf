import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  type EventStage,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import type { ReceivedRequest } from "../helpers/receiver.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const DELAYS_MS = [150, 300, 450];
/** By how much a delay may be shorter or longer; a busy machine adds to it. */
const JITTER = 0.2;
const LATE_MS = 1_500;

/** Waits until the subscription's one delivery has ended, and returns its status. */
async function outcome(stage: EventStage, { id, token }: StagedSubscription): Promise<unknown> {
  let status: unknown;
  await until(async () => {
    const path = `/consumer/subscription/${id}/delivery`;
    const { items } = readObject(await stage.call("GET", path, token));
    status = Array.isArray(items) ? Object(items[0]).status : undefined;
    return status !== undefined && status !== "pending";
  });
  return status;
}

/** Milliseconds between one request and the next. */
function waitsOf(requests: readonly ReceivedRequest[]): number[] {
  return requests.slice(1).map(({ atMs }, index) => atMs - (requests[index]?.atMs ?? 0));
}

function attemptsOf(requests: readonly ReceivedRequest[]): unknown[] {
  return requests.map(({ headers }) => headers["gatepost-attempt"]);
}

describe("with three delays", () => {
  let stage: EventStage;
  let token: string;
  before(async () => {
    stage = await startEventStage({
      GATEPOST_RESEND_DELAYS: DELAYS_MS.map((ms) => `${ms}ms`).join(","),
      GATEPOST_DISTRIBUTE_INTERVAL: "10s", // a due resend wakes the distributor by itself
    });
    token = await stage.newConsumer();
  });
  after(() => stage.stop());

  test("a delivery that always fails is sent exactly four times, and is failed then", async () => {
    const subscription = await stage.subscribe(token, newName("e"), 500);
    await stage.dispatch(subscription.event, { n: 1 });
    assert.equal(await outcome(stage, subscription), "failed");
    const requests = await stage.receiver.waitFor(4, PATIENCE_MS, subscription.path);
    assert.deepEqual(attemptsOf(requests), ["1", "2", "3", "4"]);
    assert.equal(new Set(requests.map(({ headers }) => headers["webhook-id"])).size, 1);
    assert.equal(new Set(requests.map(({ body }) => String(body))).size, 1);
    for (const [index, waitMs] of waitsOf(requests).entries()) {
      const delayMs = DELAYS_MS[index] ?? 0;
      const what = `resend ${index + 1} after ${waitMs} ms`;
      assert.ok(waitMs >= delayMs * (1 - JITTER) - 20, what);
      assert.ok(waitMs <= delayMs * (1 + JITTER) + LATE_MS, what);
    }
    await new Promise((resolve) => setTimeout(resolve, 2 * (DELAYS_MS[2] ?? 0)));
    assert.equal(stage.receiver.count(subscription.path), 4, "no further request");
  });

  for (const failures of [1, 2, 3]) {
    test(`a success after ${failures} failures ends the delivery`, async () => {
      const statuses = [...Array<number>(failures).fill(500), 204];
      const subscription = await stage.subscribe(token, newName("e"), ...statuses);
      await stage.dispatch(subscription.event, 1);
      assert.equal(await outcome(stage, subscription), "delivered");
      assert.equal(stage.receiver.count(subscription.path), failures + 1);
    });
  }

  const RETRY_AFTER: readonly (readonly [what: string, header: () => string])[] = [
    ["seconds", () => "2"],
    ["a date", () => new Date(Date.now() + 2_500).toUTCString()],
  ];
  for (const [what, header] of RETRY_AFTER) {
    test(`Retry-After with ${what} lengthens the delay`, async () => {
      const subscription = await stage.subscribe(token, newName("e"));
      stage.receiver.react(
        subscription.path,
        { kind: "answer", status: 503, headers: { "retry-after": header() } },
        { kind: "answer" },
      );
      await stage.dispatch(subscription.event, 1);
      const requests = await stage.receiver.waitFor(2, PATIENCE_MS, subscription.path);
      const [waitMs = 0] = waitsOf(requests);
      assert.ok(waitMs > 1_300 && waitMs < 2_500 + LATE_MS, `${waitMs} ms`);
    });
  }

  test("410 is resent, and disables the subscription if the last response is 410 too", async () => {
    const gone = await stage.subscribe(token, newName("e"), 410);
    const back = await stage.subscribe(token, newName("e"), 410, 410, 410, 204);
    const other = await stage.subscribe(token, newName("e"), 410, 410, 410, 500);
    for (const { event } of [gone, back, other]) await stage.dispatch(event, 1);
    const ends = await Promise.all([gone, back, other].map((each) => outcome(stage, each)));
    assert.deepEqual(ends, ["failed", "delivered", "failed"]);
    const statuses = await Promise.all([gone, back, other].map(async ({ id }) => {
      const response = await stage.call("GET", `/consumer/subscription/${id}`, token);
      const { status, disabled_reason: reason } = readObject(response);
      return [status, typeof reason];
    }));
    const active = ["active", "undefined"];
    assert.deepEqual(statuses, [["disabled", "string"], active, active]);
    for (const { path } of [gone, back, other]) assert.equal(stage.receiver.count(path), 4);
  });

  test("disabling a subscription cancels its other pending deliveries", async () => {
    const subscription = await stage.subscribe(token, newName("e"), 410);
    for (const n of [1, 2, 3]) await stage.dispatch(subscription.event, n);
    await until(async () => {
      const path = `/consumer/subscription/${subscription.id}`;
      return readObject(await stage.call("GET", path, token))["status"] === "disabled";
    });
    const path = `/consumer/subscription/${subscription.id}/delivery`;
    const { items } = readObject(await stage.call("GET", path, token));
    assert.ok(Array.isArray(items));
    const statuses = items.map((item: unknown) => String(Object(item).status)).sort();
    const ended = ["failed", "cancelled"];
    assert.ok(statuses.every((status) => ended.includes(status)), `${statuses}`);
    assert.ok(statuses.includes("failed"));
    const before = stage.receiver.count(subscription.path);
    await new Promise((resolve) => setTimeout(resolve, 2 * (DELAYS_MS[2] ?? 0)));
    assert.equal(stage.receiver.count(subscription.path), before);
  });

  test("a new endpoint gets the resends", async () => {
    const subscription = await stage.subscribe(token, newName("e"), 500);
    const moved = `/${newName("hook")}`;
    await stage.dispatch(subscription.event, "for the new one");
    const [first] = await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    await stage.call("PATCH", `/consumer/subscription/${subscription.id}`, token, {
      endpoint: stage.receiver.url + moved,
    });
    const [second] = await stage.receiver.waitFor(1, PATIENCE_MS, moved);
    assert.deepEqual(second?.body, first?.body);
    assert.equal(second?.headers["webhook-id"], first?.headers["webhook-id"]);
  });

  test("a waiting delivery can be resent at once as attempt 1, one in flight cannot", async () => {
    const subscription = await stage.subscribe(token, newName("e"));
    const late = { kind: "answer", status: 503, headers: { "retry-after": "3600" } } as const;
    stage.receiver.react(subscription.path, late, late, { kind: "hang" });
    await stage.dispatch(subscription.event, 1);
    const { id, path } = subscription;
    const waits = () => until(async () => {
      const list = await stage.call("GET", `/consumer/subscription/${id}/delivery`, token);
      return readItems(list)[0]?.["next_attempt_at"] !== undefined;
    });
    const [first] = await stage.receiver.waitFor(1, PATIENCE_MS, path);
    await waits();
    const resend = `/consumer/subscription/delivery/${first?.headers["webhook-id"]}/resend`;
    assertProblem(await stage.call("POST", resend, token), 409); // it has not failed
    const sendNow = () => stage.call("POST", resend, token, { status: "pending" });
    assert.equal((await sendNow()).status, 202);
    await stage.receiver.waitFor(2, PATIENCE_MS, path);
    await waits();
    const body = { status: "pending", subscription: id };
    const all = await stage.call("POST", "/backend/delivery/resend", stage.admin, body);
    assert.equal(readObject(all)["count"], 1);
    await stage.receiver.waitFor(3, PATIENCE_MS, path);
    assertProblem(await sendNow(), 409); // it is in flight
    const none = await stage.call("POST", "/backend/delivery/resend", stage.admin, body);
    assert.equal(readObject(none)["count"], 0);
    assert.deepEqual(attemptsOf(stage.receiver.requests(path)), ["1", "1", "1"]);
  });

  test("a paused subscription's resends wait until it is active again", async () => {
    const subscription = await stage.subscribe(token, newName("e"), 500, 204);
    await stage.dispatch(subscription.event, 1);
    await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    const path = `/consumer/subscription/${subscription.id}`;
    await stage.call("PATCH", path, token, { status: "paused" });
    await new Promise((resolve) => setTimeout(resolve, 3 * (DELAYS_MS[0] ?? 0)));
    assert.equal(stage.receiver.count(subscription.path), 1);
    await stage.call("PATCH", path, token, { status: "active" });
    await stage.receiver.waitFor(2, PATIENCE_MS, subscription.path);
  });

  test("a deleted subscription's resends are not sent", async () => {
    const subscription = await stage.subscribe(token, newName("e"), 500);
    await stage.dispatch(subscription.event, 1);
    await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    await stage.call("DELETE", `/consumer/subscription/${subscription.id}`, token);
    await new Promise((resolve) => setTimeout(resolve, 3 * (DELAYS_MS[0] ?? 0)));
    assert.equal(stage.receiver.count(subscription.path), 1);
  });
});

describe("with other numbers of delays", () => {
  for (const [delays, posts] of [["none", 1], ["10ms,10ms", 3]] as const) {
    test(`attempts in total with GATEPOST_RESEND_DELAYS=${delays}: ${posts}`, async (t) => {
      const stage = await startEventStage({ GATEPOST_RESEND_DELAYS: delays });
      t.after(() => stage.stop());
      const subscription = await stage.subscribe(await stage.newConsumer(), newName("e"), 500);
      await stage.dispatch(subscription.event, 1);
      assert.equal(await outcome(stage, subscription), "failed");
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(stage.receiver.count(subscription.path), posts);
    });
  }
});
