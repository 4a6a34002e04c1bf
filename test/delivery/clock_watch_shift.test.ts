import assert from "node:assert/strict";
import { test } from "node:test";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { countChanges } from "../helpers/database.ts";
import { addDeliveries, dueIn, HOUR_MS, openMachine, START_MS } from "./clock_watch_stage.ts";

async function subscriptionTimes(database: Database) {
  const [row] = await database.query<{ dueMs: number; failingMs: number }>(
    sql`SELECT dueAtMs AS dueMs, failingSinceMs AS failingMs FROM subscriptions`,
  );
  return row;
}

test("after a step back a backlog stays due, resends and leases keep their times", async (t) => {
  const { machine, followed, start } = await openMachine(t);
  const { check } = await start();
  await addDeliveries(machine.database, [
    { id: "d1", dueMs: START_MS - 5000 },
    { id: "d2", dueMs: START_MS + 10_000, attempt: 1 },
    { id: "d3", dueMs: START_MS + 50_000, claim: "c1" },
  ]);
  machine.wallMs -= HOUR_MS;
  await check();
  const due = { d1: -5000, d2: 10_000, d3: 50_000 };
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), due);
  const subscription = { dueMs: machine.wallMs - 5000, failingMs: machine.wallMs };
  assert.deepEqual({ ...await subscriptionTimes(machine.database) }, subscription);
  assert.equal(machine.warnings, 1);
  await check();
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), due);
  assert.equal(machine.warnings, 1);
  assert.deepEqual(followed, [-HOUR_MS]);
});

test("after a step forward no resend comes early, no lease ends, due work stays due", async (t) => {
  const { machine, start } = await openMachine(t);
  const { check } = await start();
  await addDeliveries(machine.database, [
    { id: "d1", dueMs: START_MS - 5000 },
    { id: "d2", dueMs: START_MS + 10_000, attempt: 1 },
    { id: "d3", dueMs: START_MS + 50_000, claim: "c1" },
    { id: "d4", dueMs: START_MS + 2 * HOUR_MS }, // resent just after the step
  ]);
  machine.wallMs += 2 * HOUR_MS;
  await check();
  assert.deepEqual(
    await dueIn(machine.database, machine.wallMs),
    { d1: -5000 - 2 * HOUR_MS, d2: 10_000, d3: 50_000, d4: 0 },
  );
  assert.equal((await subscriptionTimes(machine.database))?.failingMs, machine.wallMs);
});

test("cronjobs keep their true due times and leases", async (t) => {
  const { machine, start } = await openMachine(t);
  const { check } = await start();
  await machine.database.write([
    sql`INSERT INTO cronjobs (name, nextAtMs, leaseUntilMs) VALUES
      ('a', ${START_MS + 60_000}, 0), ('b', ${START_MS + 90_000}, ${START_MS + 30_000})`,
  ]);
  machine.wallMs -= HOUR_MS;
  await check();
  const rows = await machine.database.query(
    sql`SELECT name, nextAtMs - ${machine.wallMs} AS nextMs,
      max(leaseUntilMs - ${machine.wallMs}, 0) AS leaseMs FROM cronjobs`,
  );
  assert.deepEqual(rows.map((row) => ({ ...row as object })), [
    { name: "a", nextMs: 60_000, leaseMs: 0 },
    { name: "b", nextMs: 90_000, leaseMs: 30_000 },
  ]);
});

test("a long backlog is shifted in bounded batches, each delivery once", async (t) => {
  const { machine, start } = await openMachine(t);
  const { counted, changes } = countChanges(machine.database);
  machine.database = counted;
  const { check } = await start();
  await addDeliveries(
    machine.database,
    Array.from({ length: 1300 }, (_, at) => ({ id: `d${at + 1000}`, dueMs: START_MS - 1 })),
  );
  machine.wallMs -= HOUR_MS;
  await check();
  const due = Object.values(await dueIn(machine.database, machine.wallMs));
  assert.deepEqual(due, Array(1300).fill(-1));
  assert.deepEqual(changes.filter((count) => count > 1), [500, 500, 300]);
});

test("a shift that the database refuses is completed by later checks", async (t) => {
  const { machine, start } = await openMachine(t);
  const { database } = machine;
  let refusals = 0;
  const write: Database["write"] = (statements) => {
    const isShift = statements.some(({ sql }) => /UPDATE (deliveries|cronjobs)/.test(sql));
    if (!isShift || refusals === 2) return database.write(statements);
    refusals++;
    return Promise.reject(new UnavailableError("locked"));
  };
  await database.write([
    sql`INSERT INTO cronjobs (name, nextAtMs) VALUES ('j', ${START_MS + 60_000})`,
  ]);
  await addDeliveries(database, [{ id: "d1", dueMs: START_MS + 300_000, attempt: 1 }]);
  machine.database = { ...database, write };
  const { clock, check } = await start();
  machine.wallMs -= HOUR_MS;
  for (let round = 0; round < 2; round++) await assert.rejects(check(), UnavailableError);
  assert.notEqual(clock.stepMs(), 0);
  for (let round = 0; round < 2; round++) await check();
  assert.equal(clock.stepMs(), 0);
  assert.deepEqual(await dueIn(database, clock.now()), { d1: 300_000 });
  const [job] = await database.query<{ nextMs: number }>(
    sql`SELECT nextAtMs AS nextMs FROM cronjobs`,
  );
  assert.equal(job?.nextMs, clock.now() + 60_000);
  assert.equal(machine.warnings, 1);
});
