import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Database } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import { createCron } from "../../src/job/cron.ts";
import { createSharedCron } from "../../src/job/shared_cron.ts";
import { openDatabase } from "../helpers/database.ts";
import { SILENT } from "../helpers/silent_log.ts";
import { createCounter, createLongRun, HOUR_MS, openOffice, START_MS } from "./cron_stage.ts";

test("a shared job runs one period after it was registered, and not before", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const { look } = await office.open(counter.run);
  office.nowMs = START_MS + HOUR_MS - 1;
  await look();
  assert.equal(counter.runs, 0);
  office.nowMs = START_MS + HOUR_MS;
  await look();
  await look();
  assert.equal(counter.runs, 1);
});

test("one of several processes runs a job, once per due time, if all look at once", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const workers = [await office.open(counter.run), await office.open(counter.run)];
  for (let hour = 1; hour <= 3; hour++) {
    office.nowMs = START_MS + hour * HOUR_MS;
    await Promise.all(workers.map(({ look }) => look()));
    assert.equal(counter.runs, hour);
  }
});

test("one late run replaces all missed ones, and does not shift later due times", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const { look, shared } = await office.open(counter.run);
  office.nowMs = START_MS + 3.5 * HOUR_MS;
  await look();
  await look();
  assert.equal(counter.runs, 1);
  const [state] = await shared.list();
  assert.equal(state?.nextAtMs, START_MS + 4 * HOUR_MS);
});

test("a restart does not postpone a job, and runs a missed one at once", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  await office.open(counter.run);
  office.nowMs = START_MS + 0.5 * HOUR_MS;
  const { shared } = await office.open(counter.run);
  assert.equal((await shared.list())[0]?.nextAtMs, START_MS + HOUR_MS);
  office.nowMs = START_MS + 2.5 * HOUR_MS;
  await office.open(counter.run);
  assert.equal(counter.runs, 1);
});

test("a job whose period became shorter does not wait for its old due time", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  await office.open(counter.run);
  const { look } = await office.open(counter.run, 60_000);
  office.nowMs = START_MS + 60_000;
  await look();
  assert.equal(counter.runs, 1);
});

test("run() runs a job that is not due, and keeps its due time", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const { shared } = await office.open(counter.run);
  office.nowMs = START_MS + 60_000;
  assert.equal(await shared.run("report"), "started");
  assert.equal(await shared.run("unheard-of"), "unknown");
  const [state] = await shared.list();
  assert.equal(counter.runs, 1);
  assert.deepEqual([state?.lastAtMs, state?.nextAtMs], [START_MS + 60_000, START_MS + HOUR_MS]);
});

test("run() runs a job that is not registered yet", async (t) => {
  const office = await openOffice(t);
  office.isClockRight = false;
  const counter = createCounter();
  const { shared } = await office.open(counter.run);
  assert.equal(await shared.run("report"), "started");
  assert.equal(counter.runs, 1);
});

test("run() waits for a look under way: only a run that it begins is a refusal", async (t) => {
  const office = await openOffice(t);
  const long = createLongRun();
  const gate = Promise.withResolvers<void>();
  let isSlow = false;
  const database: Database = {
    ...office.database,
    async query<Row>(statement: Sql) {
      if (isSlow) await gate.promise;
      return office.database.query<Row>(statement);
    },
  };
  const { shared, look } = await office.open(long.run, HOUR_MS, { database });
  isSlow = true;
  const looking = look();
  const asked = [shared.run("report"), shared.run("report")];
  isSlow = false;
  gate.resolve();
  assert.deepEqual(await Promise.all(asked), ["started", "running"]);
  await looking;
  long.end();
  assert.equal(long.runs, 1);
});

test("run() is refused if a look under way finds the job due", async (t) => {
  const office = await openOffice(t);
  const long = createLongRun();
  const { shared, look } = await office.open(long.run);
  office.nowMs += HOUR_MS;
  const looking = look();
  assert.equal(await shared.run("report"), "running");
  long.end();
  await looking;
  assert.equal(long.runs, 1);
});

