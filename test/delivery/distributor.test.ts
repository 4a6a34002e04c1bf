import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../src/base/id.ts";
import type { Log } from "../../src/base/log.ts";
import { createSeal, type Seal } from "../../src/base/seal.ts";
import type { AttemptOutcome } from "../../src/event/delivery.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import type { Callback } from "../../src/delivery/callback.ts";
import { createDistributor, type Distributor } from "../../src/delivery/distributor.ts";
import { takeOver } from "../../src/delivery/take_over.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { claimsOf } from "../../src/store/deliveries.ts";
import { createShift } from "../../src/store/clock_shift.ts";
import { insertEvent } from "../../src/store/events.ts";
import { fanOut, listPendingEvents } from "../../src/store/fan_out.ts";
import { insertResend, newResend, resendDeliveries } from "../../src/store/resends.ts";
import { updateSubscription } from "../../src/store/subscriptions.ts";
import {
  clearEndedSubscriptions,
  clearSubscription,
  deleteSubscription,
  disableSubscription,
} from "../../src/store/subscription_end.ts";
import { addUser, countChanges, countRows, openDatabaseAt } from "../helpers/database.ts";
import { releaseDatabase } from "../helpers/engine.ts";
import { until } from "../helpers/until.ts";

const START_MS = Date.UTC(2026, 10, 20, 12, 0, 0);
const DELAYS_MS = [10_000, 300_000, 3_600_000];
const TIMEOUT_MS = 10_000;
const SETTINGS = {
  database: { kind: "file" as const, path: "" },
  databaseCredentials: undefined,
  secretKeys: undefined,
  callbackAllow: [],
  callbackTimeoutMs: TIMEOUT_MS,
  resendDelaysMs: DELAYS_MS,
  disableAfterMs: 0,
};
const SEAL = createSeal(undefined);
const SECRET = formatSigningSecret(new Uint8Array(32).fill(7));
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

type Ending = number | "timeout" | "shortage";

/** An attempt that the test ends. */
interface Attempt {
  readonly callback: Callback;
  end(ending: Ending): void;
}

/** The distributor of one process; the test responds to its callbacks. */
interface Process {
  readonly distributor: Distributor;
  /** Attempts that have begun and not ended, oldest first. */
  readonly open: Attempt[];
  /** All attempts that have begun. */
  readonly begun: Callback[];
  /** For each recorded attempt, whether it was the last one of its delivery. */
  readonly observed: boolean[];
  /** How many were open at once, at most. */
  peak(): number;
  /** Resolves when all writes until now are stored, however slow the database is. */
  stored(): Promise<unknown>;
}

interface Stage {
  readonly database: Database;
  /** The common clock of the processes; only the test moves it. */
  nowMs: number;
  /** By how much it has been set back. */
  setBackMs: number;
  isClockWrong: boolean;
  startProcess(options?: ProcessOptions): Process;
  /** Makes a subscription to event "e" and returns its id. */
  subscribe(endpoint?: string): Promise<string>;
  /** Dispatches `count` events "e" and returns their ids. */
  dispatch(count?: number): Promise<string[]>;
  /** How many deliveries have each status. */
  counts(): Promise<Readonly<Record<string, number>>>;
}

interface ProcessOptions {
  readonly name?: string;
  readonly total?: number;
  readonly perSubscription?: number;
  /** Responds at once in place of the test. */
  readonly respond?: (callback: Callback) => Ending;
  readonly database?: Database;
  readonly seal?: Seal;
  readonly log?: Log;
}

async function openStage(t: TestContext): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-distributor-"));
  const path = join(folder, "gatepost.db");
  const database = openDatabaseAt(path);
  const processes: Process[] = [];
  t.after(async () => {
    for (const { open } of processes) for (const attempt of [...open]) attempt.end(204);
    await Promise.all(processes.map(({ distributor }) => distributor.stop(0)));
    await database.close();
    await releaseDatabase(path);
    await rm(folder, { recursive: true });
  });
  const stage: Stage = {
    database,
    nowMs: START_MS,
    setBackMs: 0,
    isClockWrong: false,
    startProcess(options = {}) {
      const process = createProcess(stage, options);
      processes.push(process);
      return process;
    },
    async subscribe(endpoint = "http://shop.example/") {
      const id = newId("s", stage.nowMs);
      const principal = await addUser(database, { createdAtMs: stage.nowMs });
      await database.write([
        sql`INSERT INTO subscriptions
            (id, principal, app, event, endpoint, status, secret, createdAtMs)
          VALUES (${id}, ${principal}, 'login', 'e', ${endpoint}, 'active',
            ${SEAL.encrypt(SECRET, id)}, ${stage.nowMs})`,
      ]);
      return id;
    },
    async dispatch(count = 1) {
      const events = Array.from({ length: count }, (_, index) => ({
        id: newId("e", stage.nowMs),
        name: "e",
        json: String(index),
        subject: undefined,
        createdAtMs: stage.nowMs,
      }));
      await database.write(events.map(insertEvent));
      return events.map(({ id }) => id);
    },
    async counts() {
      const rows = await database.query<{ status: string; n: number }>(
        sql`SELECT status, count(*) AS n FROM deliveries GROUP BY status`,
      );
      return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
    },
  };
  return stage;
}

function createProcess(stage: Stage, options: ProcessOptions): Process {
  const { total = 64, perSubscription = 8, respond } = options;
  const open: Attempt[] = [];
  const begun: Callback[] = [];
  const observed: boolean[] = [];
  let peak = 0;
  const distributor = createDistributor({
    database: options.database ?? stage.database,
    settings: {
      ...SETTINGS,
      callbackConcurrency: total,
      callbackConcurrencyPerSubscription: perSubscription,
    },
    claim: options.name ?? newId("c", stage.nowMs),
    seal: options.seal ?? SEAL,
    log: options.log ?? SILENT,
    now: () => stage.nowMs,
    elapsedMs: () => stage.nowMs + stage.setBackMs,
    isClockRight: () => !stage.isClockWrong,
    random: () => 0.5,
    observe: (_delivery, isSuccess, isLast) => void observed.push(isSuccess || isLast),
    callbacks: {
      send: (callback) =>
        new Promise((resolve) => {
          begun.push(callback);
          const end = (given: Ending) => {
            const index = open.indexOf(attempt);
            if (index < 0) return;
            open.splice(index, 1);
            resolve(
              given === "shortage"
                ? { shortage: "EMFILE" }
                : { outcome: toOutcome(given), snippet: undefined },
            );
          };
          const attempt = { callback, end };
          open.push(attempt);
          peak = Math.max(peak, open.length);
          if (respond) setImmediate(() => end(respond(callback)));
        }),
      abort: async () => [...open].forEach(({ end }) => end("timeout")),
    },
  });
  const stored = () => stage.database.write([sql`DELETE FROM settings WHERE name = 'nothing'`]);
  return { distributor, open, begun, observed, peak: () => peak, stored };
}

