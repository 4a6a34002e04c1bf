import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { echo, echoAfter, get, MAX_BODY, post, startHttpStage } from "./http_stage.ts";

// the request, what the handler gets of it
const ACCEPTED: readonly [bytes: string, given: Record<string, unknown>][] = [
  ["GET /a?b=c HTTP/1.0\r\n\r\n", { method: "GET", path: "/a", query: "b=c" }],
  [`\r\n\r\n${get()}`, { path: "/", query: "" }],
  [get("http://b/c?d"), { path: "/c", query: "d" }],
  [get("https://b?d"), { path: "/", query: "d" }],
  [get("//b/c"), { path: "//b/c" }],
  ["GET /a HTTP/1.1\r\nHost:\r\n\r\n", { path: "/a" }],
  [get("/a", "a:\r\n".repeat(199)), { path: "/a" }], // 200 headers
  ["GET /b HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n", { path: "/b" }],
  ["GET /c HTTP/1.1\r\nHost: a_b-c.example.:\r\n\r\n", { path: "/c" }],
  ["OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", { method: "OPTIONS", path: "*" }],
  ["TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", { method: "TRACE" }],
  [get("/", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), { path: "/" }],
  [post("Content-Length: 3\r\n", "abc"), { bytes: 3 }],
  [
    post("Transfer-Encoding: Chunked\r\n", "1;a=b\r\nx\r\n2\r\nyz\r\n0\r\nT: u\r\n\r\n"),
    { bytes: 3 },
  ],
  [post("Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n", "ab"), { bytes: 2 }],
  [post(`Content-Length: ${MAX_BODY}\r\n`, "x".repeat(MAX_BODY)), { bytes: MAX_BODY }],
];

for (const [bytes, given] of ACCEPTED) {
  test(`a request is accepted: ${JSON.stringify(bytes.slice(0, 70))}`, async (t) => {
    const { exchange } = await startHttpStage(t);
    const { responses } = await exchange(bytes, { finish: true });
    assert.equal(responses.length, 1);
    assert.equal(responses[0]?.status, 200);
    assert.partialDeepStrictEqual(JSON.parse(responses[0]?.body ?? ""), given);
  });
}

test("a request to upgrade gets a response, and the connection ends", async (t) => {
  const { exchange, exchangeToEnd } = await startHttpStage(t);
  const upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n";
  const { responses } = await exchangeToEnd(get("/a") + get("/b", upgrade) + get("/c"));
  assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/a", "/b"]);
  assert.equal(responses[1]?.headers["connection"], "close");
  // An upgrade counts only if Connection names it (RFC 9110 §7.8).
  const { responses: all } = await exchange(get("/d", "Upgrade: h2c\r\n") + get("/e"));
  assert.deepEqual(all.map(({ body }) => JSON.parse(body).path), ["/d", "/e"]);
});

test("a client that closes its side of the connection still gets its responses", async (t) => {
  const aborted: boolean[] = [];
  const { exchangeToEnd, log } = await startHttpStage(t, {
    async handle(request) {
      await delay(50);
      aborted.push(request.signal.aborted);
      return echo(request);
    },
  });
  const bytes = get() + post("Content-Length: 2\r\n", "ab");
  const { responses } = await exchangeToEnd(bytes, { end: true });
  assert.deepEqual(responses.map(({ status }) => status), [200, 200]);
  assert.equal(responses[1]?.headers["connection"], "close");
  assert.deepEqual([aborted, log], [[true, true], []]);
});

test("an idle connection is kept for longer than proxies keep theirs", async (t) => {
  const { exchange } = await startHttpStage(t);
  const { responses: [response] } = await exchange(get());
  const [, seconds] = /timeout=(\d+)/.exec(response?.headers["keep-alive"] ?? "") ?? [];
  assert.ok(Number(seconds) > 120); // Caddy's two minutes
});

test("a handler may take longer than a request may take to arrive", async (t) => {
  const { exchange } = await startHttpStage(t, {
    limits: { headersTimeoutMs: 50, requestTimeoutMs: 100 },
    handle: echoAfter(400),
  });
  const { responses } = await exchange(get(), { waitMs: 1000 });
  assert.equal(responses[0]?.status, 200);
});

test("a response that cannot be sent ends the connection and is logged", async (t) => {
  const { exchangeToEnd, log } = await startHttpStage(t, {
    handle: () => ({ status: 200, headers: { "X-Bad": "a\nb" }, body: "secret" }),
  });
  assert.equal((await exchangeToEnd(get())).text, "");
  await delay(20);
  assert.match(log.join(""), /"response cut off"/);
  assert.doesNotMatch(log.join(""), /secret/);
});
