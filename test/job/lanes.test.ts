import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLanes, type Lanes } from "../../src/job/lanes.ts";
import type { Standing } from "../../src/store/deliveries.ts";
import { openRandom } from "../helpers/random.ts";

interface Sent {
  readonly subscription: number;
  readonly item: string;
}

/** Puts `count` items into a lane, as a claim does. */
function put(
  lanes: Lanes<string>,
  subscription: number,
  count: number,
  standing: Standing = "proven",
): void {
  lanes.open(subscription, standing);
  lanes.add(subscription, Array.from({ length: count }, (_, index) => `${subscription}/${index}`));
  lanes.settle(subscription);
}

/** Takes until nothing may be sent. */
function takeAll(lanes: Lanes<string>): Sent[] {
  const sent: Sent[] = [];
  for (let next = lanes.take(); next; next = lanes.take()) sent.push(next);
  return sent;
}

/** Ends an attempt, its record included. */
function end(lanes: Lanes<string>, subscription: number, ok: boolean | undefined) {
  const handedBack = lanes.finish(subscription, ok);
  lanes.settle(subscription);
  return handedBack;
}

describe("take()", () => {
  test("gives nothing of nothing", () => {
    assert.equal(createLanes({ total: 4, perSubscription: 2 }).take(), undefined);
  });

  test("keeps a subscription to its own cap", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 100);
    assert.equal(takeAll(lanes).length, 8);
    end(lanes, 1, true);
    assert.equal(takeAll(lanes).length, 1);
  });

  test("keeps all together to the total", () => {
    const lanes = createLanes<string>({ total: 5, perSubscription: 2 });
    for (const subscription of [1, 2, 3, 4]) put(lanes, subscription, 9);
    assert.equal(takeAll(lanes).length, 5);
    assert.equal(lanes.inFlight(), 5);
  });

  test("keeps a subscription to the total where that is smaller than its cap", () => {
    const lanes = createLanes<string>({ total: 3, perSubscription: 8 });
    put(lanes, 1, 9);
    assert.equal(takeAll(lanes).length, 3);
  });

  test("goes round the subscriptions, one item each", () => {
    const lanes = createLanes<string>({ total: 6, perSubscription: 8 });
    for (const subscription of [1, 2, 3]) put(lanes, subscription, 9);
    assert.deepEqual(takeAll(lanes).map(({ subscription }) => subscription), [1, 2, 3, 1, 2, 3]);
  });

  test("takes the items of one subscription in their order", () => {
    const lanes = createLanes<string>({ total: 6, perSubscription: 8 });
    put(lanes, 1, 3);
    assert.deepEqual(takeAll(lanes).map(({ item }) => item), ["1/0", "1/1", "1/2"]);
  });

  test("gives a subscription that fails one slot", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 9, "failing");
    assert.equal(takeAll(lanes).length, 1);
  });

  test("gives all that fail together half of the slots, rounded down", () => {
    for (const [total, half] of [[64, 32], [5, 2], [2, 1], [1, 1]] as const) {
      const lanes = createLanes<string>({ total, perSubscription: 8 });
      for (let number = 1; number <= 70; number++) put(lanes, number, 1, "failing");
      assert.equal(takeAll(lanes).length, half, `of ${total}`);
    }
  });

  test("gives the slots that failing ones may not have to the others", () => {
    const lanes = createLanes<string>({ total: 8, perSubscription: 8 });
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
      const lanes = createLanes<string>({ total, perSubscription });
      for (let subscription = 1; subscription <= 70; subscription++) put(lanes, subscription, 1, "new");
      assert.equal(takeAll(lanes).length, unproven, `of ${total}`);
      put(lanes, 100, total);
      assert.equal(takeAll(lanes).length, total - unproven, `the rest of ${total}`);
    }
  });

  test("counts those that fail with them", () => {
    const lanes = createLanes<string>({ total: 8, perSubscription: 2 });
    for (let subscription = 1; subscription <= 8; subscription++) put(lanes, subscription, 1, "failing");
    assert.equal(takeAll(lanes).length, 4);
    for (let subscription = 11; subscription <= 18; subscription++) put(lanes, subscription, 1, "new");
    assert.equal(takeAll(lanes).length, 2);
  });

  test("does not let those that fail keep new ones out", () => {
    for (const [total, perSubscription] of [[64, 8], [64, 64], [8, 4], [3, 3], [2, 1]] as const) {
      const lanes = createLanes<string>({ total, perSubscription });
      for (let number = 1; number <= 70; number++) put(lanes, number, 1, "failing");
      takeAll(lanes);
      put(lanes, 100, 1, "new");
      assert.equal(takeAll(lanes).length, 1, `${total} and ${perSubscription}`);
    }
  });

  test("gives one all of its slots as soon as it has had a success", () => {
    const lanes = createLanes<string>({ total: 4, perSubscription: 4 });
    put(lanes, 1, 9, "new");
    assert.equal(takeAll(lanes).length, 3);
    end(lanes, 1, true);
    assert.equal(takeAll(lanes).length, 2);
  });

  test("leaves those that have proven themselves room to wait in, too", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    for (let subscription = 1; subscription <= 14; subscription++) put(lanes, subscription, 8, "new");
    assert.equal(lanes.roomFor("new"), 0);
    assert.equal(lanes.roomFor("failing"), 0);
    assert.equal(lanes.roomFor("proven"), 144);
  });
});

