import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { idBound } from "../../src/base/id.ts";
import { type Database } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { purge, type PurgeProgress } from "../../src/store/purge.ts";
import { openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 31);
const DAY_MS = 86_400_000;
const RETENTION = { eventsMs: DAY_MS, auditMs: DAY_MS };
const SIGNAL = new AbortController().signal;
/** How many rows that must stay one purge looks at, and how many at once. */
const [AT_ONCE, BATCH] = [20_000, 500];

/** So many deliveries of an old event that were finished at a time. */
async function addDelivered(database: Database, count: number, finishedAtMs: number) {
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
       VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', ${NOW_MS})`,
    sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
       SELECT ${idBound("d", NOW_MS - 9 * DAY_MS)} || printf('%06x', i), 'e1', 1, 'delivered', 0,
         ${finishedAtMs} FROM n`,
  ]);
}

/** A database that keeps how the walk through what was delivered goes. */
function watch(t: TestContext) {
  const stored = openDatabase(t);
  const looks: { after: unknown; rows: number; turn: number }[] = [];
  let turn = 0;
  let counting = setImmediate(count);
  function count(): void {
    turn++;
    counting = setImmediate(count);
  }
  t.after(() => clearImmediate(counting));
  const database: Database = {
    ...stored,
    async query<Row>(statement: Sql) {
      const rows = await stored.query<Row>(statement);
      if (statement.sql.includes("status = 'delivered'")) {
        looks.push({ after: statement.params.at(1), rows: rows.length, turn });
      }
      return rows;
    },
  };
  return { database, looks };
}

test("the purge lets other work have its turn while it looks at what must stay", async (t) => {
  const { database, looks } = watch(t);
  await addDelivered(database, 5 * BATCH, NOW_MS);
  await purge(database, RETENTION, NOW_MS, SIGNAL);
  assert.ok(looks.length >= 5, `${looks.length} looks`);
  assert.equal(new Set(looks.map(({ turn }) => turn)).size, looks.length);
});

test("the purge leaves the writer to others for as long as each of its steps took", async (t) => {
  const stored = openDatabase(t);
  await stored.write([sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
      WHERE i < ${3 * BATCH})
    INSERT INTO codes (id, hash, app, user, scopes, redirectUri, untilMs)
    SELECT 'c' || i, x'', 'a1', 'u1', '[]', '', 1 FROM n`]);
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
  }, RETENTION, NOW_MS, SIGNAL);
  assert.deepEqual(await stored.query(sql`SELECT 1 FROM codes`), []);
  assert.ok(restedMs.length > 3 && restedMs.every((ms) => ms > 8), `${restedMs}`);
});

test("what must stay is looked at part by part, a part at each purge", async (t) => {
  const { database, looks } = watch(t);
  await addDelivered(database, 2 * AT_ONCE + BATCH, NOW_MS);
  const progress: PurgeProgress = new Map();
  const parts: (readonly [first: unknown, rows: number])[] = [];
  for (let purges = 0; purges < 4; purges++) {
    await purge(database, RETENTION, NOW_MS, SIGNAL, progress);
    const done = looks.splice(0);
    parts.push([done[0]?.after, done.reduce((sum, { rows }) => sum + rows, 0)]);
  }
  assert.deepEqual(parts.map(([, rows]) => rows), [AT_ONCE, AT_ONCE, BATCH, AT_ONCE]);
  const [first, second, third, fourth] = parts.map(([after]) => String(after));
  assert.ok(first === "" && fourth === "", "from the end it begins again");
  assert.ok(second && third && second < third);
});

test("what may go is removed at one purge, however much it is", async (t) => {
  const { database } = watch(t);
  await addDelivered(database, AT_ONCE + BATCH, NOW_MS - 2 * DAY_MS);
  await purge(database, RETENTION, NOW_MS, SIGNAL, new Map());
  assert.deepEqual(await database.query(sql`SELECT 1 FROM deliveries`), []);
});
