import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { Socket } from "node:net";
import { after, before, beforeEach, describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Cidr, parseCidr } from "../../src/base/cidr.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import {
  type Callback,
  type CallbackSender,
  createCallbackSender,
} from "../../src/delivery/callback.ts";
import { createEgress, type Egress } from "../../src/outbound/egress.ts";
import { EgressError } from "../../src/outbound/reachable.ts";
import { revision, version } from "../../src/version.ts";
import { listenOnLoopback } from "../crash/listen.ts";
import { createCertificate } from "../helpers/certificate.ts";
import { type Reaction, type Receiver, startReceiver } from "../helpers/receiver.ts";
import { spawnReceiver } from "../helpers/receiver_process.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";

const SECRETS = [7, 9].map((byte) => formatSigningSecret(new Uint8Array(32).fill(byte)));
const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 0, 999);
const TIMEOUT_MS = 400;
const PATIENCE_MS = 3_000;
const EGRESS = { connectionsPerOrigin: 64, timeoutMs: 5_000 };

let receiver: Receiver;
let secure: Receiver;
let allow: Cidr;
let egress: Egress;
let deadUrl: string;

before(async () => {
  receiver = await startReceiver();
  secure = await startReceiver({ tls: createCertificate() });
  const loopback = parseCidr("127.0.0.1/32");
  assert.ok(loopback);
  allow = loopback;
  egress = createEgress({
    ...EGRESS,
    allow: [allow],
    lookup: async (name) => {
      throw new EgressError("NAME_LOOKUP_FAILED", name);
    },
  });
  deadUrl = await findDeadUrl();
});
after(async () => {
  await egress.close();
  await Promise.all([receiver.close(), secure.close()]);
});
beforeEach(() => {
  receiver.clear();
});

/** The address of a port where nobody listens any more. */
async function findDeadUrl(): Promise<string> {
  const server = createServer();
  const url = await listenOnLoopback(server);
  await new Promise((resolve) => server.close(resolve));
  return url;
}

