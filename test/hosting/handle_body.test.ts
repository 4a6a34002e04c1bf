import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import type { Context } from "../../src/mod.ts";
import { HOSTED_CALLER } from "../helpers/hosting.ts";
import {
  call,
  type CallSetting,
  FORM_TYPE,
  type Handle,
  JSON_TYPE,
  type Sent,
} from "./handle_stage.ts";

test("a body is parsed by its type, and is not read if the type is another", async () => {
  const cases: [sent: Sent, body: unknown, reads: number][] = [
    [{ type: JSON_TYPE, body: "[1]" }, [1], 1],
    [{ type: JSON_TYPE, body: "null" }, null, 1],
    [{ type: "Application/JSON; Charset=\"UTF-8\"", body: '"x"' }, "x", 1],
    [{ type: "application/merge-patch+json", body: "{}" }, {}, 1],
    [{ type: JSON_TYPE, body: "[2]", chunked: true }, [2], 1],
    [{ type: JSON_TYPE, body: "", chunked: true }, undefined, 1],
    [{ type: JSON_TYPE, body: "" }, undefined, 0],
    [{ type: JSON_TYPE }, undefined, 0],
    [{}, undefined, 0],
    [{ type: FORM_TYPE, body: "a=1&a=%C3%A9+b&c" }, [["a", "1"], ["a", "é b"], ["c", ""]], 1],
    [{ type: "text/plain", body: "text" }, undefined, 0],
    [{ type: "multipart/form-data; boundary=x", body: "--x--" }, undefined, 0],
    [{ body: "no type" }, undefined, 0],
    [{ type: "text/json", body: "{}" }, undefined, 0],
    [{ type: "text/x+json", body: "{}" }, {}, 1],
    [{ type: JSON_TYPE, body: "{}", headers: { "content-encoding": "Identity" } }, {}, 1],
  ];
  for (const [sent, expected, times] of cases) {
    let seen: unknown = "not called";
    const { reads } = await call(({ body }) => {
      seen = body instanceof URLSearchParams ? [...body] : body;
    }, sent);
    assert.deepEqual(seen, expected, JSON.stringify(sent));
    assert.equal(reads, times, JSON.stringify(sent));
  }
});

test("an invalid or too large body is refused before the handler is called", async () => {
  const cases: [sent: Sent, setting: CallSetting, status: number, code: string][] = [
    [{ type: JSON_TYPE, body: "{" }, {}, 400, "malformed"],
    [{ type: JSON_TYPE, body: Uint8Array.of(0x22, 0xff, 0x22) }, {}, 400, "malformed"],
    [{ type: JSON_TYPE, body: '{"__proto__":1}' }, {}, 400, "malformed"],
    [{ type: FORM_TYPE, body: Uint8Array.of(0x61, 0x3d, 0xff) }, {}, 400, "malformed"],
    ...["a=%FF", "a=%C3&b=%A9", "a=%zz", "a=%", "%FF=a"].map((body): typeof cases[number] =>
      [{ type: FORM_TYPE, body }, {}, 400, "malformed"]
    ),
    [{ type: JSON_TYPE, body: "[".repeat(65) + "]".repeat(65) }, {}, 400, "malformed"],
    [{ type: JSON_TYPE, body: "[1,2]" }, { maxBodyBytes: 4 }, 413, "too_large"],
    [{ type: JSON_TYPE, body: "[1,2]" }, { ownMaxBody: "4B" }, 413, "too_large"],
    [{ type: JSON_TYPE, body: "[1,2]", chunked: true }, { ownMaxBody: "4B" }, 413, "too_large"],
    [{ type: "text/plain", body: "12345" }, { ownMaxBody: "4B" }, 413, "too_large"],
    [{ type: FORM_TYPE, body: "a".repeat(65_537) }, {}, 413, "too_large"],
    [
      { type: JSON_TYPE, body: "{}", headers: { "content-encoding": "gzip" } },
      {},
      415,
      "unsupported_media_type",
    ],
    [{ type: `${JSON_TYPE};charset=latin1`, body: "{}" }, {}, 415, "unsupported_media_type"],
  ];
  for (const [sent, setting, status, code] of cases) {
    const what = `${sent.type} ${String(sent.body).slice(0, 10)}`;
    const { problem, lines } = await call(() => assert.fail("called"), sent, setting);
    assert.deepEqual([problem?.status, problem?.code], [status, code], what);
    assert.equal(lines.length, 0, what);
  }
});

test("maxBody replaces the general limit, for forms too", async () => {
  const cases: [sent: Sent, setting: CallSetting][] = [
    [{ type: JSON_TYPE, body: "[1,2]" }, { maxBodyBytes: 4, ownMaxBody: "5B" }],
    [{ type: FORM_TYPE, body: "a".repeat(65_537) }, { ownMaxBody: "65537B" }],
    [{ type: FORM_TYPE, body: "a".repeat(65_536) }, {}],
    [{ type: "text/plain", body: "a".repeat(65_537) }, {}],
  ];
  for (const [sent, setting] of cases) {
    const { response } = await call(() => undefined, sent, setting);
    assert.equal(response?.status, 204, JSON.stringify(setting));
  }
});

