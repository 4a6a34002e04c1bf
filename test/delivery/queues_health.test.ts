import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createQueues } from "../../src/delivery/queues.ts";
import type { ClaimedDelivery } from "../../src/store/deliveries.ts";
import { due, end, put, putInto, sendAll } from "../helpers/queues.ts";

describe("next() for subscriptions of unknown health", () => {
  test("leaves the slots of one subscription to healthy ones", () => {
    for (const [total, perSubscription, unproven] of [
      [64, 8, 56],
      [8, 4, 5], // one more than failing ones may have
      [5, 2, 3],
      [3, 8, 2],
      [1, 1, 1],
    ] as const) {
      const queues = createQueues({ total, perSubscription });
      for (let number = 1; number <= 70; number++) put(queues, number, 1, "unknown");
      assert.equal(sendAll(queues).length, unproven, `of ${total}`);
      put(queues, 100, total);
      assert.equal(sendAll(queues).length, total - unproven, `the rest of ${total}`);
    }
  });

  test("counts failing subscriptions among them", () => {
    const queues = createQueues({ total: 8, perSubscription: 2 });
    for (let number = 1; number <= 8; number++) put(queues, number, 1, "failing");
    assert.equal(sendAll(queues).length, 4);
    for (let number = 11; number <= 18; number++) put(queues, number, 1, "unknown");
    assert.equal(sendAll(queues).length, 2);
  });

  test("gives one of them a slot beside any number of failing ones", () => {
    for (const [total, perSubscription] of [[64, 8], [64, 64], [8, 4], [3, 3], [2, 1]] as const) {
      const queues = createQueues({ total, perSubscription });
      for (let number = 1; number <= 70; number++) put(queues, number, 1, "failing");
      sendAll(queues);
      put(queues, 100, 1, "unknown");
      assert.equal(sendAll(queues).length, 1, `${total} and ${perSubscription}`);
    }
  });

  test("gives a subscription all of its slots after its first success", () => {
    const queues = createQueues({ total: 8, perSubscription: 6 });
    put(queues, 1, 9, "unknown");
    assert.equal(sendAll(queues).length, 3);
    end(queues, 1, true);
    put(queues, 1, 9);
    assert.equal(sendAll(queues).length, 4);
  });

  test("leaves queue capacity for healthy subscriptions, too", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    for (let number = 1; number <= 14; number++) put(queues, number, 8, "unknown");
    assert.equal(queues.capacityFor("unknown"), 0);
    assert.equal(queues.capacityFor("failing"), 0);
    assert.equal(queues.capacityFor("healthy"), 144);
  });
});

describe("next() for slow subscriptions", () => {
  const count = (sent: readonly ClaimedDelivery[], from: number, to: number) =>
    sent.filter(({ subscription }) => subscription >= from && subscription <= to).length;

  test("gives all of them together half of the slots", () => {
    for (const [total, half] of [[64, 32], [5, 2], [1, 1]] as const) {
      const queues = createQueues({ total, perSubscription: 8 });
      for (let number = 1; number <= 70; number++) put(queues, number, 2, "slow");
      assert.equal(sendAll(queues).length, half, `of ${total}`);
    }
  });

  test("gives those of one principal a quarter, and all that it has three quarters", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    for (let number = 1; number <= 8; number++) putInto(queues, due(number, "slow", "u_1"), 8);
    assert.equal(sendAll(queues).length, 16);
    for (let number = 11; number <= 18; number++) putInto(queues, due(number, "healthy", "u_1"), 8);
    assert.equal(sendAll(queues).length, 32);
    put(queues, 21, 8);
    assert.equal(sendAll(queues).length, 8, "another principal's");
  });

  test("counts failing ones towards the quarter of their principal", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    for (let number = 1; number <= 40; number++) putInto(queues, due(number, "failing", "u_1"), 1);
    assert.equal(sendAll(queues).length, 16);
  });

  test("leaves slots beside failing ones, and to unknown and healthy ones beside both", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    for (let number = 1; number <= 70; number++) put(queues, number, 1, "failing");
    for (let number = 101; number <= 170; number++) put(queues, number, 1, "slow");
    const impaired = sendAll(queues);
    assert.ok(count(impaired, 1, 70) >= 16 && count(impaired, 101, 170) >= 16);
    for (let number = 201; number <= 270; number++) put(queues, number, 1, "unknown");
    assert.equal(sendAll(queues).length, 8);
    put(queues, 301, 30);
    assert.equal(sendAll(queues).length, 8);
  });

  test("recognizes them by the mean duration of their attempts, until it is short again", () => {
    const queues = createQueues({ total: 4, perSubscription: 4 });
    put(queues, 1, 16);
    sendAll(queues);
    assert.equal(end(queues, 1, true, 3_900).length, 0, "one long attempt is not enough");
    assert.equal(end(queues, 1, true, 3_900).length, 9, "the waiting items would wait too long");
    put(queues, 1, 8, "slow");
    assert.deepEqual(sendAll(queues), [], "a quarter is in flight");
    end(queues, 1, true);
    assert.equal(sendAll(queues).length, 1, "a quarter");
    end(queues, 1, true);
    put(queues, 1, 8);
    assert.equal(sendAll(queues).length, 3, "three quarters");
  });

  test("counts failures too: after a timeout, one fast success leaves a subscription slow", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 2);
    sendAll(queues);
    end(queues, 1, false, 10_000);
    end(queues, 1, true);
    put(queues, 1, 99, "slow");
    assert.equal(queues.drain().length, 16);
  });

  test("starts from the stored mean of a subscription that it does not remember", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    putInto(queues, { ...due(1, "slow"), meanMs: 4_000 }, 1);
    sendAll(queues);
    assert.equal(queues.finish(1, true, 0).meanMs, 3_000);
  });
});
