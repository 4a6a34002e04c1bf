import assert from "node:assert/strict";
import { test } from "node:test";
import { idBound } from "../../src/base/id.ts";
import { STEPS } from "../../src/event/figures.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { DEVICE_CODE_MS } from "../../src/oauth/device_code.ts";
import { deliveryId } from "../../src/store/fan_out.ts";
import { purge } from "../../src/store/purge.ts";
import { openDatabase } from "../helpers/database.ts";
import { NEVER } from "../helpers/never.ts";
import { numbers } from "../helpers/numbers.ts";
import { addDelivered, DAY_MS, NOW_MS, RETENTION } from "./purge_stage.ts";

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
  await purge(database, RETENTION, NOW_MS, NEVER);
  assert.deepEqual(await list(), ["2: 1", "3: 1", "4: 0"]);
  await purge(database, RETENTION, NOW_MS + 2 * DAY_MS, NEVER);
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
  }, RETENTION, NOW_MS, NEVER);
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
  await purge(database, RETENTION, NOW_MS, NEVER);
  assert.deepEqual(await list(), ["s1", "disabled", "paused"]);
  await purge(database, RETENTION, NOW_MS + 2 * DAY_MS, NEVER);
  assert.deepEqual(await list(), ["disabled", "paused"]);
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
  await purge(database, RETENTION, NOW_MS, NEVER);
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
    await database.write([sql`${numbers(100_001)}
      INSERT INTO audit (id, actor, action, target)
      SELECT ${idBound("t", NOW_MS)} || printf('%06d', i), 'u1', ${action}, i FROM n`]);
    await purge(database, RETENTION, NOW_MS, NEVER);
    const found = await database.query<object>(
      sql`SELECT count(*) AS count, min(CAST(target AS INTEGER)) AS first FROM audit`,
    );
    assert.deepEqual(found.map((row) => ({ ...row })), [{ count: 100_000, first: 2 }]);
  });
}
