import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sql } from "../../src/database/sql.ts";
import type { AttemptOutcome } from "../../src/event/delivery.ts";
import {
  claimsOf,
  listDueQueues,
} from "../../src/store/deliveries.ts";
import { listAttempts } from "../../src/store/delivery_lists.ts";
import { openDatabase } from "../helpers/database.ts";
import { numbers } from "../helpers/numbers.ts";

const NOW_MS = 1_900_000_000_000;
const ENDPOINT = "https://a.example/";

const SUCCESS = {
  attempt: 1,
  startedAtMs: NOW_MS,
  durationMs: 1,
  meanMs: undefined,
  outcome: { kind: "response", status: 204 },
  snippet: undefined,
} as const;

test("an attempt is recorded only for its own delivery, while that is claimed", async (t) => {
  const database = openDatabase(t);
  const event = newId("e", NOW_MS);
  const names = ["own", "another", "taken over", "cancelled"] as const;
  const ids = names.map((_, index) => `d${event.slice(1)}0000000${index}`);
  const nameOf = (id: string) => names[ids.indexOf(id)];
  const rows = ids.map((id, index) => [
    id, index < 2 ? "claim" : index === 2 ? "other" : null, index < 3 ? "pending" : "cancelled",
  ]);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${newId("s", NOW_MS)}, 'u1', 'login', 'x', ${ENDPOINT}, 'active', '', 1)`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event}, 'x', '1', '[]', 'distributed', 1, 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, claim, status, attempt, dueAtMs)
      SELECT value ->> 0, ${event}, 1, value ->> 1, value ->> 2, 0, 1
      FROM json_each(${JSON.stringify(rows)})`,
  ]);
  for (const id of ids.toReversed()) {
    await database.write(claimsOf(database, "claim").recordDelivered([{
      id,
      subscription: 1,
      endpoint: ENDPOINT,
      ...SUCCESS,
    }], NOW_MS));
    const attempts = await database.query<{ delivery: string }>(sql`SELECT delivery FROM attempts`);
    const moved = await database.query<{ id: string }>(
      sql`SELECT id FROM deliveries WHERE status = 'delivered'`,
    );
    const expected = ["another", "own"].slice(0, Math.max(0, 2 - ids.indexOf(id)));
    assert.deepEqual(attempts.map((each) => nameOf(each.delivery)).sort(), expected);
    assert.deepEqual(moved.map(({ id }) => nameOf(id)).sort(), expected);
  }
});

test("attempts at an earlier endpoint do not change the subscription's health", async (t) => {
  const database = openDatabase(t);
  const event = newId("e", NOW_MS);
  const ids = [0, 1, 2, 3].map((index) => `d${event.slice(1)}0000000${index}`);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${newId("s", NOW_MS)}, 'u1', 'login', 'x', ${ENDPOINT}, 'active', '', 1)`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event}, 'x', '1', '[]', 'distributed', 1, 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, claim, status, attempt, dueAtMs, lastError)
      SELECT value, ${event}, 1, 'claim', 'pending', 0, 1, 'reset'
      FROM json_each(${JSON.stringify(ids)})`,
  ]);
  const old = "https://old.example/";
  async function after(index: number, status: number, endpoint: string, nowMs: number) {
    const delivery = ids[index] ?? "";
    const outcome: AttemptOutcome = { kind: "response", status };
    const record = {
      id: delivery,
      subscription: 1,
      endpoint,
      attempt: 1,
      startedAtMs: nowMs,
      durationMs: 1,
      meanMs: 300 + index,
      outcome,
      snippet: undefined,
    };
    const next = { status: "failed", gone: false } as const;
    const claims = claimsOf(database, "claim");
    await database.write(status === 204 ? claims.recordDelivered([record], nowMs)
      : claims.recordFailure({ ...record, next }, nowMs));
    const [found] = await database.query(
      sql`SELECT failingSinceMs, hasSucceeded, meanMs, lastStatus, lastError
        FROM subscriptions, deliveries d WHERE d.id = ${delivery}`,
    );
    return { ...Object(found) };
  }
  const failing = { failingSinceMs: NOW_MS, hasSucceeded: 0, meanMs: 301, lastError: null };
  assert.equal((await after(0, 500, old, NOW_MS - 1)).failingSinceMs, null);
  assert.deepEqual(await after(1, 500, ENDPOINT, NOW_MS), { ...failing, lastStatus: 500 });
  assert.deepEqual(await after(2, 204, old, NOW_MS + 1), { ...failing, lastStatus: 204 });
  assert.deepEqual(await after(3, 500, ENDPOINT, NOW_MS + 2),
    { ...failing, meanMs: 303, lastStatus: 500 }, "since the first failure");
  await database.write([
    sql`UPDATE deliveries SET claim = 'claim', status = 'pending', attempt = 0`,
    sql`DELETE FROM attempts`,
  ]);
  assert.deepEqual(await after(0, 204, ENDPOINT, NOW_MS + 3),
    { failingSinceMs: null, hasSucceeded: 1, meanMs: 300, lastStatus: 204, lastError: null });
});

