import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createTurnLimit, type Pausable } from "../../src/http/turn_limit.ts";

function openSocket(isPaused = false): Pausable & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    isPaused: () => isPaused,
    pause: () => void seen.push("pause"),
    resume: () => void seen.push("resume"),
  };
}

test("what fits into a turn pauses nobody", async () => {
  const socket = openSocket();
  const countRequest = createTurnLimit(() => [socket]);
  for (let turns = 0; turns < 3; turns++) {
    for (let count = 0; count < 1999; count++) countRequest();
    await nextTurn();
  }
  assert.deepEqual(socket.seen, []);
});

test("past the limit nothing more is read in this turn, and all goes on after it", async () => {
  const socket = openSocket();
  const countRequest = createTurnLimit(() => [socket]);
  for (let count = 0; count < 5000; count++) countRequest();
  assert.deepEqual(socket.seen, ["pause"]);
  await nextTurn();
  await nextTurn();
  await nextTurn();
  assert.deepEqual(socket.seen, ["pause", "resume"]);
});

test("what was paused before stays so", async () => {
  const socket = openSocket(true);
  const countRequest = createTurnLimit(() => [socket]);
  for (let count = 0; count < 2000; count++) countRequest();
  for (let turns = 0; turns < 3; turns++) await nextTurn();
  assert.deepEqual(socket.seen, []);
});

test("requests of one turn get its number, those of the next another one", async () => {
  const countRequest = createTurnLimit(() => []);
  const [one, two] = [countRequest(), countRequest()];
  await nextTurn();
  assert.equal(one, two);
  assert.notEqual(countRequest(), one);
});
