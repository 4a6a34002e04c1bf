import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { closeServer } from "../../src/http/node_close.ts";
import { until } from "../helpers/until.ts";
import { echoAfter, get, startHttpStage } from "./http_stage.ts";

test("once the server closes, a response ends its connection", async (t) => {
  const { exchangeToEnd, server } = await startHttpStage(t, { handle: echoAfter(100) });
  const exchange = exchangeToEnd(get());
  await once(server, "request");
  const closed = once(server, "close");
  server.close();
  const { responses } = await exchange;
  assert.equal(responses[0]?.status, 200);
  assert.equal(responses[0]?.headers["connection"], "close");
  await closed;
});

test("once the server closes, pipelined requests still get their responses", async (t) => {
  const { exchange, server, requests } = await startHttpStage(t, { handle: echoAfter(100) });
  const exchanged = exchange(get().repeat(3), { waitMs: 2000 });
  await until(() => requests.length === 3);
  server.close();
  assert.deepEqual((await exchanged).responses.map(({ status }) => status), [200, 200, 200]);
});

test("a request that came while the process was busy is served before the close", async (t) => {
  const { open, server } = await startHttpStage(t);
  const socket = await open();
  socket.write(get());
  await once(socket, "data");
  const closed = closeServer(server, 5000, 50);
  await delay(10);
  await new Promise(setImmediate); // timers run before the next reads
  socket.write(get());
  for (const untilMs = performance.now() + 100; performance.now() < untilMs;);
  const [response] = await once(socket, "data");
  assert.match(String(response), /^HTTP\/1.1 200 /);
  await closed;
});

test("connections that wait to be accepted are served before the server closes", async (t) => {
  const { exchange, server } = await startHttpStage(t);
  const exchanges = Array.from({ length: 20 }, () => exchange(get(), { waitMs: 2000 }));
  await new Promise(process.nextTick); // they connect
  const closed = closeServer(server, 5000, 500); // even a busy machine accepts all by then
  for (const { responses } of await Promise.all(exchanges)) assert.equal(responses[0]?.status, 200);
  await closed;
});
