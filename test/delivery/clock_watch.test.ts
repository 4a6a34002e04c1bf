import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createSteadyClock } from "../../src/base/steady_clock.ts";
import { createClockWatch } from "../../src/delivery/clock_watch.ts";
import type { Distributor } from "../../src/delivery/distributor.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { takeClockStep } from "../../src/store/clock_shift.ts";
import { countChanges, openDatabase } from "../helpers/database.ts";

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

/** Processes on one machine: they share its system clock, and each has its own watch. */
async function openMachine(t: TestContext) {
  const database = openDatabase(t);
  const machine = { wallMs: START_MS, elapsedMs: 0, warnings: 0, database, isRight: true };
  const followed: number[] = []; // by how much future leases are shifted
  let state: "ok" | "clock_skewed" = "ok";
  const clockCheck = {
    async look() {
      await nextTurn(); // the nodes are asked
      state = machine.isRight ? "ok" : "clock_skewed";
    },
    state: () => state,
  };
  const log = { debug() {}, info() {}, warn: () => void machine.warnings++, error() {} };
  return {
    machine,
    followed,
    async start() {
      const clock = createSteadyClock(() => machine.wallMs, () => machine.elapsedMs);
      const distributor: Pick<Distributor, "followClock"> = {
        followClock(stepMs, shift) {
          followed.push(stepMs);
          return shift();
        },
      };
      const services = { database: machine.database, log };
      const watch = createClockWatch(services, clock, clockCheck, () => distributor);
      const wasRight = watch.isRight();
      await watch.check();
      return { clock, check: watch.check, isRight: watch.isRight, wasRight };
    },
  };
}

interface Row {
  readonly id: string;
  readonly dueMs: number;
  readonly attempt?: number;
  readonly claim?: string;
}

/** One subscription that has failed since the start, with pending deliveries. */
async function addDeliveries(database: Database, rows: readonly Row[]) {
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
         dueAtMs, failingSinceMs)
       VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', ${START_MS},
        ${Math.min(...rows.map(({ dueMs }) => dueMs))}, ${START_MS})`,
    ...rows.map(({ id, dueMs, attempt = 0, claim }) =>
      sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, attempt, claim)
         VALUES (${id}, 'e1', 1, 'pending', ${dueMs}, ${attempt}, ${claim ?? null})`
    ),
  ]);
}

/** When each delivery is due, in milliseconds from `nowMs` on. */
async function dueIn(database: Database, nowMs: number): Promise<Record<string, number>> {
  const rows = await database.query<{ id: string; dueMs: number }>(
    sql`SELECT id, dueAtMs AS dueMs FROM deliveries`,
  );
  return Object.fromEntries(rows.map(({ id, dueMs }) => [id, dueMs - nowMs]));
}

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

