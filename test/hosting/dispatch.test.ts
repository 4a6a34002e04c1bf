import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createServiceMetrics } from "../../src/app/metrics.ts";
import { type Shape, TEXT, object } from "../../src/base/shape.ts";
import type { DeclaredEvent } from "../../src/event/event.ts";
import { collectEvents } from "../../src/hosting/dispatch.ts";
import { insertEvent, EVENT_LIST } from "../../src/store/events.ts";
import { listPart } from "../../src/store/list.ts";
import { openDatabase } from "../helpers/database.ts";
import { hostingServices, type StoredEvent } from "../helpers/hosting.ts";
import { SILENT } from "../helpers/silent_log.ts";

/** A collector, and a function that closes it and returns the stored events. */
function collector(
  maxPayloadBytes = 64,
  emits: readonly DeclaredEvent[] = [],
  warn: (...line: unknown[]) => void = () => {},
) {
  const stored: StoredEvent[] = [];
  const store = async (events: readonly StoredEvent[]) => void stored.push(...events);
  const services = hostingServices({ maxPayloadBytes, store, log: { ...SILENT, warn } });
  const { dispatch, close } = collectEvents(services, emits, { source: "POST /a" });
  const read = async () => {
    await close("store");
    return stored;
  };
  return { dispatch, read };
}

function declared(name: string, data?: Shape<unknown>): DeclaredEvent {
  return { name, description: "", scope: [], data };
}

test("dispatch() encodes data at once, so that later changes are not sent", async () => {
  const { dispatch, read } = collector();
  const order = { n: 1, when: new Date(0), left: undefined };
  const id = dispatch("order.created", order);
  order.n = 2;
  const json = '{"n":1,"when":"1970-01-01T00:00:00.000Z"}';
  assert.deepEqual(await read(), [{ id, name: "order.created", json, subject: null }]);
});

test("all events are stored or none; stored ones are counted and announced", async (t) => {
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
  const listIds = async () =>
    (await listPart(database, EVENT_LIST, { limit: 9 })).items
      .map(({ id }) => id);

  const refused = collectEvents(services, [], { source: "POST /a" });
  const taken = refused.dispatch("a", 1);
  refused.dispatch("b", 2);
  const event = { id: taken, name: "a", json: "1", subject: undefined, createdAtMs: 1 };
  await database.write([insertEvent(event)]);
  await assert.rejects(async () => refused.close("store"), { status: 503 });
  assert.deepEqual([await listIds(), seen], [[taken], []]);

  const { dispatch, close } = collectEvents(services, [], { source: "POST /a" });
  const ids = [dispatch("a", 1), dispatch("b", 2, { key: "7" }), dispatch("b", 3, { key: "7" })];
  await close("store");
  assert.deepEqual((await listIds()).sort(), [taken, ...ids.slice(0, 2)].sort());
  assert.deepEqual(seen, [["gatepost_events_dispatched_total", 2], "wake"]);
});

test("at most 10,000 events go into one commit; then dispatch() throws RangeError", async () => {
  const { dispatch, read } = collector();
  for (let index = 0; index < 10_000; index++) dispatch("a", index);
  assert.throws(() => dispatch("a", 1), RangeError);
  await dispatch.flush();
  dispatch("a", 1);
  assert.equal((await read()).length, 10_001);
});

test("at most 64 MiB of data go into one commit, or one larger event alone", async () => {
  const { dispatch, read } = collector(128 * 2 ** 20);
  const ofMiB = (count: number) => "ü".repeat(count * 2 ** 19 - 1);
  dispatch("a", ofMiB(65));
  assert.throws(() => dispatch("a", 1), RangeError);
  await dispatch.flush();
  for (let index = 0; index < 4; index++) dispatch("a", ofMiB(16));
  assert.throws(() => dispatch("a", 1), RangeError);
  await dispatch.flush();
  dispatch("a", 1);
  assert.equal((await read()).length, 6);
});

test("dispatch() accepts a key of 1 to 256 characters, and refuses any other", async () => {
  const { dispatch, read } = collector();
  const good = ["7", "x".repeat(256), "😀".repeat(256), "a\nb", " "];
  for (const key of good) dispatch("a", 1, { key });
  const texts = ["", "x".repeat(257), "x".repeat(10_240), "\ud800"];
  for (const key of [...texts, undefined, null, 7, ["7"], {}]) {
    const take = () => Reflect.apply(dispatch, undefined, ["a", 1, { key }]);
    assert.throws(take, TypeError, JSON.stringify(key));
  }
  assert.deepEqual((await read()).map(({ key }) => key), good);
});

test("data that an event's schema refuses is a TypeError with every error, no event", async () => {
  const { dispatch, read } = collector(64, [declared("a", object({ b: TEXT, c: TEXT }))]);
  assert.throws(() => dispatch("a", { b: "secret", c: 1, "d/e": "secret" }), (error) => {
    assert.ok(error instanceof TypeError);
    assert.match(error.message, /data.*\n\/c Must be a string.*\n\/d~1e Unknown member/);
    assert.doesNotMatch(error.message, /secret|\/b/);
    return true;
  });
  assert.throws(() => dispatch("a", "text"), /Must be an object/);
  dispatch("a", { b: "", c: "" });
  assert.deepEqual((await read()).map(({ json }) => json), ['{"b":"","c":""}']);
});

