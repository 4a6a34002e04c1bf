import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse } from "../../src/base/http_message.ts";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import { turn } from "../helpers/turn.ts";
import { LEASE_MS, refused, stage } from "./idempotency_stage.ts";

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
  await turn();
  clock.nowMs += LEASE_MS;
  const second = send({}, () => held.promise);
  await turn();
  await assert.rejects(send(), { status: 409, code: "key_in_use" });
  dead.reject(new Error("failed"));
  await assert.rejects(first, { message: "failed" });
  await turn();
  await assert.rejects(send(), { status: 409, code: "key_in_use" });
  held.resolve({ status: 200, body: "second" });
  assert.equal((await second).body, "second");
  assert.equal((await send()).body, "second");
});

test("a handler that runs long keeps renewing its lease", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { send, dispatch, clock } = stage();
  const held = Promise.withResolvers<void>();
  const first = send({}, (keep) => held.promise.then(() => dispatch(keep)));
  await turn();
  for (let passedMs = 0; passedMs < 10 * LEASE_MS; passedMs += LEASE_MS / 4) {
    clock.nowMs += LEASE_MS / 4;
    t.mock.timers.tick(LEASE_MS / 4);
    await assert.rejects(send(), refused(409));
  }
  held.resolve();
  assert.deepEqual(await send(), await first);
});

test("a request that is taken over while it runs is 409 and stores nothing", async () => {
  const { send, dispatch, countEvents, clock } = stage();
  const [slow, fast] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = send({}, (keep) => slow.promise.then(() => dispatch(keep)));
  clock.nowMs += LEASE_MS;
  const second = send({}, (keep) => fast.promise.then(() => dispatch(keep)));
  await turn();
  slow.resolve();
  await assert.rejects(first, refused(409)); // overtaken: it stored nothing
  assert.equal(await countEvents(), 0);
  fast.resolve();
  assert.deepEqual(await send({}), await second);
  assert.equal(await countEvents(), 1);
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

/** What happens to the write of the event and the response, whose outcome is unknown. */
const FATES = ["stored", "never stored", "stored after a repeat", "stored before a repeat"];
for (const fate of FATES) {
  test(`a repeat makes no second event after an unknown outcome: ${fate}`, async () => {
    let late: readonly Sql[] = [];
    const { send, countEvents, store } = stage(async (batch, nth, store) => {
      if (nth !== 2) return store(batch);
      if (fate === "stored") await store(batch);
      late = batch;
      throw new OutcomeUnknownError("unknown");
    });
    await assert.rejects(send(), OutcomeUnknownError);
    if (fate === "stored before a repeat") await store(late);
    const isKnown = fate === "stored" || fate === "stored before a repeat";
    const repeat = await send();
    assert.equal(repeat.body, isKnown ? "1" : "2");
    if (fate === "stored after a repeat") {
      await assert.rejects(store(late), { name: "ConflictError" });
    }
    assert.deepEqual(await send(), repeat);
    assert.equal(await countEvents(), 1);
  });
}

test("a response that cannot be stored is sent all the same, and a repeat runs", async () => {
  const { send } = stage(async (batch, nth, store) => {
    if (nth === 2) throw new UnavailableError("full");
    return store(batch);
  });
  let runs = 0;
  const run = async (): Promise<HttpResponse> => ({ status: 202, body: String(++runs) });
  assert.equal((await send({}, run)).body, "1");
  assert.equal((await send({}, run)).body, "2");
  assert.equal((await send({}, run)).body, "2");
});

test("a claim whose outcome is unknown is released", async () => {
  const { send } = stage(async (batch, nth, store) => {
    const changes = await store(batch);
    if (nth === 1) throw new OutcomeUnknownError("unknown");
    return changes;
  });
  await assert.rejects(send(), OutcomeUnknownError);
  assert.equal((await send()).status, 201);
});
