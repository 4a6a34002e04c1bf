import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { idBound } from "../../src/base/id.ts";
import { type Database } from "../../src/database/database.ts";
import { STEPS } from "../../src/event/figures.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { DEVICE_CODE_MS } from "../../src/oauth/device_code.ts";
import { deliveryId } from "../../src/store/fan_out.ts";
import { purge, type PurgeProgress } from "../../src/store/purge.ts";
import { openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 31);
const DAY_MS = 86_400_000;
const RETENTION = { eventsMs: DAY_MS, auditMs: DAY_MS };
const SIGNAL = new AbortController().signal;
/** How many rows that stay one purge looks at, and how many in one query. */
const [PER_PURGE, BATCH] = [20_000, 500];

/** Adds that many deliveries of an old event, all finished at that time. */
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

test("the purge lets other work run between its queries of rows that stay", async (t) => {
  const { database, looks } = watch(t);
  await addDelivered(database, 5 * BATCH, NOW_MS);
  await purge(database, RETENTION, NOW_MS, SIGNAL);
  assert.ok(looks.length >= 5, `${looks.length} looks`);
  assert.equal(new Set(looks.map(({ round }) => round)).size, looks.length);
});

test("after each write the purge leaves the writer free for as long as it took", async (t) => {
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

test("each purge looks at the next 20,000 rows that stay, and then begins again", async (t) => {
  const { database, looks } = watch(t);
  await addDelivered(database, 2 * PER_PURGE + BATCH, NOW_MS);
  const progress: PurgeProgress = new Map();
  const parts: (readonly [first: unknown, rows: number])[] = [];
  for (let purges = 0; purges < 4; purges++) {
    await purge(database, RETENTION, NOW_MS, SIGNAL, progress);
    const done = looks.splice(0);
    parts.push([done[0]?.after, done.reduce((sum, { rows }) => sum + rows, 0)]);
  }
  assert.deepEqual(parts.map(([, rows]) => rows), [PER_PURGE, PER_PURGE, BATCH, PER_PURGE]);
  const [first, second, third, fourth] = parts.map(([after]) => String(after));
  assert.ok(first === "" && fourth === "", "it begins again after the end");
  assert.ok(second && third && second < third);
});

test("one purge removes all expired deliveries, however many", async (t) => {
  const { database } = watch(t);
  await addDelivered(database, PER_PURGE + BATCH, NOW_MS - 2 * DAY_MS);
  await purge(database, RETENTION, NOW_MS, SIGNAL, new Map());
  assert.deepEqual(await database.query(sql`SELECT 1 FROM deliveries`), []);
});

test("a step of the purge removes at most 2 MiB of events, or one larger event", async (t) => {
  const stored = openDatabase(t);
  const numbers = (rows: number) =>
    sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})`;
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
  }, RETENTION, NOW_MS, SIGNAL);
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

test("an event is kept as long as one of its deliveries, and removed with the last", async (t) => {
  const database = openDatabase(t);
  const old = NOW_MS - 2 * DAY_MS;
  const event = (digit: number) => `${idBound("e", old)}${String(digit).repeat(15)}`;
  let made = 0;
  const deliver = (digit: number, status: string, finishedAtMs: number | null) =>
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
      VALUES (${deliveryId(event(digit), ++made)}, ${event(digit)}, 1, ${status}, 0,
        ${finishedAtMs})`;
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', 1)`,
    ...[1, 2, 3, 4].map((digit) => sql`INSERT INTO events
        (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event(digit)}, 'a', '1', '[]', ${digit === 4 ? "pending" : "distributed"}, 1, 1)`),
    deliver(1, "delivered", old),
    deliver(1, "failed", old),
    deliver(1, "cancelled", old),
    deliver(2, "delivered", old),
    deliver(2, "pending", null),
    deliver(3, "failed", NOW_MS),
  ]);
  const list = async () => {
    const rows = await database.query<{ id: string; deliveries: number }>(sql`SELECT id,
      (SELECT count(*) FROM deliveries d WHERE event = e.id) AS deliveries
      FROM events e ORDER BY id`);
    return rows.map(({ id, deliveries }) => `${id.at(-1)}: ${deliveries}`);
  };
  await purge(database, RETENTION, NOW_MS, SIGNAL);
  assert.deepEqual(await list(), ["2: 1", "3: 1", "4: 0"]);
  await purge(database, RETENTION, NOW_MS + 2 * DAY_MS, SIGNAL);
  assert.deepEqual(await list(), ["2: 1", "4: 0"]);
});

