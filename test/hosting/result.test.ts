import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { createServer } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { toResponse } from "../../src/hosting/result.ts";
import { listen } from "../helpers/listen.ts";

const JSON_TYPE = { "content-type": "application/json" };

test("a plain object with an integer status and no other keys is a response", () => {
  const cases: [result: unknown, status: number, body: unknown][] = [
    [{ status: 200 }, 200, undefined],
    [{ status: 201, body: { id: 1 } }, 201, '{"id":1}'],
    [{ status: 599, headers: {} }, 599, undefined],
    [{ status: 400, headers: undefined, body: undefined }, 400, undefined],
    [{ status: 200, body: null }, 200, "null"],
    [{ status: 200, body: "text" }, 200, '"text"'],
    [{ status: 200, body: [1, undefined] }, 200, "[1,null]"],
    [{ status: 200, body: false }, 200, "false"],
    [Object.assign(Object.create(null), { status: 202 }), 202, undefined],
    [Object.freeze({ status: 302, headers: { location: "/x" } }), 302, undefined],
    [{ status: 204, body: "left out" }, 204, undefined],
    [{ status: 205, body: "left out" }, 205, undefined],
    [{ status: 304, body: "left out" }, 304, undefined],
  ];
  for (const [result, status, body] of cases) {
    const response = toResponse(result);
    assert.deepEqual([response.status, response.body], [status, body], JSON.stringify(result));
    assert.deepEqual(response.headers?.["content-type"], body && "application/json");
  }
});

test("undefined becomes 204", () => {
  assert.deepEqual(toResponse(undefined), { status: 204 });
});

test("everything else becomes 200 with its JSON", () => {
  class Order {
    readonly status = 201;
  }
  const cases: [result: unknown, body: string][] = [
    [null, "null"],
    [0, "0"],
    ["text", '"text"'],
    [[1, 2], "[1,2]"],
    [{}, "{}"],
    [{ a: undefined }, "{}"],
    [{ body: 1 }, '{"body":1}'],
    [{ status: "active" }, '{"status":"active"}'],
    [{ status: 199 }, '{"status":199}'],
    [{ status: 600 }, '{"status":600}'],
    [{ status: 200.5 }, '{"status":200.5}'],
    [{ status: 200, name: "x" }, '{"status":200,"name":"x"}'],
    [{ status: 200, Body: 1 }, '{"status":200,"Body":1}'],
    [[200], "[200]"],
    [new Order(), '{"status":201}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [{ when: new Date(0) }, '{"when":"1970-01-01T00:00:00.000Z"}'],
  ];
  for (const [result, body] of cases) {
    assert.deepEqual(toResponse(result), { status: 200, headers: JSON_TYPE, body });
  }
});

test("strings and bytes with a content type of their own are sent as they are", () => {
  const bytes = Uint8Array.of(1, 2);
  const cases: [headers: Record<string, string>, body: unknown, type: string, sent: unknown][] = [
    [{ "content-type": "text/css" }, "p {}", "text/css", "p {}"],
    [{ "Content-Type": "text/csv" }, "a,b", "text/csv", "a,b"],
    [{ "content-type": "application/json" }, "[1]", "application/json", "[1]"],
    [{ "content-type": "image/png" }, bytes, "image/png", bytes],
    [{}, bytes, "application/octet-stream", bytes],
    [{ "content-type": "application/ld+json" }, { a: 1 }, "application/ld+json", '{"a":1}'],
  ];
  for (const [headers, body, type, sent] of cases) {
    const response = toResponse({ status: 200, headers, body });
    assert.deepEqual([response.headers, response.body], [{ "content-type": type }, sent]);
  }
});

test("headers are sent with lower-case names, several values as a list", () => {
  const cookies = new Headers([["X-A", "1"], ["set-cookie", "a=1"], ["set-cookie", "b=2"]]);
  const cases: [given: unknown, sent: unknown][] = [
    [{ "X-Number": 5, ETag: '"x"' }, { "x-number": "5", etag: '"x"' }],
    [{ "set-cookie": ["a=1", "b=2"] }, { "set-cookie": ["a=1", "b=2"] }],
    [{ "x-empty": "", "x-latin": "é" }, { "x-empty": "", "x-latin": "é" }],
    [{ "x-tab": "a\tb" }, { "x-tab": "a\tb" }],
    [{ "x-none": undefined }, {}],
    [{ Constructor: "a" }, { constructor: "a" }],
    [cookies, { "x-a": "1", "set-cookie": ["a=1", "b=2"] }],
  ];
  for (const [headers, sent] of cases) {
    assert.deepEqual(toResponse({ status: 200, headers }).headers, sent);
  }
});

test("headers that the service may also send get its spelling, so that they are sent once", () => {
  const names = ["Vary", "X-Content-Type-Options", "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers", "Cache-Control", "Retry-After", "WWW-Authenticate"];
  for (const name of names) {
    for (const written of [name, name.toLowerCase(), name.toUpperCase()]) {
      const headers = { [written]: "x" };
      assert.deepEqual(toResponse({ status: 204, headers }).headers, { [name]: "x" });
      assert.deepEqual(toResponse(new Response(null, { headers })).headers, { [name]: "x" });
    }
  }
});

test("headers that cannot be sent are an error", () => {
  const cases: unknown[] = [
    { "x-a": "a\r\nset-cookie: b" },
    { "x-a": "a\nb" },
    { "x-a": "a\rb" },
    { "x-a": "a\0b" },
    { "x-a": "\x7f" },
    { "x-a": "日" },
    { "x-a": ["ok", "a\nb"] },
    { "x-a": null },
    { "x-a": {} },
    { "x-a": true },
    { "": "x" },
    { "x a": "x" },
    { "x:a": "x" },
    { "x-a\r\n": "x" },
    { é: "x" },
    { "X-A": "1", "x-a": "2" },
    { "Content-Length": "5" },
    { "Transfer-Encoding": "chunked" },
    { Connection: "close" },
    { "keep-alive": "5" },
    { upgrade: "h2c" },
    { "X-Request-Id": "mine" },
    new Headers({ connection: "close" }),
    [["x-a", "1"]],
    new Map([["x-a", "1"]]),
    "x-a: 1",
    null,
  ];
  for (const headers of cases) {
    assert.throws(() => toResponse({ status: 200, headers }), TypeError, JSON.stringify(headers));
  }
});

test("a header of a Response that fetch allows and HTTP does not is an error", () => {
  for (const value of ["a\x01b", "\x0b", "\x7f"]) {
    assert.throws(() => toResponse(new Response("x", { headers: { "x-a": value } })), TypeError);
  }
});

test("a value that JSON cannot hold is an error", () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  for (const value of [() => 1, Symbol("s"), 1n, { n: 1n }, NaN, [Infinity], cycle]) {
    assert.throws(() => toResponse(value), TypeError);
    assert.throws(() => toResponse({ status: 200, body: value }), TypeError);
  }
});

