import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "../../src/mod.ts";
import { callHosted, HOSTED_CALLER, loadedEndpoint } from "../helpers/hosting.ts";

/** Calls an endpoint with this handler, after these `before` functions. */
const callWith = (
  handle: (context: Context) => unknown,
  ...before: readonly ((context: Context) => unknown)[]
) => {
  const members = { method: "POST", path: "/orders", scope: "orders", handle };
  return callHosted({ ...loadedEndpoint(members), before: before as never }, { query: "a=1" });
};

const MEMBERS = [
  ...["params", "query", "body", "request", "caller", "dispatch", "signal", "log", "address"],
  "requestId",
].sort();

test("the context has the client's address and the request's id", async () => {
  const { json } = await callWith(({ address, requestId }) => [address, requestId]);
  assert.deepEqual(json, ["192.0.2.1", "r1"]);
});

test("a copy of the context has every member with the same value", async () => {
  const { status } = await callWith((context) => {
    const { params, ...rest } = context;
    for (const copy of [{ ...context }, Object.assign({}, context), { params, ...rest }]) {
      assert.deepEqual(Object.keys(copy).sort(), MEMBERS);
      assert.equal(copy.query.get("a"), "1");
      for (const [name, value] of Object.entries(copy)) {
        assert.equal(value, Reflect.get(context, name), name);
      }
    }
    assert.deepEqual(Object.keys(context).sort(), MEMBERS);
    assert.ok(MEMBERS.every((name) => name in context));
    assert.ok(!("parts" in context));
    Object.defineProperty(context, "query", { value: 1, enumerable: true, configurable: true });
    assert.equal({ ...context }.query, 1);
  });
  assert.equal(status, 204);
});

test("before() functions run in order, know the caller and add to the context", async () => {
  const { json } = await callWith(
    (context) => [Reflect.get(context, "user"), Reflect.get({ ...context }, "again")],
    ({ caller }) => ({ user: caller?.sub }),
    async (context) => await Promise.resolve({ again: `${Reflect.get(context, "user")}!` }),
    () => undefined,
  );
  assert.deepEqual(json, [HOSTED_CALLER.sub, `${HOSTED_CALLER.sub}!`]);
});

test("an endpoint's own before() is called as its method", async () => {
  const { json } = await callHosted(loadedEndpoint({
    method: "GET",
    path: "/orders",
    public: true,
    before() {
      return { own: this["path"] };
    },
    handle: ({ own }: { own: string }) => own,
  }));
  assert.equal(json, "/orders");
});

test("events that before() dispatches belong to the request", async () => {
  const dispatch = (context: Context) => void context.dispatch("a", 1);
  assert.deepEqual((await callWith(dispatch, dispatch)).stored, ["a", "a"]);
  const refused = await callWith(dispatch, dispatch, () => ({ status: 403 }));
  assert.deepEqual([refused.status, refused.stored], [403, []]);
});

test("a refusal that before() throws or returns ends the request", async () => {
  const refusal = { status: 403, detail: "Not yours." };
  const error = () => Object.assign(new Error("own"), { refusal });
  const refusals = [() => refusal, () => Promise.reject(refusal), () => ({ status: 403 }), error];
  for (const before of refusals) {
    const { status, lines } = await callWith(() => assert.fail("called"), before);
    assert.deepEqual([status, lines], [403, []]);
  }
});

test("a result of before() that cannot be added to the context leads to a 500", async () => {
  const wrong = [
    ...[null, true, "user", 7, [], new Map(), new Response(null, { status: 401 }), () => {}],
    ...[{ status: 302, headers: { location: "/" } }, { status: "active" }],
    ...MEMBERS.map((name) => ({ [name]: 1 })),
    ...[{ toString: 1 }, JSON.parse('{ "__proto__": {} }')],
  ];
  for (const returned of wrong) {
    const { status, lines } = await callWith(() => assert.fail("called"), () => returned);
    assert.deepEqual([status, lines.length], [500, 1], JSON.stringify(returned));
    assert.ok(lines[0]?.["error"] instanceof TypeError);
  }
  const add = () => ({ user: 1 });
  assert.equal((await callWith(() => assert.fail("called"), add, add)).status, 500);
});

test("log accepts an Error in place of the fields, and adds the request's id", async () => {
  const error = new Error("no stock");
  const { lines } = await callWith(({ log }) => {
    Reflect.apply(log.error, log, ["failed", error]);
  });
  assert.partialDeepStrictEqual(lines, [{ msg: "failed", error, request_id: "r1" }]);
});

test("a field of a log line whose getter throws is left out, the others are written", async () => {
  const { status, lines } = await callWith(({ log }) => {
    log.info("here", { a: 1, get b() { throw new Error("no"); } });
  });
  assert.deepEqual(status, 204);
  assert.partialDeepStrictEqual(lines, [{ msg: "here", a: 1, request_id: "r1" }]);
});
