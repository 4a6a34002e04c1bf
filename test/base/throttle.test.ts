import assert from "node:assert/strict";
import { test } from "node:test";
import { createThrottle } from "../../src/base/throttle.ts";

const WINDOW_MS = 1_000;

function open(limit = 3, maxKeys?: number) {
  const clock = { nowMs: 10_000 };
  const now = () => clock.nowMs;
  const options = { limit, windowMs: WINDOW_MS, now, ...maxKeys !== undefined && { maxKeys } };
  return { clock, throttle: createThrottle(options) };
}

test("a key without failures does not wait", () => {
  const { throttle } = open();
  assert.equal(throttle.waitMs("a"), 0);
});

test("a key waits once it has as many failures as the limit", () => {
  const { throttle } = open(3);
  for (const expected of [0, 0]) {
    throttle.fail("a");
    assert.equal(throttle.waitMs("a"), expected);
  }
  throttle.fail("a");
  assert.equal(throttle.waitMs("a"), WINDOW_MS);
});

test("a key waits exactly until its oldest failure leaves the window", () => {
  const { clock, throttle } = open(2);
  throttle.fail("a");
  clock.nowMs += 400;
  throttle.fail("a");
  assert.equal(throttle.waitMs("a"), 600);
  clock.nowMs += 599;
  assert.equal(throttle.waitMs("a"), 1);
  clock.nowMs += 1;
  assert.equal(throttle.waitMs("a"), 0);
});

test("when one failure leaves the window, one more is allowed", () => {
  const { clock, throttle } = open(2);
  throttle.fail("a");
  clock.nowMs += 400;
  throttle.fail("a");
  clock.nowMs += 600;
  throttle.fail("a");
  assert.equal(throttle.waitMs("a"), 400);
});

test("past the limit only the newest failures are remembered", () => {
  const { clock, throttle } = open(2);
  for (let count = 0; count < 3; count++) {
    throttle.fail("a");
    clock.nowMs += 100;
  }
  assert.equal(throttle.waitMs("a"), WINDOW_MS - 200);
});

test("a failure counts for its own key only", () => {
  const { throttle } = open(1);
  throttle.fail("a");
  assert.ok(throttle.waitMs("a") > 0);
  assert.equal(throttle.waitMs("b"), 0);
  assert.equal(throttle.waitMs("A"), 0);
});

test("no key waits longer than the window after the clock is set back", () => {
  const { clock, throttle } = open(1);
  throttle.fail("a");
  clock.nowMs -= 1;
  assert.equal(throttle.waitMs("a"), 0);
  throttle.fail("a");
  assert.equal(throttle.waitMs("a"), WINDOW_MS);
});

test("past maxKeys only the key that failed longest ago is forgotten", () => {
  const { clock, throttle } = open(1, 3);
  for (const key of ["a", "b", "c"]) {
    throttle.fail(key);
    clock.nowMs += 1;
  }
  throttle.fail("a"); // failed again, so b is now the key that failed longest ago
  throttle.fail("d");
  const waiting = ["a", "b", "c", "d"].filter((key) => throttle.waitMs(key) > 0);
  assert.deepEqual(waiting, ["a", "c", "d"]);
});

test("by default a throttle remembers 50,000 of 200,000 keys", () => {
  const { throttle } = open(1);
  for (let at = 0; at < 200_000; at++) throttle.fail(`key ${at}`);
  let held = 0;
  for (let at = 0; at < 200_000; at++) held += Math.sign(throttle.waitMs(`key ${at}`));
  assert.equal(held, 50_000);
  assert.equal(throttle.waitMs("key 199999"), WINDOW_MS);
});

test("forgive() takes back the last failure of its key", () => {
  const throttle = createThrottle({ limit: 2, windowMs: 1_000, now: () => 0 });
  for (let round = 0; round < 5; round++) {
    assert.equal(throttle.waitMs("a"), 0);
    throttle.fail("a");
    throttle.forgive("a");
  }
  throttle.fail("a");
  throttle.fail("a");
  throttle.forgive("b");
  assert.equal(throttle.waitMs("a"), 1_000);
});