function toOutcome(ending: Exclude<Ending, "shortage">): AttemptOutcome {
  return ending === "timeout"
    ? { kind: "error", error: "timeout" }
    : { kind: "response", status: ending };
}

/** Waits until the processes have been idle for a while: nothing more will begin by itself. */
async function untilIdle(...processes: readonly Process[]): Promise<void> {
  const sum = () => processes.reduce((before, { begun }) => before + begun.length, 0);
  for (let quiet = 0, last = sum(); quiet < 8; quiet++) {
    await sleep(10);
    await Promise.all(processes.map((process) => process.stored())); // a busy disk is not idleness
    if (sum() !== last) quiet = 0;
    last = sum();
  }
}

/** Makes the deliveries of an event that has been dispatched; nobody claims them. */
async function makeDeliveries({ database, nowMs }: Stage): Promise<void> {
  const [event] = await listPendingEvents(database, { oldest: 1, newest: 0 });
  assert.ok(event);
  const part = { event, end: event.lastSubscription, claimed: [] };
  await fanOut(database, [part], "", 0, nowMs);
}

/** Makes a process look for work once. */
async function lookForWork(stage: Stage, { distributor }: Process): Promise<void> {
  stage.nowMs++;
  distributor.wake();
  await until(() => Promise.resolve(distributor.quietMs() === 0));
}

/** Ends a subscription, makes it active again, and resends some of its cancelled deliveries. */
async function sendAgain(
  { database, nowMs }: Stage,
  subscription: string,
  deliveries: readonly string[],
): Promise<void> {
  await database.write(disableSubscription(subscription, "why", nowMs));
  assert.equal(await clearSubscription(database, subscription, nowMs), true);
  await database.write([
    updateSubscription(subscription, { endpoint: undefined, status: "active" }),
    ...resendDeliveries(deliveries, nowMs, "cancelled"),
  ]);
}

/** A process whose first claim waits for the test. */
function startGated(stage: Stage) {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const database: Database = {
    ...stage.database,
    async write(statements) {
      if (statements.some((statement) => /INTO deliveries|SET claim = \?/.test(statement.sql))) {
        reached.resolve();
        await opened.promise;
      }
      return stage.database.write(statements);
    },
  };
  const process = stage.startProcess({ database, respond: () => 204 });
  process.distributor.wake();
  return { process, reached: reached.promise, open: opened.resolve };
}

/** Sets the clock back, and makes a process follow it. */
async function setBack(stage: Stage, { distributor }: Process, ms: number): Promise<void> {
  await distributor.followClock(-ms, async () => {
    await createShift(stage.database, stage.nowMs, -ms)();
    stage.nowMs -= ms;
    stage.setBackMs += ms;
    stage.isClockWrong = false;
  });
}

