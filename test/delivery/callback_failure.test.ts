import assert from "node:assert/strict";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createEgress } from "../../src/outbound/egress.ts";
import { findFreePort } from "../../scripts/free_port.ts";
import { listenOnLoopback } from "../helpers/listen.ts";
import { createCertificate } from "../helpers/certificate.ts";
import { type Reaction, startReceiver } from "../helpers/receiver.ts";
import { spawnReceiver } from "../helpers/receiver_process.ts";
import { EGRESS, openCallbacks, PATIENCE_MS, TIMEOUT_MS } from "./callback_stage.ts";

const { receiver, createSender, sendAny, send } = await openCallbacks();

describe("a failure", () => {
  const reactions: readonly (readonly [what: string, reaction: Reaction, error: string])[] = [
    ["no response", { kind: "hang" }, "timeout"],
    ["a late response", { kind: "answer", status: 200, delayMs: 2 * TIMEOUT_MS }, "timeout"],
    ["a body that drips without end", { kind: "drip", everyMs: 30 }, "timeout"],
    ["a connection closed without a response", { kind: "close" }, "reset"],
    ["a reset connection", { kind: "reset" }, "reset"],
    ["a response other than HTTP", { kind: "raw", bytes: "SSH-2.0-OpenSSH_9\r\n\r\n" }, "protocol"],
    ["more than 32 interim responses", {
      kind: "raw",
      bytes: `${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(33)}HTTP/1.1 204 No Content\r\n\r\n`,
    }, "protocol"],
    ["a 100 Continue that was not requested", {
      kind: "raw",
      bytes: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    }, "reset"],
    ["an invalid status", {
      kind: "raw",
      bytes: "HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n",
    }, "protocol"],
    ["a response with two lengths", {
      kind: "raw",
      bytes: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
    }, "protocol"],
    ["a response that is not compressed as its headers say", {
      kind: "answer",
      headers: { "content-encoding": "gzip" },
      status: 200,
      body: "plain",
    }, "protocol"],
    ...["br", "zstd", "deflate"].map((encoding) => [`a response that is not valid ${encoding}`, {
      kind: "answer",
      headers: { "content-encoding": encoding },
      status: 200,
      body: "~~~~~~~~",
    }, "protocol"] as const),
    ["a response that is cut short", {
      kind: "raw",
      bytes: "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx",
    }, "reset"],
    ...[["fixed-length", "content-length: 10\r\n\r\nx"],
      ["chunked", "transfer-encoding: chunked\r\n\r\n1\r\nx\r\n"]].map(([how, rest]) => [
      `a ${how} response with connection: close that is cut short`,
      { kind: "raw", bytes: `HTTP/1.1 200 OK\r\nconnection: close\r\n${rest}` },
      "reset",
    ] as const),
  ];
  for (const [what, reaction, error] of reactions) {
    test(`by ${what} is reported as ${error}`, async () => {
      receiver.react("/hook", reaction);
      const startedMs = performance.now();
      const { outcome } = await send();
      assert.deepEqual(outcome, { kind: "error", error });
      assert.ok(performance.now() - startedMs < 3 * TIMEOUT_MS);
    });
  }

  test("by a port where nothing listens is reported as refused", async () => {
    const { outcome } = await send({ endpoint: `http://127.0.0.1:${await findFreePort()}/` });
    assert.deepEqual(outcome, { kind: "error", error: "refused" });
  });

  test("by an untrusted certificate is reported as tls", async (t) => {
    const secure = await startReceiver({ tls: createCertificate() });
    t.after(() => secure.close());
    const { outcome, snippet } = await send({ endpoint: `${secure.url}/` });
    assert.deepEqual(outcome, { kind: "error", error: "tls" });
    assert.equal(snippet, "UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    assert.equal(secure.count(), 0);
  });

  const UNREACHABLE = [
    "http://127.0.0.2/", "http://10.0.0.1/", "http://[::1]/", "http://no.example/",
    "http://127.0.0.1:6000/",
  ];
  test("by a missing or forbidden address is reported as unreachable after a second", async () => {
    // In parallel: each takes a second, so that the duration does not reveal the cause.
    await Promise.all(UNREACHABLE.map(async (endpoint) => {
      const startedMs = performance.now();
      const { outcome } = await send({ endpoint });
      assert.deepEqual(outcome, { kind: "error", error: "unreachable" }, endpoint);
      const seconds = (performance.now() - startedMs) / 1000;
      assert.ok(seconds >= 0.99 && seconds < 1.5, `${endpoint} took ${seconds} s`);
    }));
  });

  test("by the stop of the service is reported as aborted", async () => {
    let isLookedUp = () => {};
    const lookedUp = new Promise<void>((resolve) => isLookedUp = resolve);
    const lookup = () => new Promise<never>(() => isLookedUp());
    const sender = createSender(10_000, createEgress({ ...EGRESS, lookup }));
    receiver.react("/hook", { kind: "hang" });
    receiver.react("/drip", { kind: "drip", everyMs: 10, bytes: 5 });
    const endpoints = [`${receiver.url}/hook`, `${receiver.url}/drip`, "http://name.example/"];
    const sending = endpoints.map((endpoint) => send({ endpoint }, sender));
    await Promise.all([receiver.waitFor(2, 2_000), lookedUp]);
    await sleep(20); // until a body is being read
    await sender.abort();
    for (const sent of [...sending, send({}, sender)]) {
      assert.deepEqual((await sent).outcome, { kind: "error", error: "aborted" });
    }
  });
});

test("a shortage of the service itself is no attempt", async (t) => {
  const lookup = () => Promise.reject(Object.assign(new Error("open"), { code: "EMFILE" }));
  const own = createEgress({ ...EGRESS, allow: [], lookup });
  t.after(() => own.close());
  const endpoint = "http://name.example/";
  const result = await sendAny({ endpoint }, createSender(TIMEOUT_MS, own));
  assert.deepEqual(result, { shortage: "EMFILE" });
});

test("the timeout covers headers and body together, not each", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", () => {
      setTimeout(() => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx"), 250);
      setTimeout(() => socket.end("y"), 500); // each half takes less than the timeout
    });
  });
  const { outcome } = await send({ endpoint: `http://${await listenOnLoopback(server)}/` });
  server.close();
  assert.deepEqual(outcome, { kind: "error", error: "timeout" });
});

test("a response in time counts, whenever other attempts began", async (t) => {
  const timeoutMs = 950;
  const own = createEgress({ ...EGRESS, timeoutMs });
  t.after(() => own.close());
  receiver.react("/hook", { kind: "answer", status: 200, delayMs: 750 });
  const results = await Promise.all([0, 100, 200, 300, 400].map(async (afterMs) => {
    await sleep(afterMs);
    return send({}, createSender(timeoutMs, own));
  }));
  for (const { outcome } of results) {
    assert.deepEqual(outcome, { kind: "response", status: 200, retryAfterMs: undefined });
  }
});

test("a response in time counts, even if the thread was blocked past the timeout", async (t) => {
  const remote = await spawnReceiver();
  t.after(() => remote.close());
  await remote.react("/hook", { kind: "answer", status: 200, body: "stored", delayMs: 300 });
  const endpoint = `${remote.url}/hook`;
  const sending = Promise.all(Array.from({ length: 20 }, () => send({ endpoint })));
  await remote.waitFor(20, PATIENCE_MS, "/hook");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * TIMEOUT_MS);
  for (const { outcome } of await sending) {
    assert.deepEqual(outcome, { kind: "response", status: 200, retryAfterMs: undefined });
  }
});
