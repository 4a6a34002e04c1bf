import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createTurnLimit } from "../../src/http/turn_limit.ts";

/** A socket that reads, and the limit that watches it. */
function openSocket() {
  const socket = new Socket().resume();
  const countRequest = createTurnLimit(() => [socket]);
  const count = (requests: number) => {
    for (let request = 0; request < requests; request++) countRequest();
  };
  return { socket, count };
}

test("what fits into a turn pauses nobody", async () => {
  const { socket, count } = openSocket();
  for (let turns = 0; turns < 3; turns++) {
    count(1999);
    assert.equal(socket.isPaused(), false);
    await nextTurn();
  }
});

test("past the limit nothing more is read in this turn, and all goes on after it", async () => {
  const { socket, count } = openSocket();
  count(5000);
  assert.equal(socket.isPaused(), true);
  for (let turns = 0; turns < 3; turns++) await nextTurn();
  assert.equal(socket.isPaused(), false);
  count(1999);
  assert.equal(socket.isPaused(), false);
});

test("what was paused before stays so", async () => {
  const { socket, count } = openSocket();
  socket.pause();
  count(2000);
  for (let turns = 0; turns < 3; turns++) await nextTurn();
  assert.equal(socket.isPaused(), true);
});
