import assert from "node:assert/strict";
import { test } from "node:test";
import type { CronjobContext, Dispatch } from "../../src/mod.ts";
import { runCronjob } from "../../src/hosting/cronjob.ts";
import type { DispatchedEvent } from "../../src/hosting/dispatch.ts";

const log = { debug() {}, info() {}, warn() {}, error() {} };

async function runOnce(
  run: (context: CronjobContext) => unknown,
  commit: (events: readonly DispatchedEvent[]) => Promise<void>,
  signal = new AbortController().signal,
): Promise<void> {
  await runCronjob({ run }, {
    signal,
    log,
    commit,
    maxPayloadBytes: 64,
    newEventId: () => "e1",
  });
}

test("runCronjob() gives dispatch, signal and log, and stores events after the run", async () => {
  const order: unknown[] = [];
  const { signal } = new AbortController();
  await runOnce(async (context) => {
    assert.deepEqual([context.signal === signal, context.log === log], [true, true]);
    context.dispatch("tick", 1);
    await new Promise((resolve) => setImmediate(resolve));
    order.push("ran");
  }, (events) => {
    order.push(events);
    return Promise.resolve();
  }, signal);
  assert.deepEqual(order, ["ran", [{ id: "e1", name: "tick", json: "1" }]]);
});

test("a run that throws stores nothing, and the error is handed on", async () => {
  const error = new Error("failed");
  let kept: Dispatch | undefined;
  await assert.rejects(
    runOnce(({ dispatch }) => {
      kept = dispatch;
      dispatch("tick", 1);
      throw error;
    }, () => assert.fail("committed")),
    error,
  );
  assert.throws(() => kept?.("tick", 1), /settled/);
});

test("a run without events commits nothing, and a failed commit is handed on", async () => {
  await runOnce(() => undefined, () => assert.fail("committed"));
  const error = new Error("disk full");
  const run = ({ dispatch }: CronjobContext): unknown => dispatch("a", 1);
  await assert.rejects(runOnce(run, () => Promise.reject(error)), error);
});
