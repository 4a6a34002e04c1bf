import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { idBound } from "../../src/base/id.ts";
import type { Database } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { purge, type PurgeProgress } from "../../src/store/purge.ts";
import { openDatabase } from "../helpers/database.ts";
import { NEVER } from "../helpers/never.ts";
import { numbers } from "../helpers/numbers.ts";
import { addDelivered, DAY_MS, NOW_MS, RETENTION } from "./purge_stage.ts";

/** How many rows that stay one purge looks at, and how many in one query. */
const [PER_PURGE, BATCH] = [20_000, 500];

/** A database that records the queries by which the purge reads delivered deliveries. */
function watch(t: TestContext) {
  const stored = openDatabase(t);
  const looks: { after: unknown; rows: number; round: number }[] = [];
  let round = 0;
  let counting = setImmediate(count);
  function count(): void {
    round++;
    counting = setImmediate(count);
  }
  t.after(() => clearImmediate(counting));
  const database: Database = {
    ...stored,
    async query<Row>(statement: Sql) {
      const rows = await stored.query<Row>(statement);
      if (statement.sql.includes("status = 'delivered'")) {
        looks.push({ after: statement.params.at(1), rows: rows.length, round });
      }
      return rows;
    },
  };
  return { database, looks };
}

/** Adds that many codes that have expired. */
async function addCodes(database: Database, count: number): Promise<void> {
  await database.write([sql`${numbers(count)}
    INSERT INTO codes (id, hash, app, user, scopes, redirectUri, untilMs)
    SELECT 'c' || i, x'', 'a1', 'u1', '[]', '', 1 FROM n`]);
}

test("the purge lets other work run between its queries of rows that stay", async (t) => {
  const { database, looks } = watch(t);
  await addDelivered(database, 5 * BATCH, NOW_MS);
  await purge(database, RETENTION, NOW_MS, NEVER);
  assert.ok(looks.length >= 5, `${looks.length} looks`);
  assert.equal(new Set(looks.map(({ round }) => round)).size, looks.length);
});

test("after each write the purge leaves the writer free for as long as it took", async (t) => {
  const stored = openDatabase(t);
  await addCodes(stored, 3 * BATCH);
  const restedMs: number[] = [];
  let endedMs = -Infinity;
  await purge({
    ...stored,
    async write(batch) {
      restedMs.push(performance.now() - endedMs);
      await new Promise((resolve) => setTimeout(resolve, 10));
      const changes = await stored.write(batch);
      endedMs = performance.now();
      return changes;
    },
  }, RETENTION, NOW_MS, NEVER);
  assert.deepEqual(await stored.query(sql`SELECT 1 FROM codes`), []);
  assert.ok(restedMs.length > 3 && restedMs.every((ms) => ms > 8), `${restedMs}`);
});

test("each purge looks at the next 20,000 rows that stay, and then begins again", async (t) => {
  const { database, looks } = watch(t);
  await addDelivered(database, 2 * PER_PURGE + BATCH, NOW_MS);
  const progress: PurgeProgress = new Map();
  const parts: (readonly [first: unknown, rows: number])[] = [];
  for (let purges = 0; purges < 4; purges++) {
    await purge(database, RETENTION, NOW_MS, NEVER, progress);
    const done = looks.splice(0);
    parts.push([done[0]?.after, done.reduce((sum, { rows }) => sum + rows, 0)]);
  }
  assert.deepEqual(parts.map(([, rows]) => rows), [PER_PURGE, PER_PURGE, BATCH, PER_PURGE]);
  const [first, second, third, fourth] = parts.map(([after]) => String(after));
  assert.ok(first === "" && fourth === "", "it begins again after the end");
  assert.ok(second && third && second < third);
});

test("one purge removes all expired deliveries, however many", async (t) => {
  const database = openDatabase(t);
  await addDelivered(database, PER_PURGE + BATCH, NOW_MS - 2 * DAY_MS);
  await purge(database, RETENTION, NOW_MS, NEVER, new Map());
  assert.deepEqual(await database.query(sql`SELECT 1 FROM deliveries`), []);
});

test("a step of the purge removes at most 2 MiB of events, or one larger event", async (t) => {
  const stored = openDatabase(t);
  const addEvents = (daysAgo: number, rows: number, bytes: number) => sql`${numbers(rows)}
    INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      SELECT ${idBound("e", NOW_MS - daysAgo * DAY_MS)} || printf('%06x', i), 'a',
        hex(zeroblob(${bytes / 2})), '[]', 'distributed', 1, 1 FROM n`;
  await stored.write([addEvents(9, 3, 6_000_000), addEvents(8, 1, 18_000_000)]);
  await stored.write([
    addEvents(7, 100, 262_144), // as large as they may be by default
    sql`${numbers(100)} INSERT INTO idempotency_keys
        (id, asked, attempt, leaseUntilMs, untilMs, response)
      SELECT randomblob(32), x'', 'k1', 1, i, hex(zeroblob(131072)) FROM n`,
  ]);
  type Left = Record<"rows" | "data" | "responses", number>;
  const measure = async () => (await stored.query<Left>(sql`
    SELECT count(*) AS rows, total(data) AS data, total(response) AS responses
    FROM (SELECT octet_length(data) AS data, 0 AS response
      FROM events UNION ALL SELECT 0, octet_length(response) FROM idempotency_keys)`))[0];
  const steps: Left[] = [];
  let left = await measure();
  await purge({
    ...stored,
    async write(batch) {
      const changes = await stored.write(batch);
      const now = await measure();
      if (left && now) {
        const [data, responses] = [left.data - now.data, left.responses - now.responses];
        steps.push({ rows: left.rows - now.rows, data, responses });
      }
      left = now;
      return changes;
    },
  }, RETENTION, NOW_MS, NEVER);
  const large = steps.filter(({ rows, data, responses }) =>
    rows > 1 && (data > 2 * 2 ** 20 || responses > 16 * 2 ** 20));
  assert.deepEqual([large, left], [[], { rows: 0, data: 0, responses: 0 }]);
});

test("the purge ends though audit entries are added as fast as it removes them", async (t) => {
  const stored = openDatabase(t);
  const stop = new AbortController();
  let trims = 0;
  await purge({
    ...stored,
    async write(batch) {
      const changes = await stored.write(batch);
      if (!batch[0]?.sql.includes("FROM audit WHERE action")) return changes;
      if (++trims === 20) stop.abort();
      return [50];
    },
  }, RETENTION, NOW_MS, stop.signal);
  assert.equal(trims, 2);
});

test("a purge that is aborted ends after its current batch", async (t) => {
  const stored = openDatabase(t);
  await addDelivered(stored, 3 * BATCH, NOW_MS - 2 * DAY_MS);
  await addCodes(stored, 3 * BATCH);
  for (const [table, left] of [["codes", 2 * BATCH], ["deliveries", 2 * BATCH]] as const) {
    const stopping = new AbortController();
    await purge({
      ...stored,
      async write(batch) {
        const changes = await stored.write(batch);
        const isOfTable = batch.some((each) => each.sql.startsWith(`DELETE FROM ${table} `));
        if (isOfTable && changes[0] === BATCH) stopping.abort();
        return changes;
      },
    }, RETENTION, NOW_MS, stopping.signal);
    const [found] = await stored.query<{ count: number }>(
      { sql: `SELECT count(*) AS count FROM ${table}`, params: [] },
    );
    assert.equal(found?.count, left, table);
  }
});
