import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  afterAttempt,
  type AttemptOutcome,
  isSuccess,
  parseRetryAfter,
} from "../../src/event/delivery.ts";

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 0);
const DEFAULT = [10_000, 300_000, 3_600_000];
const HOUR_MS = 3_600_000;
/** The middle of the jitter's range, which gives the delay itself. */
const MIDDLE = 0.5;

function response(status: number, retryAfterMs?: number): AttemptOutcome {
  return { kind: "response", status, retryAfterMs };
}

function error(kind: string): AttemptOutcome {
  return { kind: "error", error: kind };
}

/** How long after the attempt the next one is due; undefined if there is none. */
function waitMs(attempt: number, outcome: AttemptOutcome, random = MIDDLE, delaysMs = DEFAULT) {
  const next = afterAttempt(attempt, outcome, delaysMs, NOW_MS, random);
  return next.status === "pending" ? next.dueAtMs - NOW_MS : undefined;
}

describe("afterAttempt()", () => {
  const failures: readonly AttemptOutcome[] = [
    ...[100, 199, 300, 301, 302, 303, 304, 307, 308].map((status) => response(status)),
    ...[400, 401, 403, 404, 408, 409, 410, 413, 422, 425, 429].map((status) => response(status)),
    ...[500, 501, 502, 503, 504, 599].map((status) => response(status)),
    ...["timeout", "unreachable", "refused", "reset", "tls", "protocol", "aborted", "other"]
      .map(error),
  ];
  for (const outcome of failures) {
    const name = outcome.kind === "response" ? String(outcome.status) : outcome.error;
    test(`resends after ${name} as after any other failure`, () => {
      assert.deepEqual([1, 2, 3].map((attempt) => waitMs(attempt, outcome)), DEFAULT);
      assert.equal(waitMs(4, outcome), undefined);
    });
  }

  const counts: readonly (readonly [delays: readonly number[], attempts: number])[] = [
    [[], 1],
    [[1], 2],
    [[1, 1], 3],
    [[1, 1, 1], 4],
  ];
  for (const [delaysMs, attempts] of counts) {
    test(`makes ${attempts} attempts with ${delaysMs.length} resends`, () => {
      const statuses: string[] = [];
      for (let attempt = 1; statuses.at(-1) !== "failed"; attempt++) {
        statuses.push(afterAttempt(attempt, response(500), delaysMs, NOW_MS, MIDDLE).status);
      }
      assert.deepEqual(statuses, [...Array<string>(attempts - 1).fill("pending"), "failed"]);
    });
  }

  test("returns gone if the last response was 410", () => {
    const next = afterAttempt(4, response(410), DEFAULT, NOW_MS, MIDDLE);
    assert.deepEqual(next, { status: "failed", gone: true });
  });

  for (const outcome of [response(404), response(500), error("timeout")]) {
    test(`does not return gone after ${JSON.stringify(outcome)}`, () => {
      const next = afterAttempt(4, outcome, DEFAULT, NOW_MS, MIDDLE);
      assert.deepEqual(next, { status: "failed", gone: false });
    });
  }

  const jitter: readonly (readonly [random: number, first: number, last: number])[] = [
    [0, 8_000, 2_880_000],
    [0.25, 9_000, 3_240_000],
    [0.5, 10_000, 3_600_000],
    [0.75, 11_000, 3_960_000],
    [1, 12_000, 4_320_000],
  ];
  for (const [random, first, last] of jitter) {
    test(`changes a delay by up to 20 %: random ${random} gives ${first} and ${last} ms`, () => {
      assert.equal(waitMs(1, response(500), random), first);
      assert.equal(waitMs(3, response(500), random), last);
    });
  }

  const stretched: readonly (readonly [what: string, askedMs: number, waitMs: number])[] = [
    ["a longer wait extends the delay", 60_000, 60_000],
    ["a shorter wait does not shorten the delay", 1_000, 10_000],
    ["no wait does not shorten the delay", 0, 10_000],
    ["more than an hour counts as an hour", 2 * HOUR_MS, HOUR_MS],
    ["an infinite wait counts as an hour", Infinity, HOUR_MS],
  ];
  for (const [what, askedMs, expected] of stretched) {
    test(`obeys Retry-After: ${what}`, () => {
      for (const status of [503, 429, 500, 301]) {
        assert.equal(waitMs(1, response(status, askedMs)), expected);
      }
    });
  }

  test("makes no further attempt after the last one, whatever Retry-After says", () => {
    assert.equal(waitMs(4, response(503, 60_000)), undefined);
  });
});

describe("isSuccess()", () => {
  test("is true for 2xx and nothing else", () => {
    const successes = Array.from({ length: 500 }, (_, index) => index + 100)
      .filter((status) => isSuccess(response(status)));
    assert.deepEqual(successes, Array.from({ length: 100 }, (_, index) => index + 200));
    assert.equal(isSuccess(error("reset")), false);
  });
});

// RFC 9110 §10.2.3: Retry-After = HTTP-date / delay-seconds; §5.6.7: all three forms of a date.
describe("parseRetryAfter()", () => {
  const cases: readonly (readonly [header: string | null, expectedMs: number | undefined])[] = [
    [null, undefined],
    ["", undefined],
    ["0", 0],
    ["1", 1_000],
    ["120", 120_000],
    ["007", 7_000],
    ["120 \t ", 120_000],
    ["Fri, 20 Nov 2026 12:00:30 GMT ", 30_000],
    ["3600", HOUR_MS],
    ["Fri, 20 Nov 2026 12:00:30 GMT", 30_000],
    ["Fri, 20 Nov 2026 13:00:00 GMT", HOUR_MS],
    ["Fri, 20 Nov 2026 12:00:00 GMT", 0],
    ["Fri, 20 Nov 2026 11:00:00 GMT", 0],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 0],
    ["Friday, 20-Nov-26 12:00:30 GMT", 30_000],
    ["Fri Nov 20 12:00:30 2026", 30_000],
    ["-1", undefined],
    ["+1", undefined],
    ["1.5", undefined],
    ["1e3", undefined],
    ["0x10", undefined],
    ["10s", undefined],
    ["soon", undefined],
    ["2026-11-20T12:00:30Z", undefined],
    ["Fri, 20 Nov 2026 12:00:30 +0100", undefined],
    ["Fri, 99 Nov 2026 12:00:30 GMT", undefined],
    ["1, 2", undefined],
  ];
  for (const [header, expectedMs] of cases) {
    test(`reads ${JSON.stringify(header)} as ${expectedMs} ms`, () => {
      assert.equal(parseRetryAfter(header, NOW_MS), expectedMs);
    });
  }

  test("reads a number of 400 digits as a very long wait", () => {
    const readMs = parseRetryAfter("9".repeat(400), NOW_MS);
    assert.ok(readMs !== undefined && readMs > 1e12);
  });
});
