import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { readCidr } from "../helpers/cidr.ts";
import { until } from "../helpers/until.ts";
import { echo, echoAfter, get, startHttpStage } from "./http_stage.ts";

test("pipelined requests get their responses in order", async (t) => {
  const { exchange } = await startHttpStage(t, {
    handle: (request) => echoAfter(request.path === "/slow" ? 50 : 0)(request),
  });
  const { responses } = await exchange(get("/slow") + get("/b") + get("/c"), { finish: true });
  assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/slow", "/b", "/c"]);
});

test("a response that breaks before an earlier one is sent ends the connection", async (t) => {
  const streams: Record<string, ReadableStream> = {
    "/broken": new ReadableStream({ pull: () => Promise.reject(new Error("broken")) }),
    "/endless": new ReadableStream({ pull: () => delay(10) }),
  };
  const { exchangeToEnd } = await startHttpStage(t, {
    async handle(request) {
      if (request.path === "/slow") await delay(100);
      const body = streams[request.path];
      return body ? { status: 200, body } : echo(request);
    },
  });
  for (const [path, end] of [["/broken", false], ["/endless", true]] as const) {
    const { responses } = await exchangeToEnd(get("/slow") + get(path) + get("/c"), { end });
    assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/slow"], path);
  }
});

test("of too many pipelined requests the first are served, then the connection ends", async (t) => {
  const { exchange, exchangeToEnd, requests } = await startHttpStage(t, {
    limits: { maxPipelined: 4 },
    handle: (request) => echoAfter(request.path === "/0" ? 50 : 0)(request),
  });
  const ahead = Array.from({ length: 1000 }, (_, each) => get(`/${each}`));
  const { responses } = await exchangeToEnd(ahead.join(""));
  assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/0", "/1", "/2", "/3"]);
  const ends = responses.map(({ headers }) => headers["connection"]);
  assert.deepEqual(ends, ["keep-alive", "keep-alive", "keep-alive", "close"]);
  assert.equal(requests.length, 4);
  const all = await exchange(ahead.slice(0, 4).join(""));
  assert.deepEqual([all.responses.length, all.isClosed], [4, false]);
});

test("requests far past the pipelining limit are not even parsed", async (t) => {
  const { exchange, server, requests } = await startHttpStage(t, {
    limits: { maxPipelined: 4 },
    handle: () => new Promise(() => {}),
  });
  let parsed = 0;
  server.on("request", () => parsed++);
  for (let connections = 1; connections <= 2; connections++) {
    await exchange(get().repeat(6000));
    assert.deepEqual([requests.length, parsed], [4 * connections, 5 * connections]);
  }
});

test("pipelined requests past their memory budget end the connection", async (t) => {
  const opened = Promise.withResolvers<void>();
  const { exchange, exchangeToEnd, requests } = await startHttpStage(t, {
    limits: { maxPipelinedBytes: 100_000 },
    handle: (request) => opened.promise.then(() => echo(request)),
  });
  const large = get("/", `X: ${"x".repeat(15_000)}\r\n`);
  const many = exchangeToEnd(large.repeat(16));
  await until(() => requests.length === 5); // one, and four of 30,000 bytes behind it
  const others = exchangeToEnd(large.repeat(2));
  await until(() => requests.length === 6);
  await delay(100);
  opened.resolve();
  for (const [{ responses }, count] of [[await many, 5], [await others, 1]] as const) {
    assert.deepEqual(responses.map(({ status }) => status), Array(count).fill(200));
  }
  assert.equal(requests.length, 6);
  assert.equal((await exchange(large.repeat(3))).responses.length, 3);
});

test("a connection past the limit of its address is closed at once", async (t) => {
  const { open, exchange, exchangeToEnd } = await startHttpStage(t, {
    limits: { maxConnectionsPerAddress: 2 },
  });
  const [first] = [await open(), await open()];
  assert.equal((await exchangeToEnd(get())).text, "");
  first.destroy();
  await delay(50);
  assert.equal((await exchange(get())).responses[0]?.status, 200);
});

test("connections of a trusted proxy are not limited by address", async (t) => {
  const { open, exchange } = await startHttpStage(t, {
    limits: { maxConnectionsPerAddress: 2 },
    trustedProxies: [readCidr("127.0.0.0/8")],
  });
  for (let count = 0; count < 2; count++) await open();
  assert.equal((await exchange(get())).responses[0]?.status, 200);
});

test("a connection past the limit is closed if all others are in use", async (t) => {
  const { open, exchangeToEnd, requests } = await startHttpStage(t, {
    limits: { maxConnections: 2 },
    handle: () => new Promise(() => {}),
  });
  for (const socket of [await open(), await open()]) socket.write(get());
  await until(() => requests.length === 2);
  await exchangeToEnd(get());
  assert.equal(requests.length, 2);
});

test("at the limit of connections, idle ones are closed for new ones", async (t) => {
  const { open, exchange } = await startHttpStage(t, { limits: { maxConnections: 2 } });
  for (const socket of [await open(), await open()]) {
    socket.write(get());
    await once(socket, "data");
  }
  await exchange(get(), { waitMs: 1000 }); // it is dropped, and the idle ones are closed
  await delay(50);
  assert.equal((await exchange(get())).responses[0]?.status, 200);
});
