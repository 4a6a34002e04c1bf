import assert from "node:assert/strict";
import { test } from "node:test";
import { createCautiousClock, createSteadyClock } from "../../src/base/steady_clock.ts";

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

function open() {
  const time = { wallMs: START_MS, elapsedMs: 500 };
  return { time, clock: createSteadyClock(() => time.wallMs, () => time.elapsedMs) };
}

test("a steady clock follows elapsed time and ignores a step of the system's clock", () => {
  const { time, clock } = open();
  time.elapsedMs += 250;
  time.wallMs += 250 - 3_600_000;
  assert.equal(clock.now(), START_MS + 250);
  assert.equal(clock.stepMs(), -3_600_000);
});

test("follow() sets a steady clock to the system's clock", () => {
  const { time, clock } = open();
  time.wallMs += 7_200_000;
  assert.equal(clock.stepMs(), 7_200_000);
  clock.follow();
  assert.equal(clock.now(), START_MS + 7_200_000);
  assert.equal(clock.stepMs(), 0);
});

test("follow() with an amount ignores a later step", () => {
  const { time, clock } = open();
  time.wallMs += 7_200_000;
  const stepMs = clock.stepMs();
  time.wallMs -= 5_000;
  clock.follow(stepMs);
  assert.equal(clock.now(), START_MS + 7_200_000);
  assert.equal(clock.stepMs(), -5_000);
});

test("stepMs() ignores a correction of less than one second", () => {
  const { time, clock } = open();
  time.wallMs += 999;
  assert.equal(clock.stepMs(), 0);
  time.wallMs += 1;
  assert.equal(clock.stepMs(), 1000);
});

function openCautious() {
  const time = { wallMs: START_MS, elapsedMs: 0 };
  const now = createCautiousClock(() => time.wallMs, () => time.elapsedMs);
  const pass = (ms: number) => {
    time.wallMs += ms;
    time.elapsedMs += ms;
  };
  return { time, now, pass };
}

test("a cautious clock follows the system's clock and small corrections at once", () => {
  const { time, now, pass } = openCautious();
  pass(HOUR_MS);
  assert.equal(now(), START_MS + HOUR_MS);
  time.wallMs += 999;
  assert.equal(now(), START_MS + HOUR_MS + 999);
});

test("a cautious clock continues from its last time for a day, then follows", () => {
  const time = { wallMs: START_MS, elapsedMs: 0 };
  const open = (lastMs: number) =>
    createCautiousClock(() => time.wallMs, () => time.elapsedMs, lastMs);
  assert.equal(open(START_MS + HOUR_MS)(), START_MS, "the last time was ahead");
  const now = open(START_MS - 2 * HOUR_MS);
  for (const [hours, behindMs] of [[0, 2 * HOUR_MS], [23, 2 * HOUR_MS], [24, 0]] as const) {
    time.elapsedMs = hours * HOUR_MS;
    time.wallMs = START_MS + time.elapsedMs;
    assert.equal(now(), time.wallMs - behindMs);
  }
});

test("a cautious clock follows a step back at once", () => {
  const { time, now } = openCautious();
  time.wallMs -= 2 * HOUR_MS;
  assert.equal(now(), START_MS - 2 * HOUR_MS);
});

test("a cautious clock follows a step forward after a day, and until then elapsed time", () => {
  const { time, now, pass } = openCautious();
  time.wallMs += 1000 * HOUR_MS;
  assert.equal(now(), START_MS);
  pass(24 * HOUR_MS - 1);
  assert.equal(now(), START_MS + 24 * HOUR_MS - 1);
  pass(1);
  assert.equal(now(), START_MS + 1024 * HOUR_MS);
});

test("a cautious clock follows a second step forward only after its own day", () => {
  const time = { wallMs: START_MS, elapsedMs: 0 };
  // As at each start, the last time is some seconds ago.
  const now = createCautiousClock(() => time.wallMs, () => time.elapsedMs, START_MS - 30_000);
  const behindMs = () => time.wallMs - now();
  const pass = (ms: number) => {
    time.wallMs += ms;
    time.elapsedMs += ms;
  };
  assert.equal(behindMs(), 30_000);
  pass(23 * HOUR_MS);
  time.wallMs += 1000 * HOUR_MS;
  assert.equal(behindMs(), 1000 * HOUR_MS + 30_000);
  pass(HOUR_MS);
  assert.equal(behindMs(), 1000 * HOUR_MS, "it was behind by 30 seconds all day");
  now();
  pass(24 * HOUR_MS - 1);
  assert.equal(behindMs(), 1000 * HOUR_MS);
  time.wallMs -= 999 * HOUR_MS;
  now();
  time.wallMs += 999 * HOUR_MS;
  pass(1);
  assert.equal(behindMs(), 999 * HOUR_MS, "it was behind by an hour all day");
  now();
  pass(24 * HOUR_MS);
  assert.equal(behindMs(), 0);
});

test("a cautious clock waits for a new day when a step forward was undone meanwhile", () => {
  const { time, now, pass } = openCautious();
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
