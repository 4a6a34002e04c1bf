import assert from "node:assert/strict";
import { test } from "node:test";
import type { OnError } from "../../src/mod.ts";
import { callHosted, loadedEndpoint } from "../helpers/hosting.ts";

const failure = new Error("no such row");

/** Calls an endpoint with this handler, in folders with these hooks, the innermost first. */
const callWith = (handle: () => unknown, ...onError: OnError[]) => {
  const endpoint = loadedEndpoint({ method: "GET", path: "/", public: true, handle });
  return callHosted({ ...endpoint, onError });
};
const fail = () => Promise.reject(failure);
const skip = () => undefined;

test("a refusal from onError() is the response, and nothing is logged", async () => {
  const refusal = { status: 404, detail: "No such order.", headers: { "x-a": "b" } };
  for (const onError of [() => refusal, () => Promise.reject(refusal), async () => refusal]) {
    const { status, json, headers, lines } = await callWith(fail, onError);
    assert.deepEqual([status, headers["x-a"], lines], [404, "b", []]);
    assert.partialDeepStrictEqual(json, { detail: "No such order." });
  }
});

test("onError() gets error and context; if it returns nothing, the next is called", async () => {
  const seen: unknown[] = [];
  const note: OnError = (error, { requestId }) => void seen.push(error, requestId);
  const { status } = await callWith(fail, note, note, () => ({ status: 409 }), note);
  assert.deepEqual([status, seen], [409, [failure, "r1", failure, "r1"]]);
});

test("an error that no onError() makes a refusal of becomes a 500, and is logged", async () => {
  const { status, lines } = await callWith(fail, skip, skip);
  assert.equal(status, 500);
  assert.deepEqual(lines, [
    { msg: "endpoint failed", request_id: "r1", route: "GET /", error: failure },
  ]);
});

test("a thrown value that is no Error is logged as a TypeError that shows it", async () => {
  for (const [thrown, content] of [
    [undefined, "undefined"],
    [null, "null"],
    ["", "''"],
    ["text", "'text'"],
    [7n, "7n"],
    [Symbol("shut"), "Symbol(shut)"],
    [new Response("no", { status: 404 }), "Response"],
    [{ code: "E1", then: 1 }, "{ code: 'E1', then: 1 }"],
    [{ [Symbol.for("nodejs.util.inspect.custom")]: () => assert.fail("called") }, "{"],
  ]) {
    const { status, lines: [line] } = await callWith(() => Promise.reject(thrown));
    assert.equal(status, 500);
    const error = line?.["error"];
    assert.ok(error instanceof TypeError && error.message.startsWith(`Threw ${String(content)}`));
  }
});

test("an error that onError() throws replaces the first one, and both are logged", async () => {
  const other = new Error("onError failed");
  const seen: unknown[] = [];
  const { status, lines } = await callWith(fail, () => Promise.reject(other), (error) => {
    seen.push(error);
  });
  assert.deepEqual([status, seen], [500, [other]]);
  assert.partialDeepStrictEqual(lines, [{ error: other, thrown: failure }]);
});

test("a result of onError() that is no refusal, or cannot be sent, is a TypeError", async () => {
  const bad = { status: 404, headers: { "content-length": 1 } };
  for (const returned of [{ status: 200 }, "x", null, { detail: "x" }, bad]) {
    const { status, lines: [line] } = await callWith(fail, () => returned as never);
    assert.equal(status, 500);
    assert.ok(line?.["error"] instanceof TypeError, String(returned));
  }
});

test("a refusal is not passed to onError()", async () => {
  const own = Object.assign(new Error("x"), { refusal: { status: 402 } });
  for (const thrown of [{ status: 402 }, own]) {
    const { status } = await callWith(() => Promise.reject(thrown), () => assert.fail("called"));
    assert.equal(status, 402);
  }
});

test("onError() gets the error of an invalid response, and what before() throws", async () => {
  const refuse: OnError = (error) => ({ status: 418, detail: String(error) });
  const mistakes = [
    () => 1n,
    () => ({ status: 200, headers: { te: "x" } }),
    () => Promise.reject({ status: 404, errors: "x" }),
  ];
  for (const handle of mistakes) {
    const { status, json } = await callWith(handle, refuse);
    assert.equal(status, 418);
    assert.match(JSON.stringify(json), /TypeError/);
  }
  const endpoint = loadedEndpoint({ method: "GET", path: "/", public: true, handle: skip });
  const { status } = await callHosted({ ...endpoint, before: [fail], onError: [refuse] });
  assert.equal(status, 418);
});

test("onError() cannot dispatch, since the request has failed", async () => {
  const { status, lines } = await callWith(fail, (_error, { dispatch }) => {
    dispatch("a", 1);
    return { status: 404 };
  });
  assert.equal(status, 500);
  assert.match(String(lines[0]?.["error"]), /settled/);
});
