import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { type TestContext, test } from "node:test";
import type { Worker } from "node:worker_threads";
import { createThreadSupervisor } from "../../src/delivery/thread_supervisor.ts";

/** A supervisor of threads that do nothing by themselves, and a clock that the test moves. */
function open(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [threads, posted]: [EventEmitter[], unknown[]] = [[], []];
  const stage = { nowMs: 0, hasThreads: true, threads, posted };
  t.mock.method(performance, "now", () => stage.nowMs);
  const deaths: unknown[] = [];
  const startThread = () => {
    if (!stage.hasThreads) throw new Error("none left");
    const thread = Object.assign(new EventEmitter(), {
      postMessage: (message: unknown) => void stage.posted.push(message),
      terminate: () => void thread.emit("exit", 1),
    });
    stage.threads.push(thread);
    return thread as unknown as Worker;
  };
  const supervisor = createThreadSupervisor(startThread, (error, pauseMs) => {
    deaths.push([error instanceof Error ? error.message : error, pauseMs]);
  });
  const pass = (ms: number) => {
    stage.nowMs += ms;
    t.mock.timers.tick(ms);
  };
  return { stage, supervisor, deaths, pass, last: () => stage.threads.at(-1) };
}

test("a thread that dies at once is restarted after longer pauses, up to a minute", (t) => {
  const { stage, supervisor, deaths, pass, last } = open(t);
  supervisor.start();
  for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
    last()?.emit("error", new Error("why"));
    last()?.emit("exit", 1);
    assert.deepEqual(deaths.at(-1), ["why", seconds * 1_000]);
    const before = stage.threads.length;
    pass(seconds * 1_000 - 1);
    assert.equal(stage.threads.length, before);
    pass(1);
    assert.equal(stage.threads.length, before + 1);
  }
});

test("a thread that cannot be started is retried like one that died at once", (t) => {
  const { stage, supervisor, deaths, pass } = open(t);
  stage.hasThreads = false;
  supervisor.start();
  pass(1_000);
  assert.equal(supervisor.post({ kind: "wake" }), false);
  stage.hasThreads = true;
  pass(2_000);
  assert.equal(supervisor.post({ kind: "wake" }), true);
  assert.deepEqual(deaths, [["none left", 1_000], ["none left", 2_000]]);
});

test("a thread that lived for more than a minute is restarted after a second", (t) => {
  const { supervisor, deaths, pass, last } = open(t);
  supervisor.start();
  last()?.emit("exit", 1);
  pass(1_000);
  pass(60_001);
  last()?.emit("exit", 1);
  assert.deepEqual(deaths, [[undefined, 1_000], [undefined, 1_000]]);
});

test("post() returns whether there is a thread", (t) => {
  const { stage, supervisor, pass, last } = open(t);
  assert.equal(supervisor.post({ kind: "wake" }), false);
  supervisor.start();
  assert.equal(supervisor.post({ kind: "wake" }), true);
  last()?.emit("exit", 1);
  assert.equal(supervisor.post({ kind: "wake" }), false);
  pass(1_000);
  assert.equal(supervisor.post({ kind: "wake" }), true);
  assert.equal(stage.posted.length, 2);
});

test("stop() asks the thread, terminates it after a time limit, and starts no other", async (t) => {
  const { stage, supervisor, deaths, pass } = open(t);
  supervisor.start();
  let isStopped = false;
  const stopped = supervisor.stop({ kind: "stop", graceMs: 10 }, 15).then(() => {
    isStopped = true;
  });
  assert.deepEqual(stage.posted, [{ kind: "stop", graceMs: 10 }]);
  pass(14);
  await Promise.resolve();
  assert.equal(isStopped, false);
  pass(1);
  await stopped;
  supervisor.start();
  pass(100_000);
  assert.deepEqual([stage.threads.length, deaths], [1, []]);
});

test("stop() during the pause before a restart prevents the restart", async (t) => {
  const { stage, supervisor, pass, last } = open(t);
  supervisor.start();
  last()?.emit("exit", 1);
  await supervisor.stop({ kind: "stop", graceMs: 10 }, 15);
  pass(100_000);
  assert.equal(stage.threads.length, 1);
});
