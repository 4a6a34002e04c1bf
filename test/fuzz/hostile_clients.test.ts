import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startGatepost } from "../helpers/gatepost.ts";
import { MEMORY_FLAGS } from "../../src/cli/serve.ts";
import { openRaw } from "../helpers/raw_http.ts";
import { readMetric } from "../helpers/metrics_text.ts";

// The bounds that limits.ts promises: for each connection, and for all pipelined requests, all
// bodies, all parsed values and all responses together; and the garbage that V8 lets pile up.
const PER_CONNECTION_MIB = 96 / 1024;
const AHEAD_MIB = 32;
const BODIES_MIB = 64;
const PARSED_MIB = 192;
const RESPONSES_MIB = 64;
const GARBAGE_MIB = 96;
/** The share of a core that a server uses at most while it only waits for its clients. */
const CALM_SHARE = 0.6;

const METRICS_TOKEN = "metrics-token-of-the-hostile-clients";
const HOST = "Host: a\r\n";
const ENDPOINTS = fileURLToPath(new URL("../fixtures/waiting", import.meta.url));

/** A server for one test alone: memory that an earlier test took would hide what this one takes. */
async function openServer() {
  const gatepost = await startGatepost({
    env: { GATEPOST_METRICS_TOKEN: METRICS_TOKEN, GATEPOST_ENDPOINTS: ENDPOINTS },
    nodeFlags: MEMORY_FLAGS,
  });
  await Promise.all(Array.from({ length: 50 }, () => gatepost.api.get("/openapi.json")));
  const read = (name: string) => readMetric(gatepost, METRICS_TOKEN, name);
  return {
    api: gatepost.api,
    stop: gatepost.stop,
    port: Number(new URL(gatepost.server.url).port),
    readMemoryMiB: async () => await read("process_resident_memory_bytes") / 2 ** 20,
    readCpuMs: async () => await read("process_cpu_seconds_total") * 1000,
    countConnections: () => read("gatepost_http_connections"),
  };
}

/**
 * Opens connections to a new server and has each send its part. Returns how far the server's memory
 * grew until it had done all the work, how many connections it had closed by then, and how many
 * responses had which status: a test whose requests are all refused at once tests nothing.
 */
async function attack(
  t: TestContext,
  connections: number,
  send: (socket: Socket) => Promise<void> | void,
) {
  const { api, port, stop, ...server } = await openServer();
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    return stop();
  });
  const startMiB = await server.readMemoryMiB();
  const others = await server.countConnections();
  sockets.push(...await Promise.all(Array.from({ length: connections }, () => openRaw(port))));
  const statuses: Record<string, number> = {};
  for (const socket of sockets) {
    socket.on("data", (bytes) => {
      for (const [, status = ""] of String(bytes).matchAll(/HTTP\/1\.1 (\d+)/g)) {
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    });
  }
  const sending = Promise.all(sockets.map(send));
  let isSent = false;
  void sending.then(() => (isSent = true));
  let peakMiB = 0;
  let [cpuMs, atMs] = [0, 0];
  const stopAtMs = Date.now() + 20_000;
  for (let calm = 0; calm < 5 && Date.now() < stopAtMs; await delay(100)) {
    peakMiB = Math.max(peakMiB, await server.readMemoryMiB());
    const before = [cpuMs, atMs] as const;
    [cpuMs, atMs] = [await server.readCpuMs(), Date.now()];
    calm = isSent && cpuMs - before[0] < CALM_SHARE * (atMs - before[1]) ? calm + 1 : 0;
  }
  const grownMiB = Math.round(peakMiB - startMiB);
  const closed = connections + others - await server.countConnections();
  t.diagnostic(`${connections} connections: resident memory grew by ${grownMiB} MiB at most, ` +
    `${closed} were closed, statuses ${JSON.stringify(statuses)}`);
  assert.equal((await api.get("/system/health")).status, 200);
  return { grownMiB, closed, statuses };
}

/** Writes in pieces, as fast as the server reads them, until all is sent or it closes. */
async function pour(socket: Socket, piece: string, times: number): Promise<void> {
  const gone = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const bytes = Buffer.from(piece, "latin1");
  for (let count = 0; count < times && !socket.destroyed; count++) {
    if (socket.write(bytes)) continue;
    await Promise.race([new Promise<void>((resolve) => socket.once("drain", resolve)), gone]);
  }
}

test("unfinished heads stay within the memory bound", async (t) => {
  const count = 1000;
  const head = `GET / HTTP/1.1\r\n${HOST}${`X-Filling: ${"x".repeat(500)}\r\n`.repeat(30)}`;
  const { grownMiB, statuses } = await attack(t, count, (socket) => void socket.write(head));
  assert.deepEqual(statuses, {});
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});

