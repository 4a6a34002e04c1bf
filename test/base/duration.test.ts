import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, formatSize, parseDuration, parseSize } from "../../src/base/duration.ts";

test("parseDuration() converts each unit to milliseconds", () => {
  const cases: [string, number][] = [
    ["500ms", 500],
    ["10s", 10_000],
    ["5m", 300_000],
    ["12h", 43_200_000],
    ["30d", 2_592_000_000],
    ["0s", 0],
    ["0ms", 0],
    ["0d", 0],
    ["0", 0],
  ];
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text);
});

test("parseDuration() refuses everything else", () => {
  const cases = [
    "", " ", "10", "00", "1", "s", "ms", "-1s", "+1s", "1.5s", "1e3s", "10 s", " 10s", "10s ",
    "10S", "10sec", "1h30m", "010s", "00s", "10s\n", "１０s", "Infinity", "NaN", "0x10s", "1w",
    "1MiB", "99999999999999999999s", "9007199254740991d", "9007199254740992ms",
  ];
  for (const text of cases) assert.equal(parseDuration(text), undefined, JSON.stringify(text));
});

test("formatDuration() uses the largest unit that gives a whole number", () => {
  const cases: [number, string][] = [
    [0, "0s"],
    [1, "1ms"],
    [1_500, "1500ms"],
    [10_000, "10s"],
    [60_000, "1m"],
    [90_000, "90s"],
    [3_600_000, "1h"],
    [86_400_000, "1d"],
    [2_592_000_000, "30d"],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test("formatDuration() writes what parseDuration() reads back", () => {
  for (const ms of [0, 1, 999, 1_000, 61_000, 3_600_001, 172_800_000, Number.MAX_SAFE_INTEGER]) {
    assert.equal(parseDuration(formatDuration(ms)), ms);
  }
});

test("formatDuration() throws a RangeError for a number that is not whole", () => {
  for (const ms of [0.5, NaN, Infinity]) assert.throws(() => formatDuration(ms), RangeError);
});

test("parseSize() reads bytes with and without a unit", () => {
  const cases: [string, number][] = [
    ["0", 0],
    ["0B", 0],
    ["512", 512],
    ["512B", 512],
    ["64KiB", 65_536],
    ["1MiB", 1_048_576],
    ["2GiB", 2_147_483_648],
  ];
  for (const [text, bytes] of cases) assert.equal(parseSize(text), bytes, text);
});

test("parseSize() refuses everything else", () => {
  const cases = [
    "", "KiB", "B", "-1", "+1", "1.5MiB", "64KB", "64kb", "64kib", "1M", "1 MiB", " 1", "1\n", "01",
    "1e3", "0x10", "10s", "9007199254740992", "99999999999999999999", "8388608GiB",
  ];
  for (const text of cases) assert.equal(parseSize(text), undefined, JSON.stringify(text));
});

test("formatSize() uses the largest unit, and parseSize() reads it back", () => {
  const cases: [number, string][] = [
    [0, "0B"],
    [1, "1B"],
    [1_500, "1500B"],
    [65_536, "64KiB"],
    [1_048_576, "1MiB"],
    [1_073_741_824, "1GiB"],
  ];
  for (const [bytes, text] of cases) {
    assert.equal(formatSize(bytes), text);
    assert.equal(parseSize(text), bytes);
  }
});