test("a subscription whose delivery was claimed comes last among those due", async (t) => {
  const database = openDatabase(t);
  const event = newId("e", NOW_MS);
  const rows = [1, 2].map((seq) => [newId("s", NOW_MS), seq, `d${event.slice(1)}0000000${seq}`]);
  const all = JSON.stringify(rows);
  await database.write([
    sql`INSERT INTO subscriptions
        (id, principal, app, event, endpoint, status, secret, createdAtMs, dueAtMs)
      SELECT value ->> 0, 'u1', 'login', 'x', ${ENDPOINT} || (value ->> 1), 'active', '', 1,
        value ->> 1 FROM json_each(${all})`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event}, 'x', '1', '[]', 'distributed', 1, 1)`,
    ...["", "-2"].map((end) =>
      sql`INSERT INTO deliveries (id, event, subscription, status, attempt, dueAtMs)
        SELECT (value ->> 2) || ${end}, ${event}, value ->> 1, 'pending', 0, value ->> 1
        FROM json_each(${all})`),
  ]);
  const listDue = async () => {
    const except = { subscriptions: [], principals: [] };
    const due = await listDueQueues(database, "unknown", except, 9, NOW_MS);
    return due.map(({ subscription }) => subscription);
  };
  assert.deepEqual(await listDue(), [1, 2]);
  const requests = [{ subscription: 1, count: 1 }];
  const [claimed] = await claimsOf(database, "claim").claim(requests, NOW_MS + 1_000, NOW_MS);
  assert.deepEqual(await listDue(), [2, 1]);
  assert.ok(claimed);
  await database.write(claimsOf(database, "claim").recordDelivered([{
    ...claimed,
    endpoint: `${ENDPOINT}1`,
    ...SUCCESS,
  }], NOW_MS));
  const due = await database.query(sql`SELECT seq, dueAtMs FROM subscriptions ORDER BY dueAtMs`);
  assert.deepEqual(due.map((row) => ({ ...Object(row) })),
    [{ seq: 2, dueAtMs: 2 }, { seq: 1, dueAtMs: NOW_MS }], "also once its attempt is recorded");
});

test("listAttempts() lists the last 100 attempts, the oldest first", async (t) => {
  const database = openDatabase(t);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES ('s1', 'u1', 'login', 'x', ${ENDPOINT}, 'active', '', 1)`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES ('e1', 'x', '1', '[]', 'distributed', 1, 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
      VALUES ('d1', 'e1', 1, 'failed', 1)`,
    sql`${numbers(250)}
      INSERT INTO attempts (delivery, attempt, startedAtMs, durationMs)
      SELECT 'd1', 1, ${NOW_MS} + i, 1 FROM n`,
  ]);
  const attempts = await listAttempts(database, "d1");
  assert.equal(attempts.length, 100);
  assert.deepEqual([attempts[0]?.timeMs, attempts[99]?.timeMs], [NOW_MS + 151, NOW_MS + 250]);
});
