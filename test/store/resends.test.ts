import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { idBound, newId } from "../../src/base/id.ts";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import {
  continueResend,
  continueResends,
  countResend,
  findResend,
  insertResend,
  insertTestDelivery,
  newResend,
  resendDeliveries,
  stopResend,
} from "../../src/store/resends.ts";
import { openDatabase } from "../helpers/database.ts";

const NOW_MS = 1_900_000_000_000;
const SUBSCRIPTION = newId("s", NOW_MS);
const COUNT = 1_200;

/** A database with that many deliveries of one paused subscription. */
async function open(context: TestContext, status = "failed"): Promise<Database> {
  const database = openDatabase(context);
  const event = newId("e", NOW_MS);
  const ids = Array.from({ length: COUNT }, () => `d${newId("e", NOW_MS).slice(1)}00000001`);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${SUBSCRIPTION}, 'u1', 'login', 'x', 'https://a.example/', 'paused', '', 1)`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event}, 'x', '1', '[]', 'distributed', 1, 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, attempt, dueAtMs, finishedAtMs)
      SELECT value, ${event}, 1, ${status}, 4, 1, 1 FROM json_each(${JSON.stringify(ids)})`,
  ]);
  return database;
}

async function begin(database: Database, more = {}) {
  const resend = newResend(newId("w", NOW_MS), "u1", { status: "failed", ...more });
  const { count, first } = await countResend(database, resend);
  const [inserted] = await database.write([insertResend({ ...resend, total: count })]);
  return { resend, count, first, inserted };
}

