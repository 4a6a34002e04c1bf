import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { collectEvents } from "../../src/hosting/dispatch.ts";
import { hostingServices } from "../helpers/hosting.ts";

/** A collector whose commits end as the test says. */
function heldCollector() {
  const commits: (PromiseWithResolvers<void> & { readonly names: readonly unknown[] })[] = [];
  const lines: unknown[] = [];
  const write = (line: string, fields: unknown) => void lines.push([line, fields]);
  const services = hostingServices({
    store(events) {
      const commit = { names: events.map(({ name }) => name), ...Promise.withResolvers<void>() };
      commits.push(commit);
      return commit.promise;
    },
    events: ["a", "b", "c"].map((name) => ({ name, description: "", scope: [] })),
    log: { debug: write, info: write, warn: write, error: write },
  });
  const names = () => commits.map((commit) => commit.names);
  const end = async (index: number, error?: Error) => {
    await nextTurn();
    const commit = commits[index];
    assert.ok(commit);
    if (error) commit.reject(error);
    else commit.resolve();
    await nextTurn();
  };
  const origin = { request: "r1", source: "POST /a" };
  return { ...collectEvents(services, [], origin), end, names, lines };
}

const DISK_FULL = new Error("disk full");
const NOT_STORED = { name: "Problem", status: 503, cause: DISK_FULL };

test("flush() stores what was dispatched so far, and close() stores the rest", async () => {
  const { dispatch, close, end, names } = heldCollector();
  dispatch("a", 1);
  dispatch("b", 1);
  const flushed = dispatch.flush();
  dispatch("c", 1);
  await end(0);
  await flushed;
  assert.deepEqual(names(), [["a", "b"]]);
  const closed = close("store");
  await end(1);
  await closed;
  assert.deepEqual(names(), [["a", "b"], ["c"]]);
});

test("flushed events are stored, and dropped ones are not", async () => {
  const { dispatch, close, end, names } = heldCollector();
  dispatch("a", 1);
  const flushed = dispatch.flush();
  await end(0);
  await flushed;
  dispatch("b", 1);
  await close("drop");
  assert.deepEqual(names(), [["a"]]);
});

test("flush() without events commits nothing", async () => {
  const { dispatch, close, names } = heldCollector();
  await dispatch.flush();
  assert.equal(close("store"), undefined);
  assert.deepEqual(names(), []);
});

test("flush() rejects if it cannot store, and its events are not stored later", async () => {
  const { dispatch, close, end, names, lines } = heldCollector();
  dispatch("a", 1);
  const flushed = dispatch.flush();
  await end(0, DISK_FULL);
  await assert.rejects(flushed, NOT_STORED);
  const fields = { request_id: "r1", source: "POST /a", error: DISK_FULL };
  assert.deepEqual(lines, [["events not stored", fields]]);
  dispatch("b", 1);
  const closed = close("store");
  await end(1);
  await closed;
  assert.deepEqual(names(), [["a"], ["b"]]);
});

test("flush() waits for another that runs, even without events of its own", async () => {
  const { dispatch, end, names } = heldCollector();
  const ended: string[] = [];
  dispatch("a", 1);
  void dispatch.flush().then(() => ended.push("first"));
  dispatch("b", 1);
  void dispatch.flush().then(() => ended.push("second"));
  const third = dispatch.flush().then(() => ended.push("third"));
  await nextTurn();
  assert.deepEqual([names(), ended], [[["a"]], []]);
  await end(0);
  assert.deepEqual([names(), ended], [[["a"], ["b"]], ["first"]]);
  await end(1);
  await third;
  assert.deepEqual(ended, ["first", "second", "third"]);
});

test("flush() fails if the one that it waits for fails, and stores no events", async () => {
  const { dispatch, end, names } = heldCollector();
  dispatch("a", 1);
  const first = dispatch.flush();
  dispatch("b", 1);
  const second = dispatch.flush();
  await end(0, DISK_FULL);
  await assert.rejects(first, NOT_STORED);
  await assert.rejects(second, NOT_STORED);
  assert.deepEqual(names(), [["a"]]);
});

for (const how of ["store", "drop"] as const) {
  test(`close("${how}") waits for a flush that was not awaited, and fails with it`, async () => {
    const { dispatch, close, end, names } = heldCollector();
    dispatch("a", 1);
    void dispatch.flush();
    dispatch("b", 1);
    const closed = close(how);
    await end(0, DISK_FULL);
    await assert.rejects(async () => closed, NOT_STORED);
    assert.deepEqual(names(), [["a"]]);
  });
}

test("a flush that is not awaited is stored once, before the rest", async () => {
  const { dispatch, close, end, names } = heldCollector();
  dispatch("a", 1);
  void dispatch.flush();
  dispatch("b", 1);
  const closed = close("store");
  await end(0);
  await end(1);
  await closed;
  assert.deepEqual(names(), [["a"], ["b"]]);
});

test("a failed flush that is not awaited does not end the process", async (t) => {
  const { dispatch, close, end } = heldCollector();
  const onError = t.mock.fn();
  process.once("unhandledRejection", onError);
  t.after(() => process.off("unhandledRejection", onError));
  dispatch("a", 1);
  void dispatch.flush();
  await end(0, DISK_FULL);
  assert.equal(close("store"), undefined);
  assert.equal(onError.mock.callCount(), 0);
});

test("flush() rejects after close()", async () => {
  const { dispatch, close } = heldCollector();
  close("store");
  await assert.rejects(dispatch.flush(), { name: "Error", message: /settled/ });
});
