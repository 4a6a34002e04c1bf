import assert from "node:assert/strict";
import { test } from "node:test";
import type { DefineEndpoint, Endpoint } from "../src/mod.ts";
import { call } from "../src/testing.ts";

const endpoint: DefineEndpoint = (given) => given;

/** An endpoint that returns what it got from a request. */
const echo = {
  method: "POST",
  path: "/echo/:id",
  scope: ["orders", "read"],
  accepts: ["json", "form"],
  async handle({ params, query, body, caller, request, address, requestId }) {
    const type = request.headers.get("content-type");
    const text = body === undefined ? await request.text() : undefined;
    const form = body instanceof URLSearchParams ? [...body] : undefined;
    const extra = request.headers.get("x-extra");
    const ids = [typeof address, typeof requestId];
    const sent = { query: [...query], body: form ? undefined : body, form, text, type };
    return { id: params["id"], ...sent, caller, extra, ids };
  },
} satisfies Endpoint;

const PARAMS = { params: { id: "7" } };

async function sent(options: Parameters<typeof call>[1] = {}) {
  const { status, body } = await call<Record<string, unknown>>(echo, { ...PARAMS, ...options });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

test("by default the caller is a user with the scopes of the endpoint", async () => {
  assert.deepEqual((await sent())["caller"], {
    sub: "u00000000",
    kind: "user",
    clientId: "a00000000",
    scopes: ["orders", "read"],
  });
});

test("the caller is the one that the test gives, in full or in part", async () => {
  const app = "a12345678";
  const caller = { sub: app, kind: "app" as const, clientId: app, scopes: ["read", "orders"] };
  assert.deepEqual((await sent({ caller }))["caller"], caller);
  const { sub, clientId } = (await sent({ caller: { kind: "app" } }))["caller"] as typeof caller;
  assert.deepEqual([sub, clientId], ["a00000000", "a00000000"]);
  const alice = (await sent({ caller: { sub: "alice" } }))["caller"] as typeof caller;
  assert.deepEqual([alice.sub, alice.kind], ["alice", "user"]);
});

test("without a caller a protected endpoint responds 401, without its scopes 403", async () => {
  const nobody = await call(echo, { ...PARAMS, caller: null });
  assert.equal(nobody.status, 401);
  assert.match(nobody.headers.get("www-authenticate") ?? "", /^Bearer /);
  assert.equal((await call(echo, { ...PARAMS, caller: { scopes: ["read"] } })).status, 403);
});

test("a public endpoint has no caller", async () => {
  const open = {
    method: "GET",
    path: "/",
    public: true,
    handle: ({ caller }) => ({ caller: caller ?? null }),
  } satisfies Endpoint;
  assert.deepEqual((await call(open)).body, { caller: null });
});

test("parameters are encoded, and a missing one makes call() throw", async () => {
  assert.equal((await sent({ params: { id: "a b?#é" } }))["id"], "a b?#é");
  assert.equal((await sent({ params: { id: 12 } }))["id"], "12");
  await assert.rejects(call(echo), /params\.id is missing: the path is \/echo\/:id/);
});

for (const [path, params, expected] of [
  ["/files/*", { 0: "a/b c.txt" }, { 0: "a/b c.txt" }],
  ["/cat/:a/:b?", { a: "x" }, { a: "x" }],
  ["/cat/:a/:b?", { a: "x", b: "y" }, { a: "x", b: "y" }],
  ["/n/:id(\\d+)", { id: "12" }, { id: "12" }],
  ["/deep/:path+", { path: "a/b" }, { path: "a/b" }],
  ["/img/:name.png", { name: "cat" }, { name: "cat" }],
  ["/a\\:b/:c", { c: "x" }, { c: "x" }],
  ["/a{/:b}?", { b: "x" }, { b: "x" }],
  ["/(\\d+)/*", { 0: "7", 1: "a/b" }, { 0: "7", 1: "a/b" }],
  ["/:id((?:a|b)+)/:é", { id: "ab", é: "x" }, { id: "ab", é: "x" }],
] as const) {
  test(`params fill ${path}: ${JSON.stringify(params)}`, async () => {
    const found = {
      method: "GET",
      path,
      public: true,
      handle: ({ params }) => ({ ...params }),
    } satisfies Endpoint;
    const { status, body } = await call(found, { params });
    assert.equal(status, 200);
    assert.deepEqual(body, expected);
  });
}

test("a query is an object, with lists of values, or URLSearchParams", async () => {
  const query = { a: 1, b: ["x", "y z"], c: true };
  const expected = [["a", "1"], ["b", "x"], ["b", "y z"], ["c", "true"]];
  assert.deepEqual((await sent({ query }))["query"], expected);
  assert.deepEqual((await sent({ query: new URLSearchParams("q=1&q=2") }))["query"], [
    ["q", "1"],
    ["q", "2"],
  ]);
});

test("a body is JSON, unless it is text, bytes or a form", async () => {
  const json = await sent({ body: { item: "lamp" } });
  assert.deepEqual([json["body"], json["type"]], [{ item: "lamp" }, "application/json"]);
  assert.deepEqual((await sent({ body: [1, null] }))["body"], [1, null]);
  assert.equal((await sent({ body: null }))["body"], null);
  const form = await sent({ body: new URLSearchParams({ a: "b c" }) });
  assert.deepEqual(form["form"], [["a", "b c"]]);
  const text = await sent({ body: "hello" });
  assert.deepEqual([text["text"], text["type"]], ["hello", "text/plain;charset=UTF-8"]);
  const headers = { "content-type": "x/y" };
  const bytes = await sent({ body: new Uint8Array([104, 105]), headers });
  assert.deepEqual([bytes["text"], bytes["type"]], ["hi", "x/y"]);
  const { buffer } = new Uint8Array([104, 105]);
  assert.equal((await sent({ body: buffer, headers }))["text"], "hi");
  const upload = new FormData();
  upload.set("file", new Blob(["data"]), "a.txt");
  assert.match(String((await sent({ body: upload }))["text"]), /filename="a\.txt"[^]*data/);
});

test("broken JSON and a body that is too large are refused as by the server", async () => {
  const headers = { "content-type": "application/json", "x-extra": "1" };
  const broken = await call(echo, { ...PARAMS, body: "{", headers });
  assert.equal(broken.status, 400);
  assert.equal(broken.headers.get("content-type"), "application/problem+json");
  const small = { ...echo, maxBody: "10B" };
  assert.equal((await call(small, { ...PARAMS, body: "x".repeat(11) })).status, 413);
});

test("headers that the test gives are sent", async () => {
  assert.equal((await sent({ headers: { "X-Extra": "1" } }))["extra"], "1");
});

/** Calls an endpoint that returns this. */
async function bodyOf(result: unknown) {
  const got = { method: "GET", path: "/", public: true, handle: () => result } satisfies Endpoint;
  return await call(got);
}

test("a response's body is parsed JSON, text or bytes; its headers are a web Headers", async () => {
  assert.deepEqual((await bodyOf({ a: 1 })).body, { a: 1 });
  assert.deepEqual((await bodyOf(Response.json({ a: 1 }))).body, { a: 1 });
  const type = (name: string) => ({ "content-type": name });
  const text = { status: 200, headers: type("text/plain"), body: "hi" };
  assert.equal((await bodyOf(text)).body, "hi");
  assert.equal((await bodyOf(new Response("<p>", { headers: type("text/html") }))).body, "<p>");
  const bytes = new Uint8Array([1, 2]);
  assert.deepEqual((await bodyOf({ status: 200, body: bytes })).body, bytes);
  const nothing = await bodyOf(undefined);
  assert.deepEqual([nothing.status, nothing.body], [204, undefined]);
  const cookies = await bodyOf({ status: 200, headers: { "set-cookie": ["a=1", "b=2"] } });
  assert.deepEqual(cookies.headers.getSetCookie(), ["a=1", "b=2"]);
});

test("a stream may yield strings, as it may in the server", async () => {
  const texts = () => new ReadableStream({
    start(controller) {
      for (const text of ["a", "é"]) controller.enqueue(text);
      controller.close();
    },
  });
  const type = (name: string) => ({ headers: { "content-type": name } });
  assert.equal((await bodyOf(new Response(texts(), type("text/plain")))).body, "aé");
  const { body } = await bodyOf(new Response(texts(), type("text/event-stream")));
  assert.ok(body instanceof ReadableStream);
  assert.deepEqual(await Array.fromAsync(body, (chunk) => [...chunk]), [[97], [195, 169]]);
});

test("a text/event-stream is a stream; cancelling it aborts the handler's signal", async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const ticks = {
    method: "GET",
    path: "/",
    public: true,
    handle({ signal }) {
      signal.addEventListener("abort", () => resolve());
      const tick = new TextEncoder().encode("tick");
      const body = new ReadableStream({ pull: (controller) => controller.enqueue(tick) });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  } satisfies Endpoint;
  const { body } = await call<ReadableStream<Uint8Array>>(ticks);
  const reader = body.getReader();
  assert.equal(String(Buffer.from((await reader.read()).value ?? [])), "tick");
  await reader.cancel();
  await aborted;
});

const emitting = (status: number) => ({
  method: "POST",
  path: "/",
  scope: [],
  emits: { "order.placed": "An order was placed", "order.noted": "An order was noted" },
  handle({ dispatch, caller }) {
    dispatch("order.placed", { a: 1 });
    dispatch("order.noted", null, { subject: caller.sub });
    if (status >= 400) throw { status };
  },
} satisfies Endpoint);

test("`events` has the events that the server would store, in order", async () => {
  const { events } = await call(emitting(204));
  assert.match(events[0]?.id ?? "", /^e/);
  assert.deepEqual(events.map(({ id: _, ...event }) => event), [
    { name: "order.placed", data: { a: 1 } },
    { name: "order.noted", data: null, subject: "u00000000" },
  ]);
});

test("a refused request has no events, and each call has its own", async () => {
  const { status, events } = await call(emitting(409));
  assert.deepEqual([status, events], [409, []]);
  const calls = await Promise.all([call(emitting(204)), call(emitting(204))]);
  assert.deepEqual(calls.map(({ events: { length } }) => length), [2, 2]);
});

test("an error thrown by a handler is a 500 without its message, which is on stderr", async (t) => {
  const lines: string[] = [];
  t.mock.method(console, "error", (text: string) => void lines.push(text));
  const broken = {
    method: "GET",
    path: "/",
    public: true,
    handle: () => {
      throw new Error("the shelf is empty");
    },
  } satisfies Endpoint;
  const { status, body } = await call(broken);
  assert.equal(status, 500);
  assert.doesNotMatch(JSON.stringify(body), /shelf/);
  assert.match(lines.join(), /the shelf is empty/);
});

test("call() throws every reason why the server would not load an endpoint", async () => {
  const wrong = { ...echo, method: "FETCH", path: "echo" };
  // @ts-expect-error: the compiler says so as well
  await assert.rejects(call(wrong), /method Must be one of[^]*Must start with "\/"/);
  // @ts-expect-error: likewise
  await assert.rejects(call({ name: "job", every: "1s" }), /\/name Unknown member/);
  for (const none of [undefined, class {}]) {
    await assert.rejects(call(none as never), /plain object/);
  }
});

test("call() throws if a response does not match `output`", async () => {
  const promised = (body: unknown) =>
    endpoint({
      method: "GET",
      path: "/",
      public: true,
      output: {
        type: "object",
        properties: { items: { type: "array", items: { type: "string" } } },
        required: ["items"],
      },
      handle: () => body as { items: string[] },
    });
  assert.equal((await call(promised({ items: ["a"] }))).status, 200);
  const wrong = call(promised({ items: [1] }));
  await assert.rejects(wrong, /does not match its output:[^]*\/items\/0 /);
  assert.equal((await call(promised({ status: 404, body: 1 }))).status, 404);
});

test("rate limits are not applied", async () => {
  const limited = { ...echo, limit: { rate: "1/1h" } } satisfies Endpoint;
  for (let calls = 0; calls < 3; calls++) assert.equal((await call(limited, PARAMS)).status, 200);
});

test("flushed events are kept whatever the response, of one key the first alone", async () => {
  const flushing = {
    method: "POST",
    path: "/",
    public: true,
    emits: { "order.placed": "An order was placed" },
    async handle({ dispatch }) {
      dispatch("order.placed", 1, { key: "k" });
      dispatch("order.placed", 2, { key: "k" });
      await dispatch.flush();
      dispatch("order.placed", 3);
      throw { status: 409 };
    },
  } satisfies Endpoint;
  const { status, events } = await call(flushing);
  assert.equal(status, 409);
  assert.deepEqual(events.map(({ data, key }) => ({ data, key })), [{ data: 1, key: "k" }]);
});
