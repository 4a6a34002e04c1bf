import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { HttpResponse } from "../../src/base/http_message.ts";
import { until } from "../helpers/until.ts";
import { assertProblem, CONNECT, get, startHttpStage, streamOf } from "./http_stage.ts";

test("a slow head is cut off with 408", async (t) => {
  const limits = { headersTimeoutMs: 100, requestTimeoutMs: 200 };
  const { exchangeToEnd } = await startHttpStage(t, { limits });
  const { responses } = await exchangeToEnd("GET / HTTP/1.1\r\nHo");
  assertProblem(responses[0], 408);
});

const LARGE = "x".repeat(30_000_000); // more than the kernel takes
const endless = () => new ReadableStream<Uint8Array>({
  pull: (controller) => controller.enqueue(Buffer.alloc(65_536)),
});
const STALLED: readonly [what: string, bytes: string, response: () => Partial<HttpResponse>][] = [
  ["a response", get(), () => ({ body: LARGE })],
  ["a response before CONNECT", get() + CONNECT, () => ({ body: LARGE })],
  ["a stream", get(), () => ({ body: endless() })],
  [
    "a stream's head",
    get().replace("GET", "HEAD"),
    () => ({ headers: { "X-Large": LARGE }, body: endless() }),
  ],
];
for (const [what, bytes, response] of STALLED) {
  test(`a client that reads nothing of ${what} is cut off`, async (t) => {
    const { open, server } = await startHttpStage(t, {
      limits: { stallTimeoutMs: 150 },
      handle: () => ({ status: 200, ...response() }),
    });
    (await open()).pause().write(bytes);
    await delay(100);
    await untilDisconnected(server);
  });
}

test("a client that reads nothing is cut off, also after a slow handler", async (t) => {
  const { open, server } = await startHttpStage(t, {
    limits: { stallTimeoutMs: 100 },
    handle: () => delay(300).then(() => ({ status: 200, body: LARGE })),
  });
  (await open()).pause().write(get());
  await delay(250);
  assert.equal(await countConnections(server), 1);
  await untilDisconnected(server);
});

const pausing = () => streamOf(async function* () {
  yield "begin ";
  await delay(500);
  yield "end";
});

test("a stream that is silent for longer than the stall timeout is not cut off", async (t) => {
  const { url } = await startHttpStage(t, {
    limits: { stallTimeoutMs: 100 },
    handle: () => ({ status: 200, body: pausing() }),
  });
  const response = await fetch(url);
  assert.equal(await response.text(), "begin end");
});

test("a silent stream is not cut off for clients that read nothing", async (t) => {
  const { open, url } = await startHttpStage(t, {
    limits: { maxHeldResponseBytes: 100_000 },
    handle: ({ path }) => ({ status: 200, body: path === "/" ? LARGE : pausing() }),
  });
  const response = await fetch(`${url}stream`);
  (await open()).pause().write(get());
  assert.equal(await response.text(), "begin end");
});

const SIZE = 20_000_000; // more than the kernel takes

test("a client that has read its large response is not cut off for others", {
  timeout: 20_000,
}, async (t) => {
  const { open } = await startHttpStage(t, {
    limits: { maxHeldResponseBytes: 1.5 * SIZE },
    handle: ({ path }) => ({ status: 200, body: path === "/" ? "x".repeat(SIZE) : "small" }),
  });
  const [first, second] = [await open(), await open()];
  for (const socket of [first, second]) {
    socket.write(get());
    for (let got = 0; got < SIZE;) got += (await once(socket, "data"))[0].length;
  }
  first.write(get("/small"));
  assert.match(String(await Promise.race([once(first, "data"), once(first, "close")])), /small$/);
});

test("past the budget of responses, the client that reads nothing is cut off", async (t) => {
  const { open, url, server } = await startHttpStage(t, {
    limits: { maxHeldResponseBytes: 1.5 * SIZE },
    handle: () => ({ status: 200, body: "x".repeat(SIZE) }),
  });
  (await open()).pause().write(get());
  await delay(200);
  const response = await fetch(url, { headers: { connection: "close" } });
  assert.equal((await response.text()).length, SIZE);
  assert.equal(await countConnections(server), 0);
});

function countConnections(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => error ? reject(error) : resolve(count))
  );
}

function untilDisconnected(server: Server): Promise<boolean> {
  return until(async () => await countConnections(server) === 0, () => "still connected", 3000);
}
