import assert from "node:assert/strict";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { parseResponses } from "../helpers/raw_http.ts";
import { until } from "../helpers/until.ts";
import { get, post, startHttpStage, streamOf } from "./http_stage.ts";

test("the head of a stream is sent at once, however long its first byte takes", async (t) => {
  const hasHead = Promise.withResolvers<void>();
  const { url } = await startHttpStage(t, {
    handle: () => ({
      status: 200,
      body: streamOf(async function* () {
        await hasHead.promise;
        yield "begin";
      }),
    }),
  });
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
  hasHead.resolve();
  assert.equal(await response.text(), "begin");
});

test("an event stream forbids proxies to buffer and cache it by default", async (t) => {
  const headersOf = async (given: Record<string, string>) => {
    const { exchange } = await startHttpStage(t, {
      handle: () => ({ status: 200, headers: given, body: new Blob(["data: 1\n\n"]).stream() }),
    });
    const { responses } = await exchange(get());
    const headers = responses[0]?.headers;
    return [headers?.["x-accel-buffering"], headers?.["cache-control"]];
  };
  const type = { "content-type": "text/event-stream; charset=utf-8" };
  assert.deepEqual(await headersOf(type), ["no", "no-store"]);
  const own = { ...type, "x-accel-buffering": "yes", "Cache-Control": "max-age=1" };
  assert.deepEqual(await headersOf(own), ["yes", "max-age=1"]);
  assert.deepEqual(await headersOf({ "content-type": "text/csv" }), [undefined, undefined]);
});

test("a stream that breaks cuts the response off", async (t) => {
  const { url, log } = await startHttpStage(t, {
    handle: () => ({
      status: 200,
      body: streamOf(async function* () {
        yield "begin";
        await delay(20);
        throw new Error("broken");
      }),
    }),
  });
  await assert.rejects(fetch(url).then((response) => response.text()));
  await delay(50);
  assert.match(log.join(""), /broken/);
});

const refuse = () => ({ status: 403, body: new Blob(["no"]).stream() });

test("a client that reads only after it has sent its body gets the whole stream", async (t) => {
  const { open } = await startHttpStage(t, { handle: refuse });
  const socket = await open();
  socket.pause();
  const sent = new Promise((resolve) =>
    socket.write(post("Content-Length: 20000000\r\n", "x".repeat(20_000_000)), resolve));
  assert.equal(await sent, null);
  const [response] = parseResponses(await text(socket));
  assert.equal(response?.status, 403);
  assert.equal(response.body, "no");
});

test("a stream does not wait for a body that waits for 100 Continue", async (t) => {
  const { exchangeToEnd } = await startHttpStage(t, { handle: refuse });
  const bytes = post("Expect: 100-continue\r\nContent-Length: 5\r\n");
  const { responses } = await exchangeToEnd(bytes, { waitMs: 1500 });
  assert.equal(responses[0]?.body, "no");
});

test("a stream does not wait forever for the rest of an unread body", async (t) => {
  const { exchangeToEnd } = await startHttpStage(t, { handle: refuse });
  const { responses } = await exchangeToEnd(post("Content-Length: 5\r\n", "ab"));
  assert.equal(responses[0]?.body, "no");
});

const counting = (ms: number) => streamOf(async function* () {
  for (const count of ["one ", "two ", "three"]) {
    yield count;
    await delay(ms);
  }
});

const EVENTS = { "content-type": "text/event-stream" };
const silent = () => new ReadableStream<Uint8Array>();

test("a stream whose client closes its side is visibly cut off", async (t) => {
  const { open, server } = await startHttpStage(t, {
    handle: () => ({ status: 200, body: counting(100) }),
  });
  const socket = await open();
  const all = text(socket);
  socket.write(get());
  await once(server, "request");
  await delay(50);
  socket.end();
  assert.match(await all, /one [^]*(?<!0\r\n\r\n)$/);
});

test("a stream that begins after its client has closed its side is sent whole", async (t) => {
  const { exchange } = await startHttpStage(t, {
    handle: () => delay(50).then(() => ({ status: 200, body: counting(10) })),
  });
  const { responses } = await exchange(get(), { end: true, waitMs: 3000 });
  assert.equal(responses[0]?.body, "one two three");
});

test("an event stream that begins after its client has closed its side is ended", async (t) => {
  const { exchangeToEnd } = await startHttpStage(t, {
    handle: () => delay(50).then(() => ({ status: 200, headers: EVENTS, body: silent() })),
  });
  await exchangeToEnd(get(), { end: true });
});

