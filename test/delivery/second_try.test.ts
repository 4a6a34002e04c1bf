import assert from "node:assert/strict";
import { test } from "node:test";
import { trySecond } from "../../src/delivery/second_try.ts";

const RESET = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

/** An exchange, with what its handler was told and how often it was made again. */
function open(isNew: boolean, canAgain = true) {
  const told: string[] = [];
  let again = 0;
  const handler = trySecond(
    {
      onRequestStart: () => void told.push("start"),
      onResponseStarted: () => void told.push("answer"),
      onResponseError: (_controller, error) => void told.push(error.message),
    },
    () => isNew,
    () => {
      again++;
      return canAgain;
    },
  );
  return { handler, told, again: () => again };
}

test("what has not been sent when its connection breaks is tried again", () => {
  const { handler, told, again } = open(false);
  handler.onResponseError(null, RESET);
  assert.deepEqual([told, again()], [[], 1]);
});

test("what was sent on a connection that is not new is tried again", () => {
  const { handler, told, again } = open(false);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  assert.deepEqual([told, again()], [["start"], 1]);
});

test("what was sent on a new connection fails", () => {
  const { handler, told, again } = open(true);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  assert.deepEqual([told, again()], [["start", RESET.message], 0]);
});

test("what has begun to be answered fails", () => {
  const { handler, told, again } = open(false);
  handler.onRequestStart(null, null);
  handler.onResponseStarted?.();
  handler.onResponseError(null, RESET);
  assert.deepEqual([told, again()], [["start", "answer", RESET.message], 0]);
});

test("another error is none that a new connection would mend", () => {
  const { handler, told, again } = open(false);
  handler.onResponseError(null, new DOMException("late", "TimeoutError"));
  assert.deepEqual([told, again()], [["late"], 0]);
});

test("what breaks again is not tried a third time", () => {
  const { handler, told, again } = open(false);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  handler.onRequestStart(null, null);
  handler.onResponseError(null, RESET);
  assert.deepEqual([told, again()], [["start", "start", RESET.message], 1]);
});

test("where it cannot be tried again it fails", () => {
  const { handler, told } = open(false, false);
  handler.onResponseError(null, RESET);
  assert.deepEqual(told, [RESET.message]);
});
