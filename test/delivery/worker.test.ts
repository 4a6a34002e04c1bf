import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "../../src/database/sql.ts";
import { toFiguresRecord } from "../../src/event/figures.ts";
import { insertEvent } from "../../src/store/events.ts";
import { listFigures } from "../../src/store/figures.ts";
import { makeFolder, openSqliteFile } from "../helpers/database.ts";
import { spawnReceiver } from "../helpers/receiver_process.ts";
import { until } from "../helpers/until.ts";
import { countDelivered, dispatch, open, openWithReceiver, subscribe } from "./worker_stage.ts";

test("the worker delivers dispatched events and counts each attempt", async (t) => {
  const secrets = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 9).toString("base64") };
  const { receiver, ...stage } = await openWithReceiver(t, secrets);
  assert.deepEqual(await stage.started, { ok: true });
  await dispatch(stage, 20);
  await receiver.waitFor(20, 10_000, "/a");
  await until(async () => await countDelivered(stage.database) === 20);
  await until(() => stage.attempts.length === 20);
  for (const [outcome, seconds] of stage.attempts) {
    assert.equal(outcome, "success");
    assert.ok(seconds >= 0 && seconds < 10);
  }
  await until(() => stage.worker.report().inFlight === 0);
  assert.ok(stage.worker.report().quietMs < 10_000);
  assert.equal(receiver.count(), 20, "each once, however often it is woken");
});

/** Opens a database with an event that was dispatched at this time and has not been fanned out. */
async function openLate(t: TestContext, createdAtMs: number) {
  const path = join(makeFolder(t), "late.db");
  const opened = openSqliteFile(t, path);
  const id = `e${createdAtMs.toString(36).padStart(9, "0")}${"0".repeat(15)}`; // base/id.ts
  const event = { id, name: "e", json: "1", subject: undefined, createdAtMs };
  await opened.write([insertEvent(event)]);
  return { path, opened };
}

for (const [what, lateMs] of [["late", 3_600_000], ["ahead of the clock", -3_600_000]] as const) {
  test(`an event that is ${what} at the start is counted with its delay`, async (t) => {
    const dispatchedAtMs = Date.now() - lateMs;
    const { path, opened } = await openLate(t, dispatchedAtMs);
    const { database, started } = open(t, { GATEPOST_DATABASE: path }, opened);
    await started;
    let figures: Awaited<ReturnType<typeof listFigures>> = [];
    await until(async () => {
      figures = await listFigures(database, "overdue", "hour", 0, Date.now());
      return figures.length > 0;
    });
    const { ok, bad, mean_ms } = toFiguresRecord(figures[0]?.figures ?? []);
    assert.deepEqual([ok, bad], [1, 0]);
    const leastMs = Math.max(0, lateMs);
    assert.ok(mean_ms !== null && mean_ms >= leastMs && mean_ms < leastMs + 100_000, `${mean_ms}`);
  });
}

test("figures that a locked database refuses are logged once, not at each try", async (t) => {
  const { path, opened } = await openLate(t, Date.now() - 3_600_000);
  using other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  const { logged, started } = open(t, { GATEPOST_DATABASE: path }, opened);
  const lines = () => logged.filter(([, line]) => line === "figures cannot be stored").length;
  await until(() => lines() > 0);
  await sleep(4_000);
  assert.equal(lines(), 1);
  other.exec("ROLLBACK");
  await started;
});

test("a failed attempt is counted as a failure, and callbacks in flight are counted", async (t) => {
  const { receiver, ...stage } = await openWithReceiver(t);
  receiver.react("/a", { kind: "answer", status: 500, delayMs: 600 });
  await dispatch(stage, 1);
  await until(() => stage.worker.report().inFlight === 1);
  await until(() => stage.attempts.length === 1);
  assert.equal(stage.attempts[0]?.[0], "failure");
});

test("look() finds a dispatched event without a wake, and resolves", async (t) => {
  const { receiver, ...stage } = await openWithReceiver(t);
  await dispatch({ ...stage, worker: { ...stage.worker, wake() {} } }, 1);
  await stage.worker.look();
  await receiver.waitFor(1, 10_000, "/a");
});

test("stop() awaits the callback in flight and leaves no lock file behind", async (t) => {
  const { receiver, ...stage } = await openWithReceiver(t);
  receiver.react("/a", { kind: "answer", delayMs: 300 });
  await dispatch(stage, 1);
  await receiver.waitFor(1, 10_000, "/a");
  await stage.worker.stop(5_000);
  assert.equal(await countDelivered(stage.database), 1, "recorded before the end");
  const files = readdirSync(stage.folder);
  assert.deepEqual(files.filter((name) => name.includes("-process-")), []);
});

test("the state is on, not stuck, during and after the start", async (t) => {
  const stage = open(t);
  assert.equal(stage.worker.state(), "on");
  await stage.started;
  assert.equal(stage.worker.state(), "on");
});

test("the worker can be stopped while it starts, and twice", async (t) => {
  const { worker } = open(t);
  await worker.stop(1_000);
  await worker.stop(1_000);
});

test("what the thread logs is written by the given log, with the error", async (t) => {
  const stage = open(t);
  await stage.started;
  await stage.database.write([sql`ALTER TABLE events RENAME TO gone`]);
  stage.worker.wake();
  await until(() => stage.logged.length > 0);
  const [level, msg, fields] = stage.logged[0] ?? [];
  assert.equal(level, "warn");
  assert.match(String(msg), /distribution/);
  assert.match(JSON.stringify(fields), /"error":\{"name":"\w*Error","message":".*events/);
});

test("callbacks go on, one after the other, while the main thread computes", async (t) => {
  const receiver = await spawnReceiver();
  t.after(() => receiver.close());
  const stage = open(t, { GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "1" });
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await dispatch(stage, 20);
  const untilMs = performance.now() + 1_500;
  while (performance.now() < untilMs);
  assert.equal(await receiver.count("/a"), 20);
});
