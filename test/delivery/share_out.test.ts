import assert from "node:assert/strict";
import { test } from "node:test";
import { createQueues } from "../../src/delivery/queues.ts";
import { shareOut } from "../../src/delivery/share_out.ts";
import type { DueQueue, Health } from "../../src/store/deliveries.ts";

const LIMITS = { total: 64, perSubscription: 8 };

/** So many lanes of a health, numbered from `first` on. */
function lanesOf(health: Health, count: number, first = 1): DueQueue[] {
  return Array.from({ length: count }, (_, index) => {
    const subscription = first + index;
    return { subscription, health, principal: `u_${subscription}`, meanMs: 0 };
  });
}

/** What is asked for lanes of these standings, of which none is open. */
function counts(...kinds: readonly DueQueue[][]): number[] {
  return shareOut(kinds, createQueues(LIMITS)).map(({ count }) => count);
}

test("shareOut() asks for nothing where nothing is due", () => {
  assert.deepEqual(counts([], [], []), []);
});

test("shareOut() gives one lane all that it has room for", () => {
  assert.deepEqual(counts(lanesOf("healthy", 1)), [32]);
});

test("shareOut() gives several lanes the same", () => {
  assert.deepEqual(counts(lanesOf("healthy", 16)), Array(16).fill(16));
});

test("shareOut() gives the first of very many lanes one each, until no more may be held", () => {
  assert.deepEqual(counts(lanesOf("healthy", 500)), Array(256).fill(1));
});

test("shareOut() gives a lane that fails one", () => {
  assert.deepEqual(counts(lanesOf("failing", 3)), [1, 1, 1]);
});

test("shareOut() takes the standings in turn", () => {
  const kinds = [lanesOf("unknown", 2), lanesOf("healthy", 2, 3), lanesOf("failing", 2, 5)];
  const requests = shareOut(kinds, createQueues(LIMITS));
  assert.deepEqual(requests.map(({ subscription }) => subscription), [1, 3, 5, 2, 4, 6]);
});

test("shareOut() leaves room for what is well, however much is unproven", () => {
  const requests = shareOut([lanesOf("unknown", 500)], createQueues(LIMITS));
  assert.equal(requests.reduce((sum, { count }) => sum + count, 0), 112);
});
