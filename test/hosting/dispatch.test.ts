import assert from "node:assert/strict";
import { test } from "node:test";
import { createServiceMetrics } from "../../src/app/metrics.ts";
import { FIRST_PAGE } from "../../src/database/database.ts";
import { collectEvents, storeEvents } from "../../src/hosting/dispatch.ts";
import { listEvents } from "../../src/store/events.ts";
import { openDatabase } from "../helpers/database.ts";
import { hostingServices } from "../helpers/hosting.ts";

function collector(maxPayloadBytes = 64) {
  return collectEvents(hostingServices({ maxPayloadBytes }));
}

test("dispatch() encodes at once: what is changed later is not sent", () => {
  const { dispatch, close } = collector();
  const order = { n: 1, when: new Date(0), left: undefined };
  const id = dispatch("order.created", order);
  order.n = 2;
  const json = '{"n":1,"when":"1970-01-01T00:00:00.000Z"}';
  assert.deepEqual(close(), [{ id, name: "order.created", json, subject: undefined }]);
});

test("storeEvents() stores all or none, and counts and announces what it has stored", async (t) => {
  const database = openDatabase(t);
  const seen: unknown[] = [];
  const services = hostingServices({
    database,
    metrics: {
      ...createServiceMetrics(),
      count: (name: string, _labels: unknown, by: unknown) => void seen.push([name, by]),
    },
    wake: () => void seen.push("wake"),
  });
  const { dispatch, close } = collectEvents(services);
  const ids = [dispatch("a", 1), dispatch("b", 2)];
  const events = close();
  const listIds = async () =>
    (await listEvents(database, {}, { limit: 9, before: FIRST_PAGE })).items.map(({ id }) => id);

  await assert.rejects(storeEvents([...events, ...events.slice(0, 1)], services));
  assert.deepEqual([await listIds(), seen], [[], []]);

  await storeEvents(events, services);
  assert.deepEqual((await listIds()).sort(), ids.sort());
  assert.deepEqual(seen, [["gatepost_events_dispatched_total", 2], "wake"]);
});

test("dispatch() takes 10,000 events of one request, and throws a RangeError past that", () => {
  const { dispatch, close } = collector();
  for (let index = 0; index < 10_000; index++) dispatch("a", index);
  assert.throws(() => dispatch("a", 1), RangeError);
  assert.equal(close().length, 10_000);
});

test("dispatch() takes names of 1 to 128 of A-Za-z0-9._:- and refuses every other", () => {
  const { dispatch, close } = collector();
  const good = ["a", "A-Za-z0-9._:-", "x".repeat(128), "gatepost", "gatepostal.x", "Gatepost.x"];
  const bad = ["", "x".repeat(129), "a b", "a/b", "é", "a\n", "gatepost.", "gatepost.x.y"];
  for (const name of good) dispatch(name, null);
  for (const name of bad) assert.throws(() => dispatch(name, null), TypeError, name);
  for (const name of [undefined, null, 7, ["a"], { toString: () => "a" }]) {
    assert.throws(() => Reflect.apply(dispatch, undefined, [name, null]), TypeError);
  }
  assert.deepEqual(close().map(({ name }) => name), good);
});

test("dispatch() takes what JSON can hold and refuses the rest", () => {
  const { dispatch, close } = collector();
  const cycle: unknown[] = [];
  cycle.push(cycle);
  for (const data of [undefined, () => 1, Symbol("s"), 1n, { a: [1n] }, NaN, -Infinity, cycle]) {
    assert.throws(() => dispatch("a", data), TypeError);
  }
  for (const data of [null, 0, "", false, [], {}]) dispatch("a", data);
  assert.deepEqual(close().map(({ json }) => json), ["null", "0", '""', "false", "[]", "{}"]);
});

test("dispatch() counts the payload in bytes of UTF-8", () => {
  const { dispatch, close } = collector(8);
  for (const data of ["é".repeat(4), "日日日", "1234567", 123_456_789]) {
    assert.throws(() => dispatch("a", data), RangeError, String(data));
  }
  for (const data of ["ééé", "日日", "123456", 12_345_678]) dispatch("a", data);
  assert.equal(close().length, 4);
});

test("dispatch() delivers to one principal where a subject is given", () => {
  const { dispatch, close } = collector();
  dispatch("a", 1, { subject: "u00000001" });
  dispatch("a", 1, { subject: "a00000001" });
  dispatch("a", 1, undefined);
  assert.deepEqual(close().map(({ subject }) => subject), ["u00000001", "a00000001", undefined]);
});

test("a subject that is there but no id is refused, never a broadcast", () => {
  const { dispatch, close } = collector();
  const cases: unknown[] = [
    { subject: undefined },
    { subject: null },
    { subject: "" },
    { subject: "x1" },
    { subject: 7 },
    { subject: ["u00000001"] },
    { subject: { toString: () => "u00000001" } },
    { subject: "u00000001", other: 1 },
    { subjct: "u00000001" },
    { Subject: "u00000001" },
    Object.create({ subject: "u00000001" }),
    new Map([["subject", "u00000001"]]),
    null,
    "u00000001",
    ["u00000001"],
    false,
  ];
  for (const options of cases) {
    assert.throws(
      () => Reflect.apply(dispatch, undefined, ["a", 1, options]),
      TypeError,
      JSON.stringify(options),
    );
  }
  assert.deepEqual(close(), []);
});

test("dispatch() throws after close(), and what it refused is not collected", () => {
  const { dispatch, close } = collector();
  dispatch("a", 1);
  assert.equal(close().length, 1);
  assert.throws(() => dispatch("a", 1), { name: "Error", message: /settled/ });
  assert.deepEqual(close(), []);
});
