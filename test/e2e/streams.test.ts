// On SQLite alone: it is about sockets, of a server that stores nothing.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { type RunningServer, startServer } from "../helpers/process.ts";
import { exchangeRaw, openRaw } from "../helpers/raw_http.ts";
import { until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/streaming", import.meta.url));
const METRICS_TOKEN = "a-long-metrics-token";

async function start(t: TestContext): Promise<RunningServer> {
  const env = {
    GATEPOST_ENDPOINTS: ENDPOINTS,
    GATEPOST_METRICS_TOKEN: METRICS_TOKEN,
    GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"), // without it the start warns
  };
  const server = await startServer({ entry: SOURCE_ENTRY, env });
  t.after(() => server.kill());
  return server;
}

const portOf = ({ url }: RunningServer): number => Number(new URL(url).port);

function head(server: RunningServer, path: string): ReturnType<typeof exchangeRaw> {
  const request = `HEAD ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
  return exchangeRaw(portOf(server), request, { waitMs: 5000 });
}

/** Begins a request, waits for the first bytes of its response, and leaves. */
async function leave(server: RunningServer, path: string): Promise<void> {
  const socket = await openRaw(portOf(server));
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await once(socket, "data");
  socket.destroy();
}

async function seen(server: RunningServer): Promise<readonly string[]> {
  const response = await fetch(`${server.url}/seen`);
  const ends: string[] = JSON.parse(await response.text());
  return ends;
}

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly route?: string;
  readonly status?: number;
}

/** What is logged after the start. */
function linesOf(server: RunningServer): Line[] {
  const lines = server.lines.map((line): Line => JSON.parse(line));
  return lines.slice(lines.findIndex(({ msg }) => msg === "listening") + 1);
}

for (const method of ["HEAD", "GET"]) {
  for (const path of ["/deaf", "/deaf-writer"]) {
    test(`${method} ${path}: feeding a stream that has ended is one warning`, async (t) => {
      const server = await start(t);
      if (method === "GET") await leave(server, path);
      else assert.equal((await head(server, path)).responses[0]?.status, 200);
      await until(() => linesOf(server).some(({ msg }) => msg.includes("stream that has ended")));
      await delay(200); // the timer has fired some twenty times by now
      assert.equal((await fetch(`${server.url}/system/health`)).status, 200);
      const problems = linesOf(server).filter(({ level }) => level === "warn" || level === "error");
      assert.deepEqual(problems.map(({ level, msg }) => [level, msg]), [
        ["warn", "an endpoint feeds a stream that has ended; stop on signal or cancel"],
      ]);
    });
  }

  test(`${method} /heeding: the signal aborts first, then the stream is cancelled`, async (t) => {
    const server = await start(t);
    await (method === "GET" ? leave(server, "/heeding") : head(server, "/heeding"));
    await until(async () => (await seen(server)).length === 2);
    assert.deepEqual(await seen(server), ["signal", "cancel"]);
    assert.deepEqual(linesOf(server).filter(({ level }) => level !== "info"), []);
  });
}

test("a stream that sends nothing more is cancelled when its client leaves", async (t) => {
  const server = await start(t);
  await leave(server, "/silent");
  await until(async () => (await seen(server)).join() === "silent cancel");
});

for (const path of ["/waiting", "/failing"]) {
  test(`a client that leaves ${path} is logged and counted as 499, at level info`, async (t) => {
    const server = await start(t);
    const socket = await openRaw(portOf(server));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await delay(200);
    socket.destroy();
    await until(() => linesOf(server).some(({ route }) => route === path));
    const line = linesOf(server).find(({ route }) => route === path);
    assert.deepEqual([line?.level, line?.msg, line?.status], ["info", "request", 499]);
    assert.deepEqual(linesOf(server).filter(({ level }) => level !== "info"), []);
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    const metrics = await (await fetch(`${server.url}/system/metrics`, { headers })).text();
    const counted = new RegExp(`_requests_total\\{[^}]*route="${path}"[^}]*status="499"\\} 1`);
    assert.match(metrics, counted);
    assert.doesNotMatch(metrics, /status="500"/);
  });
}

test("a rejection outside of a handler is logged, a throw there ends the process", async (t) => {
  const server = await start(t);
  const errors = () => linesOf(server).filter(({ level }) => level === "error")
    .map(({ msg }) => msg);
  assert.equal((await fetch(`${server.url}/later/reject`, { method: "POST" })).status, 204);
  await until(() => errors().length > 0);
  assert.deepEqual(errors(), ["unhandled rejection"]);
  assert.equal((await fetch(`${server.url}/system/health`)).status, 200);

  // The process may end before the response arrives.
  await fetch(`${server.url}/later/throw`, { method: "POST" }).catch(() => {});
  await until(() => errors().length > 1);
  assert.deepEqual(errors(), ["unhandled rejection", "uncaught exception"]);
  assert.equal(await server.stop(), 1);
});

test("a server that stops ends event streams at once and lets a download finish", async (t) => {
  const server = await start(t);
  for (const path of ["/heeding", "/silent"]) {
    const socket = await openRaw(portOf(server));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await once(socket, "data");
  }
  const request = "GET /download HTTP/1.1\r\nHost: a\r\n\r\n";
  const coming = exchangeRaw(portOf(server), request, { waitMs: 5000 });
  await delay(300);
  const startedMs = Date.now();
  assert.equal(await server.stop(), 0);
  assert.ok(Date.now() - startedMs < 3000, `${Date.now() - startedMs} ms`);
  const { text } = await coming;
  assert.equal(text.split("tick").length - 1, 10, text);
});

test("a request that is cut off 10 s after the stop began is logged as 499 too", async (t) => {
  const server = await start(t);
  const request = "GET /waiting HTTP/1.1\r\nHost: a\r\n\r\n";
  const waiting = exchangeRaw(portOf(server), request, { waitMs: 20_000 });
  await delay(200);
  const startedMs = Date.now();
  assert.equal(await server.stop(), 0);
  assert.ok(Date.now() - startedMs > 8000, "the request had its 10 s");
  assert.equal((await waiting).text, "");
  const line = linesOf(server).find(({ route }) => route === "/waiting");
  assert.deepEqual([line?.level, line?.status], ["info", 499]);
  assert.deepEqual(linesOf(server).filter(({ level }) => level === "error"), []);
});
