import assert from "node:assert/strict";
import { test } from "node:test";
import { managedDeliveryOperations } from "../../src/api/delivery.ts";
import { resendOperations } from "../../src/api/resend.ts";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { sql } from "../../src/database/sql.ts";
import type { Services } from "../../src/services.ts";
import { findResend, insertResend, newResend } from "../../src/store/resends.ts";
import { insertSession } from "../../src/store/sessions.ts";
import { addUser, openDatabase } from "../helpers/database.ts";
import { backendCaller, sampleRequest } from "../helpers/http_request.ts";
import { numbers } from "../helpers/numbers.ts";

const NOW_MS = Date.UTC(2026, 0, 1);

test("a caller can stop only the own resends of a subscription, while they run", async (t) => {
  const database = openDatabase(t);
  const caller = { ...backendCaller(Infinity), clientId: "login" };
  const [id, other] = [newId("s", NOW_MS), newId("s", NOW_MS)];
  for (const each of [id, other]) {
    await database.write([
      sql`INSERT INTO subscriptions
        (id, principal, app, event, endpoint, status, secret, createdAtMs) VALUES
        (${each}, ${caller.sub}, 'login', ${each}, 'https://a.example/', 'active', '', 1)`,
    ]);
  }
  const add = async (actor: string, subscription: string) => {
    const resend = newResend(newId("w", NOW_MS), actor, { status: "failed", subscription });
    await database.write([insertResend(resend)]);
    return resend.id;
  };
  const own = await add(caller.sub, id);
  const foreign = await add("u1", other);
  const revocations = { refresh: async () => {} };
  const services = { database, revocations, wake() {}, now: () => NOW_MS } as unknown as Services;
  const remove = resendOperations("/consumer", services).find(({ method }) => method === "DELETE");
  assert.ok(remove);
  const stop = (subscription: string, resend: string) =>
    remove.handle({
      request: sampleRequest(),
      params: { id: subscription, resend },
      caller,
      query: {},
      body: undefined,
      authenticateAgain: async () => {},
    });
  await assert.rejects(stop(other, foreign), { status: 404 });
  await assert.rejects(stop(other, own), { status: 404 });
  assert.equal((await stop(id, own)).status, 204);
  assert.equal((await findResend(database, own))?.state, "stopped");
  assert.equal((await findResend(database, foreign))?.state, "running");
  await assert.rejects(stop(id, own), { status: 409 });
});

test("a console resends over 10,000 deliveries only soon after a password login", async (t) => {
  const database = openDatabase(t);
  const sub = await addUser(database);
  const event = newId("e", NOW_MS);
  const add = (from: number, to: number) => database.write([
    sql`${numbers(to)}
      INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
      SELECT printf('d%s%08d', ${event.slice(1)}, i), ${event}, 1, 'failed', 1, 1 FROM n
      WHERE i >= ${from}`,
  ]);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${newId("s", NOW_MS)}, 'u1', 'login', 'x', 'https://a.example/', 'paused', '', 1)`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event}, 'x', '1', '[]', 'distributed', 1, 1)`,
    insertSession(sha256("old"), sub, NOW_MS - 15 * 60_000, NOW_MS * 2),
  ]);
  await add(1, 10_000);
  const revocations = { refresh: async () => {} };
  const now = () => NOW_MS + 60_000; // after the dispatch
  const parts = { database, heavy: database, revocations, wake() {}, now };
  const services = parts as unknown as Services;
  const start = managedDeliveryOperations(services).find(({ id }) => id === "resendDeliveries");
  assert.ok(start);
  const send = async (clientId: string, how: object = {}) => {
    const { status } = await start.handle({
      request: sampleRequest(),
      params: {},
      caller: { ...backendCaller(Infinity), sub, clientId },
      query: {},
      body: { status: "failed", ...how },
      authenticateAgain: async () => {},
    });
    await database.write([sql`DELETE FROM resends`, sql`UPDATE deliveries SET status = 'failed'`]);
    return status;
  };
  assert.equal(await send("console"), 202);
  await add(10_001, 10_001);
  const stale = { status: 401, code: "insufficient_user_authentication" };
  await assert.rejects(send("console"), stale);
  assert.deepEqual(await database.query(sql`SELECT * FROM resends`), []);
  for (const how of [{ dry_run: true }, { first: "one" }]) {
    assert.ok(await send("console", how) < 300);
  }
  for (const app of ["login", "personal", newId("a", NOW_MS)]) assert.equal(await send(app), 202);
  await database.write([insertSession(sha256("new"), sub, NOW_MS, NOW_MS * 2)]);
  assert.equal(await send("console"), 202);
});

test("a dry run counts on the connection for heavy reads, so that no request waits", async (t) => {
  const stored = openDatabase(t);
  const database = { ...stored, query: () => assert.fail("counts beside the requests") };
  const services = { database, heavy: stored, now: () => NOW_MS } as unknown as Services;
  const start = managedDeliveryOperations(services).find(({ id }) => id === "resendDeliveries");
  assert.ok(start);
  const response = await start.handle({
    request: sampleRequest(),
    params: {},
    caller: backendCaller(Infinity),
    query: {},
    body: { status: "failed", dry_run: true },
    authenticateAgain: async () => {},
  });
  assert.equal(response.body, '{"count":0}');
});

test("a trial resend is refused when its delivery changes meanwhile", async (t) => {
  const database = openDatabase(t);
  const [event, nowMs] = [newId("e", NOW_MS), NOW_MS + 60_000];
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${newId("s", NOW_MS)}, 'u1', 'login', 'x', 'https://a.example/', 'active', '', 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
      VALUES (${`d${event.slice(1)}00000001`}, ${event}, 1, 'failed', 1, 1)`,
  ]);
  const heavy = {
    ...database,
    async query(...select: Parameters<typeof database.query>) {
      const rows = await database.query(...select);
      await database.write([sql`UPDATE deliveries SET status = 'delivered'`]);
      return rows;
    },
  };
  const revocations = { refresh: async () => {} };
  const parts = { database, heavy, revocations, wake() {}, now: () => nowMs };
  const start = managedDeliveryOperations(parts as unknown as Services)
    .find(({ id }) => id === "resendDeliveries");
  const trial = start?.handle({
    request: sampleRequest(),
    params: {},
    caller: backendCaller(Infinity),
    query: {},
    body: { status: "failed", first: "one" },
    authenticateAgain: async () => {},
  });
  assert.ok(trial);
  await assert.rejects(Promise.resolve(trial), { message: /delivery has just changed/ });
});
