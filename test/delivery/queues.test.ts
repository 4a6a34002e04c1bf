import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createQueues, type Queues } from "../../src/delivery/queues.ts";
import type { DueQueue, Health } from "../../src/store/deliveries.ts";
import { openRandom } from "../helpers/random.ts";

interface Sent {
  readonly subscription: number;
  readonly item: string;
}

/** A subscription with due work, whose principal has no other. */
function due(
  subscription: number,
  health: Health = "healthy",
  principal = `u_${subscription}`,
): DueQueue {
  return { subscription, health, principal, meanMs: health === "slow" ? 9_000 : 0 };
}

/** Puts as many of `count` items into a lane as it has room for, as a claim does. */
function putInto(lanes: Queues<string>, lane: DueQueue, count: number): void {
  const room = lanes.reserve(lane, count);
  const items = Array.from({ length: room }, (_, index) => `${lane.subscription}/${index}`);
  if (room > 0) lanes.add(lane.subscription, room, items);
}

function put(lanes: Queues<string>, subscription: number, count: number, health?: Health): void {
  putInto(lanes, due(subscription, health), count);
}

/** Takes until nothing may be sent. */
function takeAll(lanes: Queues<string>): Sent[] {
  const sent: Sent[] = [];
  for (let next = lanes.take(); next; next = lanes.take()) sent.push(next);
  return sent;
}

/** Ends an attempt that took so long, its record included; undefined for one that was not made. */
function end(
  lanes: Queues<string>,
  subscription: number,
  isSuccess: boolean | undefined,
  durationMs = 5,
) {
  const fared = isSuccess === undefined ? undefined : { isSuccess, durationMs };
  const { handedBack } = lanes.finish(subscription, fared);
  lanes.settle(subscription);
  return handedBack;
}

describe("take()", () => {
  test("gives nothing of nothing", () => {
    assert.equal(createQueues({ total: 4, perSubscription: 2 }).take(), undefined);
  });

  test("keeps a subscription to its own cap", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 100);
    assert.equal(takeAll(lanes).length, 8);
    end(lanes, 1, true);
    assert.equal(takeAll(lanes).length, 1);
  });

  test("keeps all together to the total", () => {
    const lanes = createQueues<string>({ total: 5, perSubscription: 2 });
    for (const subscription of [1, 2, 3, 4]) put(lanes, subscription, 9);
    assert.equal(takeAll(lanes).length, 5);
    assert.equal(lanes.inFlight(), 5);
  });

  test("goes round the subscriptions, one item each", () => {
    const lanes = createQueues<string>({ total: 6, perSubscription: 8 });
    for (const subscription of [1, 2, 3]) put(lanes, subscription, 9);
    assert.deepEqual(takeAll(lanes).map(({ subscription }) => subscription), [1, 2, 3, 1, 2, 3]);
  });

  test("takes the items of one subscription in their order", () => {
    const lanes = createQueues<string>({ total: 6, perSubscription: 8 });
    put(lanes, 1, 3);
    assert.deepEqual(takeAll(lanes).map(({ item }) => item), ["1/0", "1/1", "1/2"]);
  });

  test("gives a subscription that fails one slot", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 9, "failing");
    assert.equal(takeAll(lanes).length, 1);
  });

  test("gives all that fail together half of the slots, rounded down", () => {
    for (const [total, half] of [[64, 32], [5, 2], [2, 1], [1, 1]] as const) {
      const lanes = createQueues<string>({ total, perSubscription: 8 });
      for (let number = 1; number <= 70; number++) put(lanes, number, 1, "failing");
      assert.equal(takeAll(lanes).length, half, `of ${total}`);
    }
  });

  test("gives the slots that failing ones may not have to the others", () => {
    const lanes = createQueues<string>({ total: 8, perSubscription: 8 });
    for (let subscription = 1; subscription <= 8; subscription++) put(lanes, subscription, 1, "failing");
    put(lanes, 100, 20);
    const sent = takeAll(lanes);
    assert.equal(sent.filter(({ subscription }) => subscription === 100).length, 4);
    assert.equal(sent.length, 8);
  });
});

