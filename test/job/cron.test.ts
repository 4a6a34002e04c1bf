import assert from "node:assert/strict";
import { mock, test, type TestContext } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { createCron, type Cron } from "../../src/job/cron.ts";
import { SILENT } from "../helpers/silent_log.ts";
import { createLongRun } from "./cron_stage.ts";

const DAY_MS = 86_400_000;

interface Bench {
  readonly cron: Cron;
  /** How far the elapsed time is ahead of the timers. */
  aheadMs: number;
  /** Lets time pass, and awaits what follows. */
  pass(ms: number): Promise<void>;
}

function setUp(t: TestContext): Bench {
  mock.timers.enable({ apis: ["setInterval", "setTimeout", "Date"], now: Date.UTC(2040, 0, 1) });
  t.after(() => mock.timers.reset());
  const startMs = Date.now();
  const bench: Bench = {
    aheadMs: 0,
    cron: createCron({
      log: SILENT,
      now: Date.now,
      elapsedMs: () => Date.now() - startMs + bench.aheadMs,
    }),
    async pass(ms) {
      mock.timers.tick(ms);
      await nextTurn();
    },
  };
  return bench;
}

test("a job runs for the first time after one period, and then every period", async (t) => {
  const { cron, pass } = setUp(t);
  let runs = 0;
  cron.start({ name: "a", everyMs: 1000, run: () => void runs++ });
  await pass(999);
  assert.equal(runs, 0);
  await pass(1);
  assert.equal(runs, 1);
  for (let i = 0; i < 10; i++) await pass(1000);
  assert.equal(runs, 11);
});

test("a late run does not shift the due times after it", async (t) => {
  const bench = setUp(t);
  const { cron, pass } = bench;
  const startMs = Date.now();
  const lateness: number[] = [];
  cron.start({
    name: "a",
    everyMs: 1000,
    run() {
      lateness.push((Date.now() - startMs + bench.aheadMs) % 1000);
      bench.aheadMs += 7; // the loop was busy: time went on while no timer could fire
    },
  });
  for (let i = 0; i < 5000; i++) await pass(1);
  assert.deepEqual(lateness, [0, 0, 0, 0, 0]);
});

test("a timer that fires a little early does not cost a run", async (t) => {
  const bench = setUp(t);
  const { cron, pass } = bench;
  let runs = 0;
  cron.start({ name: "a", everyMs: 1000, run: () => void runs++ });
  bench.aheadMs = -1;
  await pass(1000);
  assert.equal(runs, 0);
  await pass(1);
  assert.equal(runs, 1);
});

test("due times that were missed during sleep lead to one run", async (t) => {
  const bench = setUp(t);
  const { cron, pass } = bench;
  let runs = 0;
  cron.start({ name: "a", everyMs: 1000, run: () => void runs++ });
  bench.aheadMs = 10_300;
  await pass(1000);
  assert.equal(runs, 1);
  await pass(699); // the next due time is 12,000
  assert.equal(runs, 1);
  await pass(1);
  assert.equal(runs, 2);
});

test("a job never overlaps itself: a due time while it runs is skipped", async (t) => {
  const { cron, pass } = setUp(t);
  const job = createLongRun();
  cron.start({ name: "a", everyMs: 1000, run: job.run });
  for (let i = 0; i < 5; i++) await pass(1000);
  assert.equal(job.runs, 1);
  job.end();
  await pass(999);
  assert.equal(job.runs, 1);
  await pass(1);
  assert.equal(job.runs, 2);
});

test("a slow job does not delay another one", async (t) => {
  const { cron, pass } = setUp(t);
  let runs = 0;
  cron.start({ name: "slow", everyMs: 1000, run: createLongRun().run });
  cron.start({ name: "quick", everyMs: 1000, run: () => void runs++ });
  await pass(1000);
  await pass(1000);
  assert.equal(runs, 2);
});

test("a job that fails runs again, and its error is listed until a run succeeds", async (t) => {
  const { cron, pass } = setUp(t);
  let fails = true;
  cron.start({
    name: "a",
    everyMs: 1000,
    run() {
      if (fails) throw new Error("no luck");
    },
  });
  await pass(1000);
  assert.equal(cron.list()[0]?.lastError, "no luck");
  fails = false;
  await pass(1000);
  assert.equal(cron.list()[0]?.lastError, null);
});

test("a period longer than the longest timer passes in full", async (t) => {
  const { cron, pass } = setUp(t);
  let runs = 0;
  cron.start({ name: "a", everyMs: 60 * DAY_MS, run: () => void runs++ });
  for (let day = 0; day < 59; day++) await pass(DAY_MS);
  assert.equal(runs, 0);
  await pass(DAY_MS);
  assert.equal(runs, 1);
});

test("Node's timers never get a delay that is too long for them", async (t) => {
  const warnings: string[] = [];
  const note = ({ name }: Error) => warnings.push(name);
  process.on("warning", note);
  t.after(() => process.off("warning", note));
  const cron = createCron({ log: SILENT, now: Date.now, elapsedMs: () => performance.now() });
  let runs = 0;
  cron.start({ name: "a", everyMs: 25 * DAY_MS, run: () => void runs++ });
  await sleep(20); // a delay that overflows becomes 1 ms
  await cron.stop(0);
  assert.deepEqual([runs, warnings], [0, []]);
});

