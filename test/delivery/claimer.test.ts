import assert from "node:assert/strict";
import { test } from "node:test";
import { UnavailableError } from "../../src/database/database.ts";
import { createClaimer, shareOut } from "../../src/delivery/claimer.ts";
import type { DistributorOptions } from "../../src/delivery/distributor.ts";
import { createQueues } from "../../src/delivery/queues.ts";
import type { DueQueue, Health } from "../../src/store/deliveries.ts";

const LIMITS = { total: 64, perSubscription: 8 };

/** `count` due queues of a health, numbered from `first` on. */
function queuesOf(health: Health, count: number, first = 1): DueQueue[] {
  return Array.from({ length: count }, (_, index) => {
    const subscription = first + index;
    return { subscription, health, principal: `u_${subscription}`, meanMs: 0 };
  });
}

/** The counts that are requested for these due queues, none of which is open. */
function counts(...kinds: readonly DueQueue[][]): number[] {
  return shareOut(kinds, createQueues(LIMITS)).map(({ count }) => count);
}

test("shareOut() requests nothing if nothing is due", () => {
  assert.deepEqual(counts([], [], []), []);
});

test("shareOut() gives a single queue all of its capacity", () => {
  assert.deepEqual(counts(queuesOf("healthy", 1)), [32]);
});

test("shareOut() gives several queues equal shares", () => {
  assert.deepEqual(counts(queuesOf("healthy", 16)), Array(16).fill(16));
});

test("shareOut() gives the first of many queues one item each, up to the total capacity", () => {
  assert.deepEqual(counts(queuesOf("healthy", 500)), Array(256).fill(1));
});

test("shareOut() gives a failing queue one item", () => {
  assert.deepEqual(counts(queuesOf("failing", 3)), [1, 1, 1]);
});

test("shareOut() alternates between the healths", () => {
  const kinds = [queuesOf("unknown", 2), queuesOf("healthy", 2, 3), queuesOf("failing", 2, 5)];
  const requests = shareOut(kinds, createQueues(LIMITS));
  assert.deepEqual(requests.map(({ subscription }) => subscription), [1, 3, 5, 2, 4, 6]);
});

test("shareOut() leaves capacity for healthy queues, however many unknown ones are due", () => {
  const requests = shareOut([queuesOf("unknown", 500)], createQueues(LIMITS));
  assert.equal(requests.reduce((sum, { count }) => sum + count, 0), 112);
});

test("a failed claim rejects, and the queue gets its reserved capacity back", async () => {
  const queues = createQueues(LIMITS);
  const due: DueQueue = { subscription: 1, health: "healthy", principal: "u_1", meanMs: 0 };
  const options = {
    database: {
      query: async () => [due],
      write: () => Promise.reject(new UnavailableError("locked")),
    },
    settings: { callbackTimeoutMs: 1 },
    claim: "c1",
  } as unknown as DistributorOptions;
  const claimer = createClaimer(options, queues, { hold() {}, isHeld: () => false });
  await assert.rejects(claimer.claim(1), UnavailableError);
  assert.equal(queues.reserve(due, 99), 32);
});
