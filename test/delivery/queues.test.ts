import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createQueues } from "../../src/delivery/queues.ts";
import { due, end, itemsOf, put, putInto, sendAll } from "../helpers/queues.ts";

describe("finish()", () => {
  test("limits a subscription that fails to one slot, until a success", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 8);
    sendAll(queues);
    end(queues, 1, false);
    put(queues, 1, 8, "failing");
    assert.equal(sendAll(queues).length, 0, "7 are still in flight");
    for (let count = 0; count < 6; count++) end(queues, 1, false);
    put(queues, 1, 8, "failing");
    assert.equal(sendAll(queues).length, 0, "1 is still in flight");
    end(queues, 1, false);
    put(queues, 1, 9, "failing");
    assert.equal(sendAll(queues).length, 1);
    end(queues, 1, true);
    put(queues, 1, 9);
    assert.equal(sendAll(queues).length, 8);
  });

  test("returns the waiting items as requeued after a failure", () => {
    const queues = createQueues({ total: 64, perSubscription: 2 });
    put(queues, 1, 4);
    sendAll(queues);
    assert.deepEqual(end(queues, 1, false), ["1/2", "1/3"]);
    assert.deepEqual(end(queues, 1, false), []);
    assert.equal(queues.next(), undefined);
  });

  test("returns no requeued items after a success", () => {
    const queues = createQueues({ total: 64, perSubscription: 2 });
    put(queues, 1, 4);
    sendAll(queues);
    assert.deepEqual(end(queues, 1, true), []);
    assert.equal(queues.drain().length, 2);
  });
});

test("putBack() frees the slot of an item that was not sent, and keeps the health", () => {
  const queues = createQueues({ total: 64, perSubscription: 2 });
  put(queues, 1, 4);
  sendAll(queues);
  assert.deepEqual(end(queues, 1, undefined), []);
  assert.equal(sendAll(queues).length, 1);
  const failing = createQueues({ total: 64, perSubscription: 2 });
  put(failing, 1, 4, "failing");
  sendAll(failing);
  end(failing, 1, undefined);
  put(failing, 1, 4, "failing");
  assert.equal(sendAll(failing).length, 1, "it still fails");
});

describe("the mean duration from finish()", () => {
  const meanAfter = (meanMs: number, durationMs: number) => {
    const queues = createQueues({ total: 64, perSubscription: 2 });
    putInto(queues, { ...due(1), meanMs }, 1);
    sendAll(queues);
    return queues.finish(1, true, durationMs).meanMs;
  };

  test("is given if it is to be stored", () => {
    assert.equal(meanAfter(0, 8_000), 2_000);
    assert.equal(meanAfter(1_000, 0), 750);
    assert.equal(meanAfter(260, 0), 0, "short");
  });

  test("is undefined if that value is stored already", () => {
    assert.equal(meanAfter(0, 10), undefined);
    assert.equal(meanAfter(0, 900), undefined, "short");
    assert.equal(meanAfter(9_000, 9_000), undefined);
  });
});

describe("release()", () => {
  test("is needed before the stored health counts again", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 1);
    sendAll(queues);
    queues.finish(1, false, 5);
    put(queues, 1, 8, "healthy"); // by the health that was stored before the failure
    assert.equal(sendAll(queues).length, 1);
    queues.release(1);
  });

  test("closes an empty queue, after which the stored health counts", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 1);
    sendAll(queues);
    end(queues, 1, false);
    put(queues, 1, 9, "healthy"); // another process had a success
    assert.equal(sendAll(queues).length, 8);
  });

  test("keeps the learned health while a claim is under way", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 1);
    sendAll(queues);
    const reserved = queues.reserve(due(1), 3);
    end(queues, 1, false);
    queues.add(1, reserved, itemsOf(1, 3));
    assert.equal(sendAll(queues).length, 1);
  });
});

describe("hold()", () => {
  test("keeps the learned health while an older one is read from the database", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 1);
    sendAll(queues);
    {
      using _held = queues.hold();
      end(queues, 1, false);
      put(queues, 1, 9, "healthy");
    }
    assert.equal(sendAll(queues).length, 1);
  });
});

describe("reserve()", () => {
  test("does not remember a subscription that gets no capacity", () => {
    const queues = createQueues({ total: 1, perSubscription: 1 });
    put(queues, 1, 9);
    assert.equal(queues.reserve(due(2, "failing"), 9), 0);
    queues.drain();
    assert.equal(queues.reserve(due(2), 9), 4);
  });

  test("gives a healthy subscription four times its cap", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 3);
    sendAll(queues);
    assert.equal(queues.reserve(due(1), 99), 29);
    assert.equal(queues.reserve(due(1), 99), 0, "reservations count");
    queues.add(1, 29, []);
    assert.equal(queues.reserve(due(1), 5), 5, "no more than is asked for");
  });

  test("gives a slow or unknown subscription twice its cap", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    assert.equal(queues.reserve(due(1, "unknown"), 99), 16);
    assert.equal(queues.reserve(due(2, "slow"), 99), 16);
  });

  test("gives a failing subscription one item", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    assert.equal(queues.reserve(due(1, "failing"), 99), 1);
    assert.equal(queues.reserve(due(1, "failing"), 99), 0);
    queues.add(1, 1, itemsOf(1, 1));
    sendAll(queues);
    assert.equal(queues.reserve(due(1, "failing"), 99), 0);
  });
});

describe("capacityFor()", () => {
  test("is the number of items that failing subscriptions may still hold", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    assert.equal(queues.capacityFor("failing"), 64);
    for (let number = 1; number <= 64; number++) put(queues, number, 1, "failing");
    assert.equal(queues.capacityFor("failing"), 0);
    sendAll(queues);
    assert.equal(queues.capacityFor("failing"), 0);
    for (let subscription = 1; subscription <= 32; subscription++) end(queues, subscription, false);
    assert.equal(queues.capacityFor("failing"), 32);
  });
});

describe("full()", () => {
  test("names the subscriptions whose queues have less capacity than their caps", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    put(queues, 1, 24);
    put(queues, 2, 25);
    put(queues, 3, 1, "failing");
    assert.deepEqual(queues.full("healthy").subscriptions.sort(), [2, 3]);
  });

  test("names the principals whose slow subscriptions may hold no more items", () => {
    const queues = createQueues({ total: 64, perSubscription: 8 });
    putInto(queues, due(1, "slow", "u_1"), 16);
    assert.deepEqual(queues.full("slow").principals, []);
    putInto(queues, due(2, "slow", "u_1"), 16);
    assert.deepEqual(queues.full("slow").principals, ["u_1"]);
    assert.deepEqual(queues.full("healthy").principals, [], "its other subscriptions may");
    sendAll(queues);
    for (let count = 0; count < 8; count++) end(queues, 1, true);
    assert.deepEqual(queues.full("slow").principals, []);
  });
});

describe("drain()", () => {
  test("returns all waiting items and none that is in flight", () => {
    const queues = createQueues({ total: 2, perSubscription: 1 });
    for (const subscription of [1, 2, 3]) put(queues, subscription, 2);
    sendAll(queues);
    assert.deepEqual(queues.drain().map(({ id }) => id).toSorted(), ["1/1", "2/1", "3/0", "3/1"]);
    assert.equal(queues.inFlight(), 2);
    end(queues, 1, true);
    assert.equal(queues.next(), undefined);
  });
});
