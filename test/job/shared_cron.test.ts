import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createCron, type IntervalJob } from "../../src/job/cron.ts";
import { createSharedCron } from "../../src/job/shared_cron.ts";
import { releaseCronjobs } from "../../src/store/cronjobs.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { openDatabase } from "../helpers/database.ts";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const START_MS = Date.UTC(2040, 0, 1);
const HOUR_MS = 3_600_000;

/** A process that knows the job "report". */
interface Worker {
  readonly shared: ReturnType<typeof createSharedCron>;
  /** Does what the timer does: runs the job if it is due, and awaits the run. */
  look(): Promise<void>;
  /** Aborts the run, and waits until it has ended. */
  stop(): Promise<void>;
}

interface Office {
  readonly database: Database;
  nowMs: number;
  elapsedMs: number;
  isClockRight: boolean;
  /** Starts a process, and awaits its first look. */
  open(
    run: IntervalJob["run"],
    everyMs?: number,
    more?: { readonly aheadMs?: number; readonly database?: Database },
  ): Promise<Worker>;
}

async function setUp(t: TestContext): Promise<Office> {
  const database = openDatabase(t);
  let processes = 0;
  const office: Office = {
    database,
    nowMs: START_MS,
    elapsedMs: 0,
    isClockRight: true,
    async open(run, everyMs = HOUR_MS, { aheadMs = 0, ...more } = {}) {
      const now = () => office.nowMs + aheadMs;
      const cron = createCron({ log, now, elapsedMs: now });
      t.after(() => cron.stop(0));
      let runIfDue: IntervalJob["run"] = () => {};
      let idle = Promise.resolve();
      // The real registry, but the test does what its timers would do.
      const work = (name: string, each: IntervalJob["run"]) => {
        let end = () => {};
        const before = idle;
        idle = new Promise((resolve) => {
          end = resolve;
        });
        const outcome = cron.run(name, async (signal) => {
          try {
            await each(signal);
          } finally {
            end();
          }
        });
        if (outcome !== "started") idle = before;
        return outcome;
      };
      const shared = createSharedCron({
        database,
        isClockRight: () => office.isClockRight,
        ...more,
        claim: `c${++processes}`,
        log,
        now,
        elapsedMs: () => office.elapsedMs,
        cron: {
          ...cron,
          start(job) {
            runIfDue = job.run;
            cron.start({ ...job, everyMs: 1000 * HOUR_MS });
          },
          run: (name, each = runIfDue) => work(name, each),
        },
      });
      shared.start({ name: "report", everyMs, run });
      const untilIdle = async () => {
        await idle;
        await nextTurn(); // the registry has noticed the end, too
      };
      await untilIdle();
      return {
        shared,
        async look() {
          work("report", runIfDue);
          await untilIdle();
        },
        stop: () => cron.stop(1000),
      };
    },
  };
  return office;
}

function createCounter() {
  const counter = { runs: 0, run: () => void counter.runs++ };
  return counter;
}

/** A run that lasts until `end` is called. */
function createLongRun() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const long = {
    runs: 0,
    end: resolve,
    run() {
      long.runs++;
      return promise;
    },
  };
  return long;
}

test("a shared job runs one period after it was registered, and not before", async (t) => {
  const office = await setUp(t);
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
  const office = await setUp(t);
  const counter = createCounter();
  const workers = [await office.open(counter.run), await office.open(counter.run)];
  for (let hour = 1; hour <= 3; hour++) {
    office.nowMs = START_MS + hour * HOUR_MS;
    await Promise.all(workers.map(({ look }) => look()));
    assert.equal(counter.runs, hour);
  }
});

test("one late run replaces all missed ones, and does not shift later due times", async (t) => {
  const office = await setUp(t);
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
  const office = await setUp(t);
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
  const office = await setUp(t);
  const counter = createCounter();
  await office.open(counter.run);
  const { look } = await office.open(counter.run, 60_000);
  office.nowMs = START_MS + 60_000;
  await look();
  assert.equal(counter.runs, 1);
});

test("a job that another process runs is started neither when due nor by run()", async (t) => {
  const office = await setUp(t);
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
  const office = await setUp(t);
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
  const office = await setUp(t);
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
  const office = await setUp(t);
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

test("run() runs a job that is not due, and keeps its due time", async (t) => {
  const office = await setUp(t);
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
  const office = await setUp(t);
  office.isClockRight = false;
  const counter = createCounter();
  const { shared } = await office.open(counter.run);
  assert.equal(await shared.run("report"), "started");
  assert.equal(counter.runs, 1);
});

test("jobs of this process only are run and listed beside shared ones", async (t) => {
  const cron = createCron({ log, now: () => START_MS, elapsedMs: () => 0 });
  t.after(() => cron.stop(0));
  const shared = createSharedCron({
    database: openDatabase(t), log, now: () => START_MS, elapsedMs: () => 0, cron, claim: "c1",
    isClockRight: () => true,
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
  const office = await setUp(t);
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
  const office = await setUp(t);
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
  const office = await setUp(t);
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
    const office = await setUp(t);
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
  const office = await setUp(t);
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
  const office = await setUp(t);
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
  const office = await setUp(t);
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

test("a claim that was not stored leaves the job to another process", async (t) => {
  const office = await setUp(t);
  const counter = createCounter();
  let isFull = false;
  const database: Database = {
    ...office.database,
    write: (batch) =>
      isFull ? Promise.reject(new UnavailableError("full")) : office.database.write(batch),
  };
  const { look } = await office.open(counter.run, HOUR_MS, { database });
  const other = await office.open(counter.run);
  office.nowMs += HOUR_MS;
  isFull = true;
  await look();
  isFull = false;
  await other.look();
  await look();
  assert.equal(counter.runs, 1);
});

test("a claim found stored after its lease has ended excludes other processes", async (t) => {
  const office = await setUp(t);
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
