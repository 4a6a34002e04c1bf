import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { makeFolder } from "../helpers/database.ts";
import { noteThreads } from "../helpers/threads.ts";
import { until } from "../helpers/until.ts";
import { countDelivered, dispatch, open, openWithReceiver, type Stage } from "./worker_stage.ts";

/** Ends a thread, and waits until the worker has noticed it. */
async function end(thread: Worker | undefined, { worker }: Stage): Promise<void> {
  await thread?.terminate();
  await until(() => worker.report().quietMs === Infinity);
  assert.equal(worker.state(), "stuck");
}

test("if the thread dies, another one starts and delivers what it had claimed", async (t) => {
  const threads = noteThreads(t);
  const { receiver, ...stage } = await openWithReceiver(t);
  receiver.react("/a", { kind: "hang" }, { kind: "answer" });
  await dispatch(stage, 1);
  await receiver.waitFor(1, 10_000, "/a");
  await end(threads.at(-1), stage); // the one before is the database's
  const diedAtMs = Date.now();
  await stage.worker.look(); // does not wait for the dead thread
  await until(async () => await countDelivered(stage.database) === 1);
  assert.ok(Date.now() - diedAtMs < 8_000, "long before its lease ends");
  await until(() => stage.worker.report().quietMs < Infinity);
  assert.deepEqual(stage.logged.filter(([level]) => level === "error").length, 1);
});

test("if the database's writer dies, the delivery thread restarts with a new one", async (t) => {
  const threads = noteThreads(t);
  const stage = await openWithReceiver(t);
  await end(threads[0], stage);
  await dispatch(stage, 1);
  await until(async () => await countDelivered(stage.database) === 1);
});

test("a restarted thread sends nothing before its address guard has passed its test", async (t) => {
  const threads = noteThreads(t);
  const { receiver, ...stage } = await openWithReceiver(t);
  await end(threads.at(-1), stage);
  await dispatch(stage, 1);
  const count = threads.length;
  await until(() => threads.length > count);
  const tested = Promise.withResolvers<number>();
  threads.at(-1)?.on("message", ({ kind }) => {
    if (kind === "started") tested.resolve(receiver.count());
  });
  await stage.worker.look(); // as the interval does
  assert.equal(await tested.promise, 0);
  await receiver.waitFor(1, 10_000, "/a");
});

test("a thread that dies at each start is restarted ever more rarely, until stop()", async (t) => {
  const stage = open(t, { GATEPOST_DATABASE: join(makeFolder(t), "gone", "gatepost.db") });
  const died = () => stage.logged.filter(([level]) => level === "error");
  await until(() => died().length === 2);
  const fields = died().map(([, , more]) => Object(more));
  assert.deepEqual(fields.map(({ pause_ms }) => pause_ms), [1_000, 2_000]);
  assert.ok(fields[0].error instanceof Error);
  assert.equal(stage.worker.report().quietMs, Infinity);
  await stage.worker.stop(1_000);
  await sleep(2_200);
  assert.equal(died().length, 2);
});
