import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { seriesOperation } from "../../src/api/backend/series.ts";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { createFigureCounter, dropFigures, listFigures } from "../../src/store/figures.ts";
import { AT_MOST } from "../../src/store/batch.ts";
import { makeFolder, openDatabase, openDatabaseAt } from "../helpers/database.ts";
import { backendCaller, sampleRequest } from "../helpers/http_request.ts";
import { numbers } from "../helpers/numbers.ts";

const HOUR_MS = 3_600_000;
const NOON_MS = Date.UTC(2026, 5, 1, 12);

test("nothing is written if nothing was counted", async (t) => {
  const database = openDatabase(t);
  let writes = 0;
  const write: typeof database.write = (batch) => {
    writes++;
    return database.write(batch);
  };
  const figures = createFigureCounter({ write }, () => NOON_MS);
  await figures.flush();
  assert.equal(writes, 0);
  figures.add("deliveries", true);
  await figures.flush();
  await figures.flush();
  assert.equal(writes, 1);
});

test("counts before and after the full hour belong to their own minute and hour", async (t) => {
  const database = openDatabase(t);
  let nowMs = NOON_MS - 1;
  const figures = createFigureCounter(database, () => nowMs);
  figures.add("deliveries", true, false, 10);
  nowMs = NOON_MS;
  figures.add("deliveries", false, true, 20);
  figures.add("s1", false, false, 20);
  await figures.flush();
  nowMs = NOON_MS + 61_000;
  figures.add("deliveries", true, false, 30);
  await figures.flush();
  const read = async (step: "minute" | "hour") =>
    (await listFigures(database, "deliveries", step, 0, NOON_MS + HOUR_MS))
      .map(({ atMs, figures: [ok, bad, failed, ms] }) => [atMs - NOON_MS, ok, bad, failed, ms]);
  assert.deepEqual(await read("minute"), [
    [-60_000, 1, 0, 0, 10],
    [0, 0, 1, 1, 20],
    [60_000, 1, 0, 0, 30],
  ]);
  assert.deepEqual(await read("hour"), [[-HOUR_MS, 1, 0, 0, 10], [0, 1, 1, 1, 50]]);
  assert.equal((await listFigures(database, "s1", "hour", 0, NOON_MS + 1)).length, 1);
});

test("two processes add to the same minute, at the same time", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const first = openDatabase(t, path);
  await first.query(sql`SELECT 1`);
  const second = openDatabaseAt(path);
  t.after(() => second.close());
  const counters = [first, second].map((each) => createFigureCounter(each, () => NOON_MS));
  for (let round = 0; round < 20; round++) {
    for (const counter of counters) counter.add("tokens", true, false, round);
    await Promise.all(counters.map((counter) => counter.flush()));
  }
  const [minute] = await listFigures(first, "tokens", "minute", 0, NOON_MS + 1);
  assert.deepEqual(minute?.figures.slice(0, 4), [40, 0, 0, 380]);
});

test("refused counts are stored later; counts of unknown outcome are not", async (t) => {
  const database = openDatabase(t);
  let error: Error | undefined = new UnavailableError("full");
  const write: typeof database.write = (batch) =>
    error ? Promise.reject(error) : database.write(batch);
  const figures = createFigureCounter({ write }, () => NOON_MS);
  figures.add("logins", true);
  await assert.rejects(figures.flush(), UnavailableError);
  figures.add("logins", false);
  error = new OutcomeUnknownError("perhaps");
  await assert.rejects(figures.flush(), OutcomeUnknownError);
  figures.add("logins", false, true);
  error = new UnavailableError("full");
  for (let second = 0; second < 3; second++) await assert.rejects(figures.flush());
  error = undefined;
  await figures.flush();
  const [minute] = await listFigures(database, "logins", "minute", 0, NOON_MS + 1);
  assert.deepEqual(minute?.figures.slice(0, 3), [0, 1, 1]);
});

