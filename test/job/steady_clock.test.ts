import assert from "node:assert/strict";
import { test } from "node:test";
import { createSteadyClock } from "../../src/job/steady_clock.ts";

const START_MS = Date.UTC(2026, 0, 1);

function open() {
  const time = { wallMs: START_MS, elapsedMs: 500 };
  return { time, clock: createSteadyClock(() => time.wallMs, () => time.elapsedMs) };
}

test("a steady clock goes as time passes, and not as the clock on the wall is set", () => {
  const { time, clock } = open();
  time.elapsedMs += 250;
  time.wallMs += 250 - 3_600_000;
  assert.equal(clock.now(), START_MS + 250);
  assert.equal(clock.stepMs(), -3_600_000);
});

test("it follows when it is told to", () => {
  const { time, clock } = open();
  time.wallMs += 7_200_000;
  assert.equal(clock.stepMs(), 7_200_000);
  clock.follow();
  assert.equal(clock.now(), START_MS + 7_200_000);
  assert.equal(clock.stepMs(), 0);
});

test("what a time service corrects bit by bit is no step", () => {
  const { time, clock } = open();
  time.wallMs += 999;
  assert.equal(clock.stepMs(), 0);
  time.wallMs += 1;
  assert.equal(clock.stepMs(), 1000);
});
