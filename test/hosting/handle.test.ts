import assert from "node:assert/strict";
import { test } from "node:test";
import { HOSTED_CALLER } from "../helpers/hosting.ts";
import { call, FORM_TYPE, JSON_TYPE } from "./handle_stage.ts";

const ADA = { sub: "u1", kind: "user", clientId: "login", scopes: ["orders"] };

test("a question mark at the start of a query or a form is part of its first name", async () => {
  const { response } = await call(
    ({ query, body }) => [[...query], [...body as URLSearchParams]],
    { type: FORM_TYPE, query: "?a=1", body: "?b=2" }, // of a target as in /orders/7??a=1
  );
  assert.deepEqual(JSON.parse(String(response?.body)), [[["?a", "1"]], [["?b", "2"]]]);
});

test("a handler gets the path, query, caller and body of its request", async () => {
  const secretive = { ...HOSTED_CALLER, jti: "secret" };
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

test("a Response that cannot be sent becomes a 500, and its stream ends", async () => {
  const ends: string[] = [];
  const { problem } = await call(() =>
    new Response(new ReadableStream({ cancel: () => void ends.push("stream") }), {
      headers: { "x-a": "a\x01b" },
    }), { abort: () => void ends.push("signal") });
  assert.deepEqual([problem?.status, ends], [500, ["signal", "stream"]]);
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