async function countByStatus(database: Database): Promise<Record<string, number>> {
  const rows = await database.query<{ status: string; count: number }>(
    sql`SELECT status, count(*) AS count FROM deliveries GROUP BY status`,
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

test("a resend makes deliveries pending in batches of 500 until all are", async (context) => {
  const database = await open(context);
  const { resend, count } = await begin(database);
  assert.equal(count, COUNT);
  const steps: unknown[] = [];
  while (await continueResends(database, NOW_MS)) {
    const { state, done } = await findResend(database, resend.id) ?? {};
    steps.push([state, done]);
  }
  assert.deepEqual(steps, [["running", 500], ["running", 1000], ["done", COUNT]]);
  assert.equal((await findResend(database, resend.id))?.endedAtMs, NOW_MS);
  assert.deepEqual(await countByStatus(database), { pending: COUNT });
  const finished = sql`SELECT 1 FROM deliveries WHERE finishedAtMs IS NOT NULL`;
  assert.deepEqual(await database.query(finished), []);
});

test("a resend makes its own subscription due, and no other", async (context) => {
  const database = await open(context);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
        dueAtMs)
      VALUES ('s2', 'u1', 'login', 'x', 'https://b.example/', 'active', '', 1, ${NOW_MS + 9})`,
    sql`INSERT INTO deliveries (id, event, subscription, status, attempt, dueAtMs)
      SELECT 'd2', id, 2, 'pending', 1, ${NOW_MS + 9} FROM events`,
  ]);
  await begin(database);
  await continueResends(database, NOW_MS);
  const due = await database.query<{ dueAtMs: number }>(
    sql`SELECT dueAtMs FROM subscriptions ORDER BY seq`,
  );
  assert.deepEqual(due.map(({ dueAtMs }) => dueAtMs), [NOW_MS, NOW_MS + 9]);
});

test("two resends that run at once each keep their own progress", async (context) => {
  const database = await open(context);
  const { resend } = await begin(database);
  const other = (await begin(database)).resend;
  await continueResend(database, resend, NOW_MS);
  assert.deepEqual(await findResend(database, other.id), { ...other, total: COUNT });
  while (await continueResends(database, NOW_MS));
  const done = [await findResend(database, resend.id), await findResend(database, other.id)];
  assert.equal(done.reduce((sum, each) => sum + (each?.done ?? 0), 0), COUNT);
  assert.deepEqual(await countByStatus(database), { pending: COUNT });
});

test("a step of a resend is done once, even by several or late processes", async (context) => {
  const database = await open(context);
  const { resend } = await begin(database);
  await Promise.all([1, 2, 3].map(() => continueResend(database, resend, NOW_MS)));
  assert.equal((await findResend(database, resend.id))?.done, 500);
  await database.write([sql`UPDATE deliveries SET status = 'failed' WHERE status = 'pending'`]);
  await continueResend(database, resend, NOW_MS); // by a process that is late
  assert.deepEqual(await countByStatus(database), { failed: COUNT });
  assert.equal((await findResend(database, resend.id))?.done, 500);
  while (await continueResends(database, NOW_MS));
  assert.deepEqual(await countByStatus(database), { failed: 500, pending: 700 });
});

test("a stopped resend sends no more deliveries", async (context) => {
  const database = await open(context);
  const { resend } = await begin(database);
  await continueResends(database, NOW_MS);
  assert.deepEqual(await database.write([stopResend(resend.id, NOW_MS + 1)]), [1]);
  assert.equal(await continueResends(database, NOW_MS), false);
  assert.deepEqual(await database.write([stopResend(resend.id, NOW_MS + 2)]), [0]);
  const stopped = await findResend(database, resend.id);
  assert.deepEqual([stopped?.state, stopped?.endedAtMs], ["stopped", NOW_MS + 1]);
  // A process that has read the resend before goes on with it now.
  await continueResend(database, { ...resend, reached: stopped?.reached ?? "" }, NOW_MS);
  assert.deepEqual(await countByStatus(database), { failed: 700, pending: 500 });
});

test("a resend covers only what was dispatched between `since` and `until`", async (context) => {
  const database = await open(context);
  const early = `${idBound("d", NOW_MS - 1_000)}1`;
  await database.write([
    sql`INSERT INTO deliveries (id, event, subscription, status, attempt, dueAtMs, finishedAtMs)
      SELECT ${early}, event, 1, 'failed', 4, 1, 1 FROM deliveries LIMIT 1`,
  ]);
  assert.equal((await begin(database, { since: NOW_MS, until: NOW_MS })).count, 0);
  assert.deepEqual((await begin(database, { until: NOW_MS })).first, early);
  while (await continueResends(database, NOW_MS));
  assert.deepEqual(await countByStatus(database), { failed: COUNT, pending: 1 });
  assert.equal((await begin(database, { since: NOW_MS })).count, COUNT);
});

test("a resend leaves out events dispatched after it began", async (context) => {
  const database = await open(context);
  const { resend, count } = await begin(database, { until: NOW_MS + 60_000 });
  assert.equal(count, COUNT);
  const later = `d${newId("e", NOW_MS + 1_000).slice(1)}00000001`;
  await database.write([
    sql`INSERT INTO deliveries (id, event, subscription, status, attempt, dueAtMs, finishedAtMs)
      SELECT ${later}, event, 1, 'failed', 4, 1, 1 FROM deliveries LIMIT 1`,
  ]);
  while (await continueResends(database, NOW_MS));
  assert.equal((await findResend(database, resend.id))?.done, COUNT);
  assert.deepEqual(await countByStatus(database), { failed: 1, pending: COUNT });
});

test("one resend of a subscription runs at a time, and any number of others", async (context) => {
  const database = await open(context);
  assert.equal((await begin(database)).inserted, 1);
  assert.equal((await begin(database)).inserted, 1);
  await database.write([sql`DELETE FROM resends`]);
  const only = { subscription: SUBSCRIPTION };
  assert.equal((await begin(database, only)).inserted, 1);
  assert.equal((await begin(database, only)).inserted, 0);
  while (await continueResends(database, NOW_MS));
  assert.equal((await begin(database, only)).inserted, 1);
});

test("a resend leaves out ended subscriptions and deliveries not asked for", async (context) => {
  const database = await open(context, "delivered");
  assert.equal((await begin(database)).count, 0);
  assert.equal((await begin(database, { status: "delivered", name: "y" })).count, 0);
  assert.equal((await begin(database, { status: "delivered", attempt: 4 })).count, COUNT);
  await database.write([
    sql`UPDATE subscriptions SET status = 'disabled'`,
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES ('s2', 'u1', 'login', 'x', 'https://b.example/', 'active', '', 1)`,
  ]);
  assert.equal((await begin(database, { status: "delivered" })).count, 0);
  while (await continueResends(database, NOW_MS));
  assert.deepEqual(await countByStatus(database), { delivered: COUNT });
  await database.write([
    sql`UPDATE deliveries SET status = 'pending', dueAtMs = ${2 * NOW_MS}, finishedAtMs = NULL`,
  ]);
  assert.equal((await begin(database, { status: "pending" })).count, 0);
});

