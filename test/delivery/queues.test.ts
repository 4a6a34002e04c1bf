import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createQueues, type Queues } from "../../src/delivery/queues.ts";
import type { ClaimedDelivery, DueQueue, Health } from "../../src/store/deliveries.ts";
import { openRandom } from "../helpers/random.ts";

/** A subscription with due work, whose principal has no other. */
function due(
  subscription: number,
  health: Health = "healthy",
  principal = `u_${subscription}`,
): DueQueue {
  return { subscription, health, principal, meanMs: health === "slow" ? 9_000 : 0 };
}

/** `count` items of a subscription, numbered from 0 on: `1/0`, `1/1` … */
function itemsOf(subscription: number, count: number): ClaimedDelivery[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${subscription}/${index}`,
    subscription,
  }));
}

/** Puts as many of `count` items into a queue as it has capacity for, as a claim does. */
function putInto(queues: Queues, queue: DueQueue, count: number): void {
  const reserved = queues.reserve(queue, count);
  if (reserved > 0) queues.add(queue.subscription, reserved, itemsOf(queue.subscription, reserved));
}

function put(queues: Queues, subscription: number, count: number, health?: Health): void {
  putInto(queues, due(subscription, health), count);
}

/** Calls next() until nothing more may be sent. */
function sendAll(queues: Queues): ClaimedDelivery[] {
  const sent: ClaimedDelivery[] = [];
  for (let next = queues.next(); next; next = queues.next()) sent.push(next);
  return sent;
}

/** Ends an attempt and its record; `isSuccess` is undefined if the attempt was not made. */
function end(
  queues: Queues,
  subscription: number,
  isSuccess: boolean | undefined,
  durationMs = 5,
) {
  if (isSuccess === undefined) queues.putBack(subscription);
  const requeued = isSuccess === undefined
    ? []
    : queues.finish(subscription, isSuccess, durationMs).requeued;
  queues.release(subscription);
  return requeued.map(({ id }) => id);
}

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
