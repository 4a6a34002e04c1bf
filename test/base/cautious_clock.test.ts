import assert from "node:assert/strict";
import { test } from "node:test";
import { createCautiousClock } from "../../src/base/cautious_clock.ts";

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

function open() {
  const time = { wallMs: START_MS, elapsedMs: 0 };
  const now = createCautiousClock(() => time.wallMs, () => time.elapsedMs);
  const pass = (ms: number) => {
    time.wallMs += ms;
    time.elapsedMs += ms;
  };
  return { time, now, pass };
}

test("it goes with the clock on the wall, and with what a time service corrects", () => {
  const { time, now, pass } = open();
  pass(HOUR_MS);
  assert.equal(now(), START_MS + HOUR_MS);
  time.wallMs += 999;
  assert.equal(now(), START_MS + HOUR_MS + 999);
});

test("it follows backward at once", () => {
  const { time, now } = open();
  time.wallMs -= 2 * HOUR_MS;
  assert.equal(now(), START_MS - 2 * HOUR_MS);
});

test("it follows forward after a day, until then it goes on evenly", () => {
  const { time, now, pass } = open();
  time.wallMs += 1000 * HOUR_MS;
  assert.equal(now(), START_MS);
  pass(24 * HOUR_MS - 1);
  assert.equal(now(), START_MS + 24 * HOUR_MS - 1);
  pass(1);
  assert.equal(now(), START_MS + 1024 * HOUR_MS);
});

test("a day that is interrupted begins anew", () => {
  const { time, now, pass } = open();
  for (let times = 0; times < 3; times++) {
    time.wallMs += 2 * HOUR_MS;
    now();
    pass(23 * HOUR_MS);
    now();
    time.wallMs -= 2 * HOUR_MS;
    assert.equal(now(), time.wallMs);
  }
  time.wallMs += 2 * HOUR_MS;
  assert.equal(now(), time.wallMs - 2 * HOUR_MS);
});