test("no delivered delivery is resent, no disabled subscription is tested", async (context) => {
  const database = await open(context, "delivered");
  const rows = await database.query<{ id: string }>(sql`SELECT id FROM deliveries LIMIT 2`);
  const [, ...others] = await database.write(resendDeliveries(rows.map(({ id }) => id), NOW_MS));
  assert.deepEqual(await countByStatus(database), { delivered: COUNT });
  assert.deepEqual(others, [0], "and its subscription is not due");
  const test = { event: newId("e", NOW_MS), delivery: `d${SUBSCRIPTION.slice(1)}`, json: "1" };
  const insert = insertTestDelivery({ ...test, subscription: SUBSCRIPTION }, NOW_MS);
  await database.write([sql`UPDATE subscriptions SET status = 'disabled'`]);
  assert.deepEqual(await database.write(insert), [0, 0, 0]);
  await database.write([sql`UPDATE subscriptions SET status = 'paused'`]);
  assert.deepEqual(await database.write(insert), [1, 1, 1]);
});

test("a resend of pending deliveries leaves out those in flight or due", async (context) => {
  const database = await open(context, "pending");
  const laterMs = NOW_MS + 3_600_000;
  await database.write([
    sql`UPDATE deliveries SET dueAtMs = ${laterMs}, finishedAtMs = NULL`,
    sql`UPDATE deliveries SET claim = 'x' WHERE id = (SELECT min(id) FROM deliveries)`,
    sql`UPDATE deliveries SET dueAtMs = 1 WHERE id = (SELECT max(id) FROM deliveries)`,
  ]);
  const { count, first } = await begin(database, { status: "pending" });
  assert.equal(count, COUNT - 2);
  const free = await database.query<{ id: string }>(
    sql`SELECT id FROM deliveries WHERE claim IS NULL ORDER BY id LIMIT 1`,
  );
  assert.equal(first, free[0]?.id);
  while (await continueResends(database, NOW_MS));
  const rows = await database.query<object>(sql`SELECT claim, dueAtMs, attempt, count(*) AS count
    FROM deliveries GROUP BY claim, dueAtMs, attempt ORDER BY count, dueAtMs`);
  assert.deepEqual(rows.map((row) => ({ ...row })), [
    { claim: null, dueAtMs: 1, attempt: 4, count: 1 },
    { claim: "x", dueAtMs: laterMs, attempt: 4, count: 1 },
    { claim: null, dueAtMs: NOW_MS, attempt: 0, count: COUNT - 2 },
  ]);
});

test("countResend() stops counting at a million", async () => {
  const endless: Pick<Database, "query"> = {
    async query<Row>() {
      return [{ looked: 5_000, count: 5_000, last: "d", first: "d" } as Row];
    },
  };
  const resend = newResend(newId("w", NOW_MS), "u1", { status: "failed" });
  assert.equal((await countResend(endless as Database, resend)).count, 1_000_000);
});
