import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../src/database/database.ts";
import { takeClockStep } from "../../src/store/clock_shift.ts";
import {
  addDeliveries,
  addResend,
  dueIn,
  HOUR_MS,
  openMachine,
  START_MS,
} from "./clock_watch_stage.ts";

test("a step on one machine only shifts nothing, nor does its correction", async (t) => {
  const { machine, start } = await openMachine(t);
  const { clock, check, isRight } = await start();
  await addResend(machine);
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
  await addResend(machine);
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
  await addResend(machine);
  await takeClockStep(machine.database, 0);
  machine.isRight = false;
  await check();
  machine.wallMs += HOUR_MS;
  machine.isRight = true;
  await check();
  assert.equal(clock.now(), machine.wallMs);
  assert.deepEqual(await dueIn(machine.database, START_MS), { d1: 10_000 });
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
  await addResend(machine);
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
  await addResend(machine);
  machine.wallMs += HOUR_MS;
  for (const { check } of [first, second]) await check();
  machine.wallMs += HOUR_MS;
  await second.check();
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
});

test("a second step during a shift is shifted, too", async (t) => {
  const { machine, start } = await openMachine(t);
  const { database } = machine;
  await addResend(machine);
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
  await addResend(machine);
  machine.wallMs += HOUR_MS;
  await Promise.all([check(), check()]);
  await check();
  assert.equal(clock.now(), machine.wallMs);
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
});

test("small corrections of the clock are followed, and shift nothing", async (t) => {
  const { machine, start } = await openMachine(t);
  const { clock, check } = await start();
  await addResend(machine);
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
  await addResend(machine);
  machine.wallMs -= HOUR_MS;
  const second = await start();
  await first.check();
  await second.check();
  assert.deepEqual(await dueIn(machine.database, machine.wallMs), { d1: 10_000 });
});