describe("distribution", () => {
  test("sends every event once to every subscription, while its clock stands still", async (t) => {
    const stage = await openStage(t);
    const endpoints = ["http://a.example/", "http://b.example/", "http://c.example/"];
    for (const endpoint of endpoints) await stage.subscribe(endpoint);
    const process = stage.startProcess({ respond: () => 204 });
    await stage.dispatch(100);
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 300);
    const sent = process.begun.map(({ endpoint, json }) => `${endpoint} ${json}`);
    assert.equal(sent.length, 300);
    assert.equal(new Set(sent).size, 300);
    assert.equal(new Set(process.begun.map(({ id }) => id)).size, 300);
  });

  test("leaves out a subscription that was made after the dispatch", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://before.example/");
    await stage.dispatch();
    await stage.subscribe("http://after.example/");
    const process = stage.startProcess({ respond: () => 204 });
    process.distributor.wake();
    await untilIdle(process);
    assert.deepEqual(process.begun.map(({ endpoint }) => endpoint), ["http://before.example/"]);
  });

  test("marks an event as distributed if all its subscriptions are disabled", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://a.example/");
    const [id] = await stage.dispatch();
    await stage.database.write([sql`UPDATE subscriptions SET status = 'disabled'`]);
    stage.startProcess().distributor.wake();
    await until(async () => {
      const rows = await stage.database.query<{ status: string }>(
        sql`SELECT status FROM events WHERE id = ${id ?? ""}`,
      );
      return rows[0]?.status === "distributed";
    });
  });

  test("finishes 600 events without subscribers, reading at most 256 at once", async (t) => {
    const stage = await openStage(t);
    const base = { name: "unheard", json: "1", subject: undefined, createdAtMs: stage.nowMs };
    await stage.database.write(Array.from({ length: 600 }, () =>
      insertEvent({ ...base, id: newId("e", stage.nowMs) })));
    const pending = sql`SELECT 1 FROM events WHERE status = 'pending'`;
    assert.equal((await stage.database.query(pending)).length, 600);
    const { counted, found } = countRows(stage.database);
    stage.startProcess({ database: counted, respond: () => 204 }).distributor.wake();
    await until(async () => (await stage.database.query(pending)).length === 0);
    assert.ok(found.most <= 256, `${found.most} were read at once`);
  });

  test("sends a small event while 300 large ones are being fanned out", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://small.example/");
    await stage.database.write([
      sql`UPDATE subscriptions SET event = 'small'`,
      sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO subscriptions
           (id, principal, app, event, endpoint, status, secret, createdAtMs)
         SELECT id || i, principal, app, 'e', endpoint || i, 'paused', secret, createdAtMs
         FROM subscriptions, n`,
    ]);
    await stage.dispatch(300);
    const process = stage.startProcess({ respond: () => 204 });
    process.distributor.wake();
    await until(async () => Number((await stage.counts())["pending"]) > 0);
    const small = { id: newId("e", stage.nowMs), name: "small", json: "1", subject: undefined };
    await stage.database.write([insertEvent({ ...small, createdAtMs: stage.nowMs })]);
    const known = Number((await stage.counts())["pending"]);
    process.distributor.wake();
    await until(() => process.begun.length === 1);
    const more = Number((await stage.counts())["pending"]) - known;
    assert.ok(more < 20_000, `after ${more} deliveries of others`);
  });

  test("reaches more subscriptions than one batch holds", async (t) => {
    const stage = await openStage(t);
    for (let part = 0; part < 12; part++) {
      await Promise.all(Array.from({ length: 100 }, () => stage.subscribe()));
    }
    await stage.dispatch();
    const process = stage.startProcess({ respond: () => 204 });
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1200);
    assert.equal(process.begun.length, 1200);
  });
});

describe("a signing secret that this process cannot decrypt", () => {
  test("is no failed attempt: a process that has the key sends the delivery", async (t) => {
    const stage = await openStage(t);
    const sealed = createSeal(new Uint8Array(32).fill(1));
    const id = await stage.subscribe();
    await stage.database.write([
      sql`UPDATE subscriptions SET secret = ${sealed.encrypt(SECRET, id)} WHERE id = ${id}`,
    ]);
    await stage.dispatch();
    const behind = stage.startProcess({ respond: () => 204 });
    behind.distributor.wake();
    await untilIdle(behind);
    assert.deepEqual(await stage.counts(), { pending: 1 });
    assert.deepEqual(await stage.database.query(sql`SELECT * FROM attempts`), []);
    const due = await stage.database.query<object>(sql`SELECT dueAtMs, claim FROM deliveries`);
    assert.deepEqual(due.map((row) => ({ ...row })), [{ dueAtMs: START_MS + 60_000, claim: null }]);
    const ahead = stage.startProcess({ respond: () => 204, seal: sealed });
    stage.nowMs += 60_000;
    ahead.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
    assert.deepEqual(ahead.begun.map(({ attempt }) => attempt), [1]);
  });

  test("is logged once, however many deliveries it holds up", async (t) => {
    const stage = await openStage(t);
    const sealed = createSeal(new Uint8Array(32).fill(1));
    const id = await stage.subscribe();
    await stage.database.write([
      sql`UPDATE subscriptions SET secret = ${sealed.encrypt(SECRET, id)} WHERE id = ${id}`,
    ]);
    for (let event = 0; event < 3; event++) await stage.dispatch();
    const lines: string[] = [];
    const error = (line: string) => void lines.push(line);
    const process = stage.startProcess({ respond: () => 204, log: { ...SILENT, error } });
    process.distributor.wake();
    await untilIdle(process);
    const due = sql`SELECT 1 FROM deliveries WHERE dueAtMs = ${START_MS + 60_000}`;
    assert.equal((await stage.database.query(due)).length, 3);
    assert.deepEqual(lines, ["a delivery cannot be sent"]);
  });
});

describe("resends", () => {
  test("come after each delay with the same id, and then stop", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const process = stage.startProcess({ respond: () => 500 });
    process.distributor.wake();
    await untilIdle(process);
    for (const [index, delayMs] of DELAYS_MS.entries()) {
      stage.nowMs += delayMs - 1;
      process.distributor.wake();
      await untilIdle(process);
      assert.equal(process.begun.length, index + 1, "a millisecond before its time");
      stage.nowMs += 1;
      process.distributor.wake();
      await untilIdle(process);
    }
    assert.deepEqual(process.begun.map(({ attempt }) => attempt), [1, 2, 3, 4]);
    assert.equal(new Set(process.begun.map(({ id }) => id)).size, 1);
    stage.nowMs += 100 * 3_600_000;
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.begun.length, 4);
    assert.deepEqual(process.observed, [false, false, false, true]);
    assert.deepEqual(await stage.counts(), { failed: 1 });
    const active = sql`SELECT 1 FROM subscriptions WHERE status = 'active'`;
    assert.equal((await stage.database.query(active)).length, 1, "disableAfterMs 0 never disables");
  });

  test("stop after a success", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const process = stage.startProcess({ respond: ({ attempt }) => attempt === 2 ? 200 : 500 });
    process.distributor.wake();
    await untilIdle(process);
    stage.nowMs += DELAYS_MS[0] ?? 0;
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
    assert.equal(process.begun.length, 2);
  });
});

describe("the caps", () => {
  test("allow 8 attempts of one subscription and 64 in all", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://0.example/");
    await stage.dispatch(40);
    const process = stage.startProcess();
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.open.length, 8);
    for (let index = 1; index < 12; index++) await stage.subscribe(`http://${index}.example/`);
    await stage.dispatch(40);
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.open.length, 56, "8 slots are left for healthy subscriptions");
    for (const attempt of [...process.open]) attempt.end(204);
    await untilIdle(process);
    assert.equal(process.open.length, 64);
    const perEndpoint = Map.groupBy(process.open, ({ callback }) => callback.endpoint);
    assert.ok(perEndpoint.values().every((attempts) => attempts.length <= 8));
    process.open[0]?.end(204);
    await untilIdle(process);
    assert.equal(process.open.length, 64);
    assert.equal(process.peak(), 64);
  });

  test("leave a failing subscription one slot, until it succeeds", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(60);
    const process = stage.startProcess();
    process.distributor.wake();
    await untilIdle(process);
    for (const attempt of [...process.open]) attempt.end(500);
    for (let round = 0; round < 5; round++) {
      await untilIdle(process);
      assert.equal(process.open.length, 1, `after ${round} failures in a row`);
      process.open[0]?.end(500);
    }
    await untilIdle(process);
    process.open[0]?.end(204);
    await untilIdle(process);
    assert.equal(process.open.length, 8);
  });

  test("grow again after a success, even if what is due was read before it", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(20);
    let hold = Promise.resolve();
    let isHeld = false;
    const database: Database = {
      ...stage.database,
      async query(select) {
        const rows = await stage.database.query(select);
        isHeld ||= rows.length > 0 && select.sql.includes("dueAtMs IS NOT NULL AND dueAtMs <=");
        if (isHeld) await hold;
        return rows as never;
      },
    };
    const process = stage.startProcess({ database });
    process.distributor.wake();
    await untilIdle(process);
    for (const attempt of [...process.open]) attempt.end(500);
    await untilIdle(process);
    const { promise, resolve } = Promise.withResolvers<void>();
    [hold, isHeld] = [promise, false];
    process.open[0]?.end(204);
    await until(() => isHeld);
    await until(async () => (await stage.counts())["delivered"] === 1);
    await process.stored();
    resolve();
    await untilIdle(process);
    assert.equal(process.open.length, 8);
  });

  test("leave a healthy subscription its slots beside a hundred that never respond", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://healthy.example/");
    await stage.dispatch(1);
    const process = stage.startProcess();
    process.distributor.wake();
    await untilIdle(process);
    process.open[0]?.end(204);
    await untilIdle(process);
    for (let index = 0; index < 100; index++) await stage.subscribe(`http://${index}.hung/`);
    await stage.dispatch(40);
    process.distributor.wake();
    await untilIdle(process);
    const ofHealthy = () =>
      process.open.filter(({ callback }) => callback.endpoint === "http://healthy.example/");
    for (let round = 0; round < 4; round++) {
      assert.equal(process.open.length, 64);
      assert.equal(ofHealthy().length, 8, `in round ${round}`);
      for (const attempt of ofHealthy()) attempt.end(204);
      await untilIdle(process);
    }
  });

  test("leave failing subscriptions half of the slots, and delay no healthy one", async (t) => {
    const stage = await openStage(t);
    for (let index = 0; index < 100; index++) await stage.subscribe(`http://${index}.dead/`);
    await stage.dispatch(2);
    const process = stage.startProcess({ respond: () => "timeout" });
    process.distributor.wake();
    // Each first attempt fails; from then on they hang.
    await until(() => process.begun.length === 200);
    await untilIdle(process);
    await process.distributor.stop(0);
    const second = stage.startProcess();
    stage.nowMs += 3_600_000;
    second.distributor.wake();
    await untilIdle(second);
    assert.equal(second.open.length, 32);
    await stage.subscribe("http://healthy.example/");
    await stage.dispatch(10);
    second.distributor.wake();
    await untilIdle(second);
    const healthy = second.open.filter(({ callback }) => callback.endpoint.includes("healthy"));
    assert.equal(healthy.length, 8, "while 100 dead ones wait");
    assert.equal(second.open.length, 40);
  });

  test("keep healthy subscriptions from starving resends", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://failing.example/");
    await stage.dispatch();
    const failing = stage.startProcess({ respond: () => 500 });
    failing.distributor.wake();
    await untilIdle(failing);
    await failing.distributor.stop(0);
    for (let index = 0; index < 40; index++) await stage.subscribe(`http://${index}.example/`);
    await stage.dispatch(20);
    stage.nowMs += 10_000;
    const process = stage.startProcess({ total: 4, perSubscription: 2, respond: () => 204 });
    process.distributor.wake();
    await until(() => process.begun.some(({ attempt }) => attempt === 2));
    assert.ok(process.begun.length < 100, `it came after ${process.begun.length} others`);
  });
});