test("a stream, or bytes of another kind, are an error and do not become an object", () => {
  async function* ticks() {
    yield 1;
  }
  const streams = [new ReadableStream(), Readable.from(["x"]), ticks()];
  for (const body of [...streams, new Blob(["x"]), new ArrayBuffer(1)]) {
    const said = { name: "TypeError", message: /a Response streams/ };
    assert.throws(() => toResponse({ status: 200, body }), said);
    assert.throws(() => toResponse(body), said);
  }
  assert.throws(() => toResponse({ status: 200, body: new Response("x") }), TypeError);
  // As JSON these would be objects with a member for each byte.
  for (const bytes of [Uint8Array.of(1), Buffer.from("x")]) {
    assert.throws(() => toResponse(bytes), /\{ status, body \} takes bytes, a Response streams/);
  }
  assert.throws(() => toResponse({ status: 200, body: new Float32Array(1) }), TypeError);
});

test("a Response passes through with its status, headers and stream", async () => {
  const response = new Response("text", {
    status: 418,
    headers: [
      ...[["x-a", "1"], ["content-encoding", "br"]],
      ...[["set-cookie", "a=1"], ["set-cookie", "b=2"]],
    ] as [string, string][],
  });
  const sent = toResponse(response);
  assert.deepEqual([sent.status, sent.headers], [418, {
    "content-encoding": "br",
    "content-type": "text/plain;charset=UTF-8",
    "x-a": "1",
    "set-cookie": ["a=1", "b=2"],
  }]);
  assert.ok(sent.body instanceof ReadableStream);
  assert.equal(await new Response(sent.body).text(), "text");
});

test("a Response without a body is sent without one", () => {
  assert.deepEqual(toResponse(new Response(null, { status: 204 })), { status: 204, headers: {} });
});

test("hop-by-hop headers, and those that Connection names, are left out of a Response", () => {
  const headers = {
    connection: "x-hop, Keep-Alive",
    "keep-alive": "timeout=5",
    "x-hop": "1",
    "transfer-encoding": "chunked",
    "content-length": "99",
    "x-request-id": "other",
    "x-kept": "1",
  };
  assert.deepEqual(toResponse(new Response(null, { headers })).headers, { "x-kept": "1" });
});

test("a body that a browser shows as a page with scripts is sent with a sandbox policy", () => {
  const pages = [
    "text/html",
    "Text/HTML; Charset=UTF-8",
    "application/xhtml+xml",
    "image/svg+xml",
    "text/xml",
    "application/xml;charset=utf-8",
    "application/atom+xml",
    "text/xsl",
    "multipart/x-mixed-replace; boundary=x",
    "text/plain, text/html",
  ];
  const others = [
    "application/json",
    "text/plain",
    "image/png",
    "application/pdf",
    "text/css",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ];
  const sandbox = "sandbox allow-scripts allow-forms allow-popups";
  for (const type of [...pages, ...others]) {
    const expected = pages.includes(type) ? sandbox : undefined;
    for (const result of [
      { status: 200, headers: { "Content-TYPE": type }, body: "x" },
      { status: 404, headers: new Headers({ "content-type": type }), body: Buffer.from("x") },
      new Response("x", { headers: { "content-type": type } }),
      new Response(new Blob(["x"], { type })),
    ]) {
      assert.equal(toResponse(result).headers?.["content-security-policy"], expected, type);
    }
  }
});

test("a module's own policy is not changed", () => {
  const headers = { "content-type": "text/html", "Content-Security-Policy": "default-src 'self'" };
  for (const result of [{ status: 200, headers, body: "x" }, new Response("x", { headers })]) {
    assert.equal(toResponse(result).headers?.["content-security-policy"], "default-src 'self'");
  }
});

test("a Response that is used, locked or an error is refused", async () => {
  const read = new Response("x");
  await read.text();
  const locked = new Response("x");
  locked.body?.getReader();
  for (const response of [read, locked, Response.error()]) {
    assert.throws(() => toResponse(response), TypeError);
  }
});

test("a Response from fetch is passed on decoded", async (t) => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-encoding": "gzip", "x-kept": "1" });
    response.end(gzipSync("plain text"));
  });
  const sent = toResponse(await fetch(`http://${await listen(t, server)}/`));
  assert.equal(sent.headers?.["content-encoding"], undefined);
  assert.equal(sent.headers?.["x-kept"], "1");
  assert.ok(sent.body instanceof ReadableStream);
  assert.equal(await new Response(sent.body).text(), "plain text");
});