describe("take() of subscriptions of which nothing is known", () => {
  test("leaves one subscription's slots to those that have proven themselves", () => {
    for (const [total, perSubscription, unproven] of [
      [64, 8, 56],
      [8, 4, 5], // one more than those that fail may have
      [5, 2, 3],
      [3, 8, 2],
      [1, 1, 1],
    ] as const) {
      const lanes = createQueues<string>({ total, perSubscription });
      for (let subscription = 1; subscription <= 70; subscription++) put(lanes, subscription, 1, "unknown");
      assert.equal(takeAll(lanes).length, unproven, `of ${total}`);
      put(lanes, 100, total);
      assert.equal(takeAll(lanes).length, total - unproven, `the rest of ${total}`);
    }
  });

  test("counts those that fail with them", () => {
    const lanes = createQueues<string>({ total: 8, perSubscription: 2 });
    for (let subscription = 1; subscription <= 8; subscription++) put(lanes, subscription, 1, "failing");
    assert.equal(takeAll(lanes).length, 4);
    for (let subscription = 11; subscription <= 18; subscription++) put(lanes, subscription, 1, "unknown");
    assert.equal(takeAll(lanes).length, 2);
  });

  test("does not let those that fail keep new ones out", () => {
    for (const [total, perSubscription] of [[64, 8], [64, 64], [8, 4], [3, 3], [2, 1]] as const) {
      const lanes = createQueues<string>({ total, perSubscription });
      for (let number = 1; number <= 70; number++) put(lanes, number, 1, "failing");
      takeAll(lanes);
      put(lanes, 100, 1, "unknown");
      assert.equal(takeAll(lanes).length, 1, `${total} and ${perSubscription}`);
    }
  });

  test("gives one all of its slots as soon as it has had a success", () => {
    const lanes = createQueues<string>({ total: 8, perSubscription: 6 });
    put(lanes, 1, 9, "unknown");
    assert.equal(takeAll(lanes).length, 3);
    end(lanes, 1, true);
    put(lanes, 1, 9);
    assert.equal(takeAll(lanes).length, 4);
  });

  test("leaves those that have proven themselves room to wait in, too", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    for (let subscription = 1; subscription <= 14; subscription++) put(lanes, subscription, 8, "unknown");
    assert.equal(lanes.roomFor("unknown"), 0);
    assert.equal(lanes.roomFor("failing"), 0);
    assert.equal(lanes.roomFor("healthy"), 144);
  });
});

describe("finish()", () => {
  test("takes all slots but one from a subscription that failed, until a success", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 8);
    takeAll(lanes);
    end(lanes, 1, false);
    put(lanes, 1, 8, "failing");
    assert.equal(takeAll(lanes).length, 0, "7 are still in flight");
    for (let count = 0; count < 6; count++) end(lanes, 1, false);
    put(lanes, 1, 8, "failing");
    assert.equal(takeAll(lanes).length, 0, "1 is still in flight");
    end(lanes, 1, false);
    put(lanes, 1, 9, "failing");
    assert.equal(takeAll(lanes).length, 1);
    end(lanes, 1, true);
    put(lanes, 1, 9);
    assert.equal(takeAll(lanes).length, 8);
  });

  test("hands back what waits behind a failure", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 2 });
    put(lanes, 1, 4);
    takeAll(lanes);
    assert.deepEqual(end(lanes, 1, false), ["1/2", "1/3"]);
    assert.equal(lanes.waiting(), 0);
    assert.deepEqual(end(lanes, 1, false), []);
  });

  test("hands back nothing after a success", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 2 });
    put(lanes, 1, 4);
    takeAll(lanes);
    assert.deepEqual(end(lanes, 1, true), []);
    assert.equal(lanes.waiting(), 2);
  });

  test("frees a slot of one that was not sent, and says nothing of its subscription", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 2 });
    put(lanes, 1, 4);
    takeAll(lanes);
    assert.deepEqual(end(lanes, 1, undefined), []);
    assert.equal(takeAll(lanes).length, 1);
    const failing = createQueues<string>({ total: 64, perSubscription: 2 });
    put(failing, 1, 4, "failing");
    takeAll(failing);
    end(failing, 1, undefined);
    put(failing, 1, 4, "failing");
    assert.equal(takeAll(failing).length, 1, "it still fails");
  });
});