test("run() runs a job now and keeps its due times", async (t) => {
  const { cron, pass } = setUp(t);
  let runs = 0;
  cron.start({ name: "a", everyMs: 1000, run: () => void runs++ });
  await pass(600);
  assert.equal(cron.run("a"), "started");
  await pass(0);
  assert.equal(runs, 1);
  await pass(400);
  assert.equal(runs, 2);
});

test("run() returns running for a running job, and unknown for a missing one", async (t) => {
  const { cron, pass } = setUp(t);
  const job = createLongRun();
  cron.start({ name: "a", everyMs: 1000, run: job.run });
  assert.equal(cron.run("a"), "started");
  assert.equal(cron.run("a"), "running");
  await pass(1000);
  assert.equal(job.runs, 1);
  assert.equal(cron.run("b"), "unknown");
});

test("run() can do other work instead of the job", async (t) => {
  const { cron, pass } = setUp(t);
  const done: string[] = [];
  cron.start({ name: "a", everyMs: 1000, run: () => void done.push("job") });
  cron.run("a", () => void done.push("work"));
  await pass(0);
  assert.deepEqual(done, ["work"]);
});

test("list() shows when each job ran, how long, and when it runs next", async (t) => {
  const { cron, pass } = setUp(t);
  const startMs = Date.now();
  const job = createLongRun();
  cron.start({ name: "a", everyMs: 1000, run: job.run });
  const base = { name: "a", everyMs: 1000, lastError: null };
  const never = { lastAtMs: null, lastDurationMs: null };
  assert.deepEqual(cron.list(), [
    { ...base, ...never, isRunning: false, nextAtMs: startMs + 1000 },
  ]);
  await pass(1000);
  assert.deepEqual(cron.list(), [{ ...base, ...never, isRunning: true, nextAtMs: startMs + 2000 }]);
  await pass(300);
  job.end();
  await pass(0);
  const last = { lastAtMs: startMs + 1000, lastDurationMs: 300 };
  assert.deepEqual(cron.list(), [{ ...base, ...last, isRunning: false, nextAtMs: startMs + 2000 }]);
});

test("start() refuses a name that is taken", (t) => {
  const { cron } = setUp(t);
  cron.start({ name: "a", everyMs: 1000, run() {} });
  assert.throws(() => cron.start({ name: "a", everyMs: 2000, run() {} }), /already/);
});

test("stop() aborts a running job, and waits for it", async (t) => {
  const { cron, pass } = setUp(t);
  const job = createLongRun();
  cron.start({ name: "a", everyMs: 1000, run: job.run });
  await pass(1000);
  let isStopped = false;
  const stopped = cron.stop(5000).then(() => {
    isStopped = true;
  });
  await pass(4999);
  assert.deepEqual([job.signals[0]?.aborted, isStopped], [true, false]);
  job.end();
  await stopped;
});

test("a job that ends because of stop() is not logged as failed", async (t) => {
  const { cron } = setUp(t);
  const logged = t.mock.method(SILENT, "info");
  const failed = t.mock.method(SILENT, "error");
  const run = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  cron.start({ name: "a", everyMs: 1000, run });
  cron.run("a");
  await cron.stop(5000);
  assert.equal(failed.mock.callCount(), 0);
  assert.deepEqual(logged.mock.calls.map(({ arguments: [message] }) => message), ["job stopped"]);
});

test("stop() waits no longer than its grace period", async (t) => {
  const { cron, pass } = setUp(t);
  cron.start({ name: "a", everyMs: 1000, run: createLongRun().run });
  await pass(1000);
  const stopped = cron.stop(5000);
  await pass(5000);
  await stopped;
});

test("after stop() no job runs, neither when due nor by run()", async (t) => {
  const { cron, pass } = setUp(t);
  let runs = 0;
  cron.start({ name: "a", everyMs: 1000, run: () => void runs++ });
  await cron.stop(0);
  assert.equal(cron.run("a"), "running");
  await pass(10_000);
  assert.equal(runs, 0);
});

test("after stop() no timer keeps the process, not even of a job started later", async () => {
  const countTimers = () =>
    process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
  const before = countTimers();
  const cron = createCron({ log: SILENT, now: Date.now, elapsedMs: () => performance.now() });
  cron.start({ name: "a", everyMs: DAY_MS, run() {} });
  assert.equal(countTimers(), before + 1);
  await cron.stop(DAY_MS);
  cron.start({ name: "b", everyMs: DAY_MS, run() {} });
  assert.equal(countTimers(), before);
});

test("a failure that repeats is logged once a minute, and another one at once", async (t) => {
  const { cron, pass } = setUp(t);
  const failed = t.mock.method(SILENT, "error");
  let error = new Error("no descriptors");
  cron.start({ name: "a", everyMs: 1000, run: () => Promise.reject(error) });
  for (let second = 0; second < 60; second++) await pass(1000);
  assert.equal(failed.mock.callCount(), 1);
  await pass(1000);
  assert.equal(failed.mock.callCount(), 2);
  error = new Error("disk full");
  await pass(1000);
  assert.equal(failed.mock.callCount(), 3);
  assert.equal(cron.list()[0]?.lastError, "disk full");
  error = new Error("no descriptors"); // again, within a minute
  await pass(1000);
  assert.equal(failed.mock.callCount(), 3);
});
