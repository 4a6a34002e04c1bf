import assert from "node:assert/strict";
import { test } from "node:test";
import { newUserCode, nextPoll, parseUserCode } from "../../src/oauth/device_code.ts";

test("user codes are two groups of four consonants, each letter equally likely", () => {
  const counts = new Map<string, number>();
  const rounds = 20_000;
  for (let round = 0; round < rounds; round++) {
    const code = newUserCode();
    assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    for (const letter of code.replace("-", "")) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  }
  const expected = rounds * 8 / 20;
  assert.equal(counts.size, 20);
  // Ten standard deviations.
  for (const [letter, count] of counts) {
    assert.ok(Math.abs(count - expected) < 10 * Math.sqrt(expected), `${letter}: ${count}`);
  }
});

test("parseUserCode() ignores case and all other characters (RFC 8628 §6.1)", () => {
  for (const typed of [
    "BCDF-GHJK", "bcdfghjk", "bCdF gHjK", " bcdf-ghjk\n", "BCDF–GHJK", "B.C.D.F.G.H.J.K",
    "b\u00a0cdf\u200bghjk", "BCDF-GHJK1", "aBeCiDoF-GHJK",
  ]) {
    assert.equal(parseUserCode(typed), "BCDF-GHJK", typed);
  }
  for (const typed of ["", "BCDF-GHJ", "BCDF-GHJKL", "12345678", "AEIO-UYAE", "ВСРТ-НКМХ", "éèê"]) {
    assert.equal(parseUserCode(typed), undefined, typed);
  }
});

test("parseUserCode() reads every new user code", () => {
  for (let round = 0; round < 1_000; round++) {
    const code = newUserCode();
    assert.equal(parseUserCode(code.toLowerCase().replace("-", "")), code);
  }
});

test("a poll is too early if it comes more than a second before its time", () => {
  const last = { atMs: 100_000, intervalMs: 5_000 };
  for (const [nowMs, isEarly] of [
    [100_000, true], [103_999, true], [104_000, false], [105_000, false], [99_000, false],
  ] as const) {
    const intervalMs = isEarly ? 10_000 : 5_000;
    assert.deepEqual(nextPoll(last, nowMs), { atMs: nowMs, intervalMs, isEarly });
  }
});
