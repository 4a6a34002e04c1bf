import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type StagedSubscription, startEventStage } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const stage = await startEventStage();
after(() => stage.stop());
const { get, post, patch, audited } = stage;
const consumer = await stage.newConsumer();

/** A subscription with failed deliveries, and their ids, newest first. */
async function fail(
  count: number,
  ...later: number[]
): Promise<{ subscription: StagedSubscription; ids: string[] }> {
  const failing = Array<number>(2 * count).fill(500);
  const subscription = await stage.subscribe(consumer, newName("e"), ...failing, ...later);
  for (let n = 1; n <= count; n++) await stage.dispatch(subscription.event, { n });
  const deliveries = await stage.deliveries(subscription, ...Array<string>(count).fill("failed"));
  return { subscription, ids: deliveries.map(({ id }) => String(id)) };
}

describe("/backend/delivery", () => {
  test("lists deliveries by status, subscription and event, alone and combined", async () => {
    const name = newName("e");
    const good = await stage.subscribe(consumer, name);
    const bad = await stage.subscribe(consumer, name, 500);
    const events = [await stage.dispatch(name, 1), await stage.dispatch(name, 2)];
    await stage.deliveries(good, "delivered", "delivered");
    await stage.deliveries(bad, "failed", "failed");
    const list = async (filter: Readonly<Record<string, string>>) =>
      readItems(await get(`/backend/delivery?${new URLSearchParams(filter)}`));

    const ofGood = await list({ subscription: good.id });
    assert.deepEqual(ofGood.map(({ event }) => event), events.toReversed());
    assert.ok(ofGood.every(({ subscription }) => subscription === good.id));
    const ofEvent = await list({ event: String(events[0]) });
    assert.deepEqual(ofEvent.map(({ subscription }) => subscription), [bad.id, good.id]);
    assert.ok(ofEvent.every((item) => item["event"] === events[0] && item["name"] === name));
    const both = await list({ subscription: bad.id, event: String(events[1]) });
    assert.equal(both.length, 1);
    const failed = await list({ status: "failed", event: String(events[0]) });
    assert.deepEqual(failed.map(({ subscription }) => subscription), [bad.id]);
    assert.equal((await list({ status: "failed", subscription: bad.id })).length, 2);
    assert.deepEqual(await list({ status: "failed", subscription: good.id }), []);
    assert.deepEqual(await list({ status: "pending", subscription: good.id }), []);
    const every = (await list({ limit: "200" })).map(({ id }) => String(id));
    assert.deepEqual(every, every.toSorted().toReversed());
    const allFailed = await list({ status: "failed", limit: "200" });
    assert.ok(allFailed.length >= 2 && allFailed.every(({ status }) => status === "failed"));
  });

  test("lists no deliveries for a subscription that does not exist", async () => {
    const path = `/backend/delivery?subscription=s${"0".repeat(24)}`;
    assert.deepEqual(readItems(await get(path)), []);
  });

  test("refuses invalid filters of deliveries with all errors", async () => {
    const path = "/backend/delivery?status=lost&subscription=1&event=order.created&limit=x";
    assert.deepEqual(
      assertProblem(await get(path), 400),
      ["/event", "/limit", "/status", "/subscription"],
    );
  });

  test("shows a delivery with its attempts and the snippet of each response", async () => {
    const { ids: [id] } = await fail(1);
    const record = readObject(await get(`/backend/delivery/${id}`));
    const attempts = record["attempts"] as Record<string, unknown>[];
    assert.deepEqual(
      attempts.map(({ attempt, status, snippet }) => [attempt, status, snippet]),
      [[1, 500, "not for you"], [2, 500, "not for you"]],
    );
    assertProblem(await get(`/backend/delivery/d${"0".repeat(32)}`), 404);
  });

  test("resends a failed delivery, without the rate limit of consumers", async () => {
    const { subscription, ids: [id] } = await fail(1);
    for (const sent of [4, 6, 8, 10, 12, 14, 16]) {
      assert.equal((await post(`/backend/delivery/${id}/resend`)).status, 202);
      await stage.receiver.waitFor(sent, PATIENCE_MS, subscription.path);
      await stage.deliveries(subscription, "failed");
    }
    assert.deepEqual(new Set(await audited(String(id))), new Set(["delivery.resend"]));
  });

  test("refuses to resend a delivery that did not fail or whose subscription ended", async () => {
    const delivered = await stage.subscribe(consumer, newName("e"));
    await stage.dispatch(delivered.event, 1);
    const [delivery] = await stage.deliveries(delivered, "delivered");
    assertProblem(await post(`/backend/delivery/${String(delivery?.["id"])}/resend`), 409);
    const { subscription, ids: [id] } = await fail(1);
    const path = `/backend/subscription/${subscription.id}`;
    await patch(path, { status: "disabled" });
    assertProblem(await post(`/backend/delivery/${id}/resend`), 409);
    assert.equal((await stage.call("DELETE", path, stage.admin)).status, 204);
    assertProblem(await post(`/backend/delivery/${id}/resend`), 409);
    assert.deepEqual(await audited(String(id)), [], "a refused resend is not audited");
  });
});

