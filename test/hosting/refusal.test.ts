import assert from "node:assert/strict";
import { test } from "node:test";
import { callHosted, loadedEndpoint } from "../helpers/hosting.ts";

/** Calls an endpoint, public unless `access` differs, that dispatches an event and does this. */
const callWith = (handle: () => unknown, access: object = { public: true }) =>
  callHosted(loadedEndpoint({
    method: "GET",
    path: "/orders",
    ...access,
    handle({ dispatch }: { dispatch: (name: string, data: unknown) => void }) {
      dispatch("a", 1);
      return handle();
    },
  }));

/** Calls an endpoint that throws this. */
const callThrowing = (thrown: unknown, access?: object) =>
  callWith(() => Promise.reject(thrown), access);

class OutOfStock extends Error {
  readonly refusal = { status: 409, detail: "None is left.", headers: { "x-stock": 0 } };
}

const ERRORS = [{ pointer: "/item", detail: "Is required." }, { pointer: "", detail: "Is odd." }];

test("a refusal is sent with status, detail, errors and headers, and stores no event", async () => {
  const refusal = { status: 422, detail: "See errors.", errors: ERRORS, headers: { "x-a": 1 } };
  for (const handle of [() => refusal, () => Promise.reject(refusal)]) {
    const { status, json, headers, stored, lines } = await callWith(handle);
    assert.deepEqual([status, stored, lines], [422, [], []]);
    assert.deepEqual(json, {
      type: "urn:gatepost:problem:unprocessable_entity",
      title: "Unprocessable Entity",
      status: 422,
      detail: "See errors.",
      request_id: "r1",
      errors: ERRORS,
    });
    assert.partialDeepStrictEqual(headers, {
      "Content-Type": "application/problem+json",
      "x-a": "1",
    });
  }
});

test("an author's Error refuses with its member refusal, and reveals nothing else", async () => {
  const { status, json, headers, stored, lines } = await callThrowing(new OutOfStock("s3cret"));
  assert.deepEqual([status, stored, lines, headers["x-stock"]], [409, [], [], "0"]);
  assert.partialDeepStrictEqual(json, { detail: "None is left." });
  assert.ok(!JSON.stringify(json).includes("s3cret"));
});

test("an Error whose refusal is invalid becomes a 500", async () => {
  for (const refusal of [{ status: 200 }, { detail: "x" }, new OutOfStock(), "x", null]) {
    const { status, lines } = await callThrowing(Object.assign(new Error("x"), { refusal }));
    assert.deepEqual([status, lines.length], [500, 1]);
  }
});

test("a returned object is a refusal if it has an error status and detail or errors", async () => {
  const cases: [returned: unknown, status: number, isRefusal: boolean][] = [
    [{ status: 404, detail: "No such order." }, 404, true],
    [{ status: 404, detail: undefined }, 404, true],
    [{ status: 400, errors: ERRORS }, 400, true],
    [{ status: 503, detail: "Later.", headers: {} }, 503, true],
    [{ status: 404 }, 404, false],
    [{ status: 404, headers: { "x-a": "b" }, body: { detail: "mine" } }, 404, false],
    [{ status: 200, detail: "data" }, 200, false],
    [{ status: 404, detail: "data", count: 1 }, 200, false],
    [{ status: "404", detail: "data" }, 200, false],
  ];
  for (const [returned, status, isRefusal] of cases) {
    const outcome = await callWith(() => returned);
    const isProblem = outcome.headers["Content-Type"] === "application/problem+json";
    assert.deepEqual([outcome.status, isProblem, outcome.stored.length],
      [status, isRefusal, isRefusal ? 0 : 1], JSON.stringify(returned));
  }
});

test("a returned Error counts as thrown", async () => {
  const refused = await callWith(() => new OutOfStock());
  assert.deepEqual([refused.status, refused.stored, refused.lines], [409, [], []]);
  const failed = await callWith(() => new TypeError("secret"));
  assert.deepEqual([failed.status, failed.stored, failed.lines.length], [500, [], 1]);
});

test("cookies are sent as a list, and a Cache-Control replaces the service's", async () => {
  const headers = { "Set-Cookie": ["a=1", "b=2"], "cache-control": "max-age=5" };
  const { headers: sent } = await callThrowing({ status: 404, headers });
  assert.deepEqual(sent["set-cookie"], ["a=1", "b=2"]);
  assert.equal(sent["Cache-Control"], "max-age=5");
  assert.equal(sent["cache-control"], undefined);
});

test("a 429 and a 503 have Retry-After: the author's, or 2 seconds", async () => {
  for (const status of [429, 503]) {
    const waitOf = async (headers?: object): Promise<unknown> =>
      (await callThrowing({ status, headers })).headers["Retry-After"];
    assert.equal(await waitOf(), "2");
    assert.equal(await waitOf({ "retry-after": 10 }), "10");
    assert.equal(await waitOf(new Headers({ "Retry-After": "11" })), "11");
  }
});

test("a 401 has the challenge of RFC 6750 §3 if the endpoint has a scope", async () => {
  const challengeOf = async (access: object, headers?: object): Promise<unknown> =>
    (await callThrowing({ status: 401, headers }, access)).headers["WWW-Authenticate"];
  const own = { "www-authenticate": 'Basic realm="shop"' };
  assert.match(String(await challengeOf({ scope: "orders" })), /^Bearer .*scope="orders"/);
  assert.match(String(await challengeOf({ scope: [] })), /^Bearer realm="gatepost", resource_/);
  assert.equal(await challengeOf({ scope: "orders" }, own), 'Basic realm="shop"');
  assert.equal(await challengeOf({ public: true }), undefined);
  assert.equal(await challengeOf({ public: true }, own), 'Basic realm="shop"');
});

test("a refusal that cannot be sent becomes a 500 and a log line without its content", async () => {
  const wrong: object[] = [
    { headers: { "x-a": "a\r\nset-cookie: s3cret" } },
    { headers: { "content-length": 1 } },
    { headers: { "content-type": "text/html" } },
    { headers: { "Content-Encoding": "gzip" } },
    { headers: [["x-a", "s3cret"]] },
    { headers: { "X-A": "1", "x-a": "2" } },
    { errors: "s3cret" },
    { errors: { pointer: "", detail: "s3cret" } },
    { errors: ["s3cret"] },
    { errors: [{ pointer: "/a" }] },
    { errors: [{ pointer: "/a", detail: 1 }] },
    { errors: [{ pointer: "/a", detail: "b", value: "s3cret" }] },
    { errors: null },
  ];
  for (const members of wrong) {
    const refusal = { status: 404, detail: "x", ...members };
    for (const handle of [() => refusal, () => Promise.reject(refusal)]) {
      const outcome = await callWith(handle);
      const { status, headers, json, stored, lines: [line, ...more] } = outcome;
      assert.deepEqual([status, stored, more], [500, [], []], JSON.stringify(members));
      assert.equal(line?.msg, "endpoint failed");
      assert.ok(line["error"] instanceof TypeError);
      assert.doesNotMatch(JSON.stringify([headers, json, line, line["error"].message]), /s3cret/);
    }
  }
});