describe("a delivery that a shortage of the service holds back", () => {
  test("has had no attempt, and is sent as attempt 1 after the shortage", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(20);
    let isLacking = true;
    const process = stage.startProcess({ respond: () => isLacking ? "shortage" : 204 });
    process.distributor.wake();
    await untilIdle(process);
    assert.ok(process.begun.length <= 8, "nothing more is sent for a moment");
    assert.equal(process.distributor.shortage(), "EMFILE");
    stage.nowMs += 999;
    process.distributor.wake();
    await untilIdle(process);
    assert.ok(process.begun.length <= 8);
    isLacking = false;
    stage.nowMs += 1;
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 20);
    assert.deepEqual(new Set(process.begun.map(({ attempt }) => attempt)), new Set([1]));
    const rows = await stage.database.query<{ health: string; attempts: number }>(
      sql`SELECT health, (SELECT count(*) FROM attempts) AS attempts FROM subscriptions`,
    );
    assert.deepEqual(rows.map((row) => ({ ...row })), [{ health: "healthy", attempts: 20 }]);
    stage.nowMs += 5_000;
    assert.equal(process.distributor.shortage(), undefined);
  });

  test("does not wait longer if the clock is set back", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const process = stage.startProcess({
      respond: () => process.begun.length === 1 ? "shortage" : 204,
    });
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.begun.length, 1);
    await setBack(stage, process, 3_600_000);
    stage.nowMs += 1_000;
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
  });

  test("keeps its attempt number, also after a failure", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const endings: Ending[] = [500, "shortage", "shortage", 500];
    const process = stage.startProcess({ respond: () => endings.shift() ?? 204 });
    for (const waitMs of [0, DELAYS_MS[0] ?? 0, 1_000, 1_000, DELAYS_MS[1] ?? 0]) {
      stage.nowMs += waitMs;
      process.distributor.wake();
      await untilIdle(process);
    }
    assert.deepEqual(process.begun.map(({ attempt }) => attempt), [1, 2, 2, 2, 3]);
    assert.deepEqual(await stage.counts(), { delivered: 1 });
  });
});

describe("slow subscribers", () => {
  test("are known as slow to the next process", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe("http://slow.example/");
    await stage.dispatch(1);
    const first = stage.startProcess();
    first.distributor.wake();
    await untilIdle(first);
    stage.nowMs += 9_000;
    first.open[0]?.end(200);
    await until(async () => (await stage.counts())["delivered"] === 1);
    await first.distributor.stop(0);
    for (let index = 0; index < 7; index++) await stage.subscribe(`http://${index}.slow.example/`);
    await stage.database.write([
      sql`UPDATE subscriptions SET hasSucceeded = 1,
           meanMs = (SELECT max(meanMs) FROM subscriptions),
           principal = (SELECT principal FROM subscriptions ORDER BY seq LIMIT 1)`,
    ]);
    await stage.subscribe("http://healthy.example/");
    await stage.dispatch(40);
    const second = stage.startProcess();
    second.distributor.wake();
    await untilIdle(second);
    const slow = second.open.filter(({ callback }) => callback.endpoint.includes("slow"));
    assert.equal(slow.length, 16, "a quarter of the slots: they have one principal");
    assert.equal(second.open.length - slow.length, 8);
  });

  test("leave half of the slots to the others", async (t) => {
    const stage = await openStage(t);
    for (let index = 0; index < 20; index++) await stage.subscribe(`http://${index}.slow.example/`);
    await stage.database.write([
      sql`UPDATE subscriptions SET meanMs = 1001, hasSucceeded = 1`,
    ]);
    await stage.subscribe("http://healthy.example/");
    await stage.database.write([
      sql`UPDATE subscriptions SET meanMs = 1000, hasSucceeded = 1 WHERE meanMs = 0`,
    ]);
    await stage.dispatch(40);
    const process = stage.startProcess();
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.open.length, 40);
  });

  test("have unknown health after a change of their endpoint", async (t) => {
    const stage = await openStage(t);
    const id = await stage.subscribe();
    await stage.database.write([
      sql`UPDATE subscriptions SET meanMs = 9000, hasSucceeded = 1`,
      updateSubscription(id, { endpoint: "http://new.example/", status: undefined }),
    ]);
    const rows = await stage.database.query(sql`SELECT health, meanMs FROM subscriptions`);
    assert.deepEqual(rows.map((row) => ({ ...row as object })), [{ health: "unknown", meanMs: 0 }]);
  });
});

