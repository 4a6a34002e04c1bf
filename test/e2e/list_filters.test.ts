import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";

const MODULE = `
  export const order = {
    method: "POST",
    path: "/orders/:id",
    scope: [],
    emits: { "order.placed": "An order was placed" },
    handle({ params, dispatch }) { dispatch("order.placed", { id: params.id }); },
  };
  export const nightly = {
    name: "nightly",
    every: "30d",
    run({ dispatch }) { dispatch("order.placed", "by the cronjob"); },
  };`;

let stage: EventStage;
let consumer: string;
before(async () => {
  stage = await startEventStage({ GATEPOST_RESEND_DELAYS: "none" }, { "orders.mjs": MODULE });
  consumer = await stage.newConsumer();
});
after(() => stage.stop());

const list = async (path: string, query: Readonly<Record<string, string>>, token = stage.admin) =>
  readItems(await stage.call("GET", `${path}?${new URLSearchParams(query)}`, token));

describe("the list of events", () => {
  test("finds those of a request, with its route and its caller", async () => {
    const requestId = newName("trace");
    const response = await stage.gatepost.api.send("POST", "/orders/7", {
      headers: { ...bearer(consumer), "x-request-id": requestId },
    });
    assert.equal(response.status, 204, response.text);
    const who = readObject(await stage.call("GET", "/authorization/whoami", consumer));
    const [event, ...more] = await list("/backend/event", { request: requestId });
    assert.deepEqual(more, []);
    const { name, request, source, principal } = event ?? {};
    assert.deepEqual(
      [name, request, source, principal],
      ["order.placed", requestId, "POST /orders/:id", who["sub"]],
    );
    const one = readObject(await stage.call("GET", `/backend/event/${event?.["id"]}`, stage.admin));
    assert.deepEqual([one["request"], one["source"]], [requestId, "POST /orders/:id"]);
    const same = await list("/backend/event", { source: "POST /orders/:id", limit: "1" });
    assert.deepEqual(same.map(({ id }) => id), [event?.["id"]]);
    assert.deepEqual(await list("/backend/event", { request: `${requestId}x` }), []);
  });

  test("finds those of a cronjob, and those of the backend", async () => {
    await stage.call("POST", "/backend/cronjob/nightly/run", stage.admin);
    let found: readonly Readonly<Record<string, unknown>>[] = [];
    for (let tries = 0; tries < 100 && found.length === 0; tries++) {
      found = await list("/backend/event", { source: "nightly" });
    }
    assert.deepEqual(found.map(({ request, principal }) => [request, principal]), [
      [undefined, undefined],
    ]);
    const id = await stage.dispatch(newName("e"), 1);
    const [event] = await list("/backend/event", { source: "backend", limit: "1" });
    assert.equal(event?.["id"], id);
    assert.match(String(event?.["principal"]), /^u/);
    assert.match(String(event?.["request"]), /./);
  });

  test("is filtered by time, by subject, and by several filters together", async () => {
    const user = await stage.gatepost.createUser();
    const name = newName("e");
    const since = new Date().toISOString();
    const first = await stage.dispatch(name, 1, { subject: user.id });
    const second = await stage.dispatch(name, 2);
    const only = async (query: Readonly<Record<string, string>>) =>
      (await list("/backend/event", query)).map(({ id }) => id);
    assert.deepEqual(await only({ name, since }), [second, first]);
    assert.deepEqual(await only({ name, until: since }), []);
    assert.deepEqual(await only({ subject: user.id }), [first]);
    assert.deepEqual(await only({ name, subject: user.id, source: "backend", since }), [first]);
    assert.deepEqual(await only({ name, source: "cli" }), []);
  });
});

describe("the list of deliveries", () => {
  test("is filtered by endpoint, event name, last answer, attempt and time", async () => {
    const since = new Date().toISOString();
    const name = newName("e");
    const bad = await stage.subscribe(consumer, name, 950);
    const good = await stage.subscribe(consumer, name, 201);
    const gone = await stage.subscribe(consumer, name);
    stage.receiver.react(gone.path, { kind: "reset" });
    const event = await stage.dispatch(name, 1);
    await stage.deliveries(bad, "failed");
    await stage.deliveries(good, "delivered");
    await stage.deliveries(gone, "failed");
    const of = async (query: Readonly<Record<string, string>>) =>
      (await list("/backend/delivery", query)).map(({ subscription }) => subscription);
    assert.deepEqual(await of({ name }), [gone.id, good.id, bad.id]);
    assert.deepEqual(await of({ endpoint: stage.receiver.url + bad.path }), [bad.id]);
    assert.deepEqual(await of({ endpoint: stage.receiver.url.toUpperCase(), name, limit: "2" }),
      [gone.id, good.id]);
    assert.deepEqual(await of({ endpoint: "https://nobody.example" }), []);
    assert.deepEqual(await of({ name, answer: "950" }), [bad.id]);
    assert.deepEqual(await of({ name, answer: "201", status: "delivered" }), [good.id]);
    assert.deepEqual(await of({ name, answer: "reset" }), [gone.id]);
    assert.deepEqual(await of({ event, attempt: "1", answer: "950" }), [bad.id]);
    assert.deepEqual(await of({ name, attempt: "2" }), []);
    assert.deepEqual(await of({ event, since }), [gone.id, good.id, bad.id]);
    assert.deepEqual(await of({ name, until: since }), []);
    const [item] = await list("/backend/delivery", { subscription: bad.id });
    assert.equal(item?.["last_status"], 950);
    const own = `/consumer/subscription/${bad.id}/delivery`;
    assert.equal((await list(own, { answer: "950", status: "failed" }, consumer)).length, 1);
    assert.deepEqual(await list(own, { answer: "500" }, consumer), []);
    const [only] = await list(own, { subscription: good.id }, consumer);
    assert.equal(only?.["subscription"], bad.id, "this list ignores the parameter");
  });

  test("refuses invalid filters, and names all of them", async () => {
    const query = "answer=5xx&attempt=9&since=today&event=x";
    assert.deepEqual(
      assertProblem(await stage.call("GET", `/backend/delivery?${query}`, stage.admin), 400),
      ["/answer", "/attempt", "/event", "/since"],
    );
  });
});

