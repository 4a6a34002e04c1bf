import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { createMemoryDatabase } from "../../src/database/memory.ts";
import {
  acquireRqlitePresence,
  isAnybodyOnCluster,
  RQLITE_PROCESSES,
} from "../../src/database/rqlite_presence.ts";
import { sql, type Sql } from "../../src/database/sql.ts";

test("only a process whose heartbeat stops for 5 seconds is released, and once", async (t) => {
  const { database, present, pass } = await stage(t);
  const one = await present("one");
  await present("two");
  await database.write([sql`INSERT INTO processes (name, beat) VALUES ('dead', 7)`]);
  const released: string[] = [];
  const look = () => one.forEnded(async (name) => void released.push(name));
  await pass(5);
  await look();
  assert.deepEqual(released, []);
  await pass(2);
  await look();
  await look();
  assert.deepEqual(released, ["dead"]);
  assert.deepEqual(await names(database), ["one", "two"]);
});

test("after an outage a process waits 5 seconds before it releases another", async (t) => {
  const { database, present, pass, outage } = await stage(t);
  const one = await present("one");
  await database.write([sql`INSERT INTO processes (name, beat) VALUES ('slow', 7)`]);
  await pass(2);
  outage(true);
  await pass(60);
  outage(false);
  await pass(2);
  await one.forEnded((name) => assert.fail(name));
  await database.write([sql`UPDATE processes SET beat = 8 WHERE name = 'slow'`]);
  await pass(5);
  await one.forEnded((name) => assert.fail(name));
});

test("a release that fails is tried again", async (t) => {
  const { database, present, pass } = await stage(t);
  const one = await present("one");
  await database.write([sql`INSERT INTO processes (name, beat) VALUES ('dead', 7)`]);
  await pass(7);
  await assert.rejects(one.forEnded(() => Promise.reject(new Error("no"))), /no/);
  await pass(1);
  const released: string[] = [];
  await one.forEnded(async (name) => void released.push(name));
  assert.deepEqual(released, ["dead"]);
});

test("close() removes the row of the process at once and for good", async (t) => {
  const { database, present, pass } = await stage(t);
  const one = await present("one");
  await present("two");
  await one.close();
  assert.deepEqual(await names(database), ["two"]);
  await pass(2);
  assert.deepEqual(await names(database), ["two"]);
});

test("close() removes the row even if a heartbeat is in flight", async (t) => {
  const { database, present, pass, hold } = await stage(t);
  const one = await present("one");
  const release = hold();
  await pass(1);
  const closed = one.close();
  await pass(1);
  release();
  await closed;
  assert.deepEqual(await names(database), []);
});

test("no heartbeat is sent until a slow one is done", async (t) => {
  const { database, present, pass, hold } = await stage(t);
  await present("one");
  const release = hold();
  await pass(3);
  release();
  await pass(2);
  const rows = await database.query<{ beat: number }>(sql`SELECT beat FROM processes`);
  assert.deepEqual(rows, [{ beat: 3 }], "the first one, the slow one, and one after it");
});

test("close() during an outage succeeds and leaves the row", async (t) => {
  const { database, present, outage } = await stage(t);
  const one = await present("one");
  outage(true);
  await one.close();
  assert.deepEqual(await names(database), ["one"]);
});

test("acquireRqlitePresence() rejects during an outage", async (t) => {
  const { present, outage } = await stage(t);
  outage(true);
  await assert.rejects(present("one"), UnavailableError);
});

test("isAnybodyOnCluster() is true if a heartbeat rises or a process starts", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const database = createMemoryDatabase();
  const isAnybody = async (meanwhile: Sql[] = []) => {
    const asked = isAnybodyOnCluster(database);
    await new Promise((resolve) => setImmediate(resolve));
    await database.write(meanwhile);
    t.mock.timers.tick(2_000);
    return asked;
  };
  assert.equal(await isAnybody(), false, "before the first start");
  await database.write([RQLITE_PROCESSES]);
  assert.equal(await isAnybody(), false, "after all have closed");
  await database.write([sql`INSERT INTO processes (name, beat) VALUES ('a', 7), ('b', 8)`]);
  assert.equal(await isAnybody(), false, "after all have died");
  assert.equal(await isAnybody([sql`UPDATE processes SET beat = 8 WHERE name = 'a'`]), true);
  assert.equal(await isAnybody([sql`INSERT INTO processes (name, beat) VALUES ('c', 7)`]), true);
});

async function stage(t: TestContext) {
  const memory = createMemoryDatabase();
  await memory.write([RQLITE_PROCESSES]);
  let isOut = false;
  let held: PromiseWithResolvers<void> | undefined;
  let elapsedMs = 0;
  t.mock.timers.enable({ apis: ["setInterval"] });
  const database: Database = {
    ...memory,
    async write(batch) {
      if (isOut) throw new UnavailableError("out");
      const wait = held;
      held = undefined;
      await wait?.promise;
      return memory.write(batch);
    },
  };
  return {
    database: memory,
    outage(begins: boolean): void {
      isOut = begins;
    },
    /** Makes the next write wait until the returned function is called. */
    hold(): () => void {
      held = Promise.withResolvers();
      return held.resolve;
    },
    present: (name: string) => acquireRqlitePresence(database, name, () => elapsedMs),
    async pass(seconds: number): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        elapsedMs += 1_000;
        t.mock.timers.tick(1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

async function names(database: Database): Promise<string[]> {
  const select = sql`SELECT name FROM processes ORDER BY name`;
  const rows = await database.query<{ name: string }>(select);
  return rows.map(({ name }) => name);
}
