import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { get, post, startHttpStage } from "./http_stage.ts";

test("204 and 304 have no Content-Length (RFC 9110 §8.6)", async (t) => {
  const { exchangeToEnd } = await startHttpStage(t, {
    handle: ({ path }) => ({ status: Number(path.slice(1)) }),
  });
  for (const status of [204, 304]) {
    const bytes = get(`/${status}`, "Connection: close\r\n");
    const { responses: [response] } = await exchangeToEnd(bytes);
    assert.equal(response?.status, status);
    assert.equal(response?.headers["content-length"], undefined);
  }
});

test("HEAD has the length of GET's body and no body", async (t) => {
  const { exchange } = await startHttpStage(t);
  const { responses, text } = await exchange(get().replace("GET", "HEAD"), { end: true });
  assert.equal(responses.length, 1);
  assert.ok(text.endsWith("\r\n\r\n"));
  assert.ok(Number(responses[0]?.headers["content-length"]) > 20);
});

test("a head is sent in Latin-1 whatever the body is", async (t) => {
  const close = (stream: ReadableStreamDefaultController) => delay(20).then(() => stream.close());
  const slow = () => new ReadableStream({ start: close });
  const bodies = { "/empty": () => "", "/text": () => "ü", "/slow": slow };
  const { exchange } = await startHttpStage(t, {
    handle: ({ path }) => ({
      status: 200,
      headers: { "x-name": "ü" },
      body: bodies[path as keyof typeof bodies](),
    }),
  });
  for (const path of Object.keys(bodies)) {
    for (const method of ["GET", "HEAD"]) {
      const { responses } = await exchange(get(path).replace("GET", method));
      assert.equal(responses[0]?.headers["x-name"], "ü", `${method} ${path}`);
    }
  }
});

test("an unread body ends the connection, after the whole response", async (t) => {
  const body = "y".repeat(10_000);
  const { exchangeToEnd, requests } = await startHttpStage(t, {
    handle: () => ({ status: 200, body }),
  });
  const bytes = post("Content-Length: 50000\r\n", "x".repeat(20_000));
  const { responses } = await exchangeToEnd(bytes);
  assert.equal(responses[0]?.body, body);
  assert.equal(responses[0]?.headers["connection"], "close");
  assert.equal(requests.length, 1);
});

test("a small unread body keeps the connection", async (t) => {
  const { exchange } = await startHttpStage(t, { handle: () => ({ status: 200, body: "ok" }) });
  const bytes = post("Content-Length: 3\r\n", "abc").repeat(2);
  const { responses, isClosed } = await exchange(bytes);
  assert.deepEqual(responses.map(({ body }) => body), ["ok", "ok"]);
  assert.equal(isClosed, false);
});

test("a client that is still sending a too large body gets the whole response", async (t) => {
  const { url } = await startHttpStage(t);
  for (let count = 0; count < 5; count++) {
    const response = await fetch(url, { method: "POST", body: "x".repeat(3_000_000) });
    assert.equal(response.status, 413);
    assert.match(await response.text(), /too_large/);
  }
});
