import assert from "node:assert/strict";
import { test } from "node:test";
import { trySecond } from "../../src/outbound/second_try.ts";

const RESET = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

/** An exchange, with what its handler has seen and how often it was tried again. */
function open(isNew: boolean, canAgain = true) {
  const seen: string[] = [];
  let again = 0;
  const handler = trySecond(
    {
      onRequestStart: () => void seen.push("start"),
      onResponseStarted: () => void seen.push("response"),
      onResponseEnd: () => void seen.push("end"),
      onResponseError: (_controller, error) => void seen.push(error.message),
    },
    () => isNew,
    () => {
      again++;
      return canAgain;
    },
  );
  return { handler, seen, again: () => again };
}

test("a request that was not sent when its connection broke is tried again", () => {
  const { handler, seen, again } = open(false);
  handler.onResponseError(null, RESET);
  assert.deepEqual([seen, again()], [[], 1]);
});

test("a request that was sent on a reused connection is tried again", () => {
  const { handler, seen, again } = open(false);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  assert.deepEqual([seen, again()], [["start"], 1]);
});

test("a request that was sent on a new connection fails", () => {
  const { handler, seen, again } = open(true);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  assert.deepEqual([seen, again()], [["start", RESET.message], 0]);
});

test("a request whose response has begun fails", () => {
  const { handler, seen, again } = open(false);
  handler.onRequestStart(null, null);
  handler.onResponseStarted?.();
  handler.onResponseError(null, RESET);
  assert.deepEqual([seen, again()], [["start", "response", RESET.message], 0]);
});

test("a request with another error is not tried again", () => {
  const { handler, seen, again } = open(false);
  handler.onResponseError(null, new DOMException("late", "TimeoutError"));
  assert.deepEqual([seen, again()], [["late"], 0]);
});

test("a request that breaks again is not tried a third time", () => {
  const { handler, seen, again } = open(false);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  assert.deepEqual([seen, again()], [["start", "start", RESET.message], 1]);
});

test("a request that cannot be tried again fails", () => {
  const { handler, seen } = open(false, false);
  handler.onResponseError(null, RESET);
  assert.deepEqual(seen, [RESET.message]);
});