describe("finish()", () => {
  test("takes all slots but one from a subscription that failed, until a success", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
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
    assert.equal(takeAll(lanes).length, 8);
  });

  test("hands back what waits behind a failure", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 2 });
    put(lanes, 1, 4);
    takeAll(lanes);
    assert.deepEqual(end(lanes, 1, false), ["1/2", "1/3"]);
    assert.equal(lanes.waiting(), 0);
    assert.deepEqual(end(lanes, 1, false), []);
  });

  test("hands back nothing after a success", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 2 });
    put(lanes, 1, 4);
    takeAll(lanes);
    assert.deepEqual(end(lanes, 1, true), []);
    assert.equal(lanes.waiting(), 2);
  });

  test("frees a slot of one that was not sent, and says nothing of its subscription", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 2 });
    put(lanes, 1, 4);
    takeAll(lanes);
    assert.deepEqual(end(lanes, 1, undefined), []);
    assert.equal(takeAll(lanes).length, 1);
    const failing = createLanes<string>({ total: 64, perSubscription: 2 });
    put(failing, 1, 4, "failing");
    takeAll(failing);
    end(failing, 1, undefined);
    assert.equal(takeAll(failing).length, 1, "it still fails");
  });
});

describe("settle()", () => {
  test("forgets how a subscription fared only when that is stored", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 1);
    takeAll(lanes);
    lanes.finish(1, false);
    put(lanes, 1, 8, "proven"); // claimed by what was stored before the failure
    assert.equal(takeAll(lanes).length, 1);
    lanes.settle(1);
  });

  test("forgets a subscription that has nothing left, and believes what is stored then", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 1);
    takeAll(lanes);
    end(lanes, 1, false);
    put(lanes, 1, 9, "proven"); // another process had a success
    assert.equal(takeAll(lanes).length, 8);
  });

  test("keeps what is learnt while a lane is open for a claim", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 1);
    takeAll(lanes);
    lanes.open(1, "proven");
    end(lanes, 1, false);
    lanes.add(1, ["a", "b", "c"]);
    lanes.settle(1);
    assert.equal(takeAll(lanes).length, 1);
  });
});

describe("room()", () => {
  test("is four times the cap, so that one claim serves for four turns", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    assert.equal(lanes.room(1, "proven"), 32);
    put(lanes, 1, 3);
    assert.equal(lanes.room(1, "proven"), 29);
    takeAll(lanes);
    assert.equal(lanes.room(1, "proven"), 29);
  });

  test("is twice the cap for a subscription of which nothing is known", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    assert.equal(lanes.room(1, "new"), 16);
  });

  test("is one for a subscription that fails", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    assert.equal(lanes.room(1, "failing"), 1);
    put(lanes, 1, 1, "failing");
    assert.equal(lanes.room(1, "failing"), 0);
    takeAll(lanes);
    assert.equal(lanes.room(1, "failing"), 0);
  });

  test("leaves half of what is held to subscriptions that do not fail", () => {
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
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
    const lanes = createLanes<string>({ total: 64, perSubscription: 8 });
    put(lanes, 1, 24);
    put(lanes, 2, 25);
    put(lanes, 3, 1, "failing");
    assert.deepEqual(lanes.full().sort(), [2, 3]);
  });
});

describe("drain()", () => {
  test("takes back all that waits and nothing that is in flight", () => {
    const lanes = createLanes<string>({ total: 2, perSubscription: 1 });
    for (const subscription of [1, 2, 3]) put(lanes, subscription, 2);
    takeAll(lanes);
    assert.deepEqual(lanes.drain().toSorted(), ["1/1", "2/1", "3/0", "3/1"]);
    assert.deepEqual([lanes.waiting(), lanes.inFlight()], [0, 2]);
    assert.equal(lanes.take(), undefined);
  });
});

test("the caps hold whatever happens", (t) => {
  const random = openRandom(t);
  for (let round = 0; round < 40; round++) {
    const total = 1 + random.below(12);
    const perSubscription = 1 + random.below(6);
    const lanes = createLanes<string>({ total, perSubscription });
    const inFlight = new Map<number, number>();
    const failing = new Set<number>();
    const proven = new Set<number>();
    const standingOf = (subscription: number) =>
      failing.has(subscription) ? "failing" : proven.has(subscription) ? "proven" : "new";
    const countOf = (subscription: number) => inFlight.get(subscription) ?? 0;
    const sum = () => inFlight.values().reduce((left, right) => left + right, 0);
    const failingSum = () =>
      failing.values().reduce((before, subscription) => before + countOf(subscription), 0);
    const provenSum = () =>
      proven.values().reduce((before, subscription) => before + countOf(subscription), 0);
    const half = Math.max(1, Math.floor(total / 2));
    const unprovenLimit = Math.min(total, Math.max(half + 1, total - perSubscription));
    for (let step = 0; step < 300; step++) {
      const subscription = 1 + random.below(8);
      if (random.chance(40)) put(lanes, subscription, random.below(5), standingOf(subscription));
      if (random.chance(50) && countOf(subscription) > 0) {
        const ok = random.chance(50);
        inFlight.set(subscription, countOf(subscription) - 1);
        for (const set of [failing, proven]) set.delete(subscription);
        (ok ? proven : failing).add(subscription);
        end(lanes, subscription, ok);
      }
      for (let next = lanes.take(); next; next = lanes.take()) {
        const isFailing = failing.has(next.subscription);
        inFlight.set(next.subscription, countOf(next.subscription) + 1);
        assert.ok(countOf(next.subscription) <= (isFailing ? 1 : perSubscription));
        assert.ok(!isFailing || failingSum() <= Math.max(1, Math.floor(total / 2)));
        assert.ok(proven.has(next.subscription) || sum() - provenSum() <= unprovenLimit);
      }
      assert.ok(sum() <= total);
      assert.equal(lanes.inFlight(), sum());
    }
  }
});
