import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { turn } from "../helpers/turn.ts";
import { until } from "../helpers/until.ts";
import { type Handle, isRefusal, refuse, stage, succeed } from "./rqlite_client_stage.ts";

const hang: Handle = () => {};

test("after an outage a node that responds slowly is used", async (t) => {
  const { ask, does } = await stage(t);
  await lose(t, ask, does);
  does((request, response) => void setTimeout(() => succeed(request, response), 700));
  assert.equal((await ask()).length, 1);
  // Every request has its usual time again.
  assert.equal((await Promise.all([ask(), ask()])).length, 2);
});

test("while a node is silent one request at a time waits for it, and others fail", async (t) => {
  const { ask, does } = await stage(t);
  await lose(t, ask, does);
  does(hang);
  const startedMs = process.hrtime.bigint();
  const took = await Promise.all(Array.from({ length: 6 }, async () => {
    await assert.rejects(ask(), UnavailableError);
    return Number(process.hrtime.bigint() - startedMs) / 1e6;
  }));
  took.sort((a, b) => a - b);
  assert.ok((took.at(-1) ?? 0) < 1_800, `${took}`);
  assert.ok((took.at(-2) ?? 0) < 900, `${took}`);
});

test("a request without time left fails with the reasons of earlier requests", async (t) => {
  const { ask, does } = await stage(t);
  await lose(t, ask, does);
  const why = /cannot be reached: 127\.0\.0\.1:\d+: HTTP 503 leader not found$/;
  await assert.rejects(ask("", 0), { name: "UnavailableError", message: why });
  does(succeed);
  await ask();
  await assert.rejects(ask("", 0), { message: /cannot be reached: no node has answered in time$/ });
});

test("while nodes are silent all requests after the first fail with one message", async (t) => {
  const { ask, does } = await stage(t, 2);
  does(hang);
  const messages = [];
  for (const forMs of [150, 200, 250, 300]) {
    const failure = await ask("", forMs).catch((error: Error) => error.message);
    messages.push(String(failure).replaceAll(/127\.0\.0\.1:\d+/g, "NODE"));
  }
  const silent = "NODE: no response in time";
  const message = `The database cannot be reached: ${silent}; ${silent}`;
  assert.deepEqual(messages.slice(1), [message, message, message]);
});

test("a request fails with its own reason, although others succeed meanwhile", async (t) => {
  const { ask, does } = await stage(t);
  does(async (request, response) => {
    if ((await text(request)).includes("small")) succeed(request, response);
    else response.end('{"error":"database or disk is full"}');
  });
  const asked = assert.rejects(ask("large", 600), {
    name: "OutcomeUnknownError", message: /: database or disk is full$/,
  });
  for (let at = 0; at < 60; at++) {
    await ask("small");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await asked;
});

test("a silent leader is left after a second, even for a request of 4 MiB", async (t) => {
  const { ask, does } = await stage(t, 2);
  let leader: string | undefined;
  does((request, response) => {
    leader ??= request.headers.host;
    succeed(request, response);
  });
  await ask();
  does((request, response) => {
    if (request.headers.host !== leader) succeed(request, response);
  });
  const startedMs = performance.now();
  assert.equal((await ask("x".repeat(4 * 2 ** 20))).length, 1);
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs < 1_900, `${tookMs} ms`);
});

test("the node that responded first gets all later requests", async (t) => {
  const { ask, does } = await stage(t, 3);
  const hosts = new Set<unknown>();
  does((request, response) => {
    hosts.add(request.headers.host);
    succeed(request, response);
  });
  for (let count = 0; count < 4; count++) await ask();
  assert.equal(hosts.size, 1);
});

test("the leader that a node names is asked at once", async (t) => {
  const tookMs: number[] = [];
  for (let count = 0; count < 10; count++) {
    const { ask, does, nodes: [leader] } = await stage(t, 2);
    let redirects = 0;
    does((request, response) => {
      if (request.headers.host === leader) return succeed(request, response);
      redirects++;
      response.writeHead(301, { Location: `http://${leader}/` }).end();
    });
    const startedMs = performance.now();
    await ask();
    tookMs.push(performance.now() - startedMs);
    assert.equal(redirects, 1);
  }
  assert.ok(Math.min(...tookMs) < 40, `${tookMs}`); // less than the pause after a failure
});

test("a silent node is not asked again although another names it as the leader", async (t) => {
  const { ask, does } = await stage(t, 2);
  let leader: string | undefined;
  let askedLeader = 0;
  does(({ headers: { host } }, response) => {
    leader ??= host;
    if (host === leader) askedLeader++;
    else response.writeHead(301, { Location: `http://${leader}/` }).end();
  });
  await assert.rejects(ask("", 200), OutcomeUnknownError);
  const before = askedLeader;
  await assert.rejects(ask("", 300), isRefusal);
  assert.equal(askedLeader, before);
});

