import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { getHeapStatistics } from "node:v8";
import { runInNewContext } from "node:vm";
import { freeStartMemory } from "../../src/base/start_memory.ts";

const MIB = 2 ** 20;

test("freeStartMemory() frees the heap when the thread is quiet, and exposes no gc()", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let utilization = 0.9;
  t.mock.method(performance, "eventLoopUtilization", () => ({ utilization }));
  const before = getHeapStatistics().total_physical_size;
  let parts: object[][] | undefined = Array.from({ length: 1_000 }, () =>
    Array.from({ length: 1_000 }, (_, number) => ({ number })));
  const full = getHeapStatistics().total_physical_size;
  // A little of every page stays in use, as with modules that are loaded during a start.
  const kept = parts.map((part) => part[0]);
  parts = undefined;
  freeStartMemory();
  t.mock.timers.tick(1_000);
  const busy = getHeapStatistics().total_physical_size;
  utilization = 0.1;
  t.mock.timers.tick(1_000);
  const after = getHeapStatistics().total_physical_size;
  assert.ok(full - before > 16 * MIB, "too little was allocated");
  assert.ok(busy - before > (full - before) / 2, `freed while busy: ${before} ${full} ${busy}`);
  assert.ok(after - before < (full - before) / 4, `${before} ${full} ${after}`);
  assert.equal(kept.length, 1_000);
  assert.equal(runInNewContext("typeof gc"), "undefined");
  assert.equal(typeof globalThis.gc, "undefined");
});
