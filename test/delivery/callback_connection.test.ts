import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createEgress } from "../../src/outbound/egress.ts";
import { listenOnLoopback } from "../helpers/listen.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { EGRESS, openCallbacks } from "./callback_stage.ts";

const { receiver, send } = await openCallbacks();

describe("a connection that was kept alive", () => {
  /** A server whose connections each respond once, and call `then` at the next request. */
  async function startOnce(t: TestContext, then: (socket: Socket) => void) {
    let requests = 0;
    let connections = 0;
    const server = createServer((socket) => {
      let isFirst = true;
      connections++;
      socket.on("error", () => socket.destroy());
      socket.on("data", (chunk) => {
        if (!chunk.toString().endsWith("}")) return; // only the head
        requests++;
        if (isFirst) socket.write("HTTP/1.1 204 No Content\r\n\r\n");
        else then(socket);
        isFirst = false;
      });
    });
    const endpoint = `http://${await listenOnLoopback(server)}/`;
    t.after(() => server.close());
    assert.equal((await send({ endpoint })).outcome.kind, "response");
    await sleep(20); // until undici counts it as idle
    return { endpoint, counts: () => ({ requests, connections }) };
  }

  const BREAKS: readonly (readonly [string, (socket: Socket) => void])[] = [
    ["is reset", (socket) => socket.resetAndDestroy()],
    ["is closed", (socket) => socket.end()],
  ];
  for (const [what, then] of BREAKS) {
    test(`and ${what} before a response: the request is tried again on a new one`, async (t) => {
      const { endpoint, counts } = await startOnce(t, then);
      const { outcome } = await send({ endpoint });
      assert.deepEqual(outcome, { kind: "response", status: 204, retryAfterMs: undefined });
      assert.deepEqual(counts(), { requests: 3, connections: 2 });
    });
  }

  test("and breaks within a response is reported as reset, and not tried again", async (t) => {
    const { endpoint, counts } = await startOnce(t, (socket) => {
      socket.write("HTTP/1.1 2", () => socket.destroy());
    });
    const { outcome } = await send({ endpoint });
    assert.deepEqual(outcome, { kind: "error", error: "reset" });
    assert.deepEqual(counts(), { requests: 2, connections: 1 });
  });

  test("and hangs: the request is not tried again", async (t) => {
    const { endpoint, counts } = await startOnce(t, () => {});
    assert.deepEqual((await send({ endpoint })).outcome, { kind: "error", error: "timeout" });
    assert.equal(counts().requests, 2);
  });

  test("and is reset: if the new one is reset too, the attempt has failed", async () => {
    receiver.react("/hook", { kind: "answer" }, { kind: "reset" });
    await send();
    await sleep(20);
    const before = receiver.count();
    assert.deepEqual((await send()).outcome, { kind: "error", error: "reset" });
    assert.equal(receiver.count() - before, 2);
  });
});

test("a request whose new connection breaks without a response is not tried again", async () => {
  const broken = await startReceiver();
  broken.react("/", { kind: "reset" });
  const { outcome } = await send({ endpoint: `${broken.url}/` });
  assert.deepEqual(outcome, { kind: "error", error: "reset" });
  assert.equal(broken.count(), 1);
  await broken.close();
});

test("a connection that an aborted exchange leaves behind is closed after a while", async (t) => {
  const own = createEgress(EGRESS);
  const hanging = await startReceiver();
  hanging.react("/", { kind: "hang" });
  const post = (url: string, timeoutMs: number) =>
    own.send(url, { method: "POST", body: "1", signal: AbortSignal.timeout(timeoutMs) })
      .then(({ status }) => status, (error: Error) => error.name);
  assert.equal(await post(`${hanging.url}/`, 100), "TimeoutError");
  const nowMs = performance.now() + 61_000;
  t.mock.method(performance, "now", () => nowMs);
  assert.equal(await post(`${receiver.url}/hook`, 5_000), 204);
  for (let polls = 0; hanging.connections() > 0 && polls < 100; polls++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(hanging.connections(), 0);
  await Promise.all([own.close(), hanging.close()]);
});
