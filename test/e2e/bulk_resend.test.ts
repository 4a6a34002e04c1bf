import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  type EventStage,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

let stage: EventStage;
let consumer: string;
before(async () => {
  stage = await startEventStage({ GATEPOST_RESEND_DELAYS: "none" });
  consumer = await stage.newConsumer();
});
after(() => stage.stop());

const BULK = "/backend/delivery/resend";
const post = (path: string, body: unknown, token = stage.admin) =>
  stage.call("POST", path, token, body);

/** A subscription whose receiver responded to `count` deliveries with a status, then with 204. */
async function deliver(status: number, count: number): Promise<StagedSubscription> {
  const responses = Array<number>(count).fill(status);
  const subscription = await stage.subscribe(consumer, newName("e"), ...responses, 204);
  for (let n = 1; n <= count; n++) await stage.dispatch(subscription.event, { n });
  const end = status === 204 ? "delivered" : "failed";
  await stage.deliveries(subscription, ...Array<string>(count).fill(end));
  return subscription;
}

const sentIds = ({ path }: StagedSubscription) =>
  stage.receiver.requests(path).map(({ headers }) => String(headers["webhook-id"]));

describe("POST /backend/delivery/resend", () => {
  test("resends delivered ones, each with its own webhook-id", async () => {
    const subscription = await deliver(204, 2);
    const response = await post(BULK, { status: "delivered", subscription: subscription.id });
    const { id, count } = readObject(response);
    assert.deepEqual([response.status, count], [202, 2]);
    await stage.receiver.waitFor(4, PATIENCE_MS, subscription.path);
    const ids = sentIds(subscription);
    assert.deepEqual(ids.slice(2).sort(), ids.slice(0, 2).sort());
    const record = readObject(await stage.call("GET", `/backend/resend/${id}`, stage.admin));
    const { state, done, status, subscription: of } = record;
    assert.deepEqual([state, done, status, of], ["done", 2, "delivered", subscription.id]);
  });

  test("counts in a dry run, which stores and sends nothing", async () => {
    const subscription = await deliver(500, 2);
    const body = { status: "failed", subscription: subscription.id, dry_run: true };
    const response = await post(BULK, body);
    assert.deepEqual([response.status, response.json()], [200, { count: 2 }]);
    const one = await post(BULK, { ...body, first: "one" });
    assert.deepEqual([one.status, one.json()], [200, { count: 1 }]);
    await stage.deliveries(subscription, "failed", "failed");
    const list = readObject(await stage.call("GET", "/backend/resend", stage.admin));
    assert.ok(!JSON.stringify(list).includes(subscription.id));
  });

  test("resends only the first one and names it if asked for one", async () => {
    const subscription = await deliver(500, 3);
    const [oldest] = sentIds(subscription);
    const body = { status: "failed", subscription: subscription.id, first: "one" };
    assert.deepEqual((await post(BULK, body)).json(), { count: 1, delivery: oldest });
    await stage.deliveries(subscription, "failed", "failed", "delivered");
    assert.deepEqual(sentIds(subscription).slice(3), [oldest]);
  });

  test("selects deliveries by the filters of the list", async () => {
    const one = await deliver(503, 2);
    const two = await deliver(500, 1);
    const count = async (more: object) =>
      readObject(await post(BULK, { status: "failed", dry_run: true, ...more }))["count"];
    assert.equal(await count({ name: one.event }), 2);
    assert.equal(await count({ name: one.event, answer: "503", attempt: 1 }), 2);
    assert.equal(await count({ name: one.event, answer: "500" }), 0);
    assert.equal(await count({ endpoint: stage.receiver.url + two.path }), 1);
    assert.equal(await count({ event: await lastEvent(one) }), 1);
  });

  async function lastEvent({ event }: StagedSubscription): Promise<string> {
    const response = await stage.call("GET", `/backend/event?name=${event}&limit=1`, stage.admin);
    return String(Object(readObject(response)["items"])[0].id);
  }

  test("needs scope backend and a valid filter", async () => {
    assertProblem(await post(BULK, { status: "failed" }, consumer), 403);
    assert.deepEqual(assertProblem(await post(BULK, { status: "due", answer: "5x", first: 1 }),
      400), ["/answer", "/first", "/status"]);
    const path = `/backend/resend/w${"0".repeat(24)}`;
    assertProblem(await stage.call("GET", path, stage.admin), 404);
    assertProblem(await stage.call("DELETE", path, stage.admin), 404);
  });
});

