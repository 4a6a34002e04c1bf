import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Keep, respondOnce } from "../../src/api/idempotency.ts";
import type { HttpRequest, HttpResponse } from "../../src/base/http_message.ts";
import { newId } from "../../src/base/id.ts";
import { Problem } from "../../src/base/problem.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { createMemoryDatabase } from "../../src/database/memory.ts";
import type { Sql } from "../../src/database/sql.ts";
import { insertEvent, listDispatched } from "../../src/store/events.ts";
import { purge } from "../../src/store/purge.ts";
import { backendCaller, sampleRequest } from "../helpers/http_request.ts";

const CALLER = backendCaller(Infinity);
const RETENTION = { eventsMs: 1_000, auditMs: 1_000 };
const LEASE_MS = 20_000;
const DAY_MS = 86_400_000;

type Run = (keep: Keep) => Promise<HttpResponse>;

interface Sent extends Partial<Omit<HttpRequest, "readBody">> {
  readonly key?: string;
  readonly asked?: string | Uint8Array;
  readonly caller?: typeof CALLER | undefined;
}

/** A database, and requests with key "k1" and body "{}" from one caller, changed as given. */
function stage(database: Database = createMemoryDatabase()) {
  const clock = { nowMs: 1_000 };
  let runs = 0;

  /** Stores an event and its response together, as endpoints do. */
  const dispatch = async (keep: Keep): Promise<HttpResponse> => {
    const body = String(++runs);
    const id = newId("e", clock.nowMs);
    const event = { id, name: "a", json: body, subject: undefined, createdAtMs: clock.nowMs };
    const response = { status: 201, headers: { "X-Run": body, "set-cookie": ["a", "b"] }, body };
    await database.write([insertEvent(event), ...keep(response)]);
    return response;
  };
  async function send(sent: Sent = {}, run: Run = dispatch) {
    const { key = "k1", asked = "{}", ...more } = sent;
    const caller = "caller" in sent ? sent.caller : CALLER;
    const headers = { "idempotency-key": key, ...more.headers };
    const request = sampleRequest({ method: "POST", path: "/orders", ...more, headers });
    const services = { database, now: () => clock.nowMs };
    const { body, ...rest } = await respondOnce(services, { request, caller }, () => asked, run);
    assert.ok(!(body instanceof ReadableStream));
    return { ...rest, body: body === undefined ? undefined : Buffer.from(body).toString() };
  }
  const countEvents = async () => (await listDispatched(database)).length;
  return { database, clock, send, dispatch, countEvents };
}

const refused = (status: number) => (error: unknown) =>
  error instanceof Problem && error.status === status;

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
  const memory = createMemoryDatabase();
  const sizes: number[] = [];
  const { send } = stage({
    ...memory,
    write(batch) {
      sizes.push(batch.length);
      return memory.write(batch);
    },
  });
  await send();
  assert.deepEqual(sizes, [1, 2]);
});

test("a request whose lease has ended is taken over, and stores nothing itself", async () => {
  const { send, dispatch, clock, countEvents } = stage();
  const held = Promise.withResolvers<void>();
  const dead = send({}, (keep) => held.promise.then(() => dispatch(keep)));
  clock.nowMs += LEASE_MS - 1;
  await assert.rejects(send(), refused(409));
  clock.nowMs += 1;
  const taken = await send();
  held.resolve();
  assert.deepEqual(await dead, taken); // the process was not dead but stopped for a while
  assert.equal(await countEvents(), 1);
});