describe("a delivery that waits in its queue", () => {
  /** Eight attempts are in flight; the other deliveries are claimed and wait behind them. */
  async function fillQueue(t: TestContext, { deliveries = 16, isHealthy = false } = {}) {
    const stage = await openStage(t);
    const id = await stage.subscribe("http://old.example/");
    if (isHealthy) await stage.database.write([sql`UPDATE subscriptions SET hasSucceeded = 1`]);
    await stage.dispatch(deliveries);
    const process = stage.startProcess();
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.open.length, 8);
    return { stage, id, process };
  }

  async function endAll(process: Process): Promise<void> {
    for (const attempt of [...process.open]) attempt.end(204);
    await untilIdle(process);
  }

  test("is sent only after its paused subscription is active again", async (t) => {
    const { stage, id, process } = await fillQueue(t);
    const change = { endpoint: undefined, status: "paused" } as const;
    await stage.database.write([updateSubscription(id, change)]);
    await endAll(process);
    assert.equal(process.begun.length, 8);
    assert.deepEqual(await stage.counts(), { delivered: 8, pending: 8 });
    await stage.database.write([updateSubscription(id, { ...change, status: "active" })]);
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.begun.length, 16);
  });

  test("causes no writes while its subscription is paused", async (t) => {
    const stage = await openStage(t);
    const id = await stage.subscribe();
    await stage.dispatch();
    await makeDeliveries(stage);
    await stage.database.write([updateSubscription(id, { endpoint: undefined, status: "paused" })]);
    const { counted, changes } = countChanges(stage.database);
    const process = stage.startProcess({ database: counted });
    process.distributor.wake();
    await untilIdle(process);
    assert.deepEqual([process.begun.length, changes], [0, []]);
  });

  test("is cancelled, not sent, after its subscription is deleted", async (t) => {
    const { stage, id, process } = await fillQueue(t);
    await stage.database.write(deleteSubscription(id, stage.nowMs));
    await endAll(process);
    assert.equal(process.begun.length, 8);
    await clearEndedSubscriptions(stage.database, () => stage.nowMs, new AbortController().signal);
    assert.deepEqual(await stage.counts(), { cancelled: 8, delivered: 8 });
  });

  test("goes to the new endpoint of its subscription", async (t) => {
    const { stage, id, process } = await fillQueue(t);
    const change = { endpoint: "http://new.example/", status: undefined };
    await stage.database.write([updateSubscription(id, change)]);
    await endAll(process);
    const endpoints = process.begun.map(({ endpoint }) => endpoint);
    assert.deepEqual(endpoints.slice(8), Array(8).fill("http://new.example/"));
  });

  test("is sent once if it is cancelled and then resent", async (t) => {
    const { stage, id, process } = await fillQueue(t, { deliveries: 12, isHealthy: true });
    const sent = process.begun.map(({ id }) => id);
    const all = await stage.database.query<{ id: string }>(sql`SELECT id FROM deliveries`);
    const waiting = all.map((row) => row.id).filter((each) => !sent.includes(each));
    assert.equal(waiting.length, 4);
    await sendAgain(stage, id, waiting);
    await lookForWork(stage, process);
    await endAll(process);
    assert.deepEqual(process.begun.slice(8).map(({ id }) => id), waiting);
    await endAll(process);
    assert.deepEqual(await stage.counts(), { cancelled: 8, delivered: 4 });
    assert.equal(process.begun.length, 12);
  });

  test("is not sent near the end of its lease, when another may take it over", async (t) => {
    const { stage, process } = await fillQueue(t, { isHealthy: true });
    const sleptMs = 2 * TIMEOUT_MS + 30_000 - TIMEOUT_MS + 10;
    stage.nowMs += sleptMs;
    stage.setBackMs -= sleptMs; // the monotonic clock stands still meanwhile
    const before = process.begun.length;
    const first = process.begun.map(({ id }) => id);
    await endAll(process);
    const later = process.begun.slice(before).map(({ id }) => id);
    assert.equal(later.length, 8, "others are claimed anew");
    assert.deepEqual(later.filter((id) => first.includes(id)), []);
    const [held] = await stage.database.query<{ untilMs: number }>(
      sql`SELECT min(dueAtMs) AS untilMs FROM deliveries WHERE status = 'pending'`,
    );
    assert.ok((held?.untilMs ?? 0) >= stage.nowMs + TIMEOUT_MS, "the lease covers an attempt");
  });
});

describe("a delivery in flight when its subscription changes", () => {
  const NEW = { endpoint: "http://new.example/", status: undefined };

  /**
   * Begins the attempt of this number, after others that got a 410.
   *
   * @param isHealthy whether other deliveries have succeeded meanwhile
   */
  async function begin(t: TestContext, attempt = 1, isHealthy = false) {
    const stage = await openStage(t);
    const id = await stage.subscribe("http://old.example/");
    await stage.dispatch();
    const process = stage.startProcess();
    const inFlight = async (number: number) => {
      process.distributor.wake();
      await until(() => process.open[0]?.callback.attempt === number);
    };
    for (let number = 1; number < attempt; number++) {
      await inFlight(number);
      process.open[0]?.end(410);
      await untilIdle(process);
      if (isHealthy) {
        await stage.database.write([
          sql`UPDATE subscriptions SET hasSucceeded = 1, failingSinceMs = NULL`,
        ]);
      }
      stage.nowMs += 3_600_000;
    }
    await inFlight(attempt);
    const end = async (ending: Ending) => {
      process.open[0]?.end(ending);
      await untilIdle(process);
    };
    const find = sql`SELECT status, health, failingSinceMs AS since FROM subscriptions
      WHERE id = ${id}`;
    const read = async () => ({ ...Object((await stage.database.query(find))[0]) });
    return { stage, id, process, end, read };
  }

  const ENDS = [
    ["disabled", (id: string, nowMs: number) => disableSubscription(id, "why", nowMs)],
    ["deleted", deleteSubscription],
  ] as const;
  for (const [name, endIt] of ENDS) {
    test(`is delivered by a 204, even if the subscription is ${name} meanwhile`, async (t) => {
      const { stage, id, end } = await begin(t);
      await stage.database.write(endIt(id, stage.nowMs));
      await end(204);
      assert.deepEqual(await stage.counts(), { delivered: 1 });
      assert.equal((await stage.database.query(sql`SELECT 1 FROM attempts`)).length, 1);
    });

    test(`is cancelled if it fails and the subscription is ${name} meanwhile`, async (t) => {
      const { stage, id, process, end } = await begin(t);
      await stage.database.write(endIt(id, stage.nowMs));
      await end(500);
      const { signal } = new AbortController();
      await clearEndedSubscriptions(stage.database, () => stage.nowMs, signal);
      assert.deepEqual(await stage.counts(), { cancelled: 1 });
      assert.equal((await stage.database.query(sql`SELECT 1 FROM attempts`)).length, 1);
      stage.nowMs += 10_000;
      process.distributor.wake();
      await untilIdle(process);
      assert.equal(process.begun.length, 1);
    });
  }

  test("is not sent twice at the same time if it is cancelled and resent", async (t) => {
    const { stage, id, process, end } = await begin(t);
    await sendAgain(stage, id, [process.begun[0]?.id ?? ""]);
    assert.deepEqual(await stage.counts(), { pending: 1 });
    await lookForWork(stage, process);
    await untilIdle(process);
    assert.equal(process.begun.length, 1);
    await end("shortage");
    stage.nowMs += 2_000;
    await lookForWork(stage, process);
    await until(() => process.begun.length === 2);
    await end(204);
    assert.deepEqual(await stage.counts(), { delivered: 1 });
    assert.equal(process.begun.length, 2);
  });

  for (const ending of [500, 410] as const) {
    test(`and resent gets all attempts again if it fails (${ending})`, async (t) => {
      const { stage, id, process, end, read } = await begin(t, 4, true);
      await sendAgain(stage, id, [process.begun[0]?.id ?? ""]);
      await lookForWork(stage, process);
      await end(ending);
      assert.equal((await read())["status"], "active");
      for (const attempt of [1, 2, 3, 4]) {
        await lookForWork(stage, process);
        await until(() => process.open[0]?.callback.attempt === attempt);
        assert.deepEqual(await stage.counts(), { pending: 1 });
        await end(500);
        stage.nowMs += 3_600_000;
      }
      assert.deepEqual(await stage.counts(), { failed: 1 });
    });
  }

  test("does not change the health of a new endpoint by its failure", async (t) => {
    const { stage, id, end, read } = await begin(t);
    await stage.database.write([updateSubscription(id, NEW)]);
    await end(500);
    assert.deepEqual(await read(), { status: "active", health: "unknown", since: null });
  });

  test("does not disable the subscription by a last 410 of the old endpoint", async (t) => {
    const { stage, id, end, read } = await begin(t, 4);
    await stage.database.write([updateSubscription(id, NEW)]);
    await end(410);
    assert.deepEqual(await stage.counts(), { failed: 1 });
    assert.deepEqual(await read(), { status: "active", health: "unknown", since: null });
  });

  test("disables the subscription by a last 410 of its current endpoint", async (t) => {
    const { end, read } = await begin(t, 4);
    await end(410);
    const { status, health } = await read();
    assert.deepEqual([status, health], ["disabled", "failing"]);
  });
});

