import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type DeliveryWorker, createDeliveryWorker } from "../../src/delivery/worker.ts";
import type { ServiceMetrics } from "../../src/app/metrics.ts";
import type { SelfTest } from "../../src/outbound/egress.ts";
import { newId } from "../../src/base/id.ts";
import type { Log } from "../../src/base/log.ts";
import { createSeal } from "../../src/base/seal.ts";
import type { Config } from "../../src/config.ts";
import { toFiguresRecord } from "../../src/event/figures.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import { type Database } from "../../src/database/database.ts";
import { createEngine, type OpenDatabase } from "../../src/database/engine.ts";
import { sql } from "../../src/database/sql.ts";
import { insertEvent } from "../../src/store/events.ts";
import { listFigures } from "../../src/store/figures.ts";
import { configOf } from "../helpers/config.ts";
import { addUser, makeFolder, openSqliteFile } from "../helpers/database.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { runRqlited } from "../helpers/rqlited.ts";
import { spawnReceiver } from "../helpers/receiver_process.ts";
import { noteThreads } from "../helpers/threads.ts";
import { until } from "../helpers/until.ts";

interface Stage {
  readonly worker: DeliveryWorker;
  readonly started: Promise<SelfTest>;
  readonly config: Config;
  readonly folder: string;
  readonly database: Database;
  /** Lines of the log: level, message and fields. */
  readonly logged: unknown[][];
  readonly attempts: [string, number][];
}

type Opened = Pick<OpenDatabase, keyof Database | "connect">;

function open(t: TestContext, more: Record<string, string> = {}, opened?: Opened): Stage {
  const folder = makeFolder(t);
  const databasePath = join(folder, "gatepost.db");
  const config = configOf({
    GATEPOST_DATABASE: databasePath,
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    GATEPOST_RESEND_DELAYS: "none",
    ...more,
  });
  const database = opened ?? openSqliteFile(t, databasePath);
  const logged: unknown[][] = [];
  const attempts: [string, number][] = [];
  const at = (level: string): Log["info"] => (...line) => void logged.push([level, ...line]);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const metrics: ServiceMetrics = {
    count() {},
    observe: (_name, [outcome = ""], seconds) => void attempts.push([outcome, seconds]),
    format: () => Promise.resolve(""),
  };
  const { connect } = database;
  const worker = createDeliveryWorker({
    name: "c1", config, log, metrics, connect, receivers: undefined,
  });
  t.after(() => worker.stop(0));
  return { worker, started: worker.start(), config, folder, database, logged, attempts };
}

async function subscribe({ database, config }: Stage, endpoint: string): Promise<void> {
  const id = newId("s", Date.now());
  const secret = formatSigningSecret(new Uint8Array(32).fill(7));
  const user = await addUser(database);
  const encrypted = createSeal(...config.secretKeys ?? []).encrypt(secret, id);
  await database.write([sql`
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
    VALUES (${id}, ${user}, 'login', 'e', ${endpoint}, 'active', ${encrypted}, ${Date.now()})`]);
}

async function dispatch({ database, worker }: Stage, count: number): Promise<void> {
  const createdAtMs = Date.now();
  await database.write(Array.from({ length: count }, (_, index) =>
    insertEvent({
      id: newId("e", createdAtMs),
      name: "e",
      json: String(index),
      subject: undefined,
      createdAtMs,
    })
  ));
  worker.wake();
}

const countDelivered = async (database: Database) => {
  const rows = await database.query(sql`SELECT 1 FROM deliveries WHERE status = 'delivered'`);
  return rows.length;
};

test("the worker delivers dispatched events and counts each attempt", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const stage = open(t, { GATEPOST_SECRET_KEY: Buffer.alloc(32, 9).toString("base64") });
  await subscribe(stage, `${receiver.url}/a`);
  assert.deepEqual(await stage.started, { ok: true });
  await dispatch(stage, 20);
  await receiver.waitFor(20, 10_000, "/a");
  await until(async () => await countDelivered(stage.database) === 20);
  await until(() => stage.attempts.length === 20);
  for (const [outcome, seconds] of stage.attempts) {
    assert.equal(outcome, "success");
    assert.ok(seconds >= 0 && seconds < 10);
  }
  await until(() => stage.worker.report().inFlight === 0);
  assert.ok(stage.worker.report().quietMs < 10_000);
  assert.equal(receiver.count(), 20, "each once, however often it is woken");
});

/** Opens a database with an event that was dispatched at this time and has not been fanned out. */
async function openLate(t: TestContext, createdAtMs: number) {
  const path = join(makeFolder(t), "late.db");
  const opened = openSqliteFile(t, path);
  const id = `e${createdAtMs.toString(36).padStart(9, "0")}${"0".repeat(15)}`; // base/id.ts
  const event = { id, name: "e", json: "1", subject: undefined, createdAtMs };
  await opened.write([insertEvent(event)]);
  return { path, opened };
}