describe("a search", () => {
  const HOSTILE = ["%", "_", "'", '"', "''; DROP TABLE users; --", "\\", "*", "\u0000", "ä", "😀"];

  test("finds users by the start of their names, in any case", async () => {
    const user = await stage.gatepost.createUser();
    const q = user.username.slice(0, -1).toUpperCase();
    const found = await list("/backend/user", { q, limit: "200" });
    assert.ok(found.some(({ id }) => id === user.id));
    assert.ok(found.every(({ username }) => String(username).toUpperCase().startsWith(q)));
    assert.deepEqual(await list("/backend/user", { q: user.username, status: "disabled" }), []);
    assert.deepEqual(await list("/backend/user", { q: `${user.username}x` }), []);
  });

  test("finds apps by the start of their names, page by page", async () => {
    const name = newName("Zebra");
    const made = [await stage.gatepost.createApp({ name: `${name} 1` }),
      await stage.gatepost.createApp({ name: `${name} 2` })];
    const path = `/backend/app?q=${name.toLowerCase()}&limit=1`;
    const first = await stage.call("GET", path, stage.admin);
    const cursor = String(readObject(first)["next_cursor"]);
    const second = await stage.call("GET", `${path}&cursor=${cursor}`, stage.admin);
    const ids = [...readItems(first), ...readItems(second)].map(({ client_id: id }) => id);
    assert.deepEqual(ids, made.map(({ id }) => id).toReversed());
    assert.equal(readObject(second)["next_cursor"], null);
  });

  test("finds subscriptions by endpoint, event, owner and status", async () => {
    const mine = await stage.subscribe(consumer, newName("e"));
    const { sub } = readObject(await stage.call("GET", "/authorization/whoami", consumer));
    const ids = async (query: Readonly<Record<string, string>>) =>
      (await list("/backend/subscription", query)).map(({ id }) => id);
    assert.deepEqual(await ids({ q: stage.receiver.url + mine.path }), [mine.id]);
    assert.deepEqual(await ids({ event: mine.event, owner: String(sub) }), [mine.id]);
    assert.deepEqual(await ids({ event: mine.event, status: "paused" }), []);
    const own = await list("/consumer/subscription", { event: mine.event }, consumer);
    assert.deepEqual(own.map(({ id }) => id), [mine.id]);
    const stranger = await stage.newConsumer();
    assert.deepEqual(await list("/consumer/subscription", { owner: String(sub) }, stranger), []);
  });

  test("finds audit entries by address and start of action, and leaves some out", async () => {
    const user = await stage.gatepost.createUser();
    await stage.gatepost.change(user, { scopes: ["consumer"] });
    const actions = async (query: Readonly<Record<string, string>>) =>
      (await list("/backend/audit", { target: user.id, ...query })).map(({ action }) => action);
    assert.deepEqual(await actions({}), ["user.change", "user.create"]);
    assert.deepEqual(await actions({ action: "user." }), ["user.change", "user.create"]);
    assert.deepEqual(await actions({ action: "app." }), []);
    assert.deepEqual(await actions({ action: "user" }), []);
    assert.deepEqual(await actions({ not: "user.create" }), ["user.change"]);
    assert.deepEqual(await actions({ not: "user." }), []);
    const [entry] = await list("/backend/audit", { target: user.id });
    assert.deepEqual(await actions({ address: String(entry?.["address"]) }), ["user.change"]);
    assert.deepEqual(await actions({ address: "192.0.2.250" }), []);
  });

  for (const q of HOSTILE) {
    test(`takes ${JSON.stringify(q)} literally`, async () => {
      for (const path of ["user", "app", "subscription"]) {
        assert.deepEqual(await list(`/backend/${path}`, { q }), []);
      }
      assert.deepEqual(await list("/backend/delivery", { endpoint: q }), []);
      for (const name of ["action", "not", "address", "actor"]) {
        const found = await list("/backend/audit", { [name]: q });
        assert.equal(found.length > 0, name === "not", name);
      }
    });
  }

  test("refuses a text of 201 characters, and one of a megabyte", async () => {
    const long = await stage.call("GET", `/backend/user?q=${"a".repeat(201)}`, stage.admin);
    assert.deepEqual(assertProblem(long, 400), ["/q"]);
    const path = `/backend/user?q=${"a".repeat(2 ** 20)}`;
    const response = await stage.call("GET", path, stage.admin).catch(() => null);
    assert.ok(response === null || response.status >= 400 && response.status < 500);
  });
});
