import assert from "node:assert/strict";
import { test } from "node:test";
import type { OnError } from "../../src/mod.ts";
import { callHosted, loadedEndpoint } from "../helpers/hosting.ts";

const failure = new Error("no such row");

/** Calls an endpoint that ends like this, in folders with these; the innermost comes first. */
const callWith = (handle: () => unknown, ...onError: OnError[]) => {
  const endpoint = loadedEndpoint({ method: "GET", path: "/", public: true, handle });
  return callHosted({ ...endpoint, onError });
};
const fail = () => Promise.reject(failure);
const skip = () => undefined;

test("a refusal that onError makes is the response, and nothing is logged", async () => {
  const refusal = { status: 404, detail: "No such order.", headers: { "x-a": "b" } };
  for (const onError of [() => refusal, () => Promise.reject(refusal), async () => refusal]) {
    const { status, json, headers, lines } = await callWith(fail, onError);
    assert.deepEqual([status, headers["x-a"], lines], [404, "b", []]);
    assert.partialDeepStrictEqual(json, { detail: "No such order." });
  }
});

test("onError gets error and context; what returns nothing leaves it to the next", async () => {
  const seen: unknown[] = [];
  const note: OnError = (error, { requestId }) => void seen.push(error, requestId);
  const { status } = await callWith(fail, note, note, () => ({ status: 409 }), note);
  assert.deepEqual([status, seen], [409, [failure, "r1", failure, "r1"]]);
});

test("where nobody makes a refusal of it, the error is a 500 and logged", async () => {
  const { status, lines } = await callWith(fail, skip, skip);
  assert.equal(status, 500);
  assert.deepEqual(lines, [
    { msg: "endpoint failed", request_id: "r1", route: "GET /", error: failure },
  ]);
});

test("what is thrown and no Error is a TypeError in the log, with its content", async () => {
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

test("what onError throws takes the error's place, and both are logged", async () => {
  const other = new Error("onError failed");
  const seen: unknown[] = [];
  const { status, lines } = await callWith(fail, () => Promise.reject(other), (error) => {
    seen.push(error);
  });
  assert.deepEqual([status, seen], [500, [other]]);
  assert.partialDeepStrictEqual(lines, [{ error: other, thrown: failure }]);
});

test("what onError returns that is no refusal, or cannot be sent, is a TypeError", async () => {
  const bad = { status: 404, headers: { "content-length": 1 } };
  for (const returned of [{ status: 200 }, "x", null, { detail: "x" }, bad]) {
    const { status, lines: [line] } = await callWith(fail, () => returned as never);
    assert.equal(status, 500);
    assert.ok(line?.["error"] instanceof TypeError, String(returned));
  }
});

test("a refusal is none of onError's", async () => {
  const own = Object.assign(new Error("x"), { refusal: { status: 402 } });
  for (const thrown of [{ status: 402 }, own]) {
    const { status } = await callWith(() => Promise.reject(thrown), () => assert.fail("called"));
    assert.equal(status, 402);
  }
});

test("onError gets an answer that cannot be made, and what before throws", async () => {
  const turn: OnError = (error) => ({ status: 418, detail: String(error) });
  const mistakes = [
    () => 1n,
    () => ({ status: 200, headers: { te: "x" } }),
    () => Promise.reject({ status: 404, errors: "x" }),
  ];
  for (const handle of mistakes) {
    const { status, json } = await callWith(handle, turn);
    assert.equal(status, 418);
    assert.match(JSON.stringify(json), /TypeError/);
  }
  const endpoint = loadedEndpoint({ method: "GET", path: "/", public: true, handle: skip });
  const { status } = await callHosted({ ...endpoint, before: [fail], onError: [turn] });
  assert.equal(status, 418);
});

test("onError dispatches nothing: the request has failed", async () => {
  const { status, lines } = await callWith(fail, (_error, { dispatch }) => {
    dispatch("a", 1);
    return { status: 404 };
  });
  assert.equal(status, 500);
  assert.match(String(lines[0]?.["error"]), /settled/);
});
