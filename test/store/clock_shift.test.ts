import assert from "node:assert/strict";
import { test } from "node:test";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { correctTimesAhead, createShift, leaveOutIdleTime } from "../../src/store/clock_shift.ts";
import { createCronjobRun, findCronjob, registerCronjob } from "../../src/store/cronjobs.ts";
import { revokeTokensOfUser } from "../../src/store/users.ts";
import { addUser, openDatabase } from "../helpers/database.ts";
import { numbers } from "../helpers/numbers.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const STEP_MS = 60_000;
const HOUR_MS = 3_600_000;

test("a shift that is called again after an error shifts every row once", async (t) => {
  const database = openDatabase(t);
  await database.write([sql`INSERT INTO cronjobs (name, nextAtMs)
    ${numbers(1201)}
    SELECT 'job' || i, ${NOW_MS + STEP_MS} FROM n`]);
  const changes: number[] = [];
  let calls = 0;
  const failing: Database = {
    ...database,
    async query<Row>(...asked: Parameters<Database["query"]>) {
      if (++calls === 3) throw new UnavailableError("busy");
      return database.query<Row>(...asked);
    },
    async write(statements) {
      if (++calls === 5) throw new UnavailableError("full");
      const changed = await database.write(statements);
      changes.push(...changed);
      return changed;
    },
  };
  const shift = createShift(failing, NOW_MS, STEP_MS);
  await assert.rejects(shift, UnavailableError);
  await assert.rejects(shift, UnavailableError);
  await shift();
  await shift();
  assert.deepEqual(changes, [500, 500, 201]);
  const left = sql`SELECT 1 FROM cronjobs WHERE nextAtMs <> ${NOW_MS + 2 * STEP_MS}`;
  assert.deepEqual(await database.query(left), []);
});

/** Inserts that many subscriptions, each with a delivery that waits for its resend. */
function addWaiting(count: number, dueAtMs: number) {
  const each = numbers(count);
  return [
    sql`${each} INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret,
        createdAtMs, dueAtMs, failingSinceMs)
      SELECT 's' || i, 'u1', 'login', 'a', 'https://a.example/' || i, 'active', '', 0, ${dueAtMs},
        ${NOW_MS} FROM n`,
    sql`${each} INSERT INTO deliveries (id, event, subscription, status, dueAtMs, attempt)
      SELECT printf('d%06d', i), 'e1', i, 'pending', ${dueAtMs}, 1 FROM n`,
  ];
}

async function listTimes(database: Database) {
  const found = await database.query<Record<string, number | null>>(
    sql`SELECT DISTINCT s.dueAtMs AS nextMs, d.dueAtMs, s.failingSinceMs FROM subscriptions s
      LEFT JOIN deliveries d ON d.subscription = s.seq ORDER BY s.seq`,
  );
  return found.map((row) => Object.values(row));
}

test("a shift moves every waiting delivery and subscription once, however many", async (t) => {
  const database = openDatabase(t);
  await database.write(addWaiting(1_201, NOW_MS + HOUR_MS));
  await createShift(database, NOW_MS, STEP_MS)();
  const movedMs = NOW_MS + HOUR_MS + STEP_MS;
  assert.deepEqual(await listTimes(database), [[movedMs, movedMs, NOW_MS + STEP_MS]]);
});

test("a shift moves the failing-since time and the due time, whichever is set", async (t) => {
  const database = openDatabase(t);
  await database.write([
    ...addWaiting(3, NOW_MS + HOUR_MS),
    sql`DELETE FROM deliveries WHERE subscription = 1`,
    sql`UPDATE subscriptions SET dueAtMs = NULL WHERE seq = 1`,
    sql`UPDATE subscriptions SET failingSinceMs = NULL WHERE seq = 2`,
  ]);
  await createShift(database, NOW_MS, STEP_MS)();
  const movedMs = NOW_MS + HOUR_MS + STEP_MS;
  assert.deepEqual(await listTimes(database), [
    [null, null, NOW_MS + STEP_MS],
    [movedMs, movedMs, null],
    [movedMs, movedMs, NOW_MS + STEP_MS],
  ]);
});

test("after the clock was set back, running or stopped, users can log in again", async (t) => {
  const follow: ((database: Database) => Promise<void>)[] = [
    (database) => createShift(database, NOW_MS + HOUR_MS, -HOUR_MS)(),
    (database) => correctTimesAhead(database, NOW_MS, HOUR_MS),
  ];
  for (const each of follow) {
    const database = openDatabase(t);
    const user = await addUser(database);
    await database.write(revokeTokensOfUser(user, NOW_MS + HOUR_MS, HOUR_MS));
    await each(database);
    const ends = sql`SELECT notBeforeMs FROM users`;
    assert.deepEqual((await database.query<object>(ends)).map((row) => ({ ...row })), [
      { notBeforeMs: NOW_MS },
    ]);
  }
});

test("at the start due times too far ahead are brought back, however many", async (t) => {
  const database = openDatabase(t);
  await database.write([
    ...addWaiting(1_201, NOW_MS + 400 * 24 * HOUR_MS),
    sql`UPDATE deliveries SET dueAtMs = ${NOW_MS + 1} WHERE subscription = 1201`,
    sql`UPDATE subscriptions SET dueAtMs = ${NOW_MS + 1} WHERE seq = 1201`,
  ]);
  await correctTimesAhead(database, NOW_MS, HOUR_MS);
  assert.deepEqual(await listTimes(database), [
    [NOW_MS + HOUR_MS, NOW_MS + HOUR_MS, NOW_MS],
    [NOW_MS + 1, NOW_MS + 1, NOW_MS],
  ]);
});

