import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { revision, version } from "../../src/version.ts";
import { listenOnLoopback } from "../helpers/listen.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";
import { NOW_MS, openCallbacks, PATIENCE_MS, SECRETS } from "./callback_stage.ts";

const { receiver, send } = await openCallbacks();

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
    url: `http://${await listenOnLoopback(server)}/`,
    ended: first.promise,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
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
