import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { createTurnLimit, type Sender } from "../../src/http/turn_limit.ts";
import { until } from "../helpers/until.ts";
import { get, startHttpStage } from "./http_stage.ts";

const MAX_REQUESTS = 2000;
const MAX_PIECES = 40_000;
const MAX_BYTES = 256 * MAX_PIECES;

/** Sockets that read, and the limit that watches them. */
function openSenders(number = 1) {
  const senders: Sender[] = Array.from({ length: number }, newSender);
  const { count, pause } = createTurnLimit(() => senders);
  const send = async (times: number, sender = senders[0], what?: "piece" | "long head") => {
    for (let time = 0; time < times; time++) {
      count(what === "piece" ? what : "request", sender);
      if (what !== "piece") count("field", sender, what ? 195 : 5);
    }
    await new Promise<void>((resolve) => process.nextTick(resolve)); // as after a callback
  };
  return { senders, send, pause };
}

function newSender(): Sender {
  return { socket: new Socket().resume(), cost: 0, isPaused: false, resumesLater: true };
}

const arePaused = (senders: Sender[]) => senders.map(({ socket }) => socket.isPaused());

async function untilResumed({ socket }: Sender): Promise<void> {
  for (let turns = 0; turns < 100 && socket.isPaused(); turns++) await nextTurn();
}

test("work that fits into one turn of the event loop pauses no connection", async () => {
  const { senders, send } = openSenders();
  for (let turns = 0; turns < 3; turns++) {
    await send(MAX_REQUESTS - 1);
    assert.deepEqual(arePaused(senders), [false]);
    await nextTurn();
    await send(MAX_PIECES - 1, senders[0], "piece");
    assert.deepEqual(arePaused(senders), [false]);
    await nextTurn();
  }
});

test("requests with many fields reach the limit earlier", async () => {
  const { senders, send } = openSenders();
  await send(MAX_REQUESTS / 20 - 1, senders[0], "long head");
  assert.deepEqual(arePaused(senders), [false]);
  await send(1, senders[0], "long head");
  assert.deepEqual(arePaused(senders), [true]);
});

test("past the limit no connection is read for a moment, and then all are again", async () => {
  const { senders, send } = openSenders(2);
  const [first = newSender()] = senders;
  await send(5000);
  assert.deepEqual(arePaused(senders), [true, true]);
  await untilResumed(first);
  await send(MAX_PIECES, first, "piece");
  assert.deepEqual(arePaused(senders), [true, true]);
  await untilResumed(first);
  assert.deepEqual(arePaused(senders), [false, false]);
  await send(MAX_REQUESTS - 1);
  assert.deepEqual(arePaused(senders), [false, false]);
});

test("bytes of parsed values and of waiting responses count", async () => {
  const senders = [newSender()];
  const [sender] = senders;
  const { count } = createTurnLimit(() => senders);
  const add = async (bytes: number) => {
    count("byte", sender, bytes);
    await new Promise<void>((resolve) => process.nextTick(resolve));
  };
  await add(MAX_BYTES - 256);
  assert.deepEqual(arePaused(senders), [false]);
  await add(256);
  assert.deepEqual(arePaused(senders), [true]);
});

test("a connection that was paused before stays paused", async () => {
  const { senders, send } = openSenders(2);
  const [first = newSender(), second = newSender()] = senders;
  first.socket.pause();
  await send(MAX_REQUESTS);
  await untilResumed(second);
  assert.deepEqual(arePaused(senders), [true, false]);
});

test("a connection that is about to resume is paused after that", async () => {
  const { senders, send } = openSenders();
  const [first = newSender()] = senders;
  first.socket.pause().resume();
  const events: string[] = [];
  for (const event of ["pause", "resume"]) first.socket.on(event, () => events.push(event));
  await send(MAX_REQUESTS);
  await nextTurn();
  assert.deepEqual(events, ["resume", "pause"]);
  await untilResumed(first);
  assert.deepEqual(arePaused(senders), [false]);
});

test("a connection that is opened meanwhile waits with the others", async () => {
  const { senders, send, pause } = openSenders();
  const later = newSender();
  pause(later);
  await send(MAX_REQUESTS);
  pause(later);
  await nextTurn();
  assert.deepEqual(arePaused([...senders, later]), [true, true]);
  await untilResumed(later);
  assert.deepEqual(arePaused([...senders, later]), [false, false]);
});

test("the sender of least cost resumes first, and of equal ones the newest", async () => {
  const { senders, send } = openSenders(4);
  const [flooding = newSender(), , , known = newSender()] = senders;
  const order: number[] = [];
  senders.forEach(({ socket }, index) => socket.on("resume", () => order.push(index)));
  await nextTurn();
  order.length = 0;
  await send(1, known);
  await send(MAX_REQUESTS);
  await untilResumed(flooding);
  await nextTurn();
  assert.deepEqual(order, [3, 2, 1, 0]);
});

test("requests with long heads are handled in several turns of the event loop", async (t) => {
  let inTurn = 0;
  let most = 0;
  const { open, requests } = await startHttpStage(t, {
    handle() {
      if (inTurn++ === 0) setImmediate(() => inTurn = 0);
      most = Math.max(most, inTurn);
      return { status: 200 };
    },
  });
  const sockets = await Promise.all(Array.from({ length: 300 }, open));
  await delay(100); // until all have been accepted
  const fields = Array.from({ length: 190 }, (_, index) => `X-${index}: x\r\n`).join("");
  for (const socket of sockets) socket.write(get("/", fields));
  await until(() => requests.length === 300);
  assert.ok(most < 150, `${most} in one turn`);
});