describe("several processes", () => {
  test("send nothing twice", async (t) => {
    const stage = await openStage(t);
    for (let index = 0; index < 5; index++) await stage.subscribe(`http://${index}.example/`);
    const processes = ["c1", "c2", "c3"].map((name) =>
      stage.startProcess({ name, respond: () => 204 })
    );
    for (let round = 0; round < 10; round++) {
      await stage.dispatch(10);
      for (const { distributor } of processes) {
        distributor.wake();
      }
    }
    await until(async () => {
      for (const { distributor } of processes) distributor.wake();
      return (await stage.counts())["delivered"] === 500;
    });
    const ids = processes.flatMap(({ begun }) => begun.map(({ id }) => id));
    assert.equal(ids.length, 500);
    assert.equal(new Set(ids).size, 500);
  });

  test("do not take over the claims of a living process before its lease ends", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(16);
    const holder = stage.startProcess({ name: "c1" });
    holder.distributor.wake();
    await untilIdle(holder);
    const other = stage.startProcess({ name: "c2", respond: () => 204 });
    stage.nowMs += 2 * TIMEOUT_MS + 30_000 - 1; // the lease: two attempts and a margin
    other.distributor.wake();
    await untilIdle(other);
    assert.equal(other.begun.length, 0);
    stage.nowMs += 10; // each claim has its own lease
    other.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 16);
  });

  test("take over the claims of a dead process at once", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(16);
    const dead = stage.startProcess({ name: "c1" });
    dead.distributor.wake();
    await untilIdle(dead);
    const other = stage.startProcess({ name: "c2", respond: () => 204 });
    await stage.database.write(["c1", "c2"].map((claim) => sql`INSERT INTO cronjobs
      (name, nextAtMs, claim, leaseUntilMs) VALUES (${claim}, 1, ${claim}, 9)`));
    await takeOver({ database: stage.database, log: SILENT, now: () => stage.nowMs }, "c1");
    const jobs = sql`SELECT name FROM cronjobs WHERE claim IS NOT NULL`;
    assert.deepEqual((await stage.database.query<object>(jobs)).map((row) => ({ ...row })), [
      { name: "c2" },
    ]);
    other.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 16);
    assert.deepEqual(
      other.begun.map(({ id, attempt }) => `${id} ${attempt}`).sort(),
      [...new Set(other.begun.map(({ id }) => `${id} 1`))].sort(),
    );
  });

  test("ignore the outcome of a delivery that was taken over meanwhile", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const slow = stage.startProcess({ name: "c1" });
    slow.distributor.wake();
    await untilIdle(slow); // or it would take them over itself
    assert.equal(slow.open.length, 1);
    stage.nowMs += 2 * TIMEOUT_MS + 30_000;
    const other = stage.startProcess({ name: "c2", respond: () => 204 });
    other.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
    slow.open[0]?.end(500);
    await untilIdle(slow, other);
    assert.deepEqual(await stage.counts(), { delivered: 1 });
    const attempts = await stage.database.query(sql`SELECT status FROM attempts`);
    assert.deepEqual(attempts.map((row) => ({ ...Object(row) })), [{ status: 204 }]);
    const known = await stage.database.query(
      sql`SELECT hasSucceeded, failingSinceMs FROM subscriptions`,
    );
    assert.deepEqual(
      known.map((row) => ({ ...Object(row) })),
      [{ hasSucceeded: 1, failingSinceMs: null }],
    );
  });

  test("wake by themselves when a delivery that another claimed first is due again", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    await makeDeliveries(stage);
    let isFirst = true;
    const database: Database = {
      ...stage.database,
      async write(statements) {
        if (isFirst && statements.some((statement) => statement.sql.includes("SET claim = ?"))) {
          isFirst = false;
          const requests = [{ subscription: 1, count: 1 }];
          await claimsOf(stage.database, "c1").claim(requests, stage.nowMs + 200, stage.nowMs);
        }
        return stage.database.write(statements);
      },
    };
    const slower = stage.startProcess({ name: "c2", database, respond: () => 204 });
    slower.distributor.wake();
    await until(() => !isFirst);
    await untilIdle(slower);
    stage.nowMs += 300;
    await until(async () => (await stage.counts())["delivered"] === 1);
  });
});