describe("finish() tells of the mean duration", () => {
  const meanAfter = (meanMs: number, durationMs: number) => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 2 });
    putInto(lanes, { ...due(1), meanMs }, 1);
    takeAll(lanes);
    return lanes.finish(1, { isSuccess: true, durationMs }).meanMs;
  };

  test("what is to be stored", () => {
    assert.equal(meanAfter(0, 8_000), 2_000);
    assert.equal(meanAfter(1_000, 0), 750);
    assert.equal(meanAfter(260, 0), 0, "short");
  });

  test("nothing where that is stored already", () => {
    assert.equal(meanAfter(0, 10), undefined);
    assert.equal(meanAfter(0, 900), undefined, "short");
    assert.equal(meanAfter(9_000, 9_000), undefined);
  });
});

describe("settle()", () => {
  test("forgets how a subscription fared only when that is stored", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 1);
    takeAll(lanes);
    lanes.finish(1, { isSuccess: false, durationMs: 5 });
    put(lanes, 1, 8, "healthy"); // claimed by what was stored before the failure
    assert.equal(takeAll(lanes).length, 1);
    lanes.settle(1);
  });

  test("forgets a subscription that has nothing left, and believes what is stored then", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 1);
    takeAll(lanes);
    end(lanes, 1, false);
    put(lanes, 1, 9, "healthy"); // another process had a success
    assert.equal(takeAll(lanes).length, 8);
  });

  test("keeps what is learnt while a lane is open for a claim", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 1);
    takeAll(lanes);
    const reserved = lanes.reserve(due(1), 3);
    end(lanes, 1, false);
    lanes.add(1, reserved, ["a", "b", "c"]);
    assert.equal(takeAll(lanes).length, 1);
  });
});

describe("reserve()", () => {
  test("has room for four times the cap, so that one claim serves for four turns", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 3);
    takeAll(lanes);
    assert.equal(lanes.reserve(due(1), 99), 29);
    assert.equal(lanes.reserve(due(1), 99), 0, "what is about to be claimed counts");
    lanes.add(1, 29, []);
    assert.equal(lanes.reserve(due(1), 5), 5, "no more than is asked for");
  });

  test("has room for twice the cap of one that is slow or of which nothing is known", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    assert.equal(lanes.reserve(due(1, "unknown"), 99), 16);
    assert.equal(lanes.reserve(due(2, "slow"), 99), 16);
  });

  test("has room for one of a subscription that fails", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    assert.equal(lanes.reserve(due(1, "failing"), 99), 1);
    assert.equal(lanes.reserve(due(1, "failing"), 99), 0);
    lanes.add(1, 1, ["a"]);
    takeAll(lanes);
    assert.equal(lanes.reserve(due(1, "failing"), 99), 0);
  });
});

describe("roomFor()", () => {
  test("leaves half of what is held to subscriptions that do not fail", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    assert.equal(lanes.roomFor("failing"), 64);
    for (let number = 1; number <= 64; number++) put(lanes, number, 1, "failing");
    assert.equal(lanes.roomFor("failing"), 0);
    takeAll(lanes);
    assert.equal(lanes.roomFor("failing"), 0);
    for (let subscription = 1; subscription <= 32; subscription++) end(lanes, subscription, false);
    assert.equal(lanes.roomFor("failing"), 32);
  });
});

