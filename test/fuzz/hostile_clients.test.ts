import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { openRaw } from "../helpers/raw_http.ts";
import { readMetric } from "../helpers/metrics_text.ts";

// What the server promises in node_http.ts: for each connection so much, for all bodies and for all
// answers together so much; and what V8 lets pile up before it collects garbage.
const PER_CONNECTION_MIB = 96 / 1024;
const BODIES_MIB = 64;
const ANSWERS_MIB = 64;
const GARBAGE_MIB = 96;

const METRICS_TOKEN = "metrics-token-of-the-hostile-clients";
const HOST = "Host: a\r\n";

let gatepost: Gatepost;
let port = 0;

before(async () => {
  gatepost = await startGatepost({ env: { GATEPOST_METRICS_TOKEN: METRICS_TOKEN } });
  port = Number(new URL(gatepost.server.url).port);
  await Promise.all(Array.from({ length: 50 }, () => gatepost.api.get("/openapi.json")));
});
after(() => gatepost.stop());

async function readMemoryMiB(): Promise<number> {
  return await readMetric(gatepost, METRICS_TOKEN, "process_resident_memory_bytes") / 2 ** 20;
}

/**
 * Opens connections, has each send its part, and says how far the server's memory grew meanwhile.
 */
async function attack(
  t: TestContext,
  connections: number,
  send: (socket: Socket) => Promise<void> | void,
): Promise<number> {
  const startMiB = await readMemoryMiB();
  const sockets = await Promise.all(Array.from({ length: connections }, () => openRaw(port)));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  const sending = Promise.all(sockets.map(send));
  let isSent = false;
  void sending.then(() => (isSent = true));
  let peakMiB = 0;
  const stopAtMs = Date.now() + 6000;
  for (let calm = 0; calm < 5 && Date.now() < stopAtMs; await delay(100)) {
    peakMiB = Math.max(peakMiB, await readMemoryMiB());
    if (isSent) calm++;
  }
  const grownMiB = Math.round(peakMiB - startMiB);
  t.diagnostic(`${connections} connections: resident memory grew by ${grownMiB} MiB at most`);
  assert.equal((await gatepost.api.get("/system/health")).status, 200);
  return grownMiB;
}

/** Writes in pieces, as fast as they are taken, until all is sent or the server ends it. */
async function pour(socket: Socket, piece: string, times: number): Promise<void> {
  const gone = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const bytes = Buffer.from(piece, "latin1");
  for (let count = 0; count < times && !socket.destroyed; count++) {
    if (socket.write(bytes)) continue;
    await Promise.race([new Promise<void>((resolve) => socket.once("drain", resolve)), gone]);
  }
}

test("unfinished heads are held within the bound", async (t) => {
  const count = 1000;
  const head = `GET / HTTP/1.1\r\n${HOST}${`X-Filling: ${"x".repeat(500)}\r\n`.repeat(30)}`;
  const grownMiB = await attack(t, count, (socket) => void socket.write(head));
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});

test("unfinished bodies are held within the bound", async (t) => {
  const count = 600; // of 1 MiB less a byte each
  const head = `POST /consumer/login HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    "Content-Length: 1048576\r\n\r\n";
  const grownMiB = await attack(t, count, async (socket) => {
    socket.write(head);
    await pour(socket, " ".repeat(65_535), 16);
  });
  const boundMiB = count * PER_CONNECTION_MIB + BODIES_MIB + GARBAGE_MIB;
  assert.ok(grownMiB < boundMiB, `${grownMiB} MiB`);
  assert.ok(boundMiB < 600 / 2, "an attack that is larger than the bound");
});

test("bodies in chunks of a byte are held within the bound", async (t) => {
  const count = 50;
  const head = `POST /consumer/login HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    "Transfer-Encoding: chunked\r\n\r\n";
  const grownMiB = await attack(t, count, async (socket) => {
    socket.write(head);
    await pour(socket, "1\r\n \r\n".repeat(5000), 4);
  });
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + BODIES_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});

test("responses that nobody takes are held within the bound", async (t) => {
  const count = 300;
  const request = `GET /openapi.json HTTP/1.1\r\n${HOST}\r\n`;
  const grownMiB = await attack(t, count, (socket) => {
    socket.pause();
    socket.write(request.repeat(16));
  });
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + ANSWERS_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});

test("floods of pipelined requests are held within the bound", async (t) => {
  // Node makes 5 MiB of objects out of each: all at once they would be far more than the bound.
  const count = 120;
  const request = `GET / HTTP/1.1\r\n${HOST}\r\n`;
  const grownMiB = await attack(t, count, async (socket) => {
    socket.pause();
    await pour(socket, request.repeat(2500), 1);
  });
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + ANSWERS_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});