describe("when the database fails", () => {
  /** A database whose next `times` writes with this text fail. */
  function failing(database: Database, text: string, times: number): Database & { left(): number } {
    let left = times;
    return {
      ...database,
      left: () => left,
      write(statements) {
        if (left > 0 && statements.some((statement) => statement.sql.includes(text))) {
          left--;
          return Promise.reject(new UnavailableError("the disk is full"));
        }
        return database.write(statements);
      },
    };
  }

  test("an attempt is recorded as soon as possible, and not repeated", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const database = failing(stage.database, "INSERT INTO attempts", 2);
    const process = stage.startProcess({ database, respond: () => 204 });
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
    assert.equal(process.begun.length, 1);
    assert.equal(database.left(), 0);
  });

  test("an attempt that is not recorded within its lease is not repeated either", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const database = failing(stage.database, "INSERT INTO attempts", 4);
    const process = stage.startProcess({ database, respond: () => 204 });
    process.distributor.wake();
    await until(() => Promise.resolve(database.left() < 4));
    stage.nowMs += 2 * TIMEOUT_MS + 30_001;
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
    assert.equal(process.begun.length, 1);
  });

  test("repeated errors of an attempt and of rounds are each logged once", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const [warn, isDown] = [t.mock.fn<Log["warn"]>(), Promise.reject(new UnavailableError("down"))];
    isDown.catch(() => {});
    let looks = 0;
    const database = {
      ...failing(stage.database, "INSERT INTO attempts", 3),
      query<Row>(select: Sql): Promise<Row[]> {
        return warn.mock.callCount() === 0 || looks++ > 20 ? stage.database.query(select) : isDown;
      },
    };
    const process =
      stage.startProcess({ database, respond: () => 204, log: { ...SILENT, warn } });
    const look = setInterval(process.distributor.wake, 5);
    t.after(() => clearInterval(look));
    await until(async () => looks > 20 && (await stage.counts())["delivered"] === 1);
    const lines = warn.mock.calls.map(({ arguments: [line] }) => line);
    assert.deepEqual(lines, ["an attempt cannot be recorded yet", "distribution is held up"]);
  });

  for (const text of ["INSERT INTO deliveries", "SET claim = ?"]) {
    test(`a failed ${text} is retried soon, without waiting for the interval`, async (t) => {
      const stage = await openStage(t);
      await stage.subscribe();
      await stage.dispatch(3);
      const database = failing(stage.database, text, 1);
      const process = stage.startProcess({ database, respond: () => 204 });
      process.distributor.wake();
      await until(async () => (await stage.counts())["delivered"] === 3);
      assert.equal(database.left(), 0);
      assert.equal(process.begun.length, 3);
    });
  }

  describe("deliveries of a claim with an unknown outcome are sent once:", () => {
    const unknown = () => Promise.reject(new OutcomeUnknownError("no answer"));
    const isClaim = (sql: string) => sql.includes("SET claim = ?");
    type Write = Database["write"];
    let query: Database["query"];
    const table: [what: string, (write: Write) => Partial<Database>][] = [
      ["the claim was stored", (write) => {
        let isFirst = true;
        return {
          async write(batch) {
            const changes = await write(batch);
            if (!isFirst || !isClaim(batch[0]?.sql ?? "")) return changes;
            isFirst = false;
            return unknown();
          },
        };
      }],
      ["the claim is stored later", (write) => {
        let late: Parameters<Write>[0] | undefined;
        let rounds = 0;
        return {
          async write(batch) {
            if (!isClaim(batch[0]?.sql ?? "")) return write(batch);
            if (++rounds === 1) late = batch;
            else if (late) await write(late);
            if (rounds > 1) late = undefined;
            return rounds === 1 ? unknown() : write(batch);
          },
        };
      }],
      ["the claim cannot be read", () => {
        let isFirst = true;
        return {
          query<Row>(select: Sql) {
            const isClaimed = select.sql.includes("claim = ? AND dueAtMs = ?");
            if (!isClaimed || !isFirst) return query<Row>(select);
            isFirst = false;
            return Promise.reject(new UnavailableError("down"));
          },
        };
      }],
    ];
    for (const [what, fail] of table) {
      test(what, async (t) => {
        const stage = await openStage(t);
        query = stage.database.query;
        await stage.subscribe();
        await stage.dispatch(20);
        const database = { ...stage.database, ...fail(stage.database.write) };
        const process = stage.startProcess({ database, respond: () => 204 });
        process.distributor.wake();
        const look = setInterval(process.distributor.wake, 100);
        t.after(() => clearInterval(look));
        await until(async () => (await stage.counts())["delivered"] === 20);
        assert.equal(process.begun.length, 20);
      });
    }
  });

  for (const claims of [false, true]) {
    const what = claims ? " that also claims" : "";
    test(`a fan-out${what} is not repeated if its outcome is unknown`, async (t) => {
      const stage = await openStage(t);
      await stage.subscribe();
      let left = 3;
      const process = stage.startProcess({
        respond: () => 204,
        database: {
          ...stage.database,
          async write(batch) {
            const changes = await stage.database.write(batch);
            if (left === 0 || !batch[0]?.sql.includes("INSERT INTO deliveries")) return changes;
            left--;
            throw new OutcomeUnknownError("no answer");
          },
        },
      });
      if (claims) await lookForWork(stage, process); // and find that nothing is due
      for (let round = 0; round < 3; round++) {
        await stage.dispatch();
        process.distributor.wake();
        await until(() => Promise.resolve(left === 2 - round));
      }
      await until(async () => (await stage.counts())["delivered"] === 3);
      await untilIdle(process);
      assert.equal(process.begun.length, 3);
    });
  }

  test("a failed round does not reset quietMs()", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const database = failing(stage.database, "INSERT INTO deliveries", 2);
    const process = stage.startProcess({ database, respond: () => 204 });
    stage.nowMs += 60_000;
    process.distributor.wake();
    await until(() => Promise.resolve(database.left() === 1));
    assert.equal(process.distributor.quietMs(), 60_000);
    await until(async () => (await stage.counts())["delivered"] === 1);
    assert.equal(process.distributor.quietMs(), 0);
  });
});

test("attempts that end while another is being recorded are recorded together", async (t) => {
  const stage = await openStage(t);
  await stage.subscribe();
  await stage.dispatch(8);
  const recorded = Promise.withResolvers<void>();
  let writes = 0;
  const process = stage.startProcess({
    database: {
      ...stage.database,
      async write(batch) {
        if (batch[0]?.sql.startsWith("INSERT INTO attempts") && writes++ === 0) {
          await recorded.promise;
        }
        return stage.database.write(batch);
      },
    },
  });
  process.distributor.wake();
  await until(() => Promise.resolve(process.open.length === 8));
  process.open[0]?.end(204);
  await until(() => Promise.resolve(writes === 1));
  for (const attempt of [...process.open]) {
    attempt.end(204);
    await sleep(20);
  }
  recorded.resolve();
  await until(async () => (await stage.counts())["delivered"] === 8);
  assert.equal(writes, 2);
});

describe("a delivery made while nothing is due", () => {
  test("is claimed in the commit that makes it", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.subscribe();
    const writes: string[] = [];
    const process = stage.startProcess({
      respond: () => 204,
      database: {
        ...stage.database,
        write(batch) {
          writes.push(...batch.map(({ sql }) => sql));
          return stage.database.write(batch);
        },
      },
    });
    await lookForWork(stage, process);
    await stage.dispatch(2);
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 4);
    assert.equal(process.begun.length, 4);
    assert.deepEqual(writes.filter((sql) => sql.includes("SET claim = ?")), []);
  });

  test("is sent in the order of dispatch, even if not all can be claimed", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    const process = stage.startProcess({ total: 1, perSubscription: 1, respond: () => 204 });
    await lookForWork(stage, process);
    for (let count = 1; count <= 24; count += 8) {
      await stage.dispatch(8);
      process.distributor.wake();
    }
    await until(async () => (await stage.counts())["delivered"] === 24);
    const sent = process.begun.map(({ id }) => id);
    assert.deepEqual(sent, sent.toSorted());
  });

  test("is sent once if two processes make it at the same time", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    const processes = ["c1", "c2"].map((name) => stage.startProcess({ name, respond: () => 204 }));
    for (const process of processes) await lookForWork(stage, process);
    await stage.dispatch(30);
    for (const { distributor } of processes) distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 30);
    await untilIdle(...processes);
    const sent = processes.flatMap(({ begun }) => begun.map(({ id }) => id));
    assert.equal(sent.length, 30);
    assert.equal(new Set(sent).size, 30);
  });

  test("is sent by another process when the lease of its maker has ended", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    const dead = stage.startProcess({ name: "c1" });
    await lookForWork(stage, dead);
    await stage.dispatch();
    dead.distributor.wake();
    await until(() => Promise.resolve(dead.begun.length === 1));
    const other = stage.startProcess({ name: "c2", respond: () => 204 });
    other.distributor.wake();
    await untilIdle(other);
    assert.equal(other.begun.length, 0);
    stage.nowMs += 2 * TIMEOUT_MS + 30_000;
    other.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
  });
});

