import assert from "node:assert/strict";
import { once } from "node:events";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { turn } from "../helpers/turn.ts";
import { until } from "../helpers/until.ts";
import { stage, succeed } from "./rqlite_client_stage.ts";

test("a node is probed only while a large request is in flight", async (t) => {
  const { ask, does } = await stage(t);
  let probes = 0;
  const probed = Promise.withResolvers<void>();
  does(async (request, response) => {
    if (request.url === "/readyz?noleader") {
      probes++;
      return probed.resolve(void response.end());
    }
    await Promise.all([once(request.resume(), "end"), probed.promise]);
    succeed(request, response);
  });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await ask("x".repeat(2 ** 20));
  await ask();
  for (let second = 0; second < 3; second++) {
    t.mock.timers.tick(1_000);
    await ask();
  }
  assert.equal(probes, 1);
});

test("the probes during a large request use one connection", async (t) => {
  const { ask, does } = await stage(t);
  const connections: unknown[] = [];
  let finish = () => {};
  does((request, response) => {
    if (request.url === "/readyz?noleader") {
      connections.push(request.socket);
      response.end("[+]node ok");
    } else finish = () => void succeed(request.resume(), response);
  });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = ask("x".repeat(16 * 2 ** 20), 60_000);
  const endMs = Date.now() + 5_000;
  for (let second = 1; second < 4; second++) {
    while (connections.length < second && Date.now() < endMs) {
      await turn();
    }
    for (let turns = 0; turns < 50; turns++) await turn();
    t.mock.timers.tick(1_000);
  }
  finish();
  await asked;
  assert.ok(connections.length >= 3 && new Set(connections).size === 1);
});

test("request() probes the node only with a timeout above 1 s and without a body", async (t) => {
  const { does, nodes: [node = ""], request } = await stage(t);
  let probes = 0;
  does(async (incoming, response) => {
    if (incoming.url === "/readyz?noleader") probes++;
    await text(incoming);
    setTimeout(() => response.end("done"), 50);
  });
  for (const [timeoutMs, body, expected] of [
    [1_000, undefined, 0],
    [1_001, Readable.from(["a file"]), 0], // the node may be too busy for anything else
    [1_001, undefined, 1],
  ] as const) {
    assert.equal(await text(await request(node, "POST", "/db/load", timeoutMs, body)), "done");
    await until(() => probes >= expected);
    assert.equal(probes, expected);
  }
});

test("a large request is sent again if its node no longer responds to probes", async (t) => {
  const { ask, does } = await stage(t);
  let [probes, requests] = [0, 0];
  does((request, response) => {
    if (request.url !== "/readyz?noleader") return ++requests > 1 && succeed(request, response);
    if (++probes === 1) response.end(); // only to the first probe
  });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = ask("x".repeat(16 * 2 ** 20), 60_000);
  const endMs = Date.now() + 5_000;
  while (probes === 0 && Date.now() < endMs) await turn();
  let seconds = 0;
  for (; requests < 2 && seconds < 14; seconds++) {
    t.mock.timers.tick(1_000);
    const untilMs = Date.now() + 100;
    while (requests < 2 && Date.now() < untilMs) await turn();
  }
  assert.ok(requests === 2, `${requests} requests after ${seconds} s`);
  assert.equal((await asked).length, 1);
});

test("a request leaves no timer after its response", async (t) => {
  const { ask } = await stage(t);
  const waits = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = waits();
  for (const size of [1, 2 ** 20]) await ask("x".repeat(size), 60_000);
  await until(() => waits() === before, () => `${waits()} timers`, 700); // each runs for a second
});
