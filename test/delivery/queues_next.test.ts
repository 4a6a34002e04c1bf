import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createQueues } from "../../src/delivery/queues.ts";
import type { Health } from "../../src/store/deliveries.ts";
import { due, end, put, putInto, sendAll } from "../helpers/queues.ts";
import { openRandom } from "../helpers/random.ts";

describe("next()", () => {
  test("returns undefined if nothing waits", () => {
    assert.equal(createQueues({ total: 4, perSubscription: 2 }).next(), undefined);
  });

  test("keeps a subscription within its own cap", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 100);
    assert.equal(sendAll(queues).length, 8);
    end(queues, 1, true);
    assert.equal(sendAll(queues).length, 1);
  });

  test("keeps all subscriptions together within the total", () => {
    const queues = createQueues({ total: 5, perSubscription: 2 });
    for (const subscription of [1, 2, 3, 4]) put(queues, subscription, 9);
    assert.equal(sendAll(queues).length, 5);
    assert.equal(queues.inFlight(), 5);
  });

  test("alternates between the subscriptions, one item each", () => {
    const queues = createQueues({ total: 6, perSubscription: 8 });
    for (const subscription of [1, 2, 3]) put(queues, subscription, 9);
    assert.deepEqual(sendAll(queues).map(({ subscription }) => subscription), [1, 2, 3, 1, 2, 3]);
  });

  test("prefers the subscription that sent longest ago", () => {
    const queues = createQueues({ total: 6, perSubscription: 8 });
    for (const subscription of [1, 2]) put(queues, subscription, 9);
    const sent: unknown[] = [];
    for (let count = 0; count < 4; count++) {
      const { subscription = 0 } = queues.next() ?? {};
      sent.push(subscription);
      end(queues, subscription, true);
    }
    assert.deepEqual(sent, [1, 2, 1, 2]);
  });

  test("returns the items of one subscription in order", () => {
    const queues = createQueues({ total: 6, perSubscription: 8 });
    put(queues, 1, 3);
    assert.deepEqual(sendAll(queues).map(({ id }) => id), ["1/0", "1/1", "1/2"]);
  });

  test("gives a failing subscription one slot", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 9, "failing");
    assert.equal(sendAll(queues).length, 1);
  });

  test("gives all failing subscriptions together half of the slots, at least one", () => {
    for (const [total, half] of [[64, 32], [5, 2], [2, 1], [1, 1]] as const) {
      const queues = createQueues({ total, perSubscription: 8 });
      for (let number = 1; number <= 70; number++) put(queues, number, 1, "failing");
      assert.equal(sendAll(queues).length, half, `of ${total}`);
    }
  });

  test("gives the other slots to subscriptions that do not fail", () => {
    const queues = createQueues({ total: 8, perSubscription: 8 });
    for (let number = 1; number <= 8; number++) put(queues, number, 1, "failing");
    put(queues, 100, 20);
    const sent = sendAll(queues);
    assert.equal(sent.filter(({ subscription }) => subscription === 100).length, 4);
    assert.equal(sent.length, 8);
  });
});

test("next() gives a principal all free slots within its three quarters", () => {
  const queues = createQueues({ total: 8, perSubscription: 8 });
  put(queues, 1, 3);
  assert.equal(sendAll(queues).length, 3);
  put(queues, 2, 8);
  assert.equal(sendAll(queues).length, 5);
});

test("next() leaves slots for a third principal beside two whose subscriptions hang", () => {
  for (const [health, expected] of [["healthy", [48, 12]], ["unknown", [42, 10]]] as const) {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    const sent = ["u_1", "u_2"].map((principal, at) => {
      for (let number = 1; number <= 16; number++) {
        putInto(queues, due(100 * at + number, health, principal), 32);
      }
      return sendAll(queues).length;
    });
    assert.deepEqual(sent, expected);
    put(queues, 1000, 8, health);
    assert.equal(sendAll(queues).length, 4);
  }
});

test("next() prefers the subscription with the fewest in flight", () => {
  const queues = createQueues({ total: 64, perSubscription: 8 });
  put(queues, 1, 8);
  put(queues, 2, 8);
  for (let count = 0; count < 6; count++) queues.next();
  put(queues, 3, 4);
  const sent = sendAll(queues).map(({ subscription }) => subscription);
  assert.deepEqual(sent.slice(0, 5), [3, 3, 3, 1, 2]);
});

test("no cap is exceeded in random sequences of operations", (t) => {
  const random = openRandom(t);
  for (let round = 0; round < 40; round++) {
    const total = 1 + random.below(12);
    const perSubscription = 1 + random.below(6);
    const queues = createQueues({ total, perSubscription });
    const inFlight = new Map<number, number>();
    const means = new Map<number, number>();
    const healths = new Map<number, Health>();
    const principalOf = (subscription: number) => `u_${subscription % 3}`;
    const healthOf = (subscription: number) => healths.get(subscription) ?? "unknown";
    const countOf = (subscription: number) => inFlight.get(subscription) ?? 0;
    const sum = (isIncluded: (subscription: number) => boolean) =>
      inFlight.entries().filter(([subscription]) => isIncluded(subscription))
        .reduce((before, [, count]) => before + count, 0);
    const half = Math.max(1, Math.floor(total / 2));
    const impaired = Math.max(half, total - 2 * perSubscription);
    const unproven = Math.min(total, Math.max(impaired + 1, total - perSubscription));
    const isImpaired = (subscription: number) =>
      ["slow", "failing"].includes(healthOf(subscription));
    for (let step = 0; step < 300; step++) {
      const subscription = 1 + random.below(12);
      const queue = {
        ...due(subscription, healthOf(subscription), principalOf(subscription)),
        meanMs: means.get(subscription) ?? 0,
      };
      if (random.chance(40)) putInto(queues, queue, random.below(5));
      if (random.chance(50) && countOf(subscription) > 0) {
        const isSuccess = random.chance(70);
        const durationMs = random.chance(30) ? 9_000 : 1;
        inFlight.set(subscription, countOf(subscription) - 1);
        const { meanMs } = queues.finish(subscription, isSuccess, durationMs);
        if (meanMs !== undefined) means.set(subscription, meanMs);
        const isSlow = (means.get(subscription) ?? 0) > 1000;
        healths.set(subscription, isSuccess ? isSlow ? "slow" : "healthy" : "failing");
        queues.release(subscription);
      }
      for (let next = queues.next(); next; next = queues.next()) {
        const health = healthOf(next.subscription);
        const principal = principalOf(next.subscription);
        const isOwn = (each: number) => principalOf(each) === principal;
        inFlight.set(next.subscription, countOf(next.subscription) + 1);
        assert.ok(countOf(next.subscription) <= (health === "failing" ? 1 : perSubscription));
        assert.ok(sum(isOwn) <= Math.max(1, Math.floor(total * 3 / 4)));
        if (health === "healthy") continue;
        assert.ok(sum((each) => healthOf(each) !== "healthy") <= unproven);
        if (health === "unknown") continue;
        assert.ok(sum(isImpaired) <= impaired);
        assert.ok(sum((each) => healthOf(each) === health) <= half);
        assert.ok(
          sum((each) => isImpaired(each) && isOwn(each)) <= Math.max(1, Math.floor(total / 4)),
        );
      }
      assert.equal(queues.inFlight(), sum(() => true));
      assert.ok(queues.inFlight() <= total);
    }
  }
});