describe("POST /backend/delivery/resend", () => {
  test("resends all failed deliveries of a subscription and returns their number", async () => {
    const { subscription, ids } = await fail(3, 204);
    const other = await fail(1, 204);
    const body = { status: "failed", subscription: subscription.id };
    const response = await post("/backend/delivery/resend", body);
    assert.equal(response.status, 202, response.text);
    assert.equal(readObject(response)["count"], 3);
    await stage.deliveries(subscription, "delivered", "delivered", "delivered");
    const again = stage.receiver.requests(subscription.path).slice(6);
    assert.deepEqual(
      again.map(({ headers }) => String(headers["webhook-id"])).sort(),
      ids.toSorted(),
    );
    assert.ok(again.every(({ headers }) => headers["gatepost-attempt"] === "1"));
    await stage.deliveries(other.subscription, "failed");
    assert.deepEqual(await audited(subscription.id), ["subscription.create", "delivery.resend"]);
    const none = await post("/backend/delivery/resend", body);
    assert.deepEqual(none.json(), { count: 0 });
  });

  test("resends failed deliveries of events since and until a time", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"), 500);
    const times: string[] = [];
    for (const n of [1, 2, 3]) {
      await stage.dispatch(subscription.event, n);
      await sleep(5);
      times.push(new Date().toISOString());
      await sleep(5);
    }
    await stage.deliveries(subscription, "failed", "failed", "failed");
    const [afterFirst, afterSecond, afterThird] = times;
    const only = { status: "failed", subscription: subscription.id };
    const windows = [
      [{ since: afterThird }, 0],
      [{ since: afterFirst, until: afterSecond }, 1],
      [{ until: afterSecond }, 2],
      [{ since: afterFirst }, 2],
      [{ since: "2020-01-01T00:00:00+01:00" }, 3],
    ] as const;
    for (const [window, count] of windows) {
      const response = await post("/backend/delivery/resend", { ...only, ...window });
      const got = [response.status, readObject(response)["count"]];
      assert.deepEqual(got, [202, count], JSON.stringify(window));
      await stage.deliveries(subscription, "failed", "failed", "failed");
    }
  });

  test("resends failed deliveries of every subscription if none is named", async () => {
    const since = new Date().toISOString();
    const one = await fail(1, 204);
    const two = await fail(1, 204);
    const response = await post("/backend/delivery/resend", { status: "failed", since });
    assert.equal(readObject(response)["count"], 2);
    await stage.deliveries(one.subscription, "delivered");
    await stage.deliveries(two.subscription, "delivered");
    assert.ok((await audited("failed")).length > 0);
  });

  test("leaves out deliveries of a disabled subscription", async () => {
    const { subscription } = await fail(1);
    await patch(`/backend/subscription/${subscription.id}`, { status: "disabled" });
    const body = { status: "failed", subscription: subscription.id };
    assert.deepEqual((await post("/backend/delivery/resend", body)).json(), { count: 0 });
  });

  const INVALID = [
    ["an empty object", {}, ["/status"]],
    ["another status", { status: "gone" }, ["/status"]],
    ["invalid times", { status: "failed", since: "today", until: 7 }, ["/since", "/until"]],
    ["a day without a time", { status: "failed", since: "2026-01-31" }, ["/since"]],
    ["an invalid subscription id", { status: "failed", subscription: "1" }, ["/subscription"]],
    ["an unknown member", { status: "failed", event: "e" }, ["/event"]],
  ] as const;
  for (const [name, body, pointers] of INVALID) {
    test(`refuses ${name}`, async () => {
      assert.deepEqual(assertProblem(await post("/backend/delivery/resend", body), 400), pointers);
    });
  }
});