test("only one repeat at a time takes over a request whose lease has ended", async () => {
  const { send, clock } = stage();
  const [dead, held] = [1, 2].map(() => Promise.withResolvers<HttpResponse>());
  assert.ok(dead && held);
  const first = send({}, () => dead.promise);
  await nextTurn();
  clock.nowMs += LEASE_MS;
  const second = send({}, () => held.promise);
  await nextTurn();
  await assert.rejects(send(), { status: 409, code: "key_in_use" });
  dead.reject(new Error("failed"));
  await assert.rejects(first, { message: "failed" });
  await nextTurn();
  await assert.rejects(send(), { status: 409, code: "key_in_use" });
  held.resolve({ status: 200, body: "second" });
  assert.equal((await second).body, "second");
  assert.equal((await send()).body, "second");
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

test("a handler that runs long keeps renewing its lease", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { send, dispatch, clock } = stage();
  const held = Promise.withResolvers<void>();
  const first = send({}, (keep) => held.promise.then(() => dispatch(keep)));
  await nextTurn();
  for (let passedMs = 0; passedMs < 10 * LEASE_MS; passedMs += LEASE_MS / 4) {
    clock.nowMs += LEASE_MS / 4;
    t.mock.timers.tick(LEASE_MS / 4);
    await assert.rejects(send(), refused(409));
  }
  held.resolve();
  assert.deepEqual(await send(), await first);
});

test("a response is kept for a day, and then purged", async () => {
  const { send, clock, database } = stage();
  const sweep = () => purge(database, RETENTION, clock.nowMs, new AbortController().signal);
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

/** What happens to the write of the event and the response, whose outcome is unknown. */
const FATES = ["stored", "never stored", "stored after a repeat", "stored before a repeat"];
for (const fate of FATES) {
  test(`a repeat makes no second event after an unknown outcome: ${fate}`, async () => {
    const memory = createMemoryDatabase();
    let writes = 0;
    let late: readonly Sql[] = [];
    const { send, countEvents } = stage({
      ...memory,
      async write(batch) {
        if (++writes !== 2) return memory.write(batch);
        if (fate === "stored") await memory.write(batch);
        late = batch;
        throw new OutcomeUnknownError("unknown");
      },
    });
    await assert.rejects(send(), OutcomeUnknownError);
    if (fate === "stored before a repeat") await memory.write(late);
    const isKnown = fate === "stored" || fate === "stored before a repeat";
    const repeat = await send();
    assert.equal(repeat.body, isKnown ? "1" : "2");
    if (fate === "stored after a repeat") {
      await assert.rejects(memory.write(late), { name: "ConflictError" });
    }
    assert.deepEqual(await send(), repeat);
    assert.equal(await countEvents(), 1);
  });
}

test("a response that cannot be stored is sent all the same, and a repeat runs", async () => {
  const memory = createMemoryDatabase();
  let writes = 0;
  const { send } = stage({
    ...memory,
    async write(batch) {
      if (++writes === 2) throw new UnavailableError("full");
      return memory.write(batch);
    },
  });
  let runs = 0;
  const run = async (): Promise<HttpResponse> => ({ status: 202, body: String(++runs) });
  assert.equal((await send({}, run)).body, "1");
  assert.equal((await send({}, run)).body, "2");
  assert.equal((await send({}, run)).body, "2");
});

test("a request that is taken over while it runs is 409 and stores nothing", async () => {
  const memory = createMemoryDatabase();
  const { send, dispatch, countEvents, clock } = stage(memory);
  const [slow, fast] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = send({}, (keep) => slow.promise.then(() => dispatch(keep)));
  clock.nowMs += LEASE_MS;
  const second = send({}, (keep) => fast.promise.then(() => dispatch(keep)));
  await nextTurn();
  slow.resolve();
  await assert.rejects(first, refused(409)); // overtaken: it stored nothing
  assert.equal(await countEvents(), 0);
  fast.resolve();
  assert.deepEqual(await send({}), await second);
  assert.equal(await countEvents(), 1);
});

test("a claim whose outcome is unknown is released", async () => {
  const memory = createMemoryDatabase();
  let writes = 0;
  const { send } = stage({
    ...memory,
    async write(batch) {
      const changes = await memory.write(batch);
      if (++writes === 1) throw new OutcomeUnknownError("unknown");
      return changes;
    },
  });
  await assert.rejects(send(), OutcomeUnknownError);
  assert.equal((await send()).status, 201);
});

test("one of 200 simultaneous requests runs", async (t) => {
  const { send, countEvents } = stage();
  const settled = await Promise.allSettled(Array.from({ length: 200 }, () => send()));
  const responses = settled.flatMap((each) => each.status === "fulfilled" ? [each.value.body] : []);
  const refusals = settled.flatMap((each) => each.status === "rejected" ? [each.reason] : []);
  t.diagnostic(`${responses.length} responses, ${refusals.length} refusals`);
  assert.deepEqual([...new Set(responses)], ["1"]);
  assert.ok(refusals.every(refused(409)));
  assert.equal(await countEvents(), 1);
});