test("a step on one machine only shifts nothing, nor does its correction", async (t) => {
  const { machine, start } = await openMachine(t);
  const { clock, check, isRight } = await start();
  await addDeliveries(machine.database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
  machine.wallMs += HOUR_MS;
  machine.isRight = false;
  assert.equal(isRight(), false); // not judged yet
  await check();
  assert.equal(isRight(), true); // the old time goes on
  assert.equal(clock.now(), START_MS);
  machine.wallMs += HOUR_MS;
  assert.equal(isRight(), false);
  await check();
  await check();
  assert.equal(machine.warnings, 2);
  machine.wallMs = START_MS;
  machine.isRight = true;
  await check();
  assert.deepEqual([isRight(), clock.now(), machine.warnings], [true, START_MS, 2]);
  assert.deepEqual(await dueIn(machine.database, START_MS), { d1: 10_000 });
});

test("a clock that is wrong at the start is not right until it is corrected", async (t) => {
  const { machine, followed, start } = await openMachine(t);
  machine.wallMs -= HOUR_MS;
  machine.isRight = false;
  const { clock, check, isRight, wasRight } = await start();
  assert.deepEqual([wasRight, isRight()], [false, false]);
  await addDeliveries(machine.database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
  machine.wallMs += HOUR_MS;
  machine.isRight = true;
  await check();
  assert.deepEqual([isRight(), clock.now()], [true, START_MS]);
  assert.deepEqual(await dueIn(machine.database, START_MS), { d1: 10_000 });
  machine.wallMs += HOUR_MS; // on all machines: this is shifted
  await check();
  assert.deepEqual(followed, [0, HOUR_MS]);
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
});

test("a step that other machines have shifted already is not shifted again", async (t) => {
  const { machine, start } = await openMachine(t);
  const { clock, check } = await start();
  await addDeliveries(machine.database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
  await takeClockStep(machine.database, 0);
  machine.isRight = false;
  await check();
  machine.wallMs += HOUR_MS;
  machine.isRight = true;
  await check();
  assert.equal(clock.now(), machine.wallMs);
  assert.deepEqual(await dueIn(machine.database, START_MS), { d1: 10_000 });
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

test("a step forward and back between two checks shifts nothing", async (t) => {
  const { machine, start } = await openMachine(t);
  const { clock, check } = await start();
  machine.wallMs += 2 * HOUR_MS;
  await addDeliveries(machine.database, [{ id: "d1", dueMs: clock.now() + 10_000, attempt: 1 }]);
  machine.wallMs -= 2 * HOUR_MS;
  await check();
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
  assert.equal(machine.warnings, 0);
});

test("one of several processes shifts, whichever checks first, step after step", async (t) => {
  const { machine, start } = await openMachine(t);
  const processes = [await start(), await start(), await start()];
  await addDeliveries(machine.database, [
    { id: "d1", dueMs: START_MS + 10_000, attempt: 1 },
  ]);
  for (const stepMs of [-HOUR_MS, 2 * HOUR_MS, -30_000, HOUR_MS]) {
    machine.wallMs += stepMs;
    await Promise.all(processes.map(({ check }) => check()));
    assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
    machine.wallMs += stepMs;
    for (const { check } of processes.toReversed()) await check();
    assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
  }
});

test("a step is shifted by another process if the one that shifted before is gone", async (t) => {
  const { machine, start } = await openMachine(t);
  const [first, second] = [await start(), await start()];
  await addDeliveries(machine.database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
  machine.wallMs += HOUR_MS;
  for (const { check } of [first, second]) await check();
  machine.wallMs += HOUR_MS;
  await second.check();
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
});

test("a second step during a shift is shifted, too", async (t) => {
  const { machine, start } = await openMachine(t);
  const { database } = machine;
  await addDeliveries(database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
  let isSetAgain = false;
  const write: Database["write"] = (statements) => {
    if (!isSetAgain && statements.some(({ sql }) => sql.includes("UPDATE deliveries"))) {
      isSetAgain = true;
      machine.wallMs += HOUR_MS;
    }
    return database.write(statements);
  };
  machine.database = { ...database, write };
  const { check } = await start();
  machine.wallMs += HOUR_MS;
  await check();
  assert.ok(isSetAgain);
  await check();
  assert.deepEqual(await dueIn(database, machine.wallMs), { d1: 10_000 });
});

test("two checks at the same time shift the stored times once", async (t) => {
  const { machine, start } = await openMachine(t);
  const { clock, check } = await start();
  await addDeliveries(machine.database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
  machine.wallMs += HOUR_MS;
  await Promise.all([check(), check()]);
  await check();
  assert.equal(clock.now(), machine.wallMs);
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
});

test("small corrections of the clock are followed, and shift nothing", async (t) => {
  const { machine, start } = await openMachine(t);
  const { clock, check } = await start();
  await addDeliveries(machine.database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
  for (let correction = 0; correction < 3; correction++) {
    machine.wallMs += 900;
    await check();
  }
  assert.deepEqual([clock.now(), machine.warnings], [machine.wallMs, 0]);
  assert.deepEqual(await dueIn(machine.database, START_MS), { d1: 10_000 });
});

test("a process that starts after a step does not shift again", async (t) => {
  const { machine, start } = await openMachine(t);
  const first = await start();
  await addDeliveries(machine.database, [
    { id: "d1", dueMs: START_MS + 10_000, attempt: 1 },
  ]);
  machine.wallMs -= HOUR_MS;
  const second = await start();
  await first.check();
  await second.check();
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
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