test("unfinished bodies stay within the memory bound", async (t) => {
  const count = 600; // of 1 MiB less a byte each
  const head = `POST /consumer/login HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    "Content-Length: 1048576\r\n\r\n";
  const { grownMiB, statuses } = await attack(t, count, async (socket) => {
    socket.write(head);
    await pour(socket, " ".repeat(65_535), 16);
  });
  assert.deepEqual(Object.keys(statuses), ["503"]); // they were kept, and exceeded the bound
  const boundMiB = count * PER_CONNECTION_MIB + BODIES_MIB + GARBAGE_MIB;
  assert.ok(grownMiB < boundMiB, `${grownMiB} MiB`);
  assert.ok(boundMiB < 600 / 2, "the attack is larger than the bound");
});

test("bodies in chunks of one byte stay within the memory bound", async (t) => {
  const count = 50;
  const head = `POST /consumer/login HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    "Transfer-Encoding: chunked\r\n\r\n";
  const { grownMiB, statuses } = await attack(t, count, async (socket) => {
    socket.write(head);
    await pour(socket, "1\r\n \r\n".repeat(5000), 4);
  });
  assert.deepEqual(statuses, {});
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + BODIES_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});

/** A request to an endpoint that works on it for as long as its client waits. */
const waiting = (type: string, body: string) =>
  `POST /waiting HTTP/1.1\r\n${HOST}Content-Type: ${type}\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

test("requests pipelined behind one that waits stay within the memory bound", async (t) => {
  const count = 500;
  const filling = `X-Filling: ${"x".repeat(500)}\r\n`.repeat(29);
  const request = `GET / HTTP/1.1\r\n${HOST}${filling}\r\n`;
  const { grownMiB, closed } = await attack(t, count, async (socket) => {
    socket.write(waiting("text/plain", ""));
    await pour(socket, request, 15);
  });
  assert.equal(closed, 0); // connections with too many are closed after their responses
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + AHEAD_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});

test("small bodies of requests that are being handled stay within the memory bound", async (t) => {
  const [count, size] = [600, 60_000];
  const request = waiting("application/json", `"${"x".repeat(size)}"`);
  const { grownMiB, statuses, closed } = await attack(t, count, (socket) =>
    pour(socket, request, 16));
  assert.ok(Number(statuses["503"]) + closed > 0, "the attack is larger than the bound");
  const textsMiB = 3 * BODIES_MIB; // the values parsed from them, and the texts decoded for that
  const boundMiB = count * PER_CONNECTION_MIB + AHEAD_MIB + BODIES_MIB + textsMiB + GARBAGE_MIB;
  assert.ok(grownMiB < boundMiB, `${grownMiB} MiB`);
});

const FILE = '--b\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\n\r\n';
const MANY_VALUES: readonly [what: string, request: string][] = [
  ["JSON", waiting("application/json", `[${"{},".repeat(340_000)}{}]`)],
  ["forms", waiting("application/x-www-form-urlencoded", "a&".repeat(30_000))],
  ["files", waiting("multipart/form-data; boundary=b", `${FILE.repeat(14_000)}--b--\r\n`)],
];
for (const [what, request] of MANY_VALUES) {
  test(`values parsed from ${what} stay within the memory bound`, async (t) => {
    const count = Math.min(Math.ceil(60 * 2 ** 20 / request.length), 600);
    const { grownMiB, statuses } = await attack(t, count, (socket) => pour(socket, request, 1));
    assert.deepEqual(Object.keys(statuses), ["503"]);
    const boundMiB = count * PER_CONNECTION_MIB + BODIES_MIB + PARSED_MIB + GARBAGE_MIB;
    assert.ok(grownMiB < boundMiB, `${grownMiB} MiB`);
  });
}

test("responses that no client reads stay within the memory bound", async (t) => {
  const count = 200; // of 16 MB each, of which the kernel takes some
  const request = `GET /large HTTP/1.1\r\n${HOST}\r\n`;
  const { grownMiB, closed } = await attack(t, count, (socket) => {
    socket.pause();
    socket.write(request.repeat(16));
  });
  assert.ok(closed > 0, "the attack is larger than the bound");
  const garbageMiB = 4 * RESPONSES_MIB; // long texts are collected late
  const boundMiB = count * PER_CONNECTION_MIB + RESPONSES_MIB + garbageMiB + GARBAGE_MIB;
  assert.ok(grownMiB < boundMiB, `${grownMiB} MiB`);
});

test("floods of pipelined requests stay within the memory bound", async (t) => {
  // Node makes 5 MiB of objects out of each: all at once they would be far more than the bound.
  const count = 120;
  const request = `GET / HTTP/1.1\r\n${HOST}\r\n`;
  const { grownMiB } = await attack(t, count, async (socket) => {
    socket.pause();
    await pour(socket, request.repeat(2500), 1);
  });
  assert.ok(grownMiB < count * PER_CONNECTION_MIB + RESPONSES_MIB + GARBAGE_MIB, `${grownMiB} MiB`);
});
