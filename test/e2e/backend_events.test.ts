import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { queryDatabase } from "../helpers/engine.ts";
import {
  assertProblem,
  type EventStage,
  readItems,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import { newName, readObject } from "../helpers/gatepost.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const MODULE = `
  export const publish = {
    method: "POST",
    path: "/publish",
    scope: [],
    emits: { "secret.told": { description: "Not for everybody", scope: "secrets" },
      "lamp.lit": {
        description: "A lamp is lit",
        schema: {
          type: "object",
          properties: { watt: { type: "integer" }, colour: { type: "string", default: "white" } },
          required: ["watt"],
        },
      } },
    handle() {},
  };`;
const MAX_PAYLOAD = 1024;

let stage: EventStage;
let consumer: string;
before(async () => {
  stage = await startEventStage({ GATEPOST_MAX_PAYLOAD: "1KiB" }, { "secret.mjs": MODULE });
  consumer = await stage.newConsumer();
});
after(() => stage.stop());

const get = (path: string) => stage.call("GET", path, stage.admin);
const post = (path: string, body?: unknown) => stage.call("POST", path, stage.admin, body);
const patch = (path: string, body: unknown) => stage.call("PATCH", path, stage.admin, body);

/** The current time, in the format of since and until. */
const now = () => new Date().toISOString();

/** The audited actions on a target, oldest first. */
async function audited(target: string): Promise<unknown[]> {
  const entries = "SELECT action, actor, address FROM audit WHERE target = ? ORDER BY id";
  const rows = await queryDatabase(stage.gatepost.server.folder, entries, target);
  for (const { actor, address } of rows) {
    assert.match(String(actor), /^u[0-9a-z]+$/);
    assert.match(String(address), /^10\./);
  }
  return rows.map(({ action }) => action);
}

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

describe("POST /backend/event", () => {
  test("dispatches an event: responds 202 with its id, and subscribers get the data", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const data = { a: [1, "ä"] };
    const response = await post("/backend/event", { name: subscription.event, data });
    assert.equal(response.status, 202, response.text);
    const { id, ...rest } = readObject(response);
    assert.match(String(id), /^e[0-9a-z]+$/);
    assert.deepEqual(rest, {});
    assert.equal(new URL(response.location ?? "").pathname, `/backend/event/${String(id)}`);
    const [sent] = await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    assert.equal(String(sent?.body), '{"a":[1,"ä"]}');
    assert.deepEqual(await audited(String(id)), ["event.dispatch"]);
  });

  test("accepts null as data", async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await stage.dispatch(subscription.event, null);
    const [sent] = await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    assert.equal(String(sent?.body), "null");
  });

  test("delivers an event with a subject to that principal alone", async () => {
    const user = await stage.gatepost.createUser();
    const event = newName("e");
    const meant = await stage.subscribe(await stage.gatepost.login(user), event);
    const other = await stage.subscribe(consumer, event);
    await stage.dispatch(event, 1, { subject: user.id });
    await stage.deliveries(meant, "delivered");
    await stage.deliveries(other);
  });

  test("stores one event for a key and responds to later ones with its id", async () => {
    const name = newName("e");
    const subscription = await stage.subscribe(consumer, name);
    const first = await stage.dispatch(name, 1, { key: "7" });
    const again = await post("/backend/event", { name, data: 2, key: "7" });
    assert.equal(again.status, 202, again.text);
    assert.deepEqual(readObject(again), { id: first });
    assert.equal(new URL(again.location ?? "").pathname, `/backend/event/${first}`);
    const other = await stage.dispatch(name, 3, { key: "8" });
    assert.notEqual(other, first);
    const items = readItems(await get(`/backend/event?name=${name}`));
    assert.deepEqual(items.map(({ id }) => id), [other, first]);
    assert.deepEqual(await audited(first), ["event.dispatch"]);
    await stage.deliveries(subscription, "delivered", "delivered");
    const bodies = stage.receiver.requests(subscription.path).map(({ body }) => String(body));
    assert.deepEqual(bodies.sort(), ["1", "3"]);
  });

  test("does not deliver an event with a scope to a subscriber who lost that scope", async () => {
    const [one, two] = await Promise.all([1, 2].map(() =>
      stage.gatepost.createUser({ scopes: ["consumer", "secrets"] })
    ));
    assert.ok(one && two);
    const kept = await stage.subscribe(await stage.gatepost.login(one), "secret.told");
    const lost = await stage.subscribe(await stage.gatepost.login(two), "secret.told");
    await stage.gatepost.change(two, { scopes: ["consumer"] });
    await stage.dispatch("secret.told", "psst");
    await stage.deliveries(kept, "delivered");
    await stage.deliveries({ ...lost, token: await stage.gatepost.login(two) });
  });

  test("checks data against the event's schema and adds its defaults", async () => {
    const lit = await stage.subscribe(consumer, "lamp.lit");
    const body = { name: "lamp.lit", data: { watt: "7", colour: 1 } };
    const wrong = await post("/backend/event", body);
    assert.deepEqual(assertProblem(wrong, 400), ["/data/colour", "/data/watt"]);
    assert.deepEqual(assertProblem(
      await post("/backend/event", { name: "lamp.lit", data: 7 }), 400), ["/data"]);
    await stage.dispatch("lamp.lit", { watt: 7 });
    await stage.deliveries(lit, "delivered");
    const [sent] = stage.receiver.requests(lit.path);
    assert.deepEqual(JSON.parse(String(sent?.body)), { watt: 7, colour: "white" });
  });

  const INVALID = [
    ["an empty object", {}, ["/data", "/name"]],
    ["an event name of the service", { name: "gatepost.delivery.failed", data: 1 }, ["/name"]],
    ["an invalid name", { name: "order created", data: 1 }, ["/name"]],
    ["a name that is no string", { name: 7, data: 1 }, ["/name"]],
    ["a subject that is no id", { name: "a", data: 1, subject: "admin" }, ["/subject"]],
    ["a subject that is null", { name: "a", data: 1, subject: null }, ["/subject"]],
    ["a key that is empty", { name: "a", data: 1, key: "" }, ["/key"]],
    ["a key that is too long", { name: "a", data: 1, key: "x".repeat(257) }, ["/key"]],
    ["a key that is no string", { name: "a", data: 1, key: 7 }, ["/key"]],
    ["an unknown member", { name: "a", data: 1, scope: "b" }, ["/scope"]],
    [
      "all errors at once",
      { name: "", subject: "x", more: 1 },
      ["/data", "/more", "/name", "/subject"],
    ],
  ] as const;
  for (const [name, body, pointers] of INVALID) {
    test(`refuses ${name}`, async () => {
      assert.deepEqual(assertProblem(await post("/backend/event", body), 400), pointers);
    });
  }

  test("refuses a number that is too large for JSON.parse", async () => {
    const response = await stage.gatepost.api.send("POST", "/backend/event", {
      headers: { authorization: `Bearer ${stage.admin}`, "content-type": "application/json" },
      body: '{"name":"a","data":1e999}',
    });
    assert.deepEqual(assertProblem(response, 400), ["/data"]);
  });

  const INTEGERS = [
    ["12345678901234567891", false],
    ["-9007199254740993", false],
    ["9007199254740992", true],
    ["1e30", true],
    ["0.1", true],
  ] as const;
  for (const [text, isAccepted] of INTEGERS) {
    test(`${isAccepted ? "accepts" : "refuses"} ${text}, which JSON.parse ${
      isAccepted ? "keeps" : "changes"
    }`, async () => {
      const response = await stage.gatepost.api.send("POST", "/backend/event", {
        headers: { authorization: `Bearer ${stage.admin}`, "content-type": "application/json" },
        body: `{"name":"a","data":{"id":[${text}]}}`,
      });
      if (isAccepted) assert.equal(response.status, 202, response.text);
      else assert.deepEqual(assertProblem(response, 400), ["/data"]);
    });
  }

  test("accepts data up to GATEPOST_MAX_PAYLOAD, and responds 413 to more", async () => {
    const fits = "x".repeat(MAX_PAYLOAD - 2); // with its quotes
    assert.equal((await post("/backend/event", { name: "a", data: fits })).status, 202);
    assertProblem(await post("/backend/event", { name: "a", data: `${fits}x` }), 413);
    const wide = "ä".repeat(MAX_PAYLOAD / 2);
    assertProblem(await post("/backend/event", { name: "a", data: wide }), 413);
  });
});

describe("GET /backend/event", () => {
  test("lists events by name, newest first, in pages", async () => {
    const name = newName("e");
    const ids: string[] = [];
    for (const n of [1, 2, 3]) ids.unshift(await stage.dispatch(name, { n }));
    await stage.dispatch(newName("e"), 1);
    const first = await get(`/backend/event?name=${name}&limit=2`);
    const cursor = String(readObject(first)["next_cursor"]);
    const second = await get(`/backend/event?name=${name}&limit=2&cursor=${cursor}`);
    const items = [...readItems(first), ...readItems(second)];
    assert.deepEqual(items.map(({ id }) => id), ids);
    assert.equal(readObject(second)["next_cursor"], null);
    for (const item of items) {
      assert.equal(item["name"], name);
      assert.match(String(item["created_at"]), /^\d{4}-.*Z$/);
    }
    const all = readItems(await get("/backend/event?limit=200")).map(({ id }) => String(id));
    assert.deepEqual(all, all.toSorted().toReversed());
    assert.ok(ids.every((id) => all.includes(id)));
  });

  test("lists events by status", async () => {
    const name = newName("e");
    const id = await stage.dispatch(name, 1);
    const path = `/backend/event?name=${name}&status=`;
    await until(async () => {
      const items = readItems(await get(`${path}distributed`));
      return items.some((item) => item["id"] === id);
    });
    assert.deepEqual(readItems(await get(`${path}pending`)), []);
  });

  test("refuses invalid filters of events with all errors", async () => {
    const path = "/backend/event?status=new&name=a%20b&limit=0&cursor=-";
    const pointers = assertProblem(await get(path), 400);
    assert.deepEqual(pointers, ["/cursor", "/limit", "/name", "/status"]);
  });

  test("refuses a filter that is given twice", async () => {
    const path = "/backend/event?status=pending&status=distributed";
    assert.deepEqual(assertProblem(await get(path), 400), ["/status"]);
  });

  test("shows an event with its data and pages of its deliveries", async () => {
    const name = newName("e");
    const subscriptions = await Promise.all([1, 2, 3].map(() => stage.subscribe(consumer, name)));
    const id = await stage.dispatch(name, { a: [1] });
    for (const subscription of subscriptions) await stage.deliveries(subscription, "delivered");
    const first = readObject(await get(`/backend/event/${id}?limit=2`));
    assert.deepEqual([first["id"], first["name"], first["data"]], [id, name, { a: [1] }]);
    assert.equal(first["status"], "distributed");
    const cursor = String(first["next_cursor"]);
    const second = readObject(await get(`/backend/event/${id}?limit=2&cursor=${cursor}`));
    assert.equal(second["next_cursor"], null);
    const parts = [first["deliveries"], second["deliveries"]];
    const deliveries = parts.flat() as Record<string, unknown>[];
    assert.deepEqual(
      deliveries.map(({ subscription }) => String(subscription)).sort(),
      subscriptions.map((subscription) => subscription.id).sort(),
    );
    assert.ok(deliveries.every(({ event, status }) => event === id && status === "delivered"));
  });

  test("responds 404 to an unknown event id", async () => {
    assertProblem(await get(`/backend/event/e${"0".repeat(24)}`), 404);
  });
});

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
      times.push(now());
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
    const since = now();
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

describe("access", () => {
  const ROUTES = [
    ["POST", "/backend/event"],
    ["GET", "/backend/event"],
    ["GET", "/backend/event/e0"],
    ["GET", "/backend/delivery"],
    ["GET", "/backend/delivery/d0"],
    ["POST", "/backend/delivery/d0/resend"],
    ["POST", "/backend/delivery/resend"],
    ["GET", "/backend/resend"],
    ["GET", "/backend/resend/w0"],
    ["DELETE", "/backend/resend/w0"],
    ["GET", "/backend/subscription"],
    ["GET", "/backend/subscription/s0"],
    ["PATCH", "/backend/subscription/s0"],
    ["DELETE", "/backend/subscription/s0"],
  ] as const;
  for (const [method, path] of ROUTES) {
    test(`${method} ${path} needs scope backend`, async () => {
      const response = await stage.call(method, path, consumer);
      assertProblem(response, 403);
      assert.ok(response.headers.get("www-authenticate")?.includes('scope="backend"'));
      assertProblem(await stage.gatepost.api.send(method, path), 401);
    });
  }
});
