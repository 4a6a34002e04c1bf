import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { releaseCronjobs } from "../../src/store/cronjobs.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import {
  createCounter,
  createLongRun,
  HOUR_MS,
  type Office,
  openOffice,
  START_MS,
} from "./cron_stage.ts";

test("a job that another process runs is started neither when due nor by run()", async (t) => {
  const office = await openOffice(t);
  const long = createLongRun();
  const first = await office.open(long.run);
  const second = await office.open(long.run);
  office.nowMs = START_MS + HOUR_MS;
  const running = first.look();
  while (long.runs === 0) await nextTurn();
  assert.equal((await second.shared.list())[0]?.isRunning, true);
  await second.look();
  assert.equal(await second.shared.run("report"), "running");
  assert.equal(await first.shared.run("report"), "running");
  long.end();
  await running;
  assert.equal(long.runs, 1);
  assert.equal((await second.shared.list())[0]?.isRunning, false);
  await nextTurn();
  assert.equal(await second.shared.run("report"), "started");
});

test("a job of a process that died is taken over when its lease has ended", async (t) => {
  const office = await openOffice(t);
  const dead = createLongRun();
  const counter = createCounter();
  const first = await office.open(dead.run);
  const second = await office.open(counter.run);
  office.nowMs = START_MS + HOUR_MS;
  void first.look();
  while (dead.runs === 0) await nextTurn();
  office.nowMs = START_MS + 2 * HOUR_MS;
  await second.look();
  assert.equal(counter.runs, 1);
  dead.end();
});

test("a long run keeps others from starting the job until it has ended", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const office = await openOffice(t);
  const long = createLongRun();
  const first = await office.open(long.run);
  const second = await office.open(long.run);
  const passTenSeconds = async () => {
    office.nowMs += 10_000;
    t.mock.timers.tick(10_000);
    await office.database.write([releaseCronjobs("nobody")]); // after what the tick has written
  };
  office.nowMs = START_MS + HOUR_MS;
  const running = first.look();
  while (long.runs === 0) await nextTurn();
  for (let seconds = 0; seconds < 60; seconds += 10) await passTenSeconds();
  assert.equal(await second.shared.run("report"), "running");
  long.end();
  await running;
  await passTenSeconds();
  assert.equal(await second.shared.run("report"), "started");
  assert.equal(long.runs, 2);
});

test("releaseCronjobs() frees the jobs of one process before their leases end", async (t) => {
  const office = await openOffice(t);
  const dead = createLongRun();
  const counter = createCounter();
  const first = await office.open(dead.run);
  const second = await office.open(counter.run);
  office.nowMs = START_MS + HOUR_MS;
  void first.look();
  while (dead.runs === 0) await nextTurn();
  office.nowMs += 1000;
  await office.database.write([releaseCronjobs("c2")]);
  assert.equal(await second.shared.run("report"), "running");
  await office.database.write([releaseCronjobs("c1")]);
  await second.look();
  assert.equal(counter.runs, 0, "the lost run is not repeated");
  assert.equal(await second.shared.run("report"), "started");
  dead.end();
});

/** A database that stores writes, but reports an unknown outcome while `isLost`. */
function losingResponses({ database }: Office) {
  const lossy = {
    isLost: false,
    database: {
      ...database,
      async write(batch) {
        const changes = await database.write(batch);
        if (lossy.isLost) throw new OutcomeUnknownError("no response");
        return changes;
      },
    } satisfies Database,
  };
  return lossy;
}

test("a stored claim with an unknown outcome is run once, at the next look", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const lossy = losingResponses(office);
  const { look } = await office.open(counter.run, HOUR_MS, lossy);
  const other = await office.open(counter.run);
  office.nowMs += HOUR_MS;
  lossy.isLost = true;
  await look();
  lossy.isLost = false;
  await other.look();
  assert.equal(counter.runs, 0);
  await look();
  await look();
  await other.look();
  assert.equal(counter.runs, 1);
});

/** A database that refuses writes while `isFull`. */
function refusingWrites({ database }: Office) {
  const disk = {
    isFull: false,
    database: {
      ...database,
      async write(batch) {
        if (disk.isFull) throw new UnavailableError("full");
        return database.write(batch);
      },
    } satisfies Database,
  };
  return disk;
}

test("a claim that was not stored leaves the job to another process", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const disk = refusingWrites(office);
  const { look } = await office.open(counter.run, HOUR_MS, disk);
  const other = await office.open(counter.run);
  office.nowMs += HOUR_MS;
  disk.isFull = true;
  await look();
  disk.isFull = false;
  await other.look();
  await look();
  assert.equal(counter.runs, 1);
});

test("the next run does not wait for the lease of one whose end could not be stored", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const disk = refusingWrites(office);
  const run = () => {
    counter.run();
    disk.isFull = true;
  };
  const { look, shared } = await office.open(run, 1_000, disk);
  office.nowMs += 1_000;
  await look();
  office.nowMs += 1_000;
  await look();
  disk.isFull = false;
  assert.equal(counter.runs, 1);
  await look();
  assert.equal(counter.runs, 2);
  disk.isFull = false;
  await look();
  assert.equal((await shared.list())[0]?.isRunning, false);
});

test("a claim found stored after its lease has ended excludes other processes", async (t) => {
  const office = await openOffice(t);
  const long = createLongRun();
  const lossy = losingResponses(office);
  const { look } = await office.open(long.run, 60_000, lossy);
  const other = await office.open(long.run, 60_000);
  office.nowMs += 60_000;
  lossy.isLost = true;
  await look();
  lossy.isLost = false;
  office.nowMs += 60_000; // its lease has ended, and it is due again
  const running = look();
  while (long.runs === 0) await nextTurn();
  const looked = other.look();
  for (let step = 0; step < 20; step++) await nextTurn();
  long.end();
  await Promise.all([running, looked]);
  assert.equal(long.runs, 1);
});