for (const [what, lateMs] of [["late", 3_600_000], ["ahead of the clock", -3_600_000]] as const) {
  test(`an event that is ${what} at the start is counted with its delay`, async (t) => {
    const dispatchedAtMs = Date.now() - lateMs;
    const { path, opened } = await openLate(t, dispatchedAtMs);
    const { database, started } = open(t, { GATEPOST_DATABASE: path }, opened);
    await started;
    let figures: Awaited<ReturnType<typeof listFigures>> = [];
    await until(async () => {
      figures = await listFigures(database, "overdue", "hour", 0, Date.now());
      return figures.length > 0;
    });
    const { ok, bad, mean_ms } = toFiguresRecord(figures[0]?.figures ?? []);
    assert.deepEqual([ok, bad], [1, 0]);
    const leastMs = Math.max(0, lateMs);
    assert.ok(mean_ms !== null && mean_ms >= leastMs && mean_ms < leastMs + 100_000, `${mean_ms}`);
  });
}

test("figures that a locked database refuses are logged once, not at each try", async (t) => {
  const { path, opened } = await openLate(t, Date.now() - 3_600_000);
  using other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  const { logged, started } = open(t, { GATEPOST_DATABASE: path }, opened);
  const lines = () => logged.filter(([, line]) => line === "figures cannot be stored").length;
  await until(() => lines() > 0);
  await sleep(4_000);
  assert.equal(lines(), 1);
  other.exec("ROLLBACK");
  await started;
});

test("on a cluster the worker delivers, and is listed in processes until it stops", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const cluster = await runRqlited();
  const nodes = cluster.nodes.map(({ url }) => new URL(url).host);
  const address = { kind: "rqlite", nodes, isTls: false } as const;
  const engine = await createEngine({ database: address, databaseCredentials: undefined });
  const database = await engine.open();
  const stage = open(t, { GATEPOST_DATABASE: cluster.address }, database);
  t.after(() => database.close());
  t.after(() => cluster.stop()); // after the worker
  await subscribe(stage, `${receiver.url}/a`);
  assert.deepEqual(await stage.started, { ok: true });
  await dispatch(stage, 5);
  await until(async () => await countDelivered(database) === 5);
  const present = sql`SELECT name FROM processes`;
  assert.deepEqual(await database.query(present), [{ name: "c1" }]);
  await stage.worker.stop(1_000);
  assert.deepEqual(await database.query(present), []);
});

test("on a cluster nothing is taken over, or called late, while the clock is wrong", async (t) => {
  const cluster = await runRqlited();
  const [{ url } = { url: "" }] = cluster.nodes;
  const address = { kind: "rqlite", nodes: [new URL(url).host], isTls: false } as const;
  const engine = await createEngine({ database: address, databaseCredentials: undefined });
  const database = await engine.open();
  let aheadSeconds = -3600;
  // A proxy between the worker and the node, which changes the time of the node's clock.
  const between = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    const { method = "", headers: { "content-type": type = "" } } = incoming;
    const response = await fetch(url + incoming.url, {
      method,
      headers: { "Content-Type": type },
      ...method === "POST" && { body },
    });
    const content = await response.text();
    const isTime = incoming.url?.includes("unixepoch");
    // A whole second has no fraction.
    const change = (seconds: string) => String(Number(seconds) + aheadSeconds);
    outgoing.writeHead(response.status, { Date: response.headers.get("date") ?? "" })
      .end(isTime ? content.replace(/(?<="values":\[\[)[\d.]+/, change) : content);
  });
  await once(between.listen(0, "127.0.0.1"), "listening");
  const bound = between.address();
  assert.ok(typeof bound === "object" && bound !== null);
  const stage = open(t, { GATEPOST_DATABASE: `rqlite://127.0.0.1:${bound.port}` }, database);
  t.after(() => database.close());
  t.after(() => void between.close().closeAllConnections());
  t.after(() => cluster.stop());
  await subscribe(stage, "http://127.0.0.1:9/");
  const leaseMs = Date.now() + 3_600_000;
  await database.write([
    sql`INSERT INTO processes (name, beat) VALUES ('c9', 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, claim)
      VALUES ('d1', 'e1', 1, 'pending', ${leaseMs}, 'c9'),
        ('d2', 'e2', 1, 'pending', ${leaseMs}, 'c1')`, // claimed by a dead thread of this process
    insertEvent({
      id: newId("e", Date.now()), name: "x", json: "1", subject: undefined, createdAtMs: 0,
    }),
  ]);
  await stage.started;
  const look = async () => {
    await stage.worker.look();
    return database.query<{ claim: string | null }>(
      sql`SELECT claim, dueAtMs FROM deliveries ORDER BY id`,
    );
  };
  for (const endMs = Date.now() + 8_000; Date.now() < endMs; await sleep(500)) {
    assert.deepEqual(await look(), [
      { claim: "c9", dueAtMs: leaseMs },
      { claim: "c1", dueAtMs: leaseMs },
    ]);
  }
  assert.deepEqual(await listFigures(database, "overdue", "hour", 0, Date.now()), []);
  aheadSeconds = 0;
  await until(async () => (await look())[0]?.claim !== "c9");
});