test("jobs of this process only are run and listed beside shared ones", async (t) => {
  const cron = createCron({ log: SILENT, now: () => START_MS, elapsedMs: () => 0 });
  t.after(() => cron.stop(0));
  const shared = createSharedCron({
    database: openDatabase(t), log: SILENT, now: () => START_MS, elapsedMs: () => 0, cron,
    claim: "c1", isClockRight: () => true,
  });
  const counter = createCounter();
  cron.start({ name: "own", everyMs: 60_000, run: counter.run });
  shared.start({ name: "report", everyMs: HOUR_MS, run() {} });
  assert.equal(await shared.run("own"), "started");
  assert.equal(counter.runs, 1);
  const listed = await shared.list(); // before "report" is stored
  assert.deepEqual(listed.map(({ name, everyMs, nextAtMs }) => [name, everyMs, nextAtMs]), [
    ["own", 60_000, START_MS + 60_000],
    ["report", HOUR_MS, START_MS + HOUR_MS],
  ]);
  while ((await shared.list())[1]?.isRunning) await nextTurn();
});

test("every process lists the last run of a job, wherever it ran", async (t) => {
  const office = await openOffice(t);
  const first = await office.open(() => {
    office.elapsedMs += 250;
    office.nowMs -= 1000; // set back meanwhile
    throw new Error("no luck");
  });
  const second = await office.open(() => {});
  office.nowMs = START_MS + HOUR_MS;
  await first.look();
  assert.deepEqual(await second.shared.list(), [{
    name: "report",
    everyMs: HOUR_MS,
    isRunning: false,
    lastAtMs: START_MS + HOUR_MS,
    lastDurationMs: 250,
    lastError: "no luck",
    nextAtMs: START_MS + 2 * HOUR_MS,
  }]);
  office.nowMs = START_MS + 2 * HOUR_MS;
  await second.look();
  assert.equal((await first.shared.list())[0]?.lastError, null);
});

test("list() shows the first 500 characters of a long error", async (t) => {
  const office = await openOffice(t);
  const { look, shared } = await office.open(() => {
    throw new Error(`no luck${" at all".repeat(1_000)}`);
  });
  office.nowMs = START_MS + HOUR_MS;
  await look();
  const { lastError } = (await shared.list())[0] ?? {};
  assert.match(lastError ?? "", /^no luck at all/);
  assert.equal(lastError?.length, 500);
});

test("a job that throws an Error whose message is no string has failed", async (t) => {
  const office = await openOffice(t);
  const { look, shared } = await office.open(() => {
    throw Object.assign(new Error(), { message: { code: 1 } });
  });
  office.nowMs = START_MS + HOUR_MS;
  await look();
  assert.equal((await shared.list())[0]?.lastError, "[object Object]");
});

test("a run that ends because its process stops does not change the listed error", async (t) => {
  const fail = () => {
    throw new Error("no luck");
  };
  for (const [before, lastError] of [[() => {}, null], [fail, "no luck"]] as const) {
    const office = await openOffice(t);
    const first = await office.open(before);
    office.nowMs = START_MS + HOUR_MS;
    await first.look();
    const second = await office.open((signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      })
    );
    assert.equal(await second.shared.run("report"), "started");
    await second.stop();
    const [job] = await first.shared.list();
    assert.deepEqual([job?.isRunning, job?.lastError], [false, lastError]);
  }
});

test("clocks that differ by less than two seconds cause no additional run", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const { look } = await office.open(counter.run, 2_000);
  const ahead = await office.open(counter.run, 2_000, { aheadMs: 1_900 });
  for (const startMs = office.nowMs; office.nowMs < startMs + 60_000; office.nowMs += 500) {
    await look();
    await ahead.look();
  }
  assert.ok(counter.runs <= 31, `${counter.runs} runs`);
});

test("no job runs while the clock is wrong", async (t) => {
  const office = await openOffice(t);
  const counter = createCounter();
  const { look } = await office.open(counter.run);
  office.nowMs += HOUR_MS;
  office.isClockRight = false;
  await look();
  assert.equal(counter.runs, 0);
  office.isClockRight = true;
  await look();
  assert.equal(counter.runs, 1);
});
