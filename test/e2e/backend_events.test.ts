import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { startEventStage } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";
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

const stage = await startEventStage({ GATEPOST_MAX_PAYLOAD: "1KiB" }, { "secret.mjs": MODULE });
after(() => stage.stop());
const { get, post, audited } = stage;
const consumer = await stage.newConsumer();

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