test("a failed attempt is counted as a failure, and callbacks in flight are counted", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  receiver.react("/a", { kind: "answer", status: 500, delayMs: 600 });
  const stage = open(t);
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await dispatch(stage, 1);
  await until(() => stage.worker.report().inFlight === 1);
  await until(() => stage.attempts.length === 1);
  assert.equal(stage.attempts[0]?.[0], "failure");
});

test("look() finds a dispatched event without a wake, and resolves", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const stage = open(t);
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await dispatch({ ...stage, worker: { ...stage.worker, wake() {} } }, 1);
  await stage.worker.look();
  await receiver.waitFor(1, 10_000, "/a");
});

test("stop() awaits the callback in flight and leaves no lock file behind", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  receiver.react("/a", { kind: "answer", delayMs: 300 });
  const stage = open(t);
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await dispatch(stage, 1);
  await receiver.waitFor(1, 10_000, "/a");
  await stage.worker.stop(5_000);
  assert.equal(await countDelivered(stage.database), 1, "recorded before the end");
  const files = readdirSync(stage.folder);
  assert.deepEqual(files.filter((name) => name.includes("-process-")), []);
});

test("the state is on, not stuck, during and after the start", async (t) => {
  const stage = open(t);
  assert.equal(stage.worker.state(), "on");
  await stage.started;
  assert.equal(stage.worker.state(), "on");
});

test("the worker can be stopped while it starts, and twice", async (t) => {
  const { worker } = open(t);
  await worker.stop(1_000);
  await worker.stop(1_000);
});

test("what the thread logs is written by the given log, with the error", async (t) => {
  const stage = open(t);
  await stage.started;
  await stage.database.write([sql`ALTER TABLE events RENAME TO gone`]);
  stage.worker.wake();
  await until(() => stage.logged.length > 0);
  const [level, msg, fields] = stage.logged[0] ?? [];
  assert.equal(level, "warn");
  assert.match(String(msg), /distribution/);
  assert.match(JSON.stringify(fields), /"error":\{"name":"\w*Error","message":".*events/);
});

test("if the thread dies, another one starts and delivers what it had claimed", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  receiver.react("/a", { kind: "hang" }, { kind: "answer" });
  const threads = noteThreads(t);
  const stage = open(t);
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await dispatch(stage, 1);
  await receiver.waitFor(1, 10_000, "/a");
  await threads.at(-1)?.terminate(); // the one before is the database's
  await until(() => stage.worker.report().quietMs === Infinity);
  assert.equal(stage.worker.state(), "stuck");
  const diedAtMs = Date.now();
  await stage.worker.look(); // does not wait for the dead thread
  await until(async () => await countDelivered(stage.database) === 1);
  assert.ok(Date.now() - diedAtMs < 8_000, "long before its lease ends");
  await until(() => stage.worker.report().quietMs < Infinity);
  assert.deepEqual(stage.logged.filter(([level]) => level === "error").length, 1);
});

test("callbacks go on, one after the other, while the main thread computes", async (t) => {
  const receiver = await spawnReceiver();
  t.after(() => receiver.close());
  const stage = open(t, { GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION: "1" });
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await dispatch(stage, 20);
  const untilMs = performance.now() + 1_500;
  while (performance.now() < untilMs);
  assert.equal(await receiver.count("/a"), 20);
});

test("if the database's writer dies, the delivery thread restarts with a new one", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const threads = noteThreads(t);
  const stage = open(t);
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await threads[0]?.terminate();
  await until(() => stage.worker.report().quietMs === Infinity);
  assert.equal(stage.worker.state(), "stuck");
  await dispatch(stage, 1);
  await until(async () => await countDelivered(stage.database) === 1);
});

test("a restarted thread sends nothing before its address guard has passed its test", async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const threads = noteThreads(t);
  const stage = open(t);
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  await threads.at(-1)?.terminate();
  await until(() => stage.worker.report().quietMs === Infinity);
  assert.equal(stage.worker.state(), "stuck");
  await dispatch(stage, 1);
  const count = threads.length;
  await until(() => threads.length > count);
  const tested = Promise.withResolvers<number>();
  threads.at(-1)?.on("message", ({ kind }) => {
    if (kind === "started") tested.resolve(receiver.count());
  });
  await stage.worker.look(); // as the interval does
  assert.equal(await tested.promise, 0);
  await receiver.waitFor(1, 10_000, "/a");
});

test("a thread that dies at each start is restarted ever more rarely, until stop()", async (t) => {
  const stage = open(t, { GATEPOST_DATABASE: join(makeFolder(t), "gone", "gatepost.db") });
  const died = () => stage.logged.filter(([level]) => level === "error");
  await until(() => died().length === 2);
  const fields = died().map(([, , more]) => Object(more));
  assert.deepEqual(fields.map(({ pause_ms }) => pause_ms), [1_000, 2_000]);
  assert.ok(fields[0].error instanceof Error);
  assert.equal(stage.worker.report().quietMs, Infinity);
  await stage.worker.stop(1_000);
  await sleep(2_200);
  assert.equal(died().length, 2);
});