test("an event stream that begins while the server stops is ended", async (t) => {
  const stop = new AbortController();
  const { exchange } = await startHttpStage(t, {
    stopping: stop.signal,
    handle() {
      stop.abort();
      return { status: 200, headers: EVENTS, body: silent() };
    },
  });
  assert.match((await exchange(get(), { waitMs: 2000 })).text, /\r\n0\r\n\r\n$/);
});

test("the signal of a finished response is not aborted, not even by a stop", async (t) => {
  const stop = new AbortController();
  const { exchange, requests } = await startHttpStage(t, {
    stopping: stop.signal,
    handle: ({ path }) => ({ status: 200, body: path === "/a" ? "all" : counting(1) }),
  });
  const { responses } = await exchange(get("/a") + get());
  assert.deepEqual(responses.map(({ body }) => body), ["all", "one two three"]);
  stop.abort();
  assert.deepEqual(requests.map(({ signal }) => signal.aborted), [false, false]);
});

test("a server that closes ends a connection when the rest of its stream is sent", async (t) => {
  const { exchangeToEnd, server } = await startHttpStage(t, {
    handle: () => ({ status: 200, body: counting(100) }),
  });
  const exchange = exchangeToEnd(get());
  await once(server, "request");
  await delay(50);
  server.close();
  assert.equal((await exchange).responses[0]?.body, "one two three");
});

/** A stream of these chunks without an end, and whether it is cancelled within two seconds. */
function watchStream(...chunks: unknown[]) {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const body = new ReadableStream({
    start: (controller) => chunks.forEach((chunk) => controller.enqueue(chunk)),
    cancel: () => resolve(true),
  });
  return { body, isCancelled: () => Promise.race([promise, delay(2000, false)]) };
}

test("a stream is cancelled if its content cannot be sent", async (t) => {
  const { body, isCancelled } = watchStream({ no: "bytes" });
  const { exchange } = await startHttpStage(t, { handle: () => ({ status: 200, body }) });
  await exchange(get());
  assert.ok(await isCancelled());
});

test("a stream that waits for an earlier response is cancelled if its client leaves", async (t) => {
  const { body, isCancelled } = watchStream();
  const { open, requests } = await startHttpStage(t, {
    handle: ({ path }) => path === "/first" ? new Promise(() => {}) : { status: 200, body },
  });
  const socket = await open();
  socket.write(get("/first") + get());
  await until(() => requests.length === 2);
  await delay(50);
  socket.resetAndDestroy();
  assert.ok(await isCancelled());
});

test("a stream that begins after its client has left is cancelled", async (t) => {
  const begin = Promise.withResolvers<void>();
  const { body, isCancelled } = watchStream();
  const { open, requests } = await startHttpStage(t, {
    async handle({ path }) {
      if (path === "/first") return new Promise(() => {});
      await begin.promise;
      return { status: 200, body };
    },
  });
  const socket = await open();
  socket.write(get("/first") + get());
  await until(() => requests.length === 2);
  socket.resetAndDestroy();
  await until(() => requests[1]?.isGone);
  begin.resolve();
  assert.ok(await isCancelled());
});

/** The warnings of the process, until the end of the test. */
function listWarnings(t: TestContext): readonly string[] {
  const warnings: string[] = [];
  const note = ({ message }: Error) => void warnings.push(message);
  process.on("warning", note);
  t.after(() => process.off("warning", note));
  return warnings;
}

test("many streams in a row on one connection cause no warning", async (t) => {
  const warnings = listWarnings(t);
  const { open } = await startHttpStage(t, {
    handle: () => ({ status: 200, body: new Blob(["x"]).stream() }),
  });
  const socket = await open();
  for (let count = 0; count < 60; count++) {
    socket.write(get());
    for (let got = ""; !got.endsWith("0\r\n\r\n");) got += (await once(socket, "data"))[0];
  }
  assert.deepEqual(warnings, []);
});

test("as many streams as may be pipelined wait without a warning", async (t) => {
  const warnings = listWarnings(t);
  const { open, requests } = await startHttpStage(t, {
    handle: () => ({ status: 200, body: silent() }),
  });
  const socket = await open();
  socket.write(get().repeat(16));
  await until(() => requests.length === 16);
  await delay(100);
  assert.deepEqual(warnings, []);
});
