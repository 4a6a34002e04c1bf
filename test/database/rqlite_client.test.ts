import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { createRqliteClient } from "../../src/database/rqlite_client.ts";
import { until } from "../helpers/until.ts";

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

const succeed: Handle = (_, response) => void response.end('{"results":[{}]}');
const refuse: Handle = (_, response) => void response.writeHead(503).end("leader not found\n");
const hang: Handle = () => {};

function isRefusal(error: unknown): boolean {
  return error instanceof UnavailableError && !(error instanceof OutcomeUnknownError);
}

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
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
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
  const turn = () => new Promise((resolve) => setImmediate(resolve));
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

test("a request leaves no timer after its response", async (t) => {
  const { ask } = await stage(t);
  const waits = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = waits();
  for (const size of [1, 2 ** 20]) await ask("x".repeat(size), 60_000);
  await until(() => waits() === before, () => `${waits()} timers`, 700); // each runs for a second
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

for (const content of ['{"results":[]}', '{"results":[{},{}]}', '{"results":null}', "{}", ""]) {
  test(`a statement may have run if the response is ${content || "empty"}`, async (t) => {
    const { ask, does } = await stage(t);
    does((_, response) => void response.end(content));
    await assert.rejects(ask("", 400), OutcomeUnknownError);
    const asked = ask();
    setTimeout(() => does(succeed), 100);
    assert.deepEqual(await asked, [{}]);
  });
}

for (const how of ["breaks off", "stalls"] as const) {
  test(`a statement may have run if its response ${how}`, async (t) => {
    const { ask, asked, does } = await stage(t);
    const begin: Handle = ({ socket }, response) => {
      response.write('{"results":[{', () => how === "breaks off" && socket.destroy());
    };
    does(begin);
    await assert.rejects(ask("", 300), OutcomeUnknownError);
    if (how === "stalls") return;
    const before = asked();
    does((request, response) => (asked() === before + 1 ? begin : succeed)(request, response));
    assert.deepEqual([await ask(), asked()], [[{}], before + 2]);
  });
}

for (const isKept of [false, true]) {
  const where = isKept ? " on a kept connection" : "";
  test(`later refusals do not change that a statement may have run${where}`, async (t) => {
    const { ask, asked, does } = await stage(t);
    if (isKept) await ask();
    const first = asked() + 1;
    does((request, response) => {
      if (asked() === first) request.socket.destroy();
      else refuse(request, response);
    });
    await assert.rejects(ask("", 300), OutcomeUnknownError);
    assert.ok(asked() > first);
  });
}

for (const [status, content, mayHaveRun] of [
  [301, "", false],
  [401, "", false],
  [499, "", false],
  [500, "", true],
  [503, "busy", true],
  [503, "leader not found", false],
] as const) {
  const name = `a statement ${mayHaveRun ? "may" : "cannot"} have run`;
  test(`${name} if the response is ${status} ${content}`, async (t) => {
    const { ask, does } = await stage(t);
    does((_, response) => response.writeHead(status).end(content));
    await assert.rejects(ask("", 150), (error) => isRefusal(error) !== mayHaveRun &&
      error instanceof UnavailableError);
  });
}

test("a redirect with a status other than 301 is not followed", async (t) => {
  const { ask, does, nodes: [node] } = await stage(t);
  const message = `The database cannot be reached: ${node}: HTTP 307 moved`;
  does((_, response) => response.writeHead(307, { Location: "http://127.0.0.1:1/" }).end("moved"));
  await assert.rejects(ask("", 150), { name: "UnavailableError", message });
});

test("a closed client stops repeating a request", async (t) => {
  const { ask, asked, does, close } = await stage(t);
  does(refuse);
  const failed = assert.rejects(ask(), isRefusal);
  await until(() => asked() > 2);
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

for (const sent of ["", "HTTP/1.1 400 Bad Request\r\n\r\n"]) {
  test(`TLS to a node that sends "${sent.trim()}" fails with one line, as not run`, async (t) => {
    const server = createTcpServer((socket) => {
      socket.on("error", () => {}).once("data", () => sent ? socket.end(sent) : socket.destroy());
    });
    const nodes = [await listen(server)];
    const client = createRqliteClient({ nodes, isTls: true, credentials: undefined });
    t.after(() => void server.close());
    t.after(client.close);
    const asked = client.ask(() => "/", ['"SELECT 1"'], performance.now() + 400);
    await assert.rejects(asked, (error: Error) => isRefusal(error) && !/\n/.test(error.message));
  });
}

/** A client of several nodes, whose responses the test chooses. */
async function stage(t: TestContext, count = 1) {
  let handle = succeed;
  let asked = 0;
  const nodes = await Promise.all(Array.from({ length: count }, () => {
    const server = createServer((request, response) => {
      asked++;
      handle(request, response);
    });
    t.after(() => void server.close().closeAllConnections());
    return listen(server);
  }));
  const client = createRqliteClient({ nodes, isTls: false, credentials: undefined });
  t.after(client.close);
  return {
    nodes,
    ask(param = "", forMs = 5_000) {
      const statements = [JSON.stringify(["SELECT ?", param])];
      return client.ask(() => "/db/query", statements, performance.now() + forMs);
    },
    findLeader: (forMs: number) => client.findLeader(performance.now() + forMs),
    asked: () => asked,
    aheadMs: client.aheadMs,
    request: client.request,
    close: client.close,
    leaderChanges: client.leaderChanges,
    does: (next: Handle) => void (handle = next),
  };
}

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

async function listen(server: Server): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `127.0.0.1:${address.port}`;
}
