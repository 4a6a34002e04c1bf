import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addUp,
  BOUNDS_MS,
  countOne,
  NO_FIGURES,
  percentile,
  toFiguresRecord,
} from "../../src/event/figures.ts";

/** The figures of successful attempts with these durations. */
function timed(...durationsMs: readonly number[]): number[] {
  const figures = [...NO_FIGURES];
  for (const ms of durationsMs) countOne(figures, true, false, ms);
  return figures;
}

const bucketsOf = (...durationsMs: readonly number[]) => timed(...durationsMs).slice(4);

test("a duration counts in the bucket of the first bound that it does not exceed", () => {
  for (const [place, bound] of BOUNDS_MS.entries()) {
    assert.equal(bucketsOf(bound)[place], 1, `${bound}`);
    assert.equal(bucketsOf(bound + 1)[place + 1], 1, `${bound + 1}`);
  }
  assert.equal(bucketsOf(0)[0], 1);
  assert.equal(bucketsOf(3_600_000).at(-1), 1);
});

test("an attempt without a duration does not count in the mean and the buckets", () => {
  const figures = timed(10, 30);
  countOne(figures, false, true, undefined);
  const { ok, bad, failed, mean_ms, buckets } = toFiguresRecord(figures);
  assert.deepEqual([ok, bad, failed, mean_ms], [2, 1, 1, 20]);
  assert.equal(buckets.reduce((sum, count) => sum + count, 0), 2);
});

test("addUp() adds figures, and returns zeros for an empty list", () => {
  const sum = addUp([timed(1, 2), timed(400), timed()]);
  assert.deepEqual(sum, timed(1, 2, 400));
  assert.deepEqual(addUp([]), NO_FIGURES);
});

test("without durations the mean and the percentiles are null", () => {
  const { mean_ms, p50_ms, p99_ms } = toFiguresRecord(NO_FIGURES);
  assert.deepEqual([mean_ms, p50_ms, p99_ms], [null, null, null]);
});

const PERCENTILES: readonly [what: string, durations: number[], share: number, ms: number][] = [
  ["the middle of a bucket for one half of it", [60, 70, 80, 90], 0.5, 75],
  ["the end of a bucket for all of it", [60, 70], 1, 100],
  ["a part of the lower of two buckets", [5, 5, 5, 1_000], 0.5, 3],
  ["a part of the upper of two buckets", [5, 1_000, 1_000, 1_000], 0.95, 967],
  ["the last bound for durations past it", [60_000, 90_000], 0.5, 30_000],
];
for (const [what, durations, share, ms] of PERCENTILES) {
  test(`percentile() returns ${what}`, () => {
    assert.equal(percentile(bucketsOf(...durations), share), ms);
  });
}

test("percentile() is within the bucket of the exact percentile", () => {
  const durations = Array.from({ length: 997 }, (_, index) => (index * 7_919) % 20_000);
  const sorted = durations.toSorted((one, other) => one - other);
  for (const share of [0.5, 0.95, 0.99]) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
    const found = percentile(bucketsOf(...durations), share) ?? NaN;
    const upper = BOUNDS_MS.find((bound) => exact <= bound) ?? NaN;
    const lower = BOUNDS_MS.findLast((bound) => bound < upper) ?? 0;
    assert.ok(found >= lower && found <= upper, `${share}: ${found}, exactly ${exact}`);
  }
});
