import assert from "node:assert/strict";
import { test } from "node:test";
import { UnavailableError } from "../../src/database/database.ts";
import { createClaimer, shareOut } from "../../src/delivery/claimer.ts";
import type { DistributorOptions } from "../../src/delivery/distributor.ts";
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

test("a claim that fails is said to, and leaves the queues the capacity that it had", async () => {
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
