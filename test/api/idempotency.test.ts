import assert from "node:assert/strict";
import { test } from "node:test";
import type { Keep } from "../../src/api/idempotency.ts";
import type { HttpResponse } from "../../src/base/http_message.ts";
import { Problem } from "../../src/base/problem.ts";
import { purge } from "../../src/store/purge.ts";
import { NEVER } from "../helpers/never.ts";
import { CALLER, DAY_MS, LEASE_MS, refused, type Sent, stage } from "./idempotency_stage.ts";

const RETENTION = { eventsMs: 1_000, auditMs: 1_000 };

test("a repeat gets the first response with its headers, and runs nothing", async () => {
  const { send, countEvents } = stage();
  const first = await send();
  assert.equal(first.body, "1");
  for (let repeat = 0; repeat < 2; repeat++) assert.deepEqual(await send(), first);
  assert.equal(await countEvents(), 1);
});

test("a response without a body is repeated without one", async () => {
  const { send } = stage();
  const run = async (): Promise<HttpResponse> => ({ status: 204 });
  assert.deepEqual(await send({}, run), { status: 204, body: undefined });
  assert.deepEqual(await send(), { status: 204, body: undefined });
});

test("a key belongs to one caller, or address, and to one method and path", async () => {
  const { send } = stage();
  const others: Sent[] = [
    { key: "k2" },
    { path: "/other" },
    { method: "PUT" },
    { caller: { ...CALLER, sub: "u2" } },
    { caller: { ...CALLER, clientId: "a1" } },
    { caller: undefined },
    { caller: undefined, address: "192.0.2.2" },
  ];
  for (const [index, other] of [{}, ...others].entries()) {
    assert.equal((await send(other)).body, String(index + 1));
  }
  for (const [index, other] of [{}, ...others].entries()) {
    assert.equal((await send(other)).body, String(index + 1));
  }
});

test("a repeat with another body or query is 422, during and after the first request", async () => {
  const { send, clock } = stage();
  const others = [{ asked: "[]" }, { asked: new Uint8Array([0xff]) }, { query: "a=1" }];
  const refuseOthers = async () => {
    for (const other of others) await assert.rejects(send(other), refused(422));
  };
  const held = Promise.withResolvers<HttpResponse>();
  const first = send({}, () => held.promise);
  await refuseOthers();
  held.reject(new Error("failed"));
  await assert.rejects(first, { message: "failed" });
  clock.nowMs += 2 * LEASE_MS;
  await refuseOthers();
  await send();
  await refuseOthers();
});

test("a repeat is 409 while the first request runs, and then gets its response", async () => {
  const { send, dispatch, countEvents } = stage();
  const held = Promise.withResolvers<void>();
  const first = send({}, (keep) => held.promise.then(() => dispatch(keep)));
  const inUse = { status: 409, code: "key_in_use", headers: { "Retry-After": "1" } };
  await assert.rejects(send(), inUse);
  held.resolve();
  assert.deepEqual(await send({}), await first);
  assert.equal(await countEvents(), 1);
});

const KEYS: [sent: string, as: string | undefined][] = [
  ['"k1"', "k1"],
  [String.raw`"a\"\\b"`, String.raw`a"\b`],
  ["a b, c", "a b, c"],
  ["x".repeat(255), "x".repeat(255)],
  [`"${"x".repeat(255)}"`, "x".repeat(255)],
  ...["", '""', '"k1', 'k1\u{e9}', '"k1";a=1', String.raw`"\a"`, "x".repeat(256), "a\tb"]
    .map((sent): [string, undefined] => [sent, undefined]),
];
for (const [sent, as] of KEYS) {
  test(`key ${sent.slice(0, 9)} (${sent.length} long) is ${as?.slice(0, 9) ?? 400}`, async () => {
    const { send } = stage();
    if (as === undefined) return assert.rejects(send({ key: sent }), refused(400));
    assert.deepEqual(await send({ key: sent }), await send({ key: as }));
  });
}