describe("after the clock is set, until the stored times are shifted,", () => {
  test("nothing is claimed or sent, and everything is afterwards", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(12);
    const process = stage.startProcess({ perSubscription: 4 });
    process.distributor.wake();
    await untilIdle(process);
    stage.isClockWrong = true;
    for (const attempt of [...process.open]) attempt.end(204);
    await untilIdle(process);
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.begun.length, 4);
    await setBack(stage, process, 3_600_000);
    assert.equal(process.distributor.quietMs(), 0);
    for (let sent = 4; sent < 12; sent += 4) {
      process.distributor.wake();
      await until(() => Promise.resolve(process.begun.length === sent + 4));
      const tooLong = stage.nowMs + 2 * TIMEOUT_MS + 31_000;
      const lasting = sql`SELECT 1 FROM deliveries
        WHERE status = 'pending' AND dueAtMs > ${tooLong}`;
      assert.deepEqual(await stage.database.query(lasting), [], "a lease by the old clock");
      for (const attempt of [...process.open]) attempt.end(204);
      await untilIdle(process);
    }
    await until(async () => (await stage.counts())["delivered"] === 12);
  });

  test("a claim under way is awaited before the shift", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const { process, reached, open } = startGated(stage);
    await reached;
    let isShifted = false;
    const following = process.distributor.followClock(-1_000, async () => {
      isShifted = true;
    });
    await untilIdle(process);
    const wasShifted = isShifted;
    open();
    await following;
    assert.deepEqual([wasShifted, isShifted], [false, true]);
  });

  test("a claim with an unknown outcome is found by its shifted lease", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(4);
    let failed = 0;
    const process = stage.startProcess({
      respond: () => 204,
      database: {
        ...stage.database,
        async write(batch) {
          const changes = await stage.database.write(batch);
          const isClaim = batch[0]?.sql.includes("SET claim = ?") ?? false;
          if (!isClaim || failed++ > 0) return changes;
          stage.isClockWrong = true; // so that no round finds it before the shift
          throw new OutcomeUnknownError("no answer");
        },
      },
    });
    process.distributor.wake();
    await until(() => Promise.resolve(failed > 0));
    await setBack(stage, process, 3_600_000);
    process.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 4);
  });
});

describe("stop()", () => {
  test("awaits attempts in flight, releases the rest and begins nothing more", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch(40);
    const process = stage.startProcess();
    process.distributor.wake();
    await untilIdle(process);
    const stopped = process.distributor.stop(60_000);
    await untilIdle(process);
    for (const attempt of [...process.open]) attempt.end(204);
    await stopped;
    assert.equal(process.begun.length, 8);
    assert.deepEqual(await stage.counts(), { delivered: 8, pending: 32 });
    const claims = await stage.database.query(
      sql`SELECT 1 FROM deliveries WHERE claim IS NOT NULL`,
    );
    assert.equal(claims.length, 0);
    const next = stage.startProcess({ respond: () => 204 });
    next.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 40);
    assert.equal(next.begun.length, 32);
  });

  test("releases what is being claimed when it is called", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const { process, reached, open } = startGated(stage);
    await reached;
    const stopped = process.distributor.stop(0);
    open();
    await stopped;
    await untilIdle(process);
    const claimed = sql`SELECT 1 FROM deliveries WHERE claim IS NOT NULL`;
    assert.deepEqual(await stage.database.query(claimed), []);
    assert.deepEqual([await stage.counts(), process.begun.length], [{ pending: 1 }, 0]);
  });

  test("aborts an attempt that takes too long, which is sent again as attempt 1", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const process = stage.startProcess();
    process.distributor.wake();
    await untilIdle(process);
    await process.distributor.stop(20);
    assert.equal(process.open.length, 0);
    const attempts = await stage.database.query(sql`SELECT 1 FROM attempts`);
    assert.equal(attempts.length, 0);
    const next = stage.startProcess({ respond: () => 204 });
    next.distributor.wake();
    await until(async () => (await stage.counts())["delivered"] === 1);
    assert.deepEqual(
      next.begun.map(({ id, attempt }) => [id, attempt]),
      [[process.begun[0]?.id, 1]],
    );
  });

  test("leaves an unrecorded delivery to other processes", { timeout: 20_000 }, async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    await stage.dispatch();
    const database: Database = {
      ...stage.database,
      write: (statements) =>
        statements.some((statement) => statement.sql.includes("INSERT INTO attempts"))
          ? Promise.reject(new UnavailableError("the disk is full"))
          : stage.database.write(statements),
    };
    const process = stage.startProcess({ database, respond: () => 204 });
    process.distributor.wake();
    await untilIdle(process);
    await process.distributor.stop(60_000);
    assert.deepEqual(await stage.counts(), { pending: 1 });
  });

  test("is final: a later wake sends nothing", async (t) => {
    const stage = await openStage(t);
    await stage.subscribe();
    const process = stage.startProcess({ respond: () => 204 });
    await process.distributor.stop(0);
    await stage.dispatch();
    process.distributor.wake();
    await untilIdle(process);
    assert.equal(process.begun.length, 0);
  });
});

test("a resend of 1,200 deliveries is completed after one wake", async (t) => {
  const stage = await openStage(t);
  const process = stage.startProcess();
  await stage.subscribe();
  const ids = Array.from({ length: 1_200 }, () => `d${newId("e", stage.nowMs).slice(1)}1`);
  await stage.database.write([
    sql`UPDATE subscriptions SET status = 'paused'`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
      SELECT value, 'e1', 1, 'failed', 1, 1 FROM json_each(${JSON.stringify(ids)})`,
    insertResend(newResend(newId("w", stage.nowMs), "u1", { status: "failed" })),
  ]);
  process.distributor.wake();
  await until(async () => (await stage.counts())["pending"] === ids.length);
});

test("a delivery of a subscription that is paused until a time is sent at that time", async (t) => {
  const stage = await openStage(t);
  const process = stage.startProcess({ respond: () => 204 });
  await stage.subscribe();
  await stage.database.write([
    sql`UPDATE subscriptions SET status = 'paused', pausedUntilMs = ${stage.nowMs + 60_000}`,
  ]);
  await stage.dispatch();
  process.distributor.wake();
  await untilIdle(process);
  assert.deepEqual(await stage.counts(), { pending: 1 });
  stage.nowMs += 60_000;
  process.distributor.wake();
  await until(async () => (await stage.counts())["delivered"] === 1);
});

test("both secrets sign until the old one has expired", async (t) => {
  const stage = await openStage(t);
  const id = await stage.subscribe();
  const newer = formatSigningSecret(new Uint8Array(32).fill(9));
  await stage.database.write([
    sql`UPDATE subscriptions SET oldSecret = secret, secret = ${SEAL.encrypt(newer, id)},
      oldSecretUntilMs = ${START_MS + 1000} WHERE id = ${id}`,
  ]);
  const process = stage.startProcess({ respond: () => 204 });
  for (const [afterMs, secrets] of [[999, [newer, SECRET]], [1, [newer]]] as const) {
    stage.nowMs += afterMs;
    await stage.dispatch();
    process.distributor.wake();
    await untilIdle(process);
    assert.deepEqual(process.begun.at(-1)?.secrets, secrets);
  }
});
