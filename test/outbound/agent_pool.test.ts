import assert from "node:assert/strict";
import { lookup } from "node:dns";
import { once } from "node:events";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { createAgentPool } from "../../src/outbound/agent_pool.ts";
import { listen } from "../helpers/listen.ts";

const LIFE_MS = 60_000;
const REQUEST = { path: "/", method: "GET", body: null };

/** A server that never responds, and its origin. */
async function serveNothing(t: TestContext) {
  const server = createServer(() => {});
  return { server, origin: `http://${await listen(t, server)}` };
}

function openPool(t: TestContext) {
  let waitedMs = 0;
  const now = performance.now.bind(performance);
  t.mock.method(performance, "now", () => now() + waitedMs);
  const pool = createAgentPool({ connectionsPerOrigin: 4, timeoutMs: 30_000 }, lookup);
  t.after(() => pool.close());
  const send = (origin: string) => {
    const { promise, resolve } = Promise.withResolvers<Error>();
    const handler = {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd() {},
      onResponseError: (_controller: unknown, error: Error) => resolve(error),
    };
    pool.dispatch({ ...REQUEST, origin }, handler);
    return promise;
  };
  return { pool, send, wait: (ms: number) => void (waitedMs += ms) };
}

test("close() aborts requests in flight, also on connections past their lifetime", async (t) => {
  const { server, origin } = await serveNothing(t);
  const { pool, send, wait } = openPool(t);
  const first = send(origin);
  await once(server, "request");
  wait(LIFE_MS + 1);
  const second = send(origin);
  await once(server, "request");
  await pool.close();
  for (const error of await Promise.all([first, second])) {
    assert.equal((error as NodeJS.ErrnoException).code, "UND_ERR_DESTROYED");
  }
  assert.throws(() => send(origin), { code: "UND_ERR_CLOSED" });
});

test("an idle connection ends within seconds, however long its server would keep it", async (t) => {
  const server = createServer({ keepAliveTimeout: 600_000 }, (_request, response) => {
    response.end();
  });
  const host = await listen(t, server);
  const { send } = openPool(t);
  const connected = once(server, "connection");
  void send(`http://${host}`);
  const [socket] = await connected;
  await once(socket, "end", { signal: AbortSignal.timeout(10_000) });
});