test("counts of 60 minutes at most are kept while they cannot be stored", async (t) => {
  const database = openDatabase(t);
  let refuses = true;
  const write: typeof database.write = (batch) =>
    refuses ? Promise.reject(new UnavailableError("full")) : database.write(batch);
  let nowMs = NOON_MS;
  const figures = createFigureCounter({ write }, () => nowMs);
  for (let minute = 0; minute < 100; minute++, nowMs += 60_000) {
    figures.add("logins", true);
    await assert.rejects(figures.flush());
  }
  refuses = false;
  await figures.flush();
  const rows = await listFigures(database, "logins", "minute", 0, nowMs);
  assert.equal(rows.length, 60);
  assert.equal(rows.at(-1)?.atMs, nowMs - 60_000);
});

test("minutes are kept for two days, hours for 400", async (t) => {
  const database = openDatabase(t);
  const figures = createFigureCounter(database, () => NOON_MS);
  figures.add("deliveries", true);
  await figures.flush();
  const left = async (hours: number) => {
    await database.write(dropFigures(NOON_MS + hours * HOUR_MS, AT_MOST));
    const rows = await database.query<{ stepMs: number }>(sql`SELECT stepMs FROM figures`);
    return rows.map(({ stepMs }) => stepMs).sort((one, other) => one - other);
  };
  assert.deepEqual(await left(48), [60_000, HOUR_MS]);
  assert.deepEqual(await left(49), [HOUR_MS]);
  assert.deepEqual(await left(400 * 24), [HOUR_MS]);
  assert.deepEqual(await left(400 * 24 + 1), []);
});

test("listFigures() reads the first 1,000 intervals of a series", async (t) => {
  const database = openDatabase(t);
  const figures = createFigureCounter(database, () => NOON_MS);
  figures.add("deliveries", true);
  await figures.flush();
  await database.write([sql`${numbers(1500)}
    INSERT INTO figures (stepMs, key, atMs, counts)
    SELECT stepMs, key, atMs + i * 60000, counts FROM n, figures WHERE stepMs = 60000`]);
  const endMs = NOON_MS + 48 * HOUR_MS;
  const found = await listFigures(database, "deliveries", "minute", NOON_MS, endMs);
  assert.deepEqual([found.length, found[0]?.atMs], [1_000, NOON_MS]);
});

test("a series has only closed intervals, each from two seconds after its end", async (t) => {
  const database = openDatabase(t);
  let nowMs = NOON_MS;
  const figures = createFigureCounter(database, () => nowMs);
  for (const [minute, ms] of [[0, 5], [1, 10], [2, 25]] as const) {
    nowMs = NOON_MS + minute * 60_000;
    figures.add("deliveries", true, false, ms);
  }
  await figures.flush();
  const series = seriesOperation({ heavy: database, now: () => nowMs });
  const read = async (more: object = {}) => {
    const query = { of: "deliveries", step: "minute", ...more };
    const response = await series.handle({
      request: sampleRequest(),
      params: {},
      caller: backendCaller(nowMs),
      query,
      body: undefined,
      authenticateAgain: () => Promise.resolve(),
    });
    const { items }: { items: { at: string }[] } = JSON.parse(String(response.body));
    return items.map(({ at }) => (Date.parse(at) - NOON_MS) / 60_000);
  };
  nowMs = NOON_MS + 3 * 60_000 + 1_999;
  assert.deepEqual(await read(), [0, 1]);
  nowMs = NOON_MS + 3 * 60_000 + 2_000;
  assert.deepEqual(await read(), [0, 1, 2]);
  assert.deepEqual(await read({ from: NOON_MS + 1 }), [1, 2]);
  assert.deepEqual(await read({ to: NOON_MS + 119_999 }), [0]);
  assert.deepEqual(await read({ subscription: "s1" }), []);
  assert.deepEqual(await read({ step: "hour" }), []);
  nowMs = NOON_MS + HOUR_MS + 2_000;
  assert.deepEqual(await read({ step: "hour" }), [0]);
});
