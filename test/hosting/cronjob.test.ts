import assert from "node:assert/strict";
import { test } from "node:test";
import type { CronjobContext, Dispatch } from "../../src/mod.ts";
import { runCronjob } from "../../src/hosting/cronjob.ts";
import { hostingServices, type StoredEvent } from "../helpers/hosting.ts";
import { NEVER } from "../helpers/never.ts";
import { SILENT } from "../helpers/silent_log.ts";

async function runOnce(
  run: (context: CronjobContext) => unknown,
  store: (events: readonly StoredEvent[]) => Promise<void>,
  signal = NEVER,
): Promise<void> {
  await runCronjob({ name: "tick", run }, signal, hostingServices({ log: SILENT, store }));
}

test("runCronjob() gives dispatch, signal and log, and stores events after the run", async () => {
  const order: unknown[] = [];
  const { signal } = new AbortController();
  await runOnce(async (context) => {
    assert.equal(context.signal, signal);
    order.push(context.dispatch("tick", 1));
    await new Promise((resolve) => setImmediate(resolve));
    order.push("ran");
  }, (events) => {
    order.push(events);
    return Promise.resolve();
  }, signal);
  const [id] = order;
  assert.deepEqual(order, [id, "ran", [{ id, name: "tick", json: "1", subject: null }]]);
});

test("a run that throws stores nothing, and runCronjob() rejects with its error", async () => {
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

test("a thrown value that is no Error becomes a TypeError that shows it", async () => {
  for (const [thrown, message] of [
    [{ status: 409, detail: "Shut." }, "Threw { status: 409, detail: 'Shut.' }"],
    ["text", "Threw 'text'"],
    [undefined, "Threw undefined"],
    [7n, "Threw 7n"],
  ]) {
    const run = runOnce(() => Promise.reject(thrown), () => assert.fail("committed"));
    await assert.rejects(run, { name: "TypeError", message });
  }
});

test("a run without events commits nothing, and a failed commit rejects", async () => {
  await runOnce(() => undefined, () => assert.fail("committed"));
  const cause = new Error("disk full");
  const run = ({ dispatch }: CronjobContext): unknown => dispatch("a", 1);
  await assert.rejects(runOnce(run, () => Promise.reject(cause)), { cause });
});

test("events that a run has flushed stay stored if the run fails", async () => {
  const stored: unknown[] = [];
  const error = new Error("failed");
  await assert.rejects(
    runOnce(async ({ dispatch }) => {
      dispatch("tick", 1, { key: "7" });
      await dispatch.flush();
      dispatch("tick", 2);
      throw error;
    }, async (events) => void stored.push(...events.map(({ json, key }) => [json, key]))),
    error,
  );
  assert.deepEqual(stored, [["1", "7"]]);
});

test("a line that a run logs has the name of its job", async () => {
  const lines: unknown[] = [];
  const write = (...line: readonly unknown[]) => void lines.push(line);
  const services = hostingServices({
    log: { debug: write, info: write, warn: write, error: write },
    store: () => Promise.resolve(),
  });
  const run = ({ log }: CronjobContext) => log.info("swept", { rows: 3, job: "another" });
  await runCronjob({ name: "tick", run }, NEVER, services);
  assert.deepEqual(lines, [["swept", { rows: 3, job: "tick" }]]);
});
