import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import { connect as connectSocket, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { after, test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Cidr, parseCidr } from "../../src/base/cidr.ts";
import type { HttpResponse, HttpRequest } from "../../src/base/http_message.ts";
import { createLogger } from "../../src/base/log.ts";
import { Problem } from "../../src/base/problem.ts";
import type { HttpLimits } from "../../src/http/limits.ts";
import { closeServer } from "../../src/http/node_close.ts";
import { createHttpServer } from "../../src/http/node_http.ts";
import { problemResponse } from "../../src/http/respond.ts";
import { exchangeRaw, openRaw, parseResponses, type RawResponse } from "../helpers/raw_http.ts";
import { until } from "../helpers/until.ts";

const MAX_BODY = 64 * 1024;
const HOST = "Host: a\r\n";
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`;
const CONNECT = `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\n`;

interface Stage {
  readonly port: number;
  readonly server: Server;
  /** The requests that the handler got, in order. */
  readonly requests: HttpRequest[];
  readonly refusals: number[];
  readonly log: string[];
}

type Handle = (request: HttpRequest) => Promise<HttpResponse> | HttpResponse;

/** Responds with what was requested; reads the body of POST and PUT. */
async function echo(request: HttpRequest): Promise<HttpResponse> {
  const { method, path, query } = request;
  const reads = method === "POST" || method === "PUT";
  const bytes = reads ? (await request.readBody(MAX_BODY)).length : 0;
  return { status: 200, body: JSON.stringify({ method, path, query, bytes }) };
}

const HEADERS = { "X-Content-Type-Options": "nosniff" };

/** Starts a server whose handler turns problems into responses, as the pipeline does. */
async function startStage(
  t: TestContext,
  { handle = echo, limits = {}, stopping, trustedProxies = [] }: {
    handle?: Handle;
    limits?: Partial<HttpLimits>;
    stopping?: AbortSignal;
    trustedProxies?: readonly Cidr[];
  } = {},
): Promise<Stage> {
  const requests: HttpRequest[] = [];
  const refusals: number[] = [];
  const lines: string[] = [];
  const write = (text: string) => void lines.push(text);
  const log = createLogger({ level: "debug", write, now: Date.now });
  const server = createHttpServer({
    async handle(request) {
      requests.push(request);
      try {
        const { headers, ...response } = await handle(request);
        return { ...response, headers: { ...HEADERS, "X-Request-Id": request.id, ...headers } };
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(500, "internal", "Failed.");
        return problemResponse(problem, request.id);
      }
    },
    trustedProxies,
    maxBodyBytes: MAX_BODY,
    log,
    onRefusal: (status) => void refusals.push(status),
    limits,
    ...stopping && { stopping },
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return { port: address.port, server, requests, refusals, log: lines };
}

/** Asserts what every refusal has, whichever part made it. */
function assertProblem(response: RawResponse | undefined, status: number, note = ""): void {
  assert.ok(response, note);
  assert.equal(response.status, status, `${note} ${response.body}`);
  assert.equal(response.headers["content-type"], "application/problem+json", note);
  assert.equal(response.headers["x-content-type-options"], "nosniff", note);
  assert.match(response.headers["date"] ?? "", /GMT$/, note);
  const problem: Record<string, unknown> = JSON.parse(response.body);
  assert.match(String(problem["type"]), /^urn:gatepost:problem:[a-z_]+$/, note);
  assert.equal(problem["status"], status, note);
  assert.equal(problem["request_id"], response.headers["x-request-id"], note);
  assert.match(response.headers["x-request-id"] ?? "", /^[A-Za-z0-9._:-]+$/, note);
  assert.ok(response.line.length > 4, `${note}: a status line has its phrase`);
}

const post = (fields: string, body = "") => `POST /x HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;
const CHUNKED = "Transfer-Encoding: chunked\r\n";
const END = "0\r\n\r\n";
const LONG = "x".repeat(17_000);

// what is wrong, the request, the response's status
const REFUSED: readonly [what: string, bytes: string, status: number][] = [
  ["no Host", "GET / HTTP/1.1\r\n\r\n", 400],
  ["two Hosts", `GET / HTTP/1.1\r\n${HOST}Host: b\r\n\r\n`, 400],
  ["two equal Hosts", `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`, 400],
  ["a path in Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400],
  ["credentials in Host", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400],
  ["a space in Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400],
  ["an invalid port in Host", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400],
  ["half an IPv6 address in Host", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400],
  ["quotes in Host", "GET / HTTP/1.0\r\nHost: \"a\"\r\n\r\n", 400],
  [
    "two Authorizations",
    `GET / HTTP/1.1\r\n${HOST}Authorization: Bearer a\r\nauthorization: b\r\n\r\n`,
    400,
  ],
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
  ["two Origins", `GET / HTTP/1.1\r\n${HOST}Origin: http://a\r\nOrigin: http://b\r\n\r\n`, 400],
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
  ["Transfer-Encoding in HTTP/1.0", `POST / HTTP/1.0\r\n${HOST}${CHUNKED}\r\n${END}`, 400],
  ["a folded header", `GET / HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n`, 400],
  ["a NUL in a header", `GET / HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n`, 400],
  ["a bare CR in a header", `GET / HTTP/1.1\r\n${HOST}X: a\rb\r\n\r\n`, 400],
  ["a bare LF after a header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400],
  ["a header without a name", `GET / HTTP/1.1\r\n${HOST}: x\r\n\r\n`, 400],
  ["bytes past ASCII in the target", `GET /\xff HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["a fragment in the target", `GET /a#b HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["a target without a slash", `GET a HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["an unknown method", `FOO / HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["HTTP/2 with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  ["HTTP/2.0", `GET / HTTP/2.0\r\n${HOST}\r\n`, 400],
  ["HTTP/1.2", `GET / HTTP/1.2\r\n${HOST}\r\n`, 400],
  ["CONNECT", CONNECT, 405],
  ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
  ["headers past 16 KiB", `GET / HTTP/1.1\r\n${HOST}X: ${LONG}\r\n\r\n`, 431],
  ["a target past 16 KiB", `GET /${LONG} HTTP/1.1\r\n${HOST}\r\n`, 431],
  ["more than 200 headers", `GET / HTTP/1.1\r\n${HOST}${"a:\r\n".repeat(200)}\r\n`, 431],
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
    const { port } = await startStage(t);
    const { responses, isClosed } = await exchangeRaw(port, bytes, { waitMs: 3000 });
    assertProblem(responses[0], status, what);
    assert.equal(responses.length, 1, "one response and no more");
    assert.equal(responses[0]?.headers["connection"], "close");
    assert.ok(isClosed);
  });
}

test("CONNECT after a request ends the connection, and the server goes on", async (t) => {
  const { port } = await startStage(t, { handle: () => ({ status: 404 }) });
  const unread = post("Expect: 100-continue\r\nContent-Length: 4\r\n", "abcd");
  const { isClosed } = await exchangeRaw(port, unread + CONNECT, { waitMs: 3000 });
  assert.ok(isClosed);
  const { responses } = await exchangeRaw(port, CONNECT, { waitMs: 3000 });
  assert.equal(responses[0]?.status, 405);
});

test("a client that resets its connection after CONNECT does not harm the server", async (t) => {
  const { port } = await startStage(t);
  for (let each = 0; each < 50; each++) {
    const socket = connectSocket({ port, host: "127.0.0.1" }).on("error", () => {});
    await once(socket, "connect");
    socket.write(CONNECT, () => socket.resetAndDestroy());
    await once(socket, "close");
  }
  const { responses } = await exchangeRaw(port, `GET / HTTP/1.0\r\n${HOST}\r\n`, { waitMs: 3000 });
  assert.equal(responses[0]?.status, 200);
});

// the request, what the handler gets of it
const ACCEPTED: readonly [bytes: string, given: Record<string, unknown>][] = [
  ["GET /a?b=c HTTP/1.0\r\n\r\n", { method: "GET", path: "/a", query: "b=c" }],
  [`\r\n\r\nGET / HTTP/1.1\r\n${HOST}\r\n`, { path: "/", query: "" }],
  [`GET http://b/c?d HTTP/1.1\r\n${HOST}\r\n`, { path: "/c", query: "d" }],
  [`GET https://b?d HTTP/1.1\r\n${HOST}\r\n`, { path: "/", query: "d" }],
  [`GET //b/c HTTP/1.1\r\n${HOST}\r\n`, { path: "//b/c" }],
  ["GET /a HTTP/1.1\r\nHost:\r\n\r\n", { path: "/a" }],
  [`GET /a HTTP/1.1\r\n${HOST}${"a:\r\n".repeat(199)}\r\n`, { path: "/a" }], // 200 headers
  ["GET /b HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n", { path: "/b" }],
  ["GET /c HTTP/1.1\r\nHost: a_b-c.example.:\r\n\r\n", { path: "/c" }],
  [`OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, { method: "OPTIONS", path: "*" }],
  [`TRACE / HTTP/1.1\r\n${HOST}\r\n`, { method: "TRACE" }],
  [`GET / HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, { path: "/" }],
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
    const { port } = await startStage(t);
    const { responses } = await exchangeRaw(port, bytes);
    assert.equal(responses.length, 1);
    assert.equal(responses[0]?.status, 200);
    assert.partialDeepStrictEqual(JSON.parse(responses[0]?.body ?? ""), given);
  });
}

test("100 Continue is sent when the handler reads the body", async (t) => {
  const { port } = await startStage(t);
  const socket = await openRaw(port);
  socket.write(post("Expect: 100-continue\r\nContent-Length: 2\r\n"));
  const [first] = await once(socket, "data");
  assert.match(String(first), /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  socket.write("ab");
  const [second] = await once(socket, "data");
  assert.match(String(second), /"bytes":2/);
  socket.destroy();
});

test("100 Continue is not sent for a body that is refused", async (t) => {
  const { port } = await startStage(t);
  const head = post(`Expect: 100-continue\r\nContent-Length: ${MAX_BODY + 1}\r\n`);
  const { responses, text } = await exchangeRaw(port, head, { waitMs: 3000 });
  assert.doesNotMatch(text, /100 Continue/);
  assertProblem(responses[0], 413);
});

test("100 Continue is not sent to an HTTP/1.0 client (RFC 9110 §10.1.1)", async (t) => {
  const { port } = await startStage(t);
  const bytes = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab";
  const { text } = await exchangeRaw(port, bytes);
  assert.doesNotMatch(text, /100 Continue/);
  assert.match(text, /"bytes":2/);
});

test("pipelined requests get their responses in order", async (t) => {
  const { port } = await startStage(t, {
    async handle(request) {
      if (request.path === "/slow") await delay(50);
      return echo(request);
    },
  });
  const bytes = ["/slow", "/b", "/c"].map((path) => `GET ${path} HTTP/1.1\r\n${HOST}\r\n`).join("");
  const { responses } = await exchangeRaw(port, bytes);
  assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/slow", "/b", "/c"]);
});

test("a response that breaks before an earlier one is sent ends the connection", async (t) => {
  const streams: Record<string, ReadableStream> = {
    "/broken": new ReadableStream({ pull: () => Promise.reject(new Error("broken")) }),
    "/endless": new ReadableStream({ pull: () => delay(10) }),
  };
  const { port } = await startStage(t, {
    async handle(request) {
      if (request.path === "/slow") await delay(100);
      const body = streams[request.path];
      return body ? { status: 200, body } : echo(request);
    },
  });
  for (const [path, end] of [["/broken", false], ["/endless", true]] as const) {
    const ahead = ["/slow", path, "/c"].map((each) => `GET ${each} HTTP/1.1\r\n${HOST}\r\n`);
    const { responses, isClosed } = await exchangeRaw(port, ahead.join(""), { end, waitMs: 2000 });
    assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/slow"], path);
    assert.ok(isClosed, path);
  }
});

test("a request to upgrade gets a response, and the connection ends", async (t) => {
  const { port } = await startStage(t);
  const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\n${HOST}${more}\r\n`;
  const upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n";
  const bytes = get("/a") + get("/b", upgrade) + get("/c");
  const { responses, isClosed } = await exchangeRaw(port, bytes, { waitMs: 3000 });
  assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/a", "/b"]);
  assert.equal(responses[1]?.headers["connection"], "close");
  assert.ok(isClosed);
  // An upgrade counts only if Connection names it (RFC 9110 §7.8).
  const { responses: all } = await exchangeRaw(port, get("/d", "Upgrade: h2c\r\n") + get("/e"));
  assert.deepEqual(all.map(({ body }) => JSON.parse(body).path), ["/d", "/e"]);
});

test("a request to upgrade whose body does not come, or breaks off, is refused", async (t) => {
  const { port } = await startStage(t, {
    limits: { headersTimeoutMs: 100, requestTimeoutMs: 200 },
  });
  const head = `POST / HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: h2c\r\n`;
  const rows: [bytes: string, status: number, end?: true][] = [
    ["Content-Length: 5\r\n\r\nabc", 408],
    ["Content-Length: 5\r\n\r\nabc", 400, true],
    ["Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx", 408], // the parser reports no error
    ["Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx", 400, true],
  ];
  for (const [bytes, status, end] of rows) {
    const exchange = await exchangeRaw(port, head + bytes, { waitMs: 5000, ...end && { end } });
    assert.deepEqual(exchange.responses.map((response) => response.status), [status], bytes);
    assert.ok(exchange.isClosed, bytes);
  }
});

test("an invalid request after good pipelined ones is refused after their responses", async (t) => {
  const { port, refusals } = await startStage(t, {
    async handle(request) {
      await delay(30);
      return echo(request);
    },
  });
  const good = `GET /a HTTP/1.1\r\n${HOST}\r\n`;
  const { responses, isClosed } = await exchangeRaw(port, `${good}${good}nonsense\r\n\r\n${good}`);
  assert.deepEqual(responses.map(({ status }) => status), [200, 200, 400]);
  assertProblem(responses[2], 400);
  assert.ok(isClosed);
  assert.deepEqual(refusals, [400]);
});

test("nothing after a refused head is read as a request", async (t) => {
  const { port, requests } = await startStage(t);
  const smuggled = `GET /smuggled HTTP/1.1\r\n${HOST}\r\n`;
  const encoding = "Transfer-Encoding: gzip, chunked";
  const bytes = `POST / HTTP/1.1\r\n${HOST}${encoding}\r\n\r\n0\r\n\r\n${smuggled}`;
  const { responses } = await exchangeRaw(port, bytes, { waitMs: 3000 });
  assert.deepEqual(responses.map(({ status }) => status), [400]);
  assert.deepEqual(requests, []);
});

test("of too many pipelined requests the first are served, then the connection ends", async (t) => {
  const { port, requests } = await startStage(t, {
    limits: { maxPipelined: 4 },
    async handle(request) {
      await delay(request.path === "/0" ? 50 : 0);
      return echo(request);
    },
  });
  const ahead = Array.from({ length: 1000 }, (_, each) => `GET /${each} HTTP/1.1\r\n${HOST}\r\n`);
  const { responses, isClosed } = await exchangeRaw(port, ahead.join(""), { waitMs: 2000 });
  assert.deepEqual(responses.map(({ body }) => JSON.parse(body).path), ["/0", "/1", "/2", "/3"]);
  const ends = responses.map(({ headers }) => headers["connection"]);
  assert.deepEqual(ends, ["keep-alive", "keep-alive", "keep-alive", "close"]);
  assert.ok(isClosed);
  assert.equal(requests.length, 4);
  const all = await exchangeRaw(port, ahead.slice(0, 4).join(""));
  assert.deepEqual([all.responses.length, all.isClosed], [4, false]);
});

test("requests far past the pipelining limit are not even parsed", async (t) => {
  const { port, server, requests } = await startStage(t, {
    limits: { maxPipelined: 4 },
    handle: () => new Promise(() => {}),
  });
  let parsed = 0;
  server.on("request", () => parsed++);
  for (let connections = 1; connections <= 2; connections++) {
    await exchangeRaw(port, GET.repeat(6000), { waitMs: 300 });
    assert.deepEqual([requests.length, parsed], [4 * connections, 5 * connections]);
  }
});

test("bodies in small chunks do not delay other clients", async (t) => {
  const { port, server } = await startStage(t);
  const accepted: Socket[] = [];
  server.on("connection", (socket: Socket) => accepted.push(socket));
  const patient = await openRaw(port);
  patient.write(GET);
  await once(patient, "data");
  const flooding = await Promise.all(Array.from({ length: 30 }, () => openRaw(port)));
  await until(() => accepted.length === 31);
  for (const socket of flooding) socket.write(post(CHUNKED, "1\r\nx\r\n".repeat(10_000)));
  patient.write(GET);
  await once(patient, "data");
  const read = accepted.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  assert.ok(read < 1_000_000, `${read} bytes of ${30 * 60_000}`);
  for (const socket of [patient, ...flooding]) socket.destroy();
});

test("unread bodies in small chunks take little memory", async (t) => {
  const { port, requests } = await startStage(t, {
    async handle({ path }) {
      await delay(path === "/x" ? 0 : 60_000, undefined, { ref: false });
      return { status: 404 };
    },
  });
  const flooding = await Promise.all(Array.from({ length: 40 }, () => openRaw(port)));
  const before = process.memoryUsage();
  const sent = flooding.map((socket) => {
    socket.write(GET);
    const body = "1\r\nx\r\n".repeat(16_000);
    return new Promise((resolve) => socket.write(post(CHUNKED, body), resolve));
  });
  await Promise.all(sent);
  await until(() => requests.length === 80);
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const grown = heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers;
  assert.ok(grown < 80 * 2 ** 20, `${grown} bytes for ${40 * 16_000}`);
  for (const socket of flooding) socket.destroy();
});

test("an unread body ends the connection, after the whole response", async (t) => {
  const body = "y".repeat(10_000);
  const { port, requests } = await startStage(t, { handle: () => ({ status: 200, body }) });
  const bytes = post("Content-Length: 50000\r\n", "x".repeat(20_000));
  const { responses, isClosed } = await exchangeRaw(port, bytes, { waitMs: 4000 });
  assert.equal(responses[0]?.body, body);
  assert.equal(responses[0]?.headers["connection"], "close");
  assert.ok(isClosed);
  assert.equal(requests.length, 1);
});

test("a client that is still sending a too large body gets the whole response", async (t) => {
  const { port } = await startStage(t);
  const url = `http://127.0.0.1:${port}/`;
  for (let count = 0; count < 5; count++) {
    const response = await fetch(url, { method: "POST", body: "x".repeat(3_000_000) });
    assert.equal(response.status, 413);
    assert.match(await response.text(), /too_large/);
  }
});

test("a client that reads only after it has sent its body gets the whole stream", async (t) => {
  const { port } = await startStage(t, {
    handle: () => ({ status: 403, body: new Response("no").body ?? undefined }),
  });
  const socket = await openRaw(port);
  socket.pause();
  const sent = new Promise((resolve) =>
    socket.write(post("Content-Length: 20000000\r\n", "x".repeat(20_000_000)), resolve));
  assert.equal(await sent, null);
  const [response] = parseResponses(await text(socket));
  assert.equal(response?.status, 403);
  assert.equal(response.body, "no");
});

test("a stream does not wait for a body that waits for 100 Continue", async (t) => {
  const { port } = await startStage(t, {
    handle: () => ({ status: 403, body: new Response("no").body ?? undefined }),
  });
  const bytes = post("Expect: 100-continue\r\nContent-Length: 5\r\n");
  const { responses, isClosed } = await exchangeRaw(port, bytes, { waitMs: 1500 });
  assert.equal(responses[0]?.body, "no");
  assert.ok(isClosed);
});

test("a small unread body keeps the connection", async (t) => {
  const { port } = await startStage(t, { handle: () => ({ status: 200, body: "ok" }) });
  const bytes = post("Content-Length: 3\r\n", "abc").repeat(2);
  const { responses, isClosed } = await exchangeRaw(port, bytes);
  assert.deepEqual(responses.map(({ body }) => body), ["ok", "ok"]);
  assert.equal(isClosed, false);
});

test("a client that closes its side of the connection still gets its responses", async (t) => {
  const aborted: boolean[] = [];
  const { port, log } = await startStage(t, {
    async handle(request) {
      await delay(50);
      aborted.push(request.signal.aborted);
      return echo(request);
    },
  });
  const options = { end: true, waitMs: 3000 };
  const bytes = GET + post("Content-Length: 2\r\n", "ab");
  const { responses, isClosed } = await exchangeRaw(port, bytes, options);
  assert.deepEqual(responses.map(({ status }) => status), [200, 200]);
  assert.equal(responses[1]?.headers["connection"], "close");
  assert.ok(isClosed);
  assert.deepEqual([aborted, log], [[true, true], []]);
});

const counting = (ms: number) => () => new ReadableStream<Uint8Array>({
  async start(controller) {
    for (const count of ["one ", "two ", "three"]) {
      controller.enqueue(Buffer.from(count));
      await delay(ms);
    }
    controller.close();
  },
});

const EVENTS = { "content-type": "text/event-stream" };
const silent = () => new ReadableStream<Uint8Array>();

test("a stream whose client closes its side is visibly cut off", async (t) => {
  const body = counting(100);
  const { port, server } = await startStage(t, { handle: () => ({ status: 200, body: body() }) });
  const socket = await openRaw(port);
  const all = text(socket);
  socket.write(GET);
  await once(server, "request");
  await delay(50);
  socket.end();
  assert.match(await all, /one [^]*(?<!0\r\n\r\n)$/);
});

test("a stream that begins after its client has closed its side is sent whole", async (t) => {
  const body = counting(10);
  const { port } = await startStage(t, {
    handle: () => delay(50).then(() => ({ status: 200, body: body() })),
  });
  const { responses } = await exchangeRaw(port, GET, { end: true, waitMs: 3000 });
  assert.equal(responses[0]?.body, "one two three");
});

test("an event stream that begins after its client has closed its side is ended", async (t) => {
  const { port } = await startStage(t, {
    handle: () => delay(50).then(() => ({ status: 200, headers: EVENTS, body: silent() })),
  });
  assert.ok((await exchangeRaw(port, GET, { end: true, waitMs: 3000 })).isClosed);
});

test("an event stream that begins while the server stops is ended", async (t) => {
  const stop = new AbortController();
  const { port } = await startStage(t, {
    stopping: stop.signal,
    async handle() {
      stop.abort();
      return { status: 200, headers: EVENTS, body: silent() };
    },
  });
  assert.match((await exchangeRaw(port, GET, { waitMs: 2000 })).text, /\r\n0\r\n\r\n$/);
});

test("the signal of a finished response is not aborted, not even by a stop", async (t) => {
  const stop = new AbortController();
  const { port, requests } = await startStage(t, {
    stopping: stop.signal,
    handle: ({ path }) => ({ status: 200, body: path === "/a" ? "all" : counting(1)() }),
  });
  const { responses } = await exchangeRaw(port, GET.replace("/", "/a") + GET);
  assert.deepEqual(responses.map(({ body }) => body), ["all", "one two three"]);
  stop.abort();
  assert.deepEqual(requests.map(({ signal }) => signal.aborted), [false, false]);
});

test("an idle connection is kept for longer than proxies keep theirs", async (t) => {
  const { port } = await startStage(t);
  const { responses: [response] } = await exchangeRaw(port, GET);
  const [, seconds] = /timeout=(\d+)/.exec(response?.headers["keep-alive"] ?? "") ?? [];
  assert.ok(Number(seconds) > 120); // Caddy's two minutes
});

test("a server that closes ends a connection when the rest of its stream is sent", async (t) => {
  const { port, server } = await startStage(t, {
    handle: () => ({ status: 200, body: counting(100)() }),
  });
  const exchange = exchangeRaw(port, GET, { waitMs: 3000 });
  await once(server, "request");
  await delay(50);
  server.close();
  const { responses, isClosed } = await exchange;
  assert.equal(responses[0]?.body, "one two three");
  assert.ok(isClosed);
});

test("a stream that waits for an earlier response is cancelled if its client leaves", async (t) => {
  const cancelled = Promise.withResolvers<string>();
  const { port, requests } = await startStage(t, {
    async handle({ path }) {
      if (path === "/first") return new Promise(() => {});
      const body = new ReadableStream({ cancel: () => cancelled.resolve("cancelled") });
      return { status: 200, body };
    },
  });
  const socket = await openRaw(port);
  socket.write(GET.replace("/", "/first") + GET);
  await until(() => requests.length === 2);
  await delay(50);
  socket.resetAndDestroy();
  assert.equal(await Promise.race([cancelled.promise, delay(2000, "held")]), "cancelled");
});

test("a stream is cancelled if its content cannot be sent", async (t) => {
  const cancelled = Promise.withResolvers<string>();
  const body = new ReadableStream({
    start: (controller) => controller.enqueue({ no: "bytes" }),
    cancel: () => cancelled.resolve("cancelled"),
  });
  const { port } = await startStage(t, { handle: () => ({ status: 200, body }) });
  await exchangeRaw(port, GET);
  assert.equal(await Promise.race([cancelled.promise, delay(2000, "held")]), "cancelled");
});

test("a stream does not wait forever for the rest of an unread body", async (t) => {
  const { port } = await startStage(t, {
    handle: () => ({ status: 403, body: new Response("no").body ?? undefined }),
  });
  const bytes = post("Content-Length: 5\r\n", "ab");
  const { responses, isClosed } = await exchangeRaw(port, bytes, { waitMs: 5000 });
  assert.equal(responses[0]?.body, "no");
  assert.ok(isClosed);
});

test("many streams in a row on one connection cause no warning", async (t) => {
  const warnings: string[] = [];
  const note = ({ message }: Error) => void warnings.push(message);
  process.on("warning", note);
  t.after(() => process.off("warning", note));
  const { port } = await startStage(t, {
    handle: () => ({ status: 200, body: new Blob(["x"]).stream() }),
  });
  const socket = await openRaw(port);
  for (let count = 0; count < 60; count++) {
    socket.write(GET);
    for (let got = ""; !got.endsWith("0\r\n\r\n");) got += (await once(socket, "data"))[0];
  }
  socket.destroy();
  assert.deepEqual(warnings, []);
});

test("a stream that begins after its client has left is cancelled", async (t) => {
  const begin = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<string>();
  const { port, requests } = await startStage(t, {
    async handle({ path }) {
      if (path === "/first") return new Promise(() => {});
      await begin.promise;
      const body = new ReadableStream({ cancel: () => cancelled.resolve("cancelled") });
      return { status: 200, body };
    },
  });
  const socket = await openRaw(port);
  socket.write(GET.replace("/", "/first") + GET);
  await until(() => requests.length === 2);
  socket.resetAndDestroy();
  await until(() => requests[1]?.isGone);
  begin.resolve();
  assert.equal(await Promise.race([cancelled.promise, delay(2000, "held")]), "cancelled");
});

test("as many streams as may be pipelined wait without a warning", async (t) => {
  const warnings: string[] = [];
  const note = ({ message }: Error) => void warnings.push(message);
  process.on("warning", note);
  t.after(() => process.off("warning", note));
  const { port, requests } = await startStage(t, {
    handle: () => ({ status: 200, body: new ReadableStream() }),
  });
  const socket = await openRaw(port);
  socket.write(GET.repeat(16));
  await until(() => requests.length === 16);
  await delay(100);
  socket.destroy();
  assert.deepEqual(warnings, []);
});

test("204 and 304 have no Content-Length (RFC 9110 §8.6)", async (t) => {
  const stage = await startStage(t, {
    handle: ({ path }) => ({ status: Number(path.slice(1)) }),
  });
  for (const status of [204, 304]) {
    const request = `GET /${status} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
    const { responses: [response] } = await exchangeRaw(stage.port, Buffer.from(request));
    assert.equal(response?.status, status);
    assert.equal(response?.headers["content-length"], undefined);
  }
});

test("HEAD has the length of GET's body and no body", async (t) => {
  const { port } = await startStage(t);
  const request = `HEAD / HTTP/1.1\r\n${HOST}\r\n`;
  const { responses, text } = await exchangeRaw(port, request, { end: true });
  assert.equal(responses.length, 1);
  assert.ok(text.endsWith("\r\n\r\n"));
  assert.ok(Number(responses[0]?.headers["content-length"]) > 20);
});

test("a slow head is cut off with 408", async (t) => {
  const limits = { headersTimeoutMs: 100, requestTimeoutMs: 200 };
  const { port } = await startStage(t, { limits });
  const { responses, isClosed } = await exchangeRaw(port, "GET / HTTP/1.1\r\nHo", { waitMs: 3000 });
  assertProblem(responses[0], 408);
  assert.ok(isClosed);
});

test("a slow body is cut off with 408 as the response to its request", async (t) => {
  const { port, requests } = await startStage(t, {
    limits: { headersTimeoutMs: 100, requestTimeoutMs: 200 },
  });
  const bytes = post("X-Request-Id: mine\r\nContent-Length: 10\r\n", "abc");
  const { responses, isClosed } = await exchangeRaw(port, bytes, { waitMs: 4000 });
  assertProblem(responses[0], 408);
  assert.equal(responses[0]?.headers["x-request-id"], "mine");
  assert.equal(requests.length, 1);
  assert.ok(isClosed);
});

test("a body whose client has left before it is read is refused at once", async (t) => {
  const outcome = Promise.withResolvers<unknown>();
  const { port } = await startStage(t, {
    async handle(request) {
      while (!request.isGone) await delay(10);
      await delay(10);
      const waited = delay(500, "still waiting");
      outcome.resolve(await Promise.race([request.readBody(MAX_BODY), waited]).catch(String));
      return { status: 204 };
    },
  });
  const socket = await openRaw(port);
  socket.write(post("Content-Length: 10\r\n", "abc"));
  await delay(50);
  socket.resetAndDestroy();
  assert.match(String(await outcome.promise), /ended too early/);
});

test("a handler may take longer than a request may take to arrive", async (t) => {
  const { port } = await startStage(t, {
    limits: { headersTimeoutMs: 50, requestTimeoutMs: 100 },
    async handle(request) {
      await delay(400);
      return echo(request);
    },
  });
  const { responses } = await exchangeRaw(port, `GET / HTTP/1.1\r\n${HOST}\r\n`, { waitMs: 1000 });
  assert.equal(responses[0]?.status, 200);
});

const LARGE = "x".repeat(30_000_000);
const endless = () => new ReadableStream<Uint8Array>({
  pull: (controller) => controller.enqueue(Buffer.alloc(65_536)),
});
const STALLED: readonly [what: string, bytes: string, response: () => Partial<HttpResponse>][] = [
  ["a response", GET, () => ({ body: LARGE })],
  ["a response before CONNECT", GET + CONNECT, () => ({ body: LARGE })],
  ["a stream", GET, () => ({ body: endless() })],
  [
    "a stream's head",
    GET.replace("GET", "HEAD"),
    () => ({ headers: { "X-Large": LARGE }, body: endless() }),
  ],
];
for (const [what, bytes, response] of STALLED) {
  test(`a client that reads nothing of ${what} is cut off`, async (t) => {
    const { port, server } = await startStage(t, {
      limits: { stallTimeoutMs: 150 },
      handle: () => ({ status: 200, ...response() }),
    });
    const socket = await openRaw(port);
    socket.pause();
    socket.write(bytes);
    await delay(100);
    for (let waited = 0; await countConnections(server) > 0; waited += 50) {
      assert.ok(waited < 3000);
      await delay(50);
    }
    socket.destroy();
  });
}

test("a client that leaves after CONNECT is noticed", { timeout: 20_000 }, async (t) => {
  const aborted = Promise.withResolvers<void>();
  const { port } = await startStage(t, {
    handle({ signal }) {
      signal.addEventListener("abort", () => aborted.resolve());
      return new Promise(() => {});
    },
  });
  const socket = await openRaw(port);
  socket.end(GET + CONNECT);
  await aborted.promise;
});

test("a stream that is silent for longer than the stall timeout is not cut off", async (t) => {
  const { port } = await startStage(t, {
    limits: { stallTimeoutMs: 100 },
    handle: () => ({
      status: 200,
      body: new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(Buffer.from("begin "));
          await delay(500);
          controller.enqueue(Buffer.from("end"));
          controller.close();
        },
      }),
    }),
  });
  const response = await fetch(`http://127.0.0.1:${port}/`);
  assert.equal(await response.text(), "begin end");
});

test("a silent stream is not cut off for clients that read nothing", async (t) => {
  const { port } = await startStage(t, {
    limits: { maxHeldResponseBytes: 100_000 },
    handle: ({ path }) => ({
      status: 200,
      body: path === "/" ? "x".repeat(30_000_000) : new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(Buffer.from("begin "));
          await delay(500);
          controller.enqueue(Buffer.from("end"));
          controller.close();
        },
      }),
    }),
  });
  const response = await fetch(`http://127.0.0.1:${port}/stream`);
  const socket = await openRaw(port);
  socket.pause();
  socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(await response.text(), "begin end");
  socket.destroy();
});