test("a connection that ends counts as one change, even after many requests", async (t) => {
  const { ask, does, leaderChanges } = await stage(t);
  for (let count = 0; count < 20; count++) await ask();
  const before = leaderChanges();
  does((request, response) => {
    response.setHeader("Connection", "close");
    succeed(request, response);
  });
  await ask();
  await until(() => leaderChanges() > before);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(leaderChanges() - before, 1);
});

test("a node that redirects to itself is asked again with pauses", async (t) => {
  const { ask, asked, does } = await stage(t);
  does(({ headers }, response) =>
    void response.writeHead(301, { Location: `http://${headers.host}/` }).end());
  await assert.rejects(ask("", 600), (error: Error) =>
    isRefusal(error) && /names 127\.0\.0\.1:\d+ as the leader/.test(error.message));
  assert.ok(asked() > 3 && asked() < 20, `${asked()} requests`);
});

test("the error of an unreachable cluster has the last failure of each node", async (t) => {
  const { ask, does, nodes } = await stage(t, 3);
  const [silent, lonely, busy] = nodes.toSorted();
  does((request, response) => {
    const { host } = request.headers;
    if (host === silent) request.socket.destroy();
    else if (host === lonely) refuse(request, response);
    else response.writeHead(503).end("busy");
  });
  const message = "The database cannot be reached: " +
    `${silent}: socket hang up; ${lonely}: HTTP 503 leader not found; ${busy}: HTTP 503 busy`;
  await assert.rejects(ask("", 600), { message });
});

test("an error shows only the beginning of a page in place of a result", async (t) => {
  const { ask, does, nodes: [node] } = await stage(t);
  for (const status of [200, 502]) {
    does((_, response) => void response.writeHead(status).end(`<html>${"x".repeat(10_000)}`));
    const message = `The database cannot be reached: ${node}: HTTP ${status} <html>`;
    await assert.rejects(ask("", 150), (error: Error) =>
      error.message.startsWith(message) && error.message.length < 400);
  }
});

test("a redirect with a status other than 301 is not followed", async (t) => {
  const { ask, does, nodes: [node] } = await stage(t);
  const message = `The database cannot be reached: ${node}: HTTP 307 moved`;
  does((_, response) => response.writeHead(307, { Location: "http://127.0.0.1:1/" }).end("moved"));
  await assert.rejects(ask("", 150), { name: "UnavailableError", message });
});

test("a closed client stops repeating a request", async (t) => {
  const { ask, asked, does, close } = await stage(t);
  const third = Promise.withResolvers<void>();
  does((request, response) => {
    refuse(request, response);
    if (asked() > 2) third.resolve();
  });
  const failed = assert.rejects(ask(), isRefusal);
  await third.promise;
  for (let turns = 0; turns < 3; turns++) await turn(); // then the client pauses
  close();
  const before = asked();
  await failed;
  assert.ok(asked() <= before + 1, `${asked() - before} requests`);
});

test("findLeader() fails with UnavailableError even if its statement may have run", async (t) => {
  const { does, findLeader } = await stage(t);
  does((_, response) => response.writeHead(503).end("busy"));
  await assert.rejects(findLeader(150), (error: Error) =>
    isRefusal(error) && error.message.endsWith(": HTTP 503 busy"));
});

test("aheadMs() follows the Date header of the last response, and is 0 without one", async (t) => {
  const { ask, does, aheadMs } = await stage(t);
  for (const hours of [1, -1]) {
    does((request, response) => {
      response.setHeader("Date", new Date(Date.now() + hours * 3_600_000).toUTCString());
      succeed(request, response);
    });
    await ask();
    assert.ok(Math.abs(aheadMs() - hours * 3_600_000) <= 2_000, `${aheadMs()} ms`);
  }
  does((request, response) => {
    response.sendDate = false;
    succeed(request, response);
  });
  await ask();
  assert.equal(aheadMs(), 0);
});

/** Leaves the cluster without a leader for six seconds. */
async function lose(
  t: TestContext,
  ask: (param: string, forMs: number) => Promise<unknown>,
  does: (next: Handle) => void,
): Promise<void> {
  const elapsedMs = performance.now.bind(performance);
  does(refuse);
  await assert.rejects(ask("", 200), isRefusal);
  t.mock.method(performance, "now", () => elapsedMs() + 6_000);
}