describe("POST /consumer/subscription/{id}/resend", () => {
  const path = ({ id }: StagedSubscription) => `/consumer/subscription/${id}/resend`;

  test("resends deliveries of that subscription, for its owner alone", async () => {
    const subscription = await deliver(500, 2);
    const other = await deliver(500, 1);
    const stranger = await stage.newConsumer();
    assertProblem(await post(path(subscription), { status: "failed" }, stranger), 404);
    const wider = { status: "failed", subscription: other.id };
    assert.deepEqual(assertProblem(await post(path(subscription), wider, consumer), 400),
      ["/subscription"]);
    const response = await post(path(subscription), { status: "failed" }, consumer);
    assert.deepEqual([response.status, readObject(response)["count"]], [202, 2]);
    await stage.deliveries(subscription, "delivered", "delivered");
    await stage.deliveries(other, "failed");
  });

  test("counts against the limit of resends, unless it is a dry run", async () => {
    const subscription = await deliver(500, 1);
    for (let tries = 0; tries < 8; tries++) {
      const body = { status: "failed", dry_run: true };
      assert.equal((await post(path(subscription), body, consumer)).status, 200);
    }
    for (let tries = 0; tries < 6; tries++) {
      await post(path(subscription), { status: "cancelled" }, consumer);
    }
    assertProblem(await post(path(subscription), { status: "failed" }, consumer), 429);
  });

  test("is shown only to the consumer who asked for it, and below its subscription", async () => {
    const subscription = await deliver(500, 1);
    const other = await deliver(500, 1);
    await post(BULK, { status: "failed", subscription: subscription.id }); // by an administrator
    await stage.deliveries(subscription, "delivered");
    const resend = async (of: StagedSubscription) =>
      String(readObject(await post(path(of), { status: "delivered" }, consumer))["id"]);
    const ids = [await resend(subscription)];
    await stage.receiver.waitFor(3, PATIENCE_MS, subscription.path);
    await stage.deliveries(subscription, "delivered");
    ids.unshift(await resend(subscription));
    const get = (below: string, token = consumer) =>
      stage.call("GET", path(subscription) + below, token);
    assert.deepEqual(readItems(await get("")).map(({ id }) => id), ids);
    assert.deepEqual(readItems(await get("?state=running")), []);
    assert.equal(readObject(await get(`/${ids[0]}`))["count"], 1);
    const ended = await stage.call("DELETE", `${path(subscription)}/${ids[0]}`, consumer);
    assertProblem(ended, 409);
    const all = `/backend/resend?subscription=${subscription.id}`;
    const everybody = readItems(await stage.call("GET", all, stage.admin));
    assert.equal(everybody.length, 3);
    assertProblem(await get(`/${String(everybody[2]?.["id"])}`), 404);
    assertProblem(await stage.call("GET", `${path(other)}/${ids[0]}`, consumer), 404);
    const stranger = await stage.newConsumer();
    assertProblem(await get("", stranger), 404);
    assertProblem(await get(`/${ids[0]}`, stranger), 404);
  });

  test("is refused while the subscription is disabled", async () => {
    const subscription = await deliver(500, 1);
    const managed = `/backend/subscription/${subscription.id}`;
    await stage.call("PATCH", managed, stage.admin, { status: "disabled" });
    assertProblem(await post(path(subscription), { status: "failed" }, consumer), 409);
  });
});

describe("resending one delivery", () => {
  test("resends a delivered one only if the request names that status", async () => {
    const subscription = await deliver(204, 1);
    const [id] = sentIds(subscription);
    const own = `/consumer/subscription/delivery/${id}/resend`;
    const managed = `/backend/delivery/${id}/resend`;
    for (const [resend, token] of [[own, consumer], [managed, stage.admin]] as const) {
      assertProblem(await post(resend, undefined, token), 409);
      assertProblem(await post(resend, { status: "cancelled" }, token), 409);
      assert.equal((await post(resend, { status: "delivered" }, token)).status, 202);
      await until(() => sentIds(subscription).length > (token === consumer ? 1 : 2));
      await stage.deliveries(subscription, "delivered");
    }
    assert.deepEqual(sentIds(subscription), [id, id, id]);
  });
});
