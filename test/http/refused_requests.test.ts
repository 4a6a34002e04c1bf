import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import {
  assertProblem,
  CHUNKED,
  CONNECT,
  echoAfter,
  get,
  MAX_BODY,
  post,
  startHttpStage,
} from "./http_stage.ts";

const END = "0\r\n\r\n";
const LONG = "x".repeat(17_000);

// what is wrong, the request, the response's status
const REFUSED: readonly [what: string, bytes: string, status: number][] = [
  ["no Host", "GET / HTTP/1.1\r\n\r\n", 400],
  ["two Hosts", get("/", "Host: b\r\n"), 400],
  ["two equal Hosts", get("/", "Host: a\r\n"), 400],
  ["a path in Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400],
  ["credentials in Host", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400],
  ["a space in Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400],
  ["an invalid port in Host", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400],
  ["half an IPv6 address in Host", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400],
  ["quotes in Host", "GET / HTTP/1.0\r\nHost: \"a\"\r\n\r\n", 400],
  ["two Authorizations", get("/", "Authorization: Bearer a\r\nauthorization: b\r\n"), 400],
  [
    "two Content-Types",
    post("Content-Type: a/b\r\nContent-Type: c/d\r\nContent-Length: 0\r\n"),
    400,
  ],
  [
    "two Content-Encodings",
    post("Content-Encoding: a\r\nContent-Encoding: b\r\nContent-Length: 0\r\n"),
    400,
  ],
  ["two Origins", get("/", "Origin: http://a\r\nOrigin: http://b\r\n"), 400],
  ["two Content-Lengths", post("Content-Length: 1\r\nContent-Length: 1\r\n", "a"), 400],
  ["a list as Content-Length", post("Content-Length: 1, 1\r\n", "a"), 400],
  ["a negative Content-Length", post("Content-Length: -1\r\n"), 400],
  ["a signed Content-Length", post("Content-Length: +1\r\n", "a"), 400],
  ["a hexadecimal Content-Length", post("Content-Length: 0x1\r\n", "a"), 400],
  ["a Content-Length past 64 bits", post(`Content-Length: ${"9".repeat(30)}\r\n`), 400],
  ["Content-Length and Transfer-Encoding", post(`Content-Length: 5\r\n${CHUNKED}`, END), 400],
  ["Transfer-Encoding and Content-Length", post(`${CHUNKED}Content-Length: 5\r\n`, END), 400],
  ["Transfer-Encoding twice", post(CHUNKED + CHUNKED, END), 400],
  ["Transfer-Encoding: identity", post("Transfer-Encoding: identity\r\n"), 400],
  ["Transfer-Encoding: gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n", END), 400],
  ["Transfer-Encoding: chunked, gzip", post("Transfer-Encoding: chunked, gzip\r\n", END), 400],
  ["Transfer-Encoding: xchunked", post("Transfer-Encoding: xchunked\r\n", END), 400],
  ["a space before the colon", post("Transfer-Encoding : chunked\r\n", END), 400],
  ["Transfer-Encoding in HTTP/1.0", `POST / HTTP/1.0\r\nHost: a\r\n${CHUNKED}\r\n${END}`, 400],
  ["a folded header", get("/", "X: a\r\n b\r\n"), 400],
  ["a NUL in a header", get("/", "X: a\0b\r\n"), 400],
  ["a bare CR in a header", get("/", "X: a\rb\r\n"), 400],
  ["a bare LF after a header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400],
  ["a header without a name", get("/", ": x\r\n"), 400],
  ["bytes past ASCII in the target", get("/\xff"), 400],
  ["a fragment in the target", get("/a#b"), 400],
  ["a target without a slash", get("a"), 400],
  ["an unknown method", "FOO / HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["HTTP/2 with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  ["HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400],
  ["HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 400],
  ["CONNECT", CONNECT, 405],
  ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
  ["headers past 16 KiB", get("/", `X: ${LONG}\r\n`), 431],
  ["a target past 16 KiB", get(`/${LONG}`), 431],
  ["more than 200 headers", get("/", "a:\r\n".repeat(200)), 431],
  ["an unknown expectation", post("Expect: 200-ok\r\nContent-Length: 1\r\n", "a"), 417],
  ["an announced length that is too large", post(`Content-Length: ${MAX_BODY + 1}\r\n`), 413],
  ["an invalid chunk size", post(CHUNKED, "zz\r\n"), 400],
  ["a chunk without its end", post(CHUNKED, `1\r\nab\r\n${END}`), 400],
  ["a chunk size past 64 bits", post(CHUNKED, `${"f".repeat(20)}\r\n`), 400],
  ["chunk extensions past 16 KiB", post(CHUNKED, `1;${LONG}\r\na\r\n${END}`), 413],
  ["trailers past 16 KiB", post(CHUNKED, `0\r\nX: ${LONG}\r\n\r\n`), 431],
  [
    "chunks that are too large together",
    post(CHUNKED, `4000\r\n${"x".repeat(0x4000)}\r\n`.repeat(40) + END),
    413,
  ],
];

for (const [what, bytes, status] of REFUSED) {
  test(`a request with ${what} is refused with ${status} and the connection ends`, async (t) => {
    const { exchangeToEnd } = await startHttpStage(t);
    const { responses } = await exchangeToEnd(bytes);
    assertProblem(responses[0], status, what);
    assert.equal(responses.length, 1, "one response and no more");
    assert.equal(responses[0]?.headers["connection"], "close");
  });
}

test("an invalid request after good pipelined ones is refused after their responses", async (t) => {
  const { exchangeToEnd, refusals } = await startHttpStage(t, { handle: echoAfter(30) });
  const { responses } = await exchangeToEnd(`${get()}${get()}nonsense\r\n\r\n${get()}`);
  assert.deepEqual(responses.map(({ status }) => status), [200, 200, 400]);
  assertProblem(responses[2], 400);
  assert.deepEqual(refusals, [400]);
});

test("nothing after a refused head is read as a request", async (t) => {
  const { exchangeToEnd, requests } = await startHttpStage(t);
  const smuggled = get("/smuggled");
  const bytes = post("Transfer-Encoding: gzip, chunked\r\n", END + smuggled);
  const { responses } = await exchangeToEnd(bytes);
  assert.deepEqual(responses.map(({ status }) => status), [400]);
  assert.deepEqual(requests, []);
});

test("a request to upgrade whose body does not come, or breaks off, is refused", async (t) => {
  const { exchangeToEnd } = await startHttpStage(t, {
    limits: { headersTimeoutMs: 100, requestTimeoutMs: 200 },
  });
  const rows: [field: string, body: string, status: number, end: boolean][] = [
    ["Content-Length: 5\r\n", "abc", 408, false],
    ["Content-Length: 5\r\n", "abc", 400, true],
    [CHUNKED, "3\r\nabc\r\nx", 408, false], // the parser reports no error
    [CHUNKED, "3\r\nabc\r\nx", 400, true],
  ];
  for (const [field, body, status, end] of rows) {
    const bytes = post(`Connection: Upgrade\r\nUpgrade: h2c\r\n${field}`, body);
    const { responses } = await exchangeToEnd(bytes, { end });
    assert.deepEqual(responses.map((response) => response.status), [status], bytes);
  }
});

test("CONNECT after a request ends the connection, and the server goes on", async (t) => {
  const { exchangeToEnd } = await startHttpStage(t, { handle: () => ({ status: 404 }) });
  await exchangeToEnd(post("Expect: 100-continue\r\nContent-Length: 4\r\n", "abcd") + CONNECT);
  const { responses } = await exchangeToEnd(CONNECT);
  assert.equal(responses[0]?.status, 405);
});

test("a client that resets its connection after CONNECT does not harm the server", async (t) => {
  const { open, exchange } = await startHttpStage(t);
  for (let each = 0; each < 50; each++) {
    const socket = await open();
    socket.write(CONNECT, () => socket.resetAndDestroy());
    await once(socket, "close");
  }
  assert.equal((await exchange(get())).responses[0]?.status, 200);
});

test("a client that leaves after CONNECT is noticed", { timeout: 20_000 }, async (t) => {
  const aborted = Promise.withResolvers<void>();
  const { open } = await startHttpStage(t, {
    handle({ signal }) {
      signal.addEventListener("abort", () => aborted.resolve());
      return new Promise(() => {});
    },
  });
  const socket = await open();
  socket.end(get() + CONNECT);
  await aborted.promise;
});