test("the stored data is what the event's schema makes of it", async () => {
  const shape: Shape<unknown> = { ...TEXT, parse: (value) => ({ made: value }) };
  const { dispatch, read } = collector(64, [declared("a", shape)]);
  dispatch("a", 1);
  assert.deepEqual((await read()).map(({ json }) => json), ['{"made":1}']);
});

test("an asynchronous schema of an event is a TypeError, however it ends", async () => {
  for (const parse of [async () => 1, async () => Promise.reject(new Error("late"))]) {
    const { dispatch, read } = collector(64, [declared("a", { ...TEXT, parse })]);
    assert.throws(() => dispatch("a", 1), { name: "TypeError", message: /synchronous/ });
    await nextTurn();
    assert.deepEqual(await read(), []);
  }
});

test("an event's schema is that of the endpoint's declaration, or else of another one", () => {
  const events = [declared("a", TEXT), declared("b", TEXT)];
  const services = hostingServices({ events });
  const { dispatch } = collectEvents(services, [declared("a")], { source: "POST /a" });
  dispatch("a", 1);
  assert.throws(() => dispatch("b", 1), TypeError);
});

test("an event that no module declares is dispatched, with one warning a name", async () => {
  const lines: unknown[] = [];
  const { dispatch, read } = collector(64, [declared("a")], (...line) => void lines.push(line));
  for (const name of ["a", "unknown.1", "unknown.1", "unknown.2"]) dispatch(name, 1);
  assert.throws(() => dispatch("unknown.3", undefined), TypeError);
  const names = (await read()).map(({ name }) => name);
  assert.deepEqual(names, ["a", "unknown.1", "unknown.1", "unknown.2"]);
  const warning = "dispatched an event that no module declares";
  assert.deepEqual(lines, [[warning, { event: "unknown.1" }], [warning, { event: "unknown.2" }]]);
});

test("warnings of events that no module declares are limited in number", () => {
  const lines: unknown[] = [];
  const { dispatch } = collector(64, [], (...line) => void lines.push(line));
  for (let index = 0; index < 2_000; index++) dispatch(`made.of.input.${index}`, 1);
  assert.ok(lines.length > 0 && lines.length <= 1_000, `${lines.length} lines`);
});

test("dispatch() accepts names of 1 to 128 of A-Za-z0-9._:- and refuses others", async () => {
  const { dispatch, read } = collector();
  const good = ["a", "A-Za-z0-9._:-", "x".repeat(128), "gatepost", "gatepostal.x", "Gatepost.x"];
  const bad = ["", "x".repeat(129), "a b", "a/b", "é", "a\n", "gatepost.", "gatepost.x.y"];
  for (const name of good) dispatch(name, null);
  for (const name of bad) assert.throws(() => dispatch(name, null), TypeError, name);
  for (const name of [undefined, null, 7, ["a"], { toString: () => "a" }]) {
    assert.throws(() => Reflect.apply(dispatch, undefined, [name, null]), TypeError);
  }
  assert.deepEqual((await read()).map(({ name }) => name), good);
});

test("dispatch() accepts what JSON can hold and refuses the rest", async () => {
  const { dispatch, read } = collector();
  const cycle: unknown[] = [];
  cycle.push(cycle);
  for (const data of [undefined, () => 1, Symbol("s"), 1n, { a: [1n] }, NaN, -Infinity, cycle]) {
    assert.throws(() => dispatch("a", data), TypeError);
  }
  for (const data of [null, 0, "", false, [], {}]) dispatch("a", data);
  const encoded = (await read()).map(({ json }) => json);
  assert.deepEqual(encoded, ["null", "0", '""', "false", "[]", "{}"]);
});

test("dispatch() counts the payload in bytes of UTF-8", async () => {
  const { dispatch, read } = collector(8);
  for (const data of ["é".repeat(4), "日日日", "1234567", 123_456_789]) {
    assert.throws(() => dispatch("a", data), RangeError, String(data));
  }
  for (const data of ["ééé", "日日", "123456", 12_345_678]) dispatch("a", data);
  assert.equal((await read()).length, 4);
});

test("dispatch() stores the subject that is given", async () => {
  const { dispatch, read } = collector();
  dispatch("a", 1, { subject: "u00000001" });
  dispatch("a", 1, { subject: "a00000001" });
  dispatch("a", 1, undefined);
  const subjects = (await read()).map(({ subject }) => subject);
  assert.deepEqual(subjects, ["u00000001", "a00000001", null]);
});

test("a subject that is given and no id is refused, and is never a broadcast", async () => {
  const { dispatch, read } = collector();
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
    Object.defineProperty({}, "subject", { value: "u00000001" }),
    { [Symbol("subject")]: "u00000001" },
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
  assert.deepEqual(await read(), []);
});

test("dispatch() throws after close(), and does not collect the event", async () => {
  const { dispatch, read } = collector();
  dispatch("a", 1);
  assert.equal((await read()).length, 1);
  assert.throws(() => dispatch("a", 1), { name: "Error", message: /settled/ });
  assert.equal((await read()).length, 1);
});