test("a client that reads nothing is cut off, also after a slow handler", async (t) => {
  const { port, server } = await startStage(t, {
    limits: { stallTimeoutMs: 100 },
    async handle() {
      await delay(300);
      return { status: 200, body: "x".repeat(30_000_000) };
    },
  });
  const socket = await openRaw(port);
  socket.pause();
  socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  await delay(250);
  assert.equal(await countConnections(server), 1);
  for (let waited = 0; await countConnections(server) > 0; waited += 50) {
    assert.ok(waited < 3000);
    await delay(50);
  }
  socket.destroy();
});

test("a connection past the limit of its address is closed at once", async (t) => {
  const { port } = await startStage(t, { limits: { maxConnectionsPerAddress: 2 } });
  const kept = [await openRaw(port), await openRaw(port)];
  const request = `GET / HTTP/1.1\r\n${HOST}\r\n`;
  const { isClosed, text } = await exchangeRaw(port, request, { waitMs: 2000 });
  assert.ok(isClosed);
  assert.equal(text, "");
  kept[0]?.destroy();
  await delay(50);
  const { responses } = await exchangeRaw(port, `GET / HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(responses[0]?.status, 200);
  kept[1]?.destroy();
});

test("connections of a trusted proxy are not limited by address", async (t) => {
  const loopback = parseCidr("127.0.0.0/8");
  assert.ok(loopback);
  const { port } = await startStage(t, {
    limits: { maxConnectionsPerAddress: 2 },
    trustedProxies: [loopback],
  });
  const kept = [await openRaw(port), await openRaw(port)];
  assert.equal((await exchangeRaw(port, GET)).responses[0]?.status, 200);
  for (const socket of kept) socket.destroy();
});

test("a connection past the limit is closed if all others are in use", async (t) => {
  const { port, requests } = await startStage(t, {
    limits: { maxConnections: 2 },
    handle: () => new Promise(() => {}),
  });
  const busy = [await openRaw(port), await openRaw(port)];
  for (const socket of busy) socket.write(GET);
  await until(() => requests.length === 2);
  assert.ok((await exchangeRaw(port, GET, { waitMs: 2000 })).isClosed);
  assert.equal(requests.length, 2);
  for (const socket of busy) socket.destroy();
});

test("at the limit of connections, idle ones are closed for new ones", async (t) => {
  const { port } = await startStage(t, { limits: { maxConnections: 2 } });
  const idle = [await openRaw(port), await openRaw(port)];
  for (const socket of idle) {
    socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await once(socket, "data");
  }
  const request = `GET / HTTP/1.1\r\n${HOST}\r\n`;
  await exchangeRaw(port, request, { waitMs: 1000 }); // it is dropped, and the idle ones are closed
  await delay(50);
  assert.equal((await exchangeRaw(port, request)).responses[0]?.status, 200);
  for (const socket of idle) socket.destroy();
});

test("past the budget of bodies, those that have been coming longest are refused", async (t) => {
  const { port } = await startStage(t, { limits: { maxHeldBodyBytes: 2 * MAX_BODY } });
  const begun = post(`Content-Length: ${MAX_BODY}\r\n`, "x".repeat(MAX_BODY - 1));
  const hoarders = [];
  for (let count = 0; count < 3; count++) {
    hoarders.push(exchangeRaw(port, begun, { waitMs: 1500 }));
    await delay(50);
  }
  const honest = await exchangeRaw(port, `${begun}x`, { waitMs: 1500 });
  assert.equal(honest.responses[0]?.status, 200);
  const statuses = (await Promise.all(hoarders)).map(({ responses }) => responses[0]?.status);
  assert.deepEqual(statuses, [503, 503, undefined]);
  const [first] = (await Promise.all(hoarders)).flatMap(({ responses }) => responses);
  assertProblem(first, 503);
  assert.equal(first?.headers["retry-after"], "1");
});

/** A handler that reads each body, and responds once `open` is called. */
function holdAll(): { readonly handle: Handle; readonly open: () => void } {
  const { promise, resolve: open } = Promise.withResolvers<void>();
  const handle: Handle = async (request) => {
    const response = await echo(request);
    await promise;
    return response;
  };
  return { handle, open };
}

const HELD: readonly [what: string, limits: Partial<HttpLimits>, request: string][] = [
  [
    "bodies that came in one piece",
    { maxHeldBodyBytes: 2 * MAX_BODY },
    post("Content-Length: 50000\r\n", "x".repeat(50_000)),
  ],
  [
    "values parsed from JSON", // 99 bytes for each object
    { maxParsedBytes: 2 * MAX_BODY },
    post("Content-Type: application/json\r\nContent-Length: 2401\r\n", `[${"{},".repeat(800)}`),
  ],
  [
    "values parsed from a form",
    { maxParsedBytes: 2 * MAX_BODY },
    post(
      "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 2400\r\n",
      "a&".repeat(1200),
    ),
  ],
  [
    "values parsed from a form of files",
    { maxParsedBytes: 2 * MAX_BODY },
    post(
      "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 300\r\n",
      "\r\n--b".repeat(60),
    ),
  ],
];

test("a parsed value may exceed the budget if that is not used up yet", async (t) => {
  const { handle, open } = holdAll();
  const { port, requests } = await startStage(t, { limits: { maxParsedBytes: 10 }, handle });
  const exchanges = [];
  for (const body of ["1", "[1]", "2"]) {
    const head = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    exchanges.push(exchangeRaw(port, post(head, body), { finish: true }));
    await until(() => requests.length === exchanges.length);
    await delay(20); // for its body
  }
  open();
  const responses = (await Promise.all(exchanges)).map((exchange) => exchange.responses[0]?.status);
  assert.deepEqual(responses, [200, 200, 503]);
});

for (const [what, limits, request] of HELD) {
  test(`${what} are refused past the budget while others are in use`, async (t) => {
    const { handle, open } = holdAll();
    const { port, requests } = await startStage(t, { limits, handle });
    const exchanges = [];
    for (let count = 1; count <= 4; count++) {
      exchanges.push(exchangeRaw(port, request, { finish: true }));
      await until(() => requests.length === count);
      await delay(20); // for its body
    }
    open();
    const responses = (await Promise.all(exchanges)).map((exchange) => exchange.responses[0]);
    assert.deepEqual(responses.map((response) => response?.status), [200, 200, 503, 503]);
    assertProblem(responses[3], 503);
    assert.equal((await exchangeRaw(port, request, { finish: true })).responses[0]?.status, 200);
  });
}

test("pipelined requests past their memory budget end the connection", async (t) => {
  const { handle, open } = holdAll();
  const limits = { maxPipelinedBytes: 100_000 };
  const { port, requests } = await startStage(t, { limits, handle });
  const large = `GET / HTTP/1.1\r\n${HOST}X: ${"x".repeat(15_000)}\r\n\r\n`;
  const many = exchangeRaw(port, large.repeat(16), { waitMs: 1500 });
  await until(() => requests.length === 5); // one, and four of 30,000 bytes behind it
  const others = exchangeRaw(port, large.repeat(2), { waitMs: 1500 });
  await until(() => requests.length === 6);
  await delay(100);
  open();
  for (const [exchange, count] of [[await many, 5], [await others, 1]] as const) {
    assert.deepEqual(exchange.responses.map(({ status }) => status), Array(count).fill(200));
    assert.equal(exchange.isClosed, true);
  }
  assert.equal(requests.length, 6);
  assert.equal((await exchangeRaw(port, large.repeat(3))).responses.length, 3);
});

test("requests with long heads are handled in several turns of the event loop", async (t) => {
  let inTurn = 0;
  let most = 0;
  const { port, requests } = await startStage(t, {
    handle() {
      if (inTurn++ === 0) setImmediate(() => inTurn = 0);
      most = Math.max(most, inTurn);
      return { status: 200 };
    },
  });
  const sockets = Array.from({ length: 300 }, () => connectSocket(port, "127.0.0.1"));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  await delay(100); // until all have been accepted
  const fields = Array.from({ length: 190 }, (_, index) => `X-${index}: x\r\n`).join("");
  for (const socket of sockets) socket.write(`GET / HTTP/1.1\r\n${HOST}${fields}\r\n`);
  await until(() => requests.length === 300);
  assert.ok(most < 150, `${most} in one turn`);
});

test("bodies whose responses have been sent do not count any more", async (t) => {
  const { port } = await startStage(t, { limits: { maxHeldBodyBytes: 2 * MAX_BODY } });
  const whole = post(`Content-Length: ${MAX_BODY}\r\n`, "x".repeat(MAX_BODY));
  for (let count = 0; count < 5; count++) {
    assert.equal((await exchangeRaw(port, whole, { finish: true })).responses[0]?.status, 200);
  }
});

test("a client that has read its large response is not cut off for others", {
  timeout: 20_000,
}, async (t) => {
  const size = 20_000_000; // more than the kernel takes
  const { port } = await startStage(t, {
    limits: { maxHeldResponseBytes: 1.5 * size },
    handle: ({ path }) => ({ status: 200, body: path === "/" ? "x".repeat(size) : "small" }),
  });
  const first = await openRaw(port);
  const second = await openRaw(port);
  for (const socket of [first, second]) {
    socket.write(GET);
    for (let got = 0; got < size;) got += (await once(socket, "data"))[0].length;
  }
  first.write(GET.replace("/", "/small"));
  assert.match(String(await Promise.race([once(first, "data"), once(first, "close")])), /small$/);
  first.destroy();
  second.destroy();
});

test("past the budget of responses, the client that reads nothing is cut off", async (t) => {
  const size = 20_000_000; // more than the kernel takes
  const { port, server } = await startStage(t, {
    limits: { maxHeldResponseBytes: 1.5 * size },
    handle: () => ({ status: 200, body: "x".repeat(size) }),
  });
  const hoarder = await openRaw(port);
  hoarder.pause();
  hoarder.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  await delay(200);
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
  assert.equal((await response.text()).length, size);
  assert.equal(await countConnections(server), 0);
  hoarder.destroy();
});

test("a response that cannot be sent ends the connection and is logged", async (t) => {
  const { port, log } = await startStage(t, {
    handle: () => ({ status: 200, headers: { "X-Bad": "a\nb" }, body: "secret" }),
  });
  const { text, isClosed } = await exchangeRaw(port, `GET / HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(text, "");
  assert.ok(isClosed);
  await delay(20);
  assert.match(log.join(""), /"response cut off"/);
  assert.doesNotMatch(log.join(""), /secret/);
});

test("the head of a stream is sent at once, however long its first byte takes", async (t) => {
  const { promise: hasHead, resolve: goOn } = Promise.withResolvers<void>();
  const { port } = await startStage(t, {
    handle: () => ({
      status: 200,
      body: new ReadableStream<Uint8Array>({
        async start(controller) {
          await hasHead;
          controller.enqueue(Buffer.from("begin"));
          controller.close();
        },
      }),
    }),
  });
  const response = await fetch(
    `http://127.0.0.1:${port}/`,
    { signal: AbortSignal.timeout(10_000) },
  );
  goOn();
  assert.equal(await response.text(), "begin");
});

test("an event stream forbids proxies to buffer and cache it by default", async (t) => {
  const headersOf = async (given: Record<string, string>) => {
    const { port } = await startStage(t, {
      handle: () => ({ status: 200, headers: given, body: new Blob(["data: 1\n\n"]).stream() }),
    });
    const { responses } = await exchangeRaw(port, GET);
    const headers = responses[0]?.headers;
    return [headers?.["x-accel-buffering"], headers?.["cache-control"]];
  };
  const type = { "content-type": "text/event-stream; charset=utf-8" };
  assert.deepEqual(await headersOf(type), ["no", "no-store"]);
  const own = { ...type, "x-accel-buffering": "yes", "Cache-Control": "max-age=1" };
  assert.deepEqual(await headersOf(own), ["yes", "max-age=1"]);
  assert.deepEqual(await headersOf({ "content-type": "text/csv" }), [undefined, undefined]);
});

test("a stream that breaks cuts the response off", async (t) => {
  const { port, log } = await startStage(t, {
    handle: () => ({
      status: 200,
      body: new ReadableStream<Uint8Array>({
        pull(controller) {
          controller.enqueue(Buffer.from("begin"));
          return delay(20).then(() => controller.error(new Error("broken")));
        },
      }),
    }),
  });
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`).then((response) => response.text()));
  await delay(50);
  assert.match(log.join(""), /broken/);
});

test("once the server closes, a response ends its connection", async (t) => {
  const { port, server } = await startStage(t, {
    async handle(request) {
      await delay(100);
      return echo(request);
    },
  });
  const exchange = exchangeRaw(port, `GET / HTTP/1.1\r\n${HOST}\r\n`, { waitMs: 2000 });
  await delay(30);
  const closed = once(server, "close");
  server.close();
  const { responses, isClosed } = await exchange;
  assert.equal(responses[0]?.status, 200);
  assert.equal(responses[0]?.headers["connection"], "close");
  assert.ok(isClosed);
  await closed;
});

test("once the server closes, pipelined requests still get their responses", async (t) => {
  const { port, server, requests } = await startStage(t, {
    handle: (request) => delay(100).then(() => echo(request)),
  });
  const exchange = exchangeRaw(port, GET.repeat(3), { waitMs: 2000 });
  await until(() => requests.length === 3);
  server.close();
  assert.deepEqual((await exchange).responses.map(({ status }) => status), [200, 200, 200]);
});

test("a request that came while the process was busy is served before the close", async (t) => {
  const { port, server } = await startStage(t);
  const socket = await openRaw(port);
  socket.write(GET);
  await once(socket, "data");
  const closed = closeServer(server, 5000, 50);
  await delay(10);
  await new Promise(setImmediate); // timers run before the next reads
  socket.write(GET);
  for (const untilMs = performance.now() + 100; performance.now() < untilMs;);
  const [response] = await once(socket, "data");
  assert.match(String(response), /^HTTP\/1.1 200 /);
  await closed;
});

test("connections that wait to be accepted are served before the server closes", async (t) => {
  const { port, server } = await startStage(t);
  const exchanges = Array.from({ length: 20 }, () => exchangeRaw(port, GET, { waitMs: 2000 }));
  await new Promise(process.nextTick); // they connect
  const closed = closeServer(server, 5000, 50);
  for (const { responses } of await Promise.all(exchanges)) assert.equal(responses[0]?.status, 200);
  await closed;
});

test("a head is sent in Latin-1 whatever the body is", async (t) => {
  const close = (stream: ReadableStreamDefaultController) => delay(20).then(() => stream.close());
  const slow = () => new ReadableStream({ start: close });
  const bodies = { "/empty": () => "", "/text": () => "ü", "/slow": slow };
  const { port } = await startStage(t, {
    handle: ({ path }) => ({
      status: 200,
      headers: { "x-name": "ü" },
      body: bodies[path as keyof typeof bodies](),
    }),
  });
  for (const path of Object.keys(bodies)) {
    for (const method of ["GET", "HEAD"]) {
      const { responses } = await exchangeRaw(port, `${method} ${path} HTTP/1.1\r\n${HOST}\r\n`);
      assert.equal(responses[0]?.headers["x-name"], "ü", `${method} ${path}`);
    }
  }
});

test("a valid X-Request-Id is kept, any other is replaced", async (t) => {
  const { port } = await startStage(t);
  const ask = async (id: string) => {
    const bytes = `GET / HTTP/1.1\r\n${HOST}X-Request-Id: ${id}\r\n\r\n`;
    return (await exchangeRaw(port, bytes)).responses[0]?.headers["x-request-id"];
  };
  assert.equal(await ask("abc.DEF:1_2-3"), "abc.DEF:1_2-3");
  assert.match(await ask("a b") ?? "", /^[0-9a-f]{24}$/);
  assert.match(await ask("x".repeat(129)) ?? "", /^[0-9a-f]{24}$/);
});

function countConnections(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => error ? reject(error) : resolve(count))
  );
}

after(() => {
  // A server that a test leaves open would keep the run from ending.
  const servers = process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap");
  assert.ok(servers.length <= 1);
});