test("at the start due times and failing-since times ahead are brought back", async (t) => {
  const database = openDatabase(t);
  const delivery = (id: string, dueAtMs: number, claim: string | null = null) =>
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, attempt, claim)
      VALUES (${id}, 'e1', 1, 'pending', ${dueAtMs}, 1, ${claim})`;
  const aheadMs = NOW_MS + 400 * 24 * HOUR_MS;
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
        dueAtMs, failingSinceMs)
      VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', 0, ${aheadMs},
        ${aheadMs}), ('s2', 'u1', 'login', 'b', 'https://a.example/', 'paused', '', 0, NULL, 1)`,
    delivery("d1", aheadMs),
    delivery("d2", NOW_MS + HOUR_MS - 1),
    delivery("d3", aheadMs, "c1"), // a lease, which ends with its process
  ]);
  await correctTimesAhead(database, NOW_MS, HOUR_MS);
  const due = sql`SELECT dueAtMs FROM deliveries ORDER BY id`;
  const rows = await database.query<{ dueAtMs: number }>(due);
  const dueAtMs = rows.map((row) => row.dueAtMs);
  assert.deepEqual(dueAtMs, [NOW_MS + HOUR_MS, NOW_MS + HOUR_MS - 1, aheadMs]);
  const found = sql`SELECT dueAtMs, failingSinceMs FROM subscriptions ORDER BY id`;
  assert.deepEqual((await database.query<object>(found)).map((row) => ({ ...row })), [
    { dueAtMs: NOW_MS + HOUR_MS - 1, failingSinceMs: NOW_MS },
    { dueAtMs: null, failingSinceMs: 1 },
  ]);
});

test("leaveOutIdleTime() adds the time without a process to failingSinceMs once", async (t) => {
  const database = openDatabase(t);
  const [failingSinceMs, stoppedMs] = [NOW_MS - 3 * HOUR_MS, NOW_MS];
  await database.write([
    registerCronjob("purge", stoppedMs),
    registerCronjob("report", stoppedMs),
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
        failingSinceMs)
      VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', 0, ${failingSinceMs})`,
  ]);
  const failingSince = async () => {
    const [row] = await database.query<{ atMs: number }>(
      sql`SELECT failingSinceMs AS atMs FROM subscriptions`);
    return row?.atMs;
  };
  await leaveOutIdleTime(database, "purge", stoppedMs + HOUR_MS - 1);
  assert.equal(await failingSince(), failingSinceMs); // a short restart
  const startMs = stoppedMs + 1000 * HOUR_MS;
  await Promise.all([1, 2, 3].map(() => leaveOutIdleTime(database, "purge", startMs)));
  assert.equal(await failingSince(), startMs - 3 * HOUR_MS);
  assert.equal((await findCronjob(database, "report"))?.nextAtMs, stoppedMs);
  await leaveOutIdleTime(database, "unknown", startMs + 1000 * HOUR_MS);
  assert.equal(await failingSince(), startMs - 3 * HOUR_MS);
  const endMs = startMs + 5 * HOUR_MS; // of the lease of a run
  await database.write([sql`UPDATE cronjobs SET leaseUntilMs = ${endMs}`]);
  await leaveOutIdleTime(database, "purge", endMs - 1);
  assert.equal(await failingSince(), startMs - 3 * HOUR_MS); // another process is running it
  await leaveOutIdleTime(database, "purge", endMs + 2 * HOUR_MS);
  assert.equal(await failingSince(), startMs - HOUR_MS);
});

test("a run of several hours does not count as time without a process", async (t) => {
  const database = openDatabase(t);
  const failingSinceMs = NOW_MS + HOUR_MS;
  const runAt = (atMs: number) => createCronjobRun(database, "purge", "p", atMs);
  const run = runAt(NOW_MS);
  await database.write([
    registerCronjob("purge", NOW_MS),
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
        failingSinceMs)
      VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', 0, ${failingSinceMs})`,
  ]);
  await run.claim(60_000, NOW_MS + 30_000, false);
  const assertUnchanged = async () => {
    const rows = await database.query<{ atMs: number }>(
      sql`SELECT failingSinceMs AS atMs FROM subscriptions`);
    assert.deepEqual(rows, [{ atMs: failingSinceMs }]);
  };
  const laterMs = NOW_MS + 3 * HOUR_MS;
  await run.renew(laterMs + 30_000);
  await leaveOutIdleTime(database, "purge", laterMs);
  await assertUnchanged();
  await run.finish(laterMs - NOW_MS, undefined);
  await leaveOutIdleTime(database, "purge", laterMs + 1000);
  await assertUnchanged();
  // The process of the next run dies: how long the run before took does not matter.
  const leaseUntilMs = laterMs + 32_000;
  await runAt(laterMs + 2000).claim(60_000, leaseUntilMs, false);
  await leaveOutIdleTime(database, "purge", leaseUntilMs + 2 * HOUR_MS);
  const [row] = await database.query<{ atMs: number }>(
    sql`SELECT failingSinceMs AS atMs FROM subscriptions`);
  assert.ok(Number(row?.atMs) > failingSinceMs + HOUR_MS);
});
