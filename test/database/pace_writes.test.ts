import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { paceWrites } from "../../src/database/pace_writes.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { resendDeliveries } from "../../src/store/resends.ts";
import { openDatabase } from "../helpers/database.ts";

/** Makes a database whose writes take these times, and collects the pauses between them. */
function open(t: TestContext, writeMs: readonly number[], isLocked = false, times?: number) {
  const time = { nowMs: 1_000 };
  let isPausing = false;
  const pauses: number[] = [];
  const stored = openDatabase(t);
  let writes = 0;
  const slow: Database = {
    ...stored,
    write(statements) {
      assert.equal(isPausing, false);
      time.nowMs += writeMs[writes++] ?? 0;
      return isLocked ? Promise.reject(new UnavailableError("locked")) : stored.write(statements);
    },
  };
  const sleep = async (ms: number) => {
    pauses.push(ms);
    isPausing = true;
    await new Promise((resolve) => setImmediate(resolve));
    isPausing = false;
    time.nowMs += ms;
  };
  const database = paceWrites(slow, times, () => time.nowMs, sleep);
  return { database, pauses, time };
}

const BATCH = resendDeliveries(["d1"], 1_000);

test("a write waits as long as the write before it took", async (t) => {
  const { database, pauses } = open(t, [40, 7, 1]);
  for (let writes = 0; writes < 3; writes++) await database.write(BATCH);
  assert.deepEqual(pauses, [40, 7]);
});

test("a write waits `times` as long as the write before it took", async (t) => {
  const { database, pauses } = open(t, [40, 7, 1], false, 3);
  for (let writes = 0; writes < 3; writes++) await database.write(BATCH);
  assert.deepEqual(pauses, [120, 21]);
});

test("the time since the last write shortens the pause", async (t) => {
  const { database, pauses, time } = open(t, [40, 40, 40]);
  await database.write(BATCH);
  time.nowMs += 15;
  await database.write(BATCH);
  time.nowMs += 40;
  await database.write(BATCH);
  assert.deepEqual(pauses, [25]);
});

test("a write that failed causes a pause, too", async (t) => {
  const { database, pauses } = open(t, [800, 800], true);
  await assert.rejects(database.write(BATCH), UnavailableError);
  await assert.rejects(database.write(BATCH), UnavailableError);
  assert.deepEqual(pauses, [800]);
});