test("a token that ended while the body came is refused, whoever reads the body", async () => {
  const problem = new Problem(401, "invalid_token", "It has ended.");
  const authenticateAgain = () => Promise.reject(problem);
  const setting = { caller: HOSTED_CALLER, authenticateAgain };
  let calls = 0;
  const read: Handle = async ({ request }) => {
    calls++;
    return await request.text();
  };
  const parsed = await call(read, { type: JSON_TYPE, body: "{}" }, setting);
  assert.deepEqual([parsed.problem?.status, calls], [401, 0]);
  const unread = await call(read, { type: "text/plain", body: "x" }, setting);
  assert.deepEqual([unread.problem?.status, calls, unread.lines.length], [401, 1, 0]);
  const left = await call(() => "ok", { type: "text/plain", body: "x" }, setting);
  assert.equal(left.response?.status, 200);
});

test("request is a web Request with the URL, headers and body of the request", async () => {
  const { response } = await call(
    async ({ request }) => [
      request instanceof Request,
      request.method,
      request.url,
      request.headers.get("x-signature"),
      await request.text(),
    ],
    { type: "text/plain", body: "é", query: "a=1", headers: { "x-signature": "s" } },
  );
  assert.deepEqual(JSON.parse(String(response?.body)), [
    true,
    "POST",
    "https://api.example/base/orders/7?a=1",
    "s",
    "é",
  ]);
});

test("request has the body byte for byte, even if it was parsed", async () => {
  const body = '{ "a" :1 }';
  const { response, reads } = await call(
    async ({ request }) => ({ text: await request.text() }),
    { type: JSON_TYPE, body },
  );
  assert.deepEqual([response?.body, reads], [JSON.stringify({ text: body }), 1]);
});

test("malformed form data or JSON that request reads gets 400 or 415, not 500", async () => {
  const boundary = "multipart/form-data; boundary=x";
  const rows: ["formData" | "json", type: string | undefined, body: string, status: number][] = [
    ["formData", boundary, "no form", 400],
    ["formData", boundary, '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1', 400],
    ["formData", "multipart/form-data", "--x--", 400],
    ["formData", "text/plain", "a=1", 415],
    ["formData", undefined, "a=1", 415],
    ["json", "text/plain", "{", 400],
    ["json", "text/plain", '{"__proto__":{"admin":true}}', 400],
    ["json", "text/plain", `${"[".repeat(65)}${"]".repeat(65)}`, 400],
    ["json", undefined, "", 400],
  ];
  for (const [as, type, body, status] of rows) {
    for (const copied of [false, true]) {
      const { problem, lines } = await call(
        ({ request }) => (copied ? request.clone().clone() : request)[as](),
        { ...type !== undefined && { type }, body },
      );
      assert.deepEqual([problem?.status, lines], [status, []], `${as} ${type} ${body}`);
    }
  }
});

test("request reads a well-formed form, and one that is too large gets 413", async () => {
  const sent = {
    type: "multipart/form-data; boundary=x",
    body: '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n',
    chunked: true,
  };
  const read = async ({ request }: Context<unknown>) => [...(await request.formData()).entries()];
  assert.equal((await call(read, sent)).response?.body, '[["a","1"]]');
  assert.equal((await call(read, sent, { maxBodyBytes: 8 })).problem?.status, 413);
});

test("a handler that reads a body twice leads to a 500", async () => {
  for (const as of ["formData", "json"] as const) {
    const { problem, lines } = await call(async ({ request }) => {
      await request.text();
      await request[as]();
    }, { type: "multipart/form-data; boundary=x", body: "--x--" });
    assert.deepEqual([problem?.status, lines.length], [500, 1]);
  }
});

test("request has no body for GET and HEAD", async () => {
  for (const method of ["GET", "HEAD"]) {
    const { response } = await call(
      ({ request, body }) => [request.method, request.body === null, body],
      { method, type: JSON_TYPE, body: "[1]" },
    );
    assert.equal(response?.body, JSON.stringify([method, true, [1]]));
  }
});

test("request is made once, and its body is read only on demand", async () => {
  let isSame = false;
  const { reads } = await call((context) => {
    isSame = context.request === context.request && context.query === context.query;
  }, { type: "text/plain", body: "x" });
  assert.deepEqual([isSame, reads], [true, 0]);
});

test("a body past the limit that the handler reads itself gets 413, not 500", async () => {
  const sent = { type: "text/plain", body: "12345", chunked: true };
  const { problem, lines } = await call(({ request }) => request.text(), sent, {
    ownMaxBody: "4B",
  });
  assert.deepEqual([problem?.status, problem?.code, lines.length], [413, "too_large", 0]);
});
