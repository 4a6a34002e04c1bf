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

test("a key that never failed may try at once", () => {
  const { throttle } = open();
  assert.equal(throttle.waitMs("a"), 0);
});

test("as many failures as the limit are forgiven, less one: then the key waits", () => {
  const { throttle } = open(3);
  for (const expected of [0, 0]) {
    throttle.fail("a");
    assert.equal(throttle.waitMs("a"), expected);
  }
  throttle.fail("a");
  assert.equal(throttle.waitMs("a"), WINDOW_MS);
});

test("a key waits until its oldest failure has aged out, to the millisecond", () => {
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

test("the window slides: one failure that ages out makes room for one", () => {
  const { clock, throttle } = open(2);
  throttle.fail("a");
  clock.nowMs += 400;
  throttle.fail("a");
  clock.nowMs += 600;
  throttle.fail("a");
  assert.equal(throttle.waitMs("a"), 400);
});

test("of more failures than the limit the newest alone are remembered", () => {
  const { clock, throttle } = open(2);
  for (let count = 0; count < 3; count++) {
    throttle.fail("a");
    clock.nowMs += 100;
  }
  assert.equal(throttle.waitMs("a"), WINDOW_MS - 200);
});

test("one key's failures are no other's", () => {
  const { throttle } = open(1);
  throttle.fail("a");
  assert.ok(throttle.waitMs("a") > 0);
  assert.equal(throttle.waitMs("b"), 0);
  assert.equal(throttle.waitMs("A"), 0);
});

test("a clock that is set back makes no key wait for longer than the window", () => {
  const { clock, throttle } = open(1);
  throttle.fail("a");
  clock.nowMs -= 1;
  assert.equal(throttle.waitMs("a"), 0);
  throttle.fail("a");
  assert.equal(throttle.waitMs("a"), WINDOW_MS);
});

test("failures past the limit are remembered for no longer than the limit's own", () => {
  const { clock, throttle } = open(2);
  for (let round = 0; round < 50; round++) throttle.fail("a");
  assert.equal(throttle.waitMs("a"), WINDOW_MS);
  clock.nowMs += WINDOW_MS;
  assert.equal(throttle.waitMs("a"), 0);
});

test("past maxKeys the key that failed longest ago is forgotten, and no other", () => {
  const { clock, throttle } = open(1, 3);
  for (const key of ["a", "b", "c"]) {
    throttle.fail(key);
    clock.nowMs += 1;
  }
  throttle.fail("a"); // failed again: now b is the one longest ago
  throttle.fail("d");
  const waiting = ["a", "b", "c", "d"].filter((key) => throttle.waitMs(key) > 0);
  assert.deepEqual(waiting, ["a", "c", "d"]);
});

test("200,000 keys fill no memory: the default holds 50,000", () => {
  const { throttle } = open(1);
  for (let at = 0; at < 200_000; at++) throttle.fail(`key ${at}`);
  let held = 0;
  for (let at = 0; at < 200_000; at++) held += Math.sign(throttle.waitMs(`key ${at}`));
  assert.equal(held, 50_000);
  assert.equal(throttle.waitMs("key 199999"), WINDOW_MS);
});

test("a failure that was none is taken back", () => {
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