/** A server whose response never ends; `ended` gives its length when the connection has closed. */
async function startEndless(head = "200 OK", more = "") {
  const sockets = new Set<Socket>();
  const first = Promise.withResolvers<number>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => first.resolve(socket.bytesWritten));
    const pour = () => {
      while (socket.writable && socket.write(Buffer.alloc(65_536, "x")));
    };
    socket.once("data", () => {
      socket.write(`HTTP/1.1 ${head}\r\n${more}\r\n`);
      socket.on("drain", pour);
      pour();
    });
  });
  return {
    url: `${await listenOnLoopback(server)}/`,
    ended: first.promise,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function createSender(timeoutMs: number, guard = egress): CallbackSender {
  return createCallbackSender({
    egress: guard,
    timeoutMs,
    now: () => NOW_MS,
  });
}

function sendAny(change: Partial<Callback>, sender: CallbackSender) {
  return sender.send({
    id: "d0abc00000001",
    event: "order.created",
    json: '{"order":1}',
    endpoint: `${receiver.url}/hook`,
    attempt: 1,
    secrets: SECRETS.slice(0, 1),
    ...change,
  });
}

/** Makes an attempt. */
async function send(change: Partial<Callback> = {}, sender = createSender(TIMEOUT_MS)) {
  const result = await sendAny(change, sender);
  assert.ok("outcome" in result, "it was sent");
  return result;
}

async function received() {
  const [request] = await receiver.waitFor(1, 2_000);
  assert.ok(request);
  return request;
}

describe("a callback", () => {
  test("is a POST to the endpoint's path and query, with the JSON alone as its body", async () => {
    const json = '{"b":1,"a":[null,"ä€😀"],"nested":{"__proto__x":"\\u0000"}}';
    await send({ endpoint: `${receiver.url}/a/b%20c?x=1&y=%2F`, json });
    const { method, url, body } = await received();
    assert.deepEqual([method, url], ["POST", "/a/b%20c?x=1&y=%2F"]);
    assert.deepEqual(body, Buffer.from(json));
  });

  test("has the documented headers and no others about the service", async () => {
    await send({ attempt: 3 });
    const { headers } = await received();
    const { host, connection, "content-length": length, ...rest } = headers;
    assert.equal(host, new URL(receiver.url).host);
    assert.equal(length, "11");
    assert.ok(connection === "keep-alive" || connection === "close");
    const signature = rest["webhook-signature"];
    assert.ok(typeof signature === "string" && /^v1,[A-Za-z0-9+/]{43}=$/.test(signature));
    assert.deepEqual(rest, {
      "content-type": "application/json",
      "user-agent": `Gatepost/${version}@${revision}`,
      "webhook-id": "d0abc00000001",
      "webhook-timestamp": String(Math.floor(NOW_MS / 1000)),
      "webhook-signature": signature,
      "gatepost-event": "order.created",
      "gatepost-attempt": "3",
      // Added by fetch itself; they say nothing about the service.
      "accept": "*/*",
      "accept-language": "*",
      "accept-encoding": rest["accept-encoding"],
      "sec-fetch-mode": "cors",
    });
  });

  for (const json of ["null", "0", '""', "[]", "{}", '"text"', "true"]) {
    test(`sends ${json} as it is`, async () => {
      await send({ json });
      assert.equal(String((await received()).body), json);
    });
  }

  test("is signed with each valid secret, so that a subscriber can verify it", async () => {
    await send({ secrets: SECRETS });
    const request = await received();
    for (const secret of SECRETS) {
      assert.equal(findSignatureFault(request, secret, NOW_MS), undefined);
    }
  });

  test("sends no cookie of an earlier response, and no referrer", async () => {
    receiver.answer("/hook", 200, { "set-cookie": "a=b; Path=/", "referrer-policy": "unsafe-url" });
    await send();
    await send();
    for (const { headers } of await receiver.waitFor(2, 2_000)) {
      assert.deepEqual([headers.cookie, headers.referer], [undefined, undefined]);
    }
  });
});

describe("a response", () => {
  const STATUSES = [200, 201, 204, 205, 299, 400, 401, 404, 407, 410, 421, 429, 500, 503, 599];
  for (const status of STATUSES) {
    test(`${status} is reported as it is, and nothing is sent again`, async () => {
      receiver.answer("/hook", status);
      const { outcome } = await send();
      assert.deepEqual(outcome, { kind: "response", status, retryAfterMs: undefined });
      assert.equal(receiver.count(), 1);
    });
  }

  const ENCODED = `content-encoding: ${new Array(6).fill("gzip").join(", ")}\r\n`;
  const UNREAD: readonly (readonly [head: string, more: string])[] = [
    ["205 Reset Content", ""], ["407 Proxy Authentication Required", ""],
    ["421 Misdirected Request", ""], ["200 OK", ENCODED],
    ["600 Unassigned", ENCODED],
  ];
  for (const [head, more] of UNREAD) {
    test(`${head}, whose body fetch does not read, ends its connection`, async () => {
      const { url, ended, close } = await startEndless(head, more);
      const { outcome } = await send({ endpoint: url });
      const status = Number(head.slice(0, 3));
      assert.deepEqual(outcome, { kind: "response", status, retryAfterMs: undefined });
      const written = await Promise.race([ended, sleep(PATIENCE_MS)]);
      await close();
      assert.ok(written !== undefined, "it is still connected");
    });
  }

  for (const status of [301, 302, 303, 307, 308]) {
    test(`${status} is not followed`, async () => {
      receiver.answer("/hook", status, { location: `${receiver.url}/elsewhere` });
      const { outcome } = await send();
      assert.equal(outcome.kind === "response" && outcome.status, status);
      assert.deepEqual([receiver.count("/hook"), receiver.count("/elsewhere")], [1, 0]);
    });
  }

  const retryAfter: readonly (readonly [header: string, expectedMs: number | undefined])[] = [
    ["30", 30_000],
    ["Fri, 20 Nov 2026 12:01:00 GMT", 59_001],
    ["later", undefined],
  ];
  for (const [header, expectedMs] of retryAfter) {
    test(`with Retry-After: ${header} has retryAfterMs ${expectedMs}`, async () => {
      receiver.answer("/hook", 503, { "retry-after": header });
      const { outcome } = await send();
      assert.deepEqual(outcome, { kind: "response", status: 503, retryAfterMs: expectedMs });
    });
  }

  for (const end of ["zz\r\n", "1\r\nx\r\n"]) {
    test(`whose unread body breaks (${end.trim()}) is reported by its status`, async () => {
      const head = `HTTP/1.1 200 OK\r\n${ENCODED}transfer-encoding: chunked\r\n\r\n`;
      receiver.react("/hook", { kind: "raw", bytes: head + end });
      const { outcome } = await send();
      assert.deepEqual(outcome, { kind: "response", status: 200, retryAfterMs: undefined });
      await sleep(50); // an error that nobody catches would come later
    });
  }

  test("is kept as text, without NUL characters", async () => {
    receiver.react("/hook", { kind: "answer", status: 500, body: "Näh\0ts" });
    assert.equal((await send()).snippet, "Nähts");
  });

  test("is read up to 4 KiB", async () => {
    receiver.react("/hook", { kind: "answer", status: 200, body: "x".repeat(4096) + "y" });
    assert.equal((await send()).snippet, "x".repeat(4096));
  });

  test("that never ends is a success after 4 KiB, and its connection is closed", async () => {
    const { url, ended, close } = await startEndless();
    const { outcome, snippet } = await send({ endpoint: url });
    assert.deepEqual(outcome, { kind: "response", status: 200, retryAfterMs: undefined });
    assert.equal(snippet?.length, 4096);
    const written = await ended;
    await close();
    assert.ok(written < 8 * 1024 * 1024, `${written} bytes: more than the sockets' buffers hold`);
  });

  for (const interim of ["102 Processing", "103 Early Hints"]) {
    test(`counts by its final status after 32 responses ${interim}`, async () => {
      const before = `HTTP/1.1 ${interim}\r\n\r\n`.repeat(32);
      const bytes = `${before}HTTP/1.1 204 No Content\r\n\r\n`;
      receiver.react("/hook", { kind: "raw", bytes });
      const { outcome } = await send();
      assert.deepEqual(outcome, { kind: "response", status: 204, retryAfterMs: undefined });
    });
  }

  test("that comes slowly, but in time, is a success", async () => {
    receiver.react("/hook", { kind: "drip", everyMs: 10, bytes: 5 });
    const { outcome, snippet } = await send();
    assert.equal(outcome.kind === "response" && outcome.status, 200);
    assert.equal(snippet, ".....");
  });
});

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
    const { outcome } = await send({ endpoint: `${deadUrl}/` });
    assert.deepEqual(outcome, { kind: "error", error: "refused" });
  });

  test("by an untrusted certificate is reported as tls", async () => {
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
    const sender = createSender(10_000, createEgress({ ...EGRESS, allow: [allow], lookup }));
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
  const now = () => NOW_MS;
  const options = { egress: own, timeoutMs: TIMEOUT_MS, now };
  const endpoint = "http://name.example/";
  const result = await sendAny({ endpoint }, createCallbackSender(options));
  assert.deepEqual(result, { shortage: "EMFILE" });
});

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
    const endpoint = `${await listenOnLoopback(server)}/`;
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
  const loopback = parseCidr("127.0.0.1/32");
  assert.ok(loopback);
  const own = createEgress({ ...EGRESS, allow: [loopback] });
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

test("the timeout covers headers and body together, not each", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", () => {
      setTimeout(() => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx"), 250);
      setTimeout(() => socket.end("y"), 500); // each half takes less than the timeout
    });
  });
  const { outcome } = await send({ endpoint: `${await listenOnLoopback(server)}/` });
  server.close();
  assert.deepEqual(outcome, { kind: "error", error: "timeout" });
});

test("a response in time counts, whenever other attempts began", async (t) => {
  const timeoutMs = 950;
  const own = createEgress({ ...EGRESS, timeoutMs, allow: [allow] });
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
