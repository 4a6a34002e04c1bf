import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../src/base/log.ts";
import { messageOf } from "../../src/base/message_of.ts";
import { type Database, type Refusal, UnavailableError } from "../../src/database/database.ts";
import { createMemoryDatabase } from "../../src/database/memory.ts";
import { findValue } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import { createWriteWatch } from "../../src/database/write_watch.ts";

/** A watch on a database that refuses on request, by a clock that the test sets. */
function openStage(other: Partial<Database> = {}) {
  const stage = { nowMs: 0, refusal: undefined as Refusal | undefined, writes: 0 };
  const lines: string[] = [];
  const note = (level: string): Log["info"] => (msg, fields) =>
    void lines.push([`${level} ${msg}`, fields?.["reason"], messageOf(fields?.["error"] ?? "")]
      .filter(Boolean).join(" "));
  const [debug, info, warn, error] = [note("debug"), note("info"), note("warn"), note("error")];
  const log = { debug, info, warn, error };
  const watch = createWriteWatch(log, () => stage.nowMs);
  const database: Database = {
    query: () => Promise.resolve([]),
    write() {
      stage.writes++;
      watch.observe(stage.refusal);
      if (stage.refusal === undefined) return Promise.resolve([1]);
      return Promise.reject(new UnavailableError(`It is ${stage.refusal}`));
    },
    close: () => Promise.resolve(),
    ...other,
  };
  const look = async (ms: number) => {
    stage.nowMs = ms;
    await watch.look(database);
  };
  return { stage, lines, watch, look };
}

test("while others write the watch writes nothing", async () => {
  const { stage, watch, look } = openStage();
  for (let ms = 0; ms < 60_000; ms += 1_000) {
    stage.nowMs = ms;
    watch.observe(undefined);
    await look(ms);
  }
  assert.equal(stage.writes, 0);
  assert.equal(watch.state(), "ok");
});

test("while nobody writes the watch writes every ten seconds", async () => {
  const { stage, look } = openStage();
  for (let ms = 0; ms < 60_000; ms += 1_000) await look(ms);
  assert.equal(stage.writes, 5);
});

test("the watch writes another value each time: SQLite skips an equal one", async () => {
  const memory = createMemoryDatabase();
  const { look } = openStage({ write: memory.write });
  const values = new Set<unknown>();
  for (const ms of [10_000, 20_000, 30_000]) {
    await look(ms);
    values.add(await findValue(memory, sql`SELECT value FROM settings`));
  }
  assert.equal(values.size, 3);
});

test("damage that is found during the probe of a full disk is not forgotten", async () => {
  const { watch, look } = openStage({
    async write() {
      watch.observe("damaged");
      return [1];
    },
  });
  watch.observe("full");
  await look(1_000);
  assert.equal(watch.state(), "damaged");
});

test("after two seconds of refused writes the state is the reason, logged once", async () => {
  const { stage, lines, watch, look } = openStage();
  stage.refusal = "full";
  watch.observe("full");
  await look(2_000);
  assert.equal(watch.state(), "ok");
  await look(2_001);
  await look(3_000);
  assert.equal(watch.state(), "full");
  stage.refusal = undefined;
  await look(4_000);
  assert.equal(watch.state(), "ok");
  const refused = "error writes are refused full It is full";
  assert.deepEqual(lines, [refused, "info writes are accepted again"]);
});

test("a short refusal does not change the state and is not logged", async () => {
  const { stage, lines, watch, look } = openStage();
  watch.observe("locked");
  await look(1_000);
  stage.nowMs = 5_000;
  watch.observe("locked");
  assert.equal(watch.state(), "ok");
  assert.deepEqual(lines, []);
});

test("a disk that accepts small writes stays full until it accepts a larger one", async () => {
  const sizes: (number | undefined)[] = [];
  let freeBytes = 1_000;
  const { stage, lines, watch, look } = openStage({
    write([probe]) {
      const bytes = probe?.params.findLast((each) => typeof each === "number") ?? 0;
      sizes.push(bytes);
      watch.observe(bytes > freeBytes ? "full" : undefined);
      const error = new UnavailableError("no room");
      return bytes > freeBytes ? Promise.reject(error) : Promise.resolve([1]);
    },
  });
  watch.observe("full");
  for (let ms = 1_000; ms <= 5_000; ms += 1_000) {
    stage.nowMs = ms;
    watch.observe(undefined); // somebody else's small write
    await look(ms);
  }
  assert.equal(watch.state(), "full");
  freeBytes = 100_000;
  await look(6_000);
  assert.equal(watch.state(), "ok");
  await look(16_000);
  assert.deepEqual(lines, [
    "error writes are refused full no room",
    "info writes are accepted again",
  ]);
  assert.deepEqual(sizes, [32_768, 32_768, 32_768, 32_768, 32_768, 32_768, 0]);
});

test("a replaced file is reported at once", async () => {
  const { stage, lines, watch, look } = openStage();
  stage.refusal = "replaced";
  await look(10_000);
  assert.equal(watch.state(), "replaced");
  assert.deepEqual(lines, ["error writes are refused replaced It is replaced"]);
});

test("damage is reported at once, and stays although other writes succeed", async () => {
  const { lines, watch, look } = openStage();
  watch.observe("damaged");
  await look(1_000);
  await look(20_000);
  assert.equal(watch.state(), "damaged");
  assert.deepEqual(lines, ["error writes are refused damaged"]);
});

test("look() rejects with an error that is not an UnavailableError", async () => {
  const { look } = openStage({ write: () => Promise.reject(new Error("no such table")) });
  await assert.rejects(look(10_000), /no such table/);
});