describe("full()", () => {
  test("names the subscriptions that have no room for as much as they may send", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 24);
    put(lanes, 2, 25);
    put(lanes, 3, 1, "failing");
    assert.deepEqual(lanes.full("healthy").subscriptions.sort(), [2, 3]);
  });

  test("names the principals of whose slow subscriptions no more may wait", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    putInto(lanes, due(1, "slow", "u_1"), 16);
    assert.deepEqual(lanes.full("slow").principals, []);
    putInto(lanes, due(2, "slow", "u_1"), 16);
    assert.deepEqual(lanes.full("slow").principals, ["u_1"]);
    assert.deepEqual(lanes.full("healthy").principals, [], "its others may");
    takeAll(lanes);
    for (let count = 0; count < 8; count++) end(lanes, 1, true);
    assert.deepEqual(lanes.full("slow").principals, []);
  });
});

describe("drain()", () => {
  test("takes back all that waits and nothing that is in flight", () => {
    const lanes = createQueues<string>({ total: 2, perSubscription: 1 });
    for (const subscription of [1, 2, 3]) put(lanes, subscription, 2);
    takeAll(lanes);
    assert.deepEqual(lanes.drain().toSorted(), ["1/1", "2/1", "3/0", "3/1"]);
    assert.deepEqual([lanes.waiting(), lanes.inFlight()], [0, 2]);
    assert.equal(lanes.take(), undefined);
  });
});

describe("take() of slow subscriptions", () => {
  const count = (sent: readonly Sent[], from: number, to: number) =>
    sent.filter(({ subscription }) => subscription >= from && subscription <= to).length;

  test("gives all of them together half of the slots", () => {
    for (const [total, half] of [[64, 32], [5, 2], [1, 1]] as const) {
      const lanes = createQueues<string>({ total, perSubscription: 8 });
      for (let number = 1; number <= 70; number++) put(lanes, number, 2, "slow");
      assert.equal(takeAll(lanes).length, half, `of ${total}`);
    }
  });

  test("gives one principal's a quarter, and all that it has three quarters", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    for (let number = 1; number <= 8; number++) putInto(lanes, due(number, "slow", "u_1"), 8);
    assert.equal(takeAll(lanes).length, 16);
    for (let number = 11; number <= 18; number++) putInto(lanes, due(number, "healthy", "u_1"), 8);
    assert.equal(takeAll(lanes).length, 32);
    put(lanes, 21, 8);
    assert.equal(takeAll(lanes).length, 8, "another principal's");
  });

  test("counts those that fail towards the quarter of their principal", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    for (let number = 1; number <= 40; number++) putInto(lanes, due(number, "failing", "u_1"), 1);
    assert.equal(takeAll(lanes).length, 16);
  });

  test("leaves room beside those that fail, and beside both to those that do neither", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    for (let number = 1; number <= 70; number++) put(lanes, number, 1, "failing");
    for (let number = 101; number <= 170; number++) put(lanes, number, 1, "slow");
    const hindered = takeAll(lanes);
    assert.ok(count(hindered, 1, 70) >= 16 && count(hindered, 101, 170) >= 16);
    for (let number = 201; number <= 270; number++) put(lanes, number, 1, "unknown");
    assert.equal(takeAll(lanes).length, 8);
    put(lanes, 301, 30);
    assert.equal(takeAll(lanes).length, 8);
  });

  test("knows one by the mean duration of its attempts, and forgives it again", () => {
    const lanes = createQueues<string>({ total: 4, perSubscription: 4 });
    put(lanes, 1, 16);
    takeAll(lanes);
    assert.equal(end(lanes, 1, true, 3_900).length, 0, "one that took long says little");
    assert.equal(end(lanes, 1, true, 3_900).length, 9, "what waits would do so for long");
    put(lanes, 1, 8, "slow");
    assert.deepEqual(takeAll(lanes), [], "half is in flight");
    for (let quick = 0; quick < 2; quick++) end(lanes, 1, true);
    assert.equal(takeAll(lanes).length, 1, "a quarter");
    end(lanes, 1, true);
    put(lanes, 1, 8);
    assert.equal(takeAll(lanes).length, 3, "three quarters");
  });

  test("counts failures too: one success after a timeout does not make it quick", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 2);
    takeAll(lanes);
    end(lanes, 1, false, 10_000);
    end(lanes, 1, true);
    put(lanes, 1, 99, "slow");
    assert.equal(lanes.waiting(), 16);
  });

  test("believes what is stored of one that it does not remember", () => {
    const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
    putInto(lanes, { ...due(1, "slow"), meanMs: 4_000 }, 1);
    takeAll(lanes);
    assert.equal(lanes.finish(1, { isSuccess: true, durationMs: 0 }).meanMs, 3_000);
  });
});

