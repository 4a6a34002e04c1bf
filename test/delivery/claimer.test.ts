import assert from "node:assert/strict";
import { test } from "node:test";
import { shareOut } from "../../src/delivery/claimer.ts";
import { createQueues } from "../../src/delivery/queues.ts";
import type { DueQueue, Health } from "../../src/store/deliveries.ts";

const LIMITS = { total: 64, perSubscription: 8 };

/** So many queues of a health, numbered from `first` on. */
function queuesOf(health: Health, count: number, first = 1): DueQueue[] {
  return Array.from({ length: count }, (_, index) => {
    const subscription = first + index;
    return { subscription, health, principal: `u_${subscription}`, meanMs: 0 };
  });
}

/** What is requested for queues of these healths, of which none is open. */
function counts(...kinds: readonly DueQueue[][]): number[] {
  return shareOut(kinds, createQueues(LIMITS)).map(({ count }) => count);
}

test("shareOut() asks for nothing where nothing is due", () => {
  assert.deepEqual(counts([], [], []), []);
});

test("shareOut() gives one queue all that it has capacity for", () => {
  assert.deepEqual(counts(queuesOf("healthy", 1)), [32]);
});

test("shareOut() gives several queues the same", () => {
  assert.deepEqual(counts(queuesOf("healthy", 16)), Array(16).fill(16));
});

test("shareOut() gives the first of very many queues one each, until no more may be held", () => {
  assert.deepEqual(counts(queuesOf("healthy", 500)), Array(256).fill(1));
});

test("shareOut() gives a queue that fails one", () => {
  assert.deepEqual(counts(queuesOf("failing", 3)), [1, 1, 1]);
});

test("shareOut() takes the healths in turn", () => {
  const kinds = [queuesOf("unknown", 2), queuesOf("healthy", 2, 3), queuesOf("failing", 2, 5)];
  const requests = shareOut(kinds, createQueues(LIMITS));
  assert.deepEqual(requests.map(({ subscription }) => subscription), [1, 3, 5, 2, 4, 6]);
});

test("shareOut() leaves capacity for the healthy, however much is unknown", () => {
  const requests = shareOut([queuesOf("unknown", 500)], createQueues(LIMITS));
  assert.equal(requests.reduce((sum, { count }) => sum + count, 0), 112);
});
