import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse, HttpRequest } from "../../src/base/http_message.ts";
import { Problem } from "../../src/base/problem.ts";
import type { Context, Logger } from "../../src/mod.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { hostedOperation } from "../../src/hosting/handle.ts";
import { hostingServices, loadedEndpoint, type StoredEvent } from "../helpers/hosting.ts";
import { sampleRequest } from "../helpers/http_request.ts";

type Handle = (context: Context<unknown>) => unknown;

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly query?: string;
  readonly type?: string;
  readonly headers?: HttpRequest["headers"];
  readonly body?: string | Uint8Array;
  readonly chunked?: boolean;
  readonly signal?: AbortSignal;
  readonly isGone?: boolean;
  readonly abort?: () => void;
}

interface Setting {
  readonly maxBodyBytes?: number;
  readonly ownMaxBody?: string;
  readonly store?: (events: readonly StoredEvent[]) => Promise<void>;
  readonly caller?: Caller;
  /** More fields of the endpoint. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly params?: Readonly<Record<string, string>>;
  readonly authenticateAgain?: () => Promise<void>;
}

interface Outcome {
  readonly response?: HttpResponse;
  readonly problem?: Problem;
  readonly stored: readonly StoredEvent[];
  readonly lines: readonly { msg: string; fields: Readonly<Record<string, unknown>> }[];
  readonly reads: number;
}

const ADA = {
  sub: "u1",
  kind: "user",
  clientId: "login",
  scopes: ["orders"],
} as const;
const CALLER: Caller = { ...ADA, grantId: "g1", jti: "g12", expiresAtMs: 1 };

/** Has one handler respond to one request, and returns everything that results. */
async function call(handle: Handle, sent: Sent = {}, setting: Setting = {}): Promise<Outcome> {
  const stored: StoredEvent[] = [];
  const lines: Outcome["lines"][number][] = [];
  const write: Logger["info"] = (msg, fields = {}) => void lines.push({ msg, fields });
  const body = Buffer.from(sent.body ?? "");
  let reads = 0;
  const length = sent.chunked
    ? { "transfer-encoding": "chunked" }
    : sent.body === undefined ? {} : { "content-length": String(body.length) };
  const type = sent.type === undefined ? {} : { "content-type": sent.type };
  const request: HttpRequest = {
    ...sampleRequest({ path: "/base/orders/7", ...sent, method: sent.method ?? "POST" }),
    headers: { host: "api.example", ...length, ...type, ...sent.headers },
    async readBody(maxBytes) {
      reads++;
      if (body.length > maxBytes) throw new Problem(413, "too_large", "Too large.");
      return await Promise.resolve(body);
    },
  };
  const { caller, ownMaxBody } = setting;
  const operation = hostedOperation(loadedEndpoint({
    method: "POST",
    path: "/orders/:id",
    accepts: ["form"],
    ...setting.fields,
    ...(caller ? { scope: [] } : { public: true }),
    ...(ownMaxBody !== undefined && { maxBody: ownMaxBody }),
    handle,
  }), hostingServices({
    ...(setting.maxBodyBytes !== undefined && { maxBodyBytes: setting.maxBodyBytes }),
    issuer: "https://api.example/base",
    maxPayloadBytes: 64,
    store: setting.store ?? ((events) => {
      stored.push(...events);
      return Promise.resolve();
    }),
    log: { debug: write, info: write, warn: write, error: write },
  }));
  try {
    const response = await operation.handle({
      request,
      params: setting.params ?? {},
      caller: setting.caller,
      query: {},
      body: undefined,
      authenticateAgain: setting.authenticateAgain ?? (() => Promise.resolve()),
    });
    return { response, stored, lines, reads };
  } catch (problem) {
    assert.ok(problem instanceof Problem, String(problem));
    return { problem, stored, lines, reads };
  }
}

const JSON_TYPE = "application/json";
const FORM_TYPE = "application/x-www-form-urlencoded";

test("a question mark at the start of a query or a form is part of its first name", async () => {
  const { response } = await call(
    ({ query, body }) => [[...query], [...body as URLSearchParams]],
    { type: FORM_TYPE, query: "?a=1", body: "?b=2" }, // of a target as in /orders/7??a=1
  );
  assert.deepEqual(JSON.parse(String(response?.body)), [[["?a", "1"]], [["?b", "2"]]]);
});

test("a handler gets the path, query, caller and body of its request", async () => {
  const secretive = { ...CALLER, jti: "secret" };
  const { response } = await call(
    ({ params, query, body, caller, signal }) =>
      [params, query.getAll("a"), body, caller, signal.aborted],
    { type: JSON_TYPE, body: '{"n":1}', query: "a=1&a=%C3%A9" },
    { params: { id: "7" }, caller: secretive },
  );
  assert.deepEqual(JSON.parse(String(response?.body)), [
    { id: "7" },
    ["1", "é"],
    { n: 1 },
    ADA,
    false,
  ]);
});

test("a handler gets what the schemas of its endpoint make of a request", async () => {
  const shape = { type: "object", properties: { n: { type: "integer", default: 1 } } };
  const { response } = await call(
    ({ params, query, body }) => [params, query, body],
    { type: JSON_TYPE, body: "{}", query: "n=2" },
    { params: { id: "7" }, fields: { input: { query: shape, body: shape } } },
  );
  assert.equal(response?.body, '[{"id":"7"},{"n":2},{"n":1}]');
});

test("a handler of a public endpoint has no caller", async () => {
  const { response } = await call(({ caller }) => [caller === undefined]);
  assert.equal(response?.body, "[true]");
});

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
  const cases: [sent: Sent, setting: Setting, status: number, code: string][] = [
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
  const cases: [sent: Sent, setting: Setting][] = [
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

test("the whole context can be passed on", async () => {
  const { response } = await call((context) => {
    const handOn = ({ request, query, log, dispatch, signal }: typeof context) =>
      ({ request, query, log, dispatch, signal });
    const { request, query, log, dispatch, signal } = handOn(context);
    log.info(dispatch("a", 1));
    return [request.url, query.get("a"), signal.aborted];
  }, { query: "a=1" });
  assert.equal(response?.body, '["https://api.example/base/orders/7?a=1","1",false]');
});

test("a body past the limit that the handler reads itself gets 413, not 500", async () => {
  const sent = { type: "text/plain", body: "12345", chunked: true };
  const { problem, lines } = await call(({ request }) => request.text(), sent, {
    ownMaxBody: "4B",
  });
  assert.deepEqual([problem?.status, problem?.code, lines.length], [413, "too_large", 0]);
});

test("a token that ended while the body came is refused, whoever reads the body", async () => {
  const problem = new Problem(401, "invalid_token", "It has ended.");
  const authenticateAgain = () => Promise.reject(problem);
  const setting = { caller: CALLER, authenticateAgain };
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

test("signal and request.signal abort when the client goes away", async () => {
  const client = new AbortController();
  const { response } = await call(({ signal, request }) => {
    client.abort();
    return [signal.aborted, request.signal.aborted];
  }, { signal: client.signal });
  assert.equal(response?.body, "[true,true]");
});

test("every line that a handler logs carries the request's id", async () => {
  const { lines } = await call(({ log }) => {
    log.debug("a");
    log.info("b", { n: 1 });
    log.warn("c", { request_id: "forged" });
    log.error("d");
  });
  assert.deepEqual(lines, [
    { msg: "a", fields: { request_id: "r1" } },
    { msg: "b", fields: { n: 1, request_id: "r1" } },
    { msg: "c", fields: { request_id: "r1" } },
    { msg: "d", fields: { request_id: "r1" } },
  ]);
});

test("the events of a request are stored together, in order, before its response", async () => {
  const commits: (readonly StoredEvent[])[] = [];
  let isStored = false;
  const { response } = await call(async ({ dispatch }) => {
    const first = dispatch("a", { n: 1 });
    await Promise.resolve();
    return { first, second: dispatch("b", null, { subject: "u00000007" }) };
  }, {}, {
    async store(events) {
      commits.push(events);
      await new Promise((resolve) => setImmediate(resolve));
      isStored = true;
    },
  });
  assert.ok(isStored);
  const { first, second } = JSON.parse(String(response?.body));
  assert.deepEqual(commits, [[
    { id: first, name: "a", json: '{"n":1}', subject: null },
    { id: second, name: "b", json: "null", subject: "u00000007" },
  ]]);
});

test("a request without events commits nothing", async () => {
  const store = (): Promise<void> => assert.fail("committed");
  assert.equal((await call(() => undefined, {}, { store })).response?.status, 204);
});

test("events are stored for a returned response below 500 and for no other", async () => {
  const cases: [handle: Handle, count: number][] = [
    [() => ({ status: 200 }), 1],
    [() => ({ status: 404 }), 1],
    [() => ({ status: 499 }), 1],
    [() => ({ status: 500 }), 0],
    [() => ({ status: 503, body: {} }), 0],
    [() => ({ status: 600 }), 1],
    [() => new Response("x", { status: 201 }), 1],
    [() => new Response("x", { status: 502 }), 0],
    [() => Promise.reject(new Error("late")), 0],
    [() => {
      throw { status: 404 };
    }, 0],
    [() => 1n, 0],
    [() => ({ status: 200, headers: { "x-a": "a\r\nb" } }), 0],
    [() => new Response("x", { headers: { "x-a": "a\x01b" } }), 0],
  ];
  for (const [handle, count] of cases) {
    const { stored } = await call((context) => {
      context.dispatch("a", 1);
      return handle(context);
    });
    assert.equal(stored.length, count, String(handle));
  }
});

test("a failed commit leads to a logged 503 with Retry-After, and ends the stream", async () => {
  const ends: string[] = [];
  const abort = () => void ends.push("signal");
  const { problem, stored, lines } = await call(({ dispatch }) => {
    dispatch("a", 1);
    return new Response(new ReadableStream({ cancel: () => void ends.push("stream") }));
  }, { abort }, { store: () => Promise.reject(new Error("disk full")) });
  assert.deepEqual(
    [problem?.status, problem?.code, problem?.headers["Retry-After"], stored.length, ends],
    [503, "unavailable", "2", 0, ["signal", "stream"]],
  );
  assert.ok(!problem?.message.includes("disk"));
  assert.deepEqual(lines.map(({ msg, fields }) => [msg, fields["request_id"]]), [
    ["events not stored", "r1"],
  ]);
});

test("a Response that cannot be sent becomes a 500, and its stream ends", async () => {
  const ends: string[] = [];
  const { problem } = await call(() =>
    new Response(new ReadableStream({ cancel: () => void ends.push("stream") }), {
      headers: { "x-a": "a\x01b" },
    }), { abort: () => void ends.push("signal") });
  assert.deepEqual([problem?.status, ends], [500, ["signal", "stream"]]);
});

test("events that a handler has flushed stay stored if the request fails", async () => {
  const fates: Handle[] = [
    () => ({ status: 500 }),
    () => {
      throw new Error("failed");
    },
    () => Promise.reject({ status: 409 }),
  ];
  for (const fate of fates) {
    const { stored } = await call(async (context) => {
      context.dispatch("a", 1, { key: "7" });
      await context.dispatch.flush();
      context.dispatch("b", 1);
      return fate(context);
    });
    assert.deepEqual(stored.map(({ name, key }) => [name, key]), [["a", "7"]]);
  }
});

test("a failed flush leads to a 503, unless the handler catches the error", async () => {
  let commits = 0;
  const store = () => ++commits % 2 === 1 ? Promise.reject(new Error("full")) : Promise.resolve();
  const flush: Handle = async ({ dispatch }) => {
    dispatch("a", 1);
    await dispatch.flush();
  };
  const failed = await call(flush, {}, { store });
  assert.deepEqual([failed.problem?.status, failed.problem?.headers["Retry-After"]], [503, "2"]);
  assert.deepEqual(failed.lines.map(({ msg }) => msg).at(-1), "events not stored");
  commits = 0;
  const caught = await call(async (context) => {
    await assert.rejects(async () => flush(context));
    context.dispatch("b", 1);
    return { status: 202 };
  }, {}, { store });
  assert.deepEqual([caught.response?.status, commits], [202, 2]);
});

test("the response waits for a flush that its handler did not await", async () => {
  const ends: Handle[] = [
    () => ({ status: 200 }),
    () => ({ status: 500 }),
  ];
  for (const end of ends) {
    const { problem } = await call((context) => {
      context.dispatch("a", 1);
      void context.dispatch.flush();
      return end(context);
    }, {}, {
      async store() {
        await new Promise((resolve) => setImmediate(resolve));
        throw new Error("full");
      },
    });
    assert.equal(problem?.status, 503);
  }
  let isStored = false;
  await call(({ dispatch }) => {
    dispatch("a", 1);
    void dispatch.flush();
    throw new Error("failed");
  }, {}, {
    async store() {
      await new Promise((resolve) => setImmediate(resolve));
      isStored = true;
    },
  });
  assert.equal(isStored, true);
});

test("the events of a streaming Response are stored before its first byte", async () => {
  const order: string[] = [];
  const { response } = await call(({ dispatch }) => {
    dispatch("a", 1);
    return new Response(new ReadableStream({
      pull(controller) {
        order.push("byte");
        controller.enqueue(Buffer.from("x"));
        controller.close();
      },
    }, { highWaterMark: 0 }));
  }, {}, {
    async store() {
      await new Promise((resolve) => setImmediate(resolve));
      order.push("commit");
    },
  });
  assert.ok(response?.body instanceof ReadableStream);
  assert.equal(await new Response(response.body).text(), "x");
  assert.deepEqual(order, ["commit", "byte"]);
});

test("dispatch throws once the handler has settled", async () => {
  for (const handle of [() => undefined, () => Promise.reject(new Error("failed"))]) {
    let kept: Context["dispatch"] | undefined;
    const { stored } = await call(({ dispatch }) => {
      kept = dispatch;
      return handle();
    });
    assert.throws(() => kept?.("a", 1), { name: "Error", message: /settled/ });
    assert.equal(stored.length, 0);
  }
});

test("a thrown plain object with an error status becomes that problem", async () => {
  const cases: [thrown: unknown, status: number, code: string, detail: string][] = [
    [{ status: 404, detail: "No such order." }, 404, "not_found", "No such order."],
    [{ status: 409 }, 409, "conflict", "Conflict"],
    [{ status: 422, detail: 7 }, 422, "unprocessable_entity", "Unprocessable Entity"],
    [{ status: 400, detail: "x", other: 1 }, 400, "bad_request", "x"],
    [{ __proto__: null, status: 403, detail: "y" }, 403, "forbidden", "y"],
    [{ status: 499 }, 499, "error", "Error"],
    [{ status: 503, detail: "Later." }, 503, "service_unavailable", "Later."],
  ];
  for (const [thrown, status, code, detail] of cases) {
    const { problem, lines } = await call(() => Promise.reject(thrown));
    assert.deepEqual([problem?.status, problem?.code, problem?.message], [status, code, detail]);
    assert.equal(lines.length, 0);
  }
});

test("any other thrown value becomes a 500 without details, and a log line", async () => {
  const secret = "s3cret";
  class NotFound extends Error {
    readonly status = 404;
    readonly statusCode = 404;
    readonly detail = secret;
    readonly expose = true;
  }
  class Refusal {
    readonly status = 404;
    readonly detail = secret;
  }
  const thrown = [
    new Error(secret),
    new NotFound(secret),
    Object.assign(new Error(secret), { status: 400, detail: secret }),
    new Refusal(),
    new DOMException(secret),
    secret,
    undefined,
    null,
    404,
    [404],
    new Response(secret, { status: 404 }),
    { status: 600, detail: secret },
    { status: 200, detail: secret },
    { status: "404", detail: secret },
    { status: 404.5, detail: secret },
    { status: NaN },
    { detail: secret },
    {},
  ];
  for (const error of thrown) {
    const { problem, lines } = await call(() => Promise.reject(error));
    assert.deepEqual([problem?.status, problem?.code, problem?.errors], [500, "internal", []]);
    assert.ok(!problem?.message.includes(secret));
    // The others become an Error: see test/hosting/on_error.test.ts.
    const logged = error instanceof Error ? error : lines[0]?.fields["error"];
    assert.deepEqual(lines, [{
      msg: "endpoint failed",
      fields: { request_id: "r1", route: "POST /orders/:id", error: logged },
    }]);
  }
});

test("a handler that throws synchronously leads to a 500 too", async () => {
  const { problem } = await call(() => {
    throw new Error("now");
  });
  assert.equal(problem?.status, 500);
});

test("an error of dispatch() leads to a 500, unless the handler catches it", async () => {
  assert.equal((await call(({ dispatch }) => dispatch("no name", 1))).problem?.status, 500);
  const { response, stored } = await call(({ dispatch }) => {
    dispatch("kept", 1);
    assert.throws(() => dispatch("gatepost.x", 1), TypeError);
    assert.throws(() => dispatch("large", "x".repeat(64)), RangeError);
  });
  assert.deepEqual([response?.status, stored.map(({ name }) => name)], [204, ["kept"]]);
});