test("take() prefers the subscription with the fewest in flight", () => {
  const lanes = createQueues<string>({ total: 64, perSubscription: 8 });
  put(lanes, 1, 8);
  put(lanes, 2, 8);
  for (let count = 0; count < 6; count++) lanes.take();
  put(lanes, 3, 4);
  const sent = takeAll(lanes).map(({ subscription }) => subscription);
  assert.deepEqual(sent.slice(0, 5), [3, 3, 3, 1, 2]);
});

test("the caps hold whatever happens", (t) => {
  const random = openRandom(t);
  for (let round = 0; round < 40; round++) {
    const total = 1 + random.below(12);
    const perSubscription = 1 + random.below(6);
    const lanes = createQueues<string>({ total, perSubscription });
    const inFlight = new Map<number, number>();
    const means = new Map<number, number>();
    const healths = new Map<number, Health>();
    const principalOf = (subscription: number) => `u_${subscription % 3}`;
    const healthOf = (subscription: number) => healths.get(subscription) ?? "unknown";
    const countOf = (subscription: number) => inFlight.get(subscription) ?? 0;
    const sum = (isMeant: (subscription: number) => boolean) =>
      inFlight.entries().filter(([subscription]) => isMeant(subscription))
        .reduce((before, [, count]) => before + count, 0);
    const half = Math.max(1, Math.floor(total / 2));
    const hindered = Math.max(half, total - 2 * perSubscription);
    const unproven = Math.min(total, Math.max(hindered + 1, total - perSubscription));
    const isHindered = (subscription: number) =>
      ["slow", "failing"].includes(healthOf(subscription));
    for (let step = 0; step < 300; step++) {
      const subscription = 1 + random.below(12);
      const lane = {
        ...due(subscription, healthOf(subscription), principalOf(subscription)),
        meanMs: means.get(subscription) ?? 0,
      };
      if (random.chance(40)) putInto(lanes, lane, random.below(5));
      if (random.chance(50) && countOf(subscription) > 0) {
        const isSuccess = random.chance(70);
        const durationMs = random.chance(30) ? 9_000 : 1;
        inFlight.set(subscription, countOf(subscription) - 1);
        const { meanMs } = lanes.finish(subscription, { isSuccess, durationMs });
        if (meanMs !== undefined) means.set(subscription, meanMs);
        const isSlow = (means.get(subscription) ?? 0) > 1000;
        healths.set(subscription, isSuccess ? isSlow ? "slow" : "healthy" : "failing");
        lanes.settle(subscription);
      }
      for (let next = lanes.take(); next; next = lanes.take()) {
        const health = healthOf(next.subscription);
        const principal = principalOf(next.subscription);
        const isOwn = (each: number) => principalOf(each) === principal;
        inFlight.set(next.subscription, countOf(next.subscription) + 1);
        assert.ok(countOf(next.subscription) <= (health === "failing" ? 1 : perSubscription));
        assert.ok(sum(isOwn) <= Math.max(1, Math.floor(total * 3 / 4)));
        if (health === "healthy") continue;
        assert.ok(sum((each) => healthOf(each) !== "healthy") <= unproven);
        if (health === "unknown") continue;
        assert.ok(sum(isHindered) <= hindered);
        assert.ok(sum((each) => healthOf(each) === health) <= half);
        assert.ok(
          sum((each) => isHindered(each) && isOwn(each)) <= Math.max(1, Math.floor(total / 4)),
        );
      }
      assert.equal(lanes.inFlight(), sum(() => true));
      assert.ok(lanes.inFlight() <= total);
    }
  }
});
