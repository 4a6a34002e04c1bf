import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { createMemoryDatabase } from "../../src/database/memory.ts";
import { acquireRqlitePresence, RQLITE_PROCESSES } from "../../src/database/rqlite_presence.ts";
import { sql } from "../../src/database/sql.ts";

test("a process whose beat stands still for 5 seconds is released once, no other is", async (t) => {
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

test("who cannot reach the database for a while takes nobody for dead after it", async (t) => {
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

test("what cannot be released is tried again, and its process known until then", async (t) => {
  const { database, present, pass } = await stage(t);
  const one = await present("one");
  await database.write([sql`INSERT INTO processes (name, beat) VALUES ('dead', 7)`]);
  await pass(7);
  await assert.rejects(one.forEnded(() => Promise.reject(new Error("no"))), /no/);
  const released: string[] = [];
  await one.forEnded(async (name) => void released.push(name));
  assert.deepEqual(released, ["dead"]);
});

test("one that closes is gone at once", async (t) => {
  const { database, present } = await stage(t);
  const one = await present("one");
  await present("two");
  await one.close();
  assert.deepEqual(await names(database), ["two"]);
});

async function stage(t: TestContext) {
  const memory = createMemoryDatabase();
  await memory.write([RQLITE_PROCESSES]);
  let isOut = false;
  let elapsedMs = 0;
  t.mock.timers.enable({ apis: ["setInterval"] });
  const database: Database = {
    ...memory,
    write: (batch) => isOut ? Promise.reject(new UnavailableError("out")) : memory.write(batch),
  };
  return {
    database: memory,
    outage(begins: boolean): void {
      isOut = begins;
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
