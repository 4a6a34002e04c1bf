import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLimiter, formatRate, parseRate } from "../../src/base/rate.ts";

const RATE = { count: 3, windowMs: 60_000 };

function open(maxKeys?: number) {
  const clock = { nowMs: 1_000.123 };
  return { clock, take: createLimiter(() => clock.nowMs, maxKeys) };
}

describe("parseRate() accepts", () => {
  const table: [text: string, count: number, windowMs: number][] = [
    ["1/1s", 1, 1_000],
    ["100/1m", 100, 60_000],
    ["1000000/1d", 1_000_000, 86_400_000],
    ["5/24h", 5, 86_400_000],
    ["5/2000ms", 5, 2_000],
  ];
  for (const [text, count, windowMs] of table) {
    test(text, () => {
      assert.deepEqual(parseRate(text), { count, windowMs });
      assert.deepEqual(parseRate(formatRate({ count, windowMs })), { count, windowMs });
    });
  }
});

describe("parseRate() refuses", () => {
  const table = [
    "", "100", "100/", "/1m", "0/1m", "-1/1m", "1.5/1m", "1e3/1m", "01/1m", "1000001/1m",
    "9999999/1m", "100/0", "100/500ms", "100/1500ms", "100/2d", "100/25h", "100/1", "100/m",
    "100/1m ", " 100/1m", "100 /1m", "100/1m/1m", "100/1M", "100/1m\n", "١/1m",
  ];
  for (const text of table) {
    test(JSON.stringify(text), () => assert.equal(parseRate(text), undefined));
  }
});

test("a limiter allows a whole rate at once, then one use for each share of the window", () => {
  const { clock, take } = open();
  const claim = { key: "a", rate: RATE };
  const use = () =>
    take([claim]).map(({ remaining, waitMs }) => [remaining, Math.round(waitMs)]);
  assert.deepEqual([...use(), ...use(), ...use()], [[2, 0], [1, 0], [0, 0]]);
  assert.deepEqual(use(), [[0, 20_000]]);
  clock.nowMs += 19_000;
  assert.deepEqual(use(), [[0, 1_000]]); // the refused use was not counted
  clock.nowMs += 1_000;
  assert.deepEqual([...use(), ...use()], [[0, 0], [0, 20_000]]);
});

test("a limiter returns the time until the whole rate is available again", () => {
  const { clock, take } = open();
  const claim = { key: "a", rate: RATE };
  take([claim]);
  assert.deepEqual(take([claim]).map(({ fullInMs }) => Math.round(fullInMs)), [40_000]);
  clock.nowMs += 30_000;
  assert.deepEqual(take([claim]).map(({ fullInMs }) => Math.round(fullInMs)), [30_000]);
  clock.nowMs += 3_600_000;
  assert.deepEqual(take([claim]).map(({ remaining }) => remaining), [2]); // and no more than that
});

for (const text of ["1000000/1s", "999983/1d", "7/1s", "1/1d"]) {
  test(`a limiter allows ${text} at once within 0.1 %, even after 30 days`, () => {
    const rate = parseRate(text);
    assert.ok(rate);
    const { clock, take } = open();
    clock.nowMs += 30 * 86_400_000 + 0.1;
    const claims = [{ key: "a", rate }];
    let allowed = 0;
    while (take(claims)[0]?.waitMs === 0) allowed++;
    assert.ok(Math.abs(allowed - rate.count) <= rate.count / 1_000, String(allowed));
  });
}

test("a limiter counts each key separately", () => {
  const { take } = open();
  const rate = { count: 1, windowMs: 1_000 };
  const [a, b] = [{ key: "a", rate }, { key: "b", rate }];
  take([a]);
  assert.deepEqual(take([b]).map(({ waitMs }) => waitMs), [0]);
  assert.ok(take([a]).every(({ waitMs }) => waitMs > 0));
});

test("a use that one of two rates refuses is not counted by the other", () => {
  const { take } = open();
  const claims = [
    { key: "wide", rate: RATE },
    { key: "narrow", rate: { count: 1, windowMs: 1_000 } },
  ];
  take(claims);
  const refused = take(claims);
  assert.deepEqual(refused.map(({ remaining, waitMs }) => [remaining, Math.round(waitMs)]),
    [[2, 0], [0, 1_000]]);
  assert.deepEqual(take(claims.slice(0, 1)).map(({ remaining }) => remaining), [1]);
});

test("a raised rate takes effect at once", () => {
  const { take } = open();
  take([{ key: "a", rate: { count: 1, windowMs: 86_400_000 } }]);
  const [raised] = take([{ key: "a", rate: { count: 60, windowMs: 60_000 } }]);
  assert.equal(Math.round(raised?.waitMs ?? 0), 1_000);
});

test("by default a limiter keeps a key for 24,000 newer keys and evicts it for 51,000", () => {
  const take = createLimiter(() => 0);
  const use = (key: string) => take([{ key, rate: { count: 3, windowMs: 1_000 } }])[0]?.remaining;
  use("first");
  for (let count = 0; count < 24_000; count++) use(`a${count}`);
  assert.equal(use("first"), 1);
  for (let count = 0; count < 51_000; count++) use(`b${count}`);
  assert.equal(use("first"), 2); // as for a new key
});

test("a full limiter forgets the keys that were used longest ago", () => {
  const { take } = open(4);
  const rate = { count: 3, windowMs: 1_000 };
  const remaining = (key: string) => take([{ key, rate }])[0]?.remaining;
  assert.deepEqual(["a", "b", "c", "a", "d", "a"].map(remaining), [2, 2, 2, 1, 2, 0]);
  assert.equal(remaining("b"), 2);
});