test("a refusal is kept and repeated, but not one with Retry-After", async () => {
  const { send } = stage();
  let runs = 0;
  const refuse = (more: Readonly<Record<string, string>>) => async () => {
    throw new Problem(404, "not_found", String(++runs), { headers: { "X-More": "1", ...more } });
  };
  const first = await send({}, refuse({}));
  assert.partialDeepStrictEqual(first, { status: 404, headers: { "X-More": "1" } });
  assert.match(first.body ?? "", /"detail":"1"/);
  assert.deepEqual(await send({}, refuse({})), first);
  for (const detail of ["2", "3"]) {
    const again = refuse({ "Retry-After": "1" });
    await assert.rejects(send({ key: "k2" }, again), { message: detail });
  }
});

test("a repeated refusal has the request id of the repeat", async () => {
  const { send } = stage();
  const errors = [{ pointer: "/a", detail: "Is wrong." }];
  const refuse = () => Promise.reject(new Problem(409, "conflict", "Sold.", { errors }));
  const first = await send({ id: "first" }, refuse);
  const again = await send({ id: "again" }, refuse);
  assert.equal(again.body, first.body?.replace('"request_id":"first"', '"request_id":"again"'));
  assert.notEqual(again.body, first.body);
  const headers = { "Content-Type": "application/problem+json" };
  const own = async () => ({ status: 409, headers, body: '{"request_id":"own"}' });
  await send({ key: "k2" }, own);
  assert.equal((await send({ key: "k2" }, own)).body, '{"request_id":"own"}');
});

test("a repeat runs at once after an error, or a response of 500 or more", async () => {
  const { send, countEvents } = stage();
  await assert.rejects(send({}, () => Promise.reject(new Error("failed"))), { message: "failed" });
  assert.equal((await send({}, async () => ({ status: 502, body: "" }))).status, 502);
  assert.equal((await send()).status, 201);
  assert.equal(await countEvents(), 1);
});

test("with a key, a response that cannot be kept is a TypeError; no event is stored", async () => {
  const { send, dispatch, countEvents } = stage();
  const large = "ä".repeat(131_072); // 256 KiB
  const keeps = (body: HttpResponse["body"]) => async (keep: Keep) => {
    keep({ status: 200, body });
    return dispatch(keep);
  };
  for (const body of [`${large}.`, new ReadableStream()]) {
    await assert.rejects(send({}, keeps(body)), { name: "TypeError", message: /256 KiB/ });
  }
  assert.equal(await countEvents(), 0);
  const whole = async (): Promise<HttpResponse> => ({ status: 200, body: large });
  await send({}, whole);
  assert.equal((await send()).body, large);
});

test("without a key a request runs each time, and no key is stored", async () => {
  const { send, database } = stage();
  const headers = { "idempotency-key": undefined };
  const bodies = [(await send({ headers })).body, (await send({ headers })).body];
  assert.deepEqual(bodies, ["1", "2"]);
  const rows = await database.query({ sql: "SELECT 1 FROM idempotency_keys", params: [] });
  assert.deepEqual(rows, []);
});

test("a request with a key takes two commits: claim, then event and response", async () => {
  const sizes: number[] = [];
  const { send } = stage((batch, _, store) => {
    sizes.push(batch.length);
    return store(batch);
  });
  await send();
  assert.deepEqual(sizes, [1, 2]);
});

test("a day later a key may be used for another request, which is kept for a day", async () => {
  const { send, clock, countEvents } = stage();
  await send();
  clock.nowMs += DAY_MS;
  const other = await send({ asked: "[]" });
  clock.nowMs += DAY_MS - 1;
  assert.deepEqual(await send({ asked: "[]" }), other);
  await assert.rejects(send(), refused(422));
  assert.equal(await countEvents(), 2);
});

test("a response is kept for a day, and then purged", async () => {
  const { send, clock, database } = stage();
  const sweep = () => purge(database, RETENTION, clock.nowMs, NEVER);
  await send();
  clock.nowMs += DAY_MS - 1;
  await sweep();
  assert.equal((await send()).body, "1");
  clock.nowMs += 1;
  assert.equal((await send({ asked: "[]" })).body, "2", "also before it is purged");
  clock.nowMs += DAY_MS;
  await sweep();
  const rows = await database.query({ sql: "SELECT 1 FROM idempotency_keys", params: [] });
  assert.deepEqual(rows, []);
});