test("a delivery that is resent while the purge looks at it is kept", async (t) => {
  const database = openDatabase(t);
  await addDelivered(database, 2, NOW_MS - 2 * DAY_MS);
  const [again] = await database.query<{ id: string }>(sql`SELECT id FROM deliveries ORDER BY id`);
  await purge({
    ...database,
    async query<Row>(select: Sql) {
      const rows = await database.query<Row>(select);
      if (select.sql.includes("FROM deliveries")) {
        await database.write([sql`UPDATE deliveries SET status = 'pending', finishedAtMs = NULL
          WHERE id = ${again?.id ?? ""}`]);
      }
      return rows;
    },
  }, RETENTION, NOW_MS, SIGNAL);
  assert.deepEqual(await database.query(sql`SELECT id FROM deliveries`), [again]);
});

test("a deleted subscription is removed with its last delivery; others are kept", async (t) => {
  const database = openDatabase(t);
  await addDelivered(database, 1, NOW_MS);
  await database.write([
    sql`UPDATE subscriptions SET status = 'deleted'`,
    ...["deleted", "disabled", "paused"].map((status) => sql`INSERT INTO subscriptions
        (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${status}, 'u1', 'login', 'a', ${`https://${status}.example/`}, ${status}, '', 1)`),
  ]);
  const list = async () =>
    (await database.query<{ id: string }>(sql`SELECT id FROM subscriptions ORDER BY seq`))
      .map(({ id }) => id);
  await purge(database, RETENTION, NOW_MS, SIGNAL);
  assert.deepEqual(await list(), ["s1", "disabled", "paused"]);
  await purge(database, RETENTION, NOW_MS + 2 * DAY_MS, SIGNAL);
  assert.deepEqual(await list(), ["disabled", "paused"]);
});

test("a purge that is aborted ends after its current batch", async (t) => {
  const stored = openDatabase(t);
  await addDelivered(stored, 3 * BATCH, NOW_MS - 2 * DAY_MS);
  await stored.write([sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
      WHERE i < ${3 * BATCH})
    INSERT INTO codes (id, hash, app, user, scopes, redirectUri, untilMs)
    SELECT 'c' || i, x'', 'a1', 'u1', '[]', '', 1 FROM n`]);
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

test("the purge removes expired rows of every table, and nothing else", async (t) => {
  const database = openDatabase(t);
  const [past, later] = [NOW_MS, NOW_MS + 1];
  const both = (insert: (what: string, untilMs: number) => Sql) =>
    [insert("gone", past), insert("kept", later)];
  const hash = (text: string) => Buffer.from(text);
  const oldResend = idBound("w", NOW_MS - RETENTION.eventsMs - 1);
  await database.write([
    ...both((what, untilMs) => sql`INSERT INTO revocations (target, notBeforeMs, untilMs)
      VALUES (${what}, 1, ${untilMs})`),
    ...both((what, untilMs) => sql`INSERT INTO client_assertions (hash, untilMs)
      VALUES (${hash(what)}, ${untilMs})`),
    ...both((what, untilMs) => sql`INSERT INTO login_failures (account, place, untilMs)
      VALUES (x'', ${what}, ${untilMs})`),
    ...both((what, untilMs) => sql`INSERT INTO idempotency_keys
        (id, asked, attempt, leaseUntilMs, untilMs)
      VALUES (${hash(what)}, x'', 'k1', 1, ${untilMs})`),
    ...both((what, untilMs) => sql`INSERT INTO muted_problems (id, untilMs)
      VALUES (${what}, ${untilMs})`),
    ...both((what, untilMs) => sql`INSERT INTO sessions (hash, user, createdAtMs, untilMs)
      VALUES (${hash(what)}, 'u1', 1, ${untilMs})`),
    ...both((what, untilMs) => sql`INSERT INTO figures (stepMs, key, atMs, counts)
      VALUES (${STEPS.minute.ms}, ${what}, ${untilMs - STEPS.minute.keptMs - 1}, '[]')`),
    ...(["done", "running"] as const).map((state) =>
      sql`INSERT INTO resends (id, actor, selection, state, reached, bound, total)
        VALUES (${oldResend} || ${state}, 'u1', '{}', ${state}, '', '', 1)`),
    ...([["gone", 0, 0], ["kept", 1, 0], ["running", 0, 1]] as const).map(([name, later, leased]) =>
      sql`INSERT INTO cronjobs (name, nextAtMs, leaseUntilMs) VALUES
        (${name}, ${NOW_MS - RETENTION.auditMs} + ${later}, ${NOW_MS} + ${leased})`),
    sql`INSERT INTO resends (id, actor, selection, state, reached, bound, total)
      VALUES (${idBound("w", NOW_MS - RETENTION.eventsMs)} || 'kept', 'u1', '{}', 'done', '', '',
        1)`,
    ...["gone", "kept"].map((what) => sql`INSERT INTO audit (id, actor, action, target)
      VALUES (${idBound("t", NOW_MS - RETENTION.auditMs - (what === "gone" ? 1 : 0))}, 'u1', 'any',
        ${what})`),
    ...both((what, untilMs) => sql`INSERT INTO device_codes
        (hash, userCode, app, scopes, untilMs)
      VALUES (${hash(what)}, ${hash(what)}, 'a1', '[]', ${untilMs - DEVICE_CODE_MS})`),
  ]);
  await purge(database, RETENTION, NOW_MS, SIGNAL);
  const left = await database.query<{ what: string }>(
    sql`SELECT 'revocations ' || target AS what FROM revocations
      UNION ALL SELECT 'client_assertions ' || CAST(hash AS TEXT) FROM client_assertions
      UNION ALL SELECT 'login_failures ' || place FROM login_failures
      UNION ALL SELECT 'idempotency_keys ' || CAST(id AS TEXT) FROM idempotency_keys
      UNION ALL SELECT 'muted_problems ' || id FROM muted_problems
      UNION ALL SELECT 'sessions ' || CAST(hash AS TEXT) FROM sessions
      UNION ALL SELECT 'figures ' || key FROM figures
      UNION ALL SELECT 'resends ' || state FROM resends
      UNION ALL SELECT 'audit ' || target FROM audit
      UNION ALL SELECT 'device_codes ' || CAST(hash AS TEXT) FROM device_codes
      UNION ALL SELECT 'cronjobs ' || name FROM cronjobs`,
  );
  assert.deepEqual(left.map(({ what }) => what), [
    "revocations kept",
    "client_assertions kept",
    "login_failures kept",
    "idempotency_keys kept",
    "muted_problems kept",
    "sessions kept",
    "figures kept",
    "resends running",
    "resends done",
    "audit kept",
    "device_codes kept",
    "cronjobs kept",
    "cronjobs running",
  ]);
});

for (const action of ["grant.allow", "grant.deny"]) {
  test(`the purge keeps the newest 100,000 audit entries of ${action}`, async (t) => {
    const database = openDatabase(t);
    await database.write([sql`WITH RECURSIVE n (i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100001)
      INSERT INTO audit (id, actor, action, target)
      SELECT ${idBound("t", NOW_MS)} || printf('%06d', i), 'u1', ${action}, i FROM n`]);
    await purge(database, RETENTION, NOW_MS, SIGNAL);
    const found = await database.query<object>(
      sql`SELECT count(*) AS count, min(CAST(target AS INTEGER)) AS first FROM audit`,
    );
    assert.deepEqual(found.map((row) => ({ ...row })), [{ count: 100_000, first: 2 }]);
  });
}
