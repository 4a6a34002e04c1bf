import assert from "node:assert/strict";
import { test } from "node:test";
import { idBound, newId } from "../../src/base/id.ts";
import type { Page } from "../../src/database/database.ts";
import { NEWEST } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import type { EventSummary } from "../../src/event/event.ts";
import { DELIVERY_LIST } from "../../src/store/delivery_lists.ts";
import { EVENT_LIST } from "../../src/store/events.ts";
import { listPart } from "../../src/store/list.ts";
import { listFailing, SUBSCRIPTION_LIST } from "../../src/store/subscriptions.ts";
import { openDatabase } from "../helpers/database.ts";

const NOW_MS = 1_900_000_000_000;
const COUNT = 12_000;
const LOOKED_AT = 5_000;

test("a list without an index looks at a bounded number of rows for each page", async (t) => {
  const database = openDatabase(t);
  const ids = Array.from({ length: COUNT }, (_, at) => newId("e", NOW_MS + at));
  await database.write([sql`INSERT INTO events
    (id, name, data, scopes, status, lastSubscription, createdAtMs, subject, request)
    SELECT value, 'a', '1', '[]', iif(key % 2, 'pending', 'distributed'), 0, 1,
      iif(key IN (0, 2), 'u00000001', NULL), iif(key < 10, 'rare', 'usual')
    FROM json_each(${JSON.stringify(ids)})`]);
  const ways = [{}, { name: "a" }, { request: "usual" }, { status: "distributed" }] as const;
  for (const more of ways) {
    const given = { subject: "u00000001", ...more };
    const found: string[] = [];
    let parts = 0;
    let page: Page<EventSummary> = { items: [], next: NEWEST };
    for (; page.next !== undefined; parts++) {
      page = await listPart(database, EVENT_LIST, { ...given, limit: 1, cursor: page.next });
      found.push(...page.items.map(({ id }) => id));
      assert.ok(parts < 6);
    }
    const rows = "status" in more ? COUNT / 2 : COUNT;
    assert.ok(parts > rows / LOOKED_AT, `${parts} parts`);
    assert.deepEqual(found, "request" in more ? [] : [ids[2], ids[0]], JSON.stringify(more));
  }
  const rare = await listPart(database, EVENT_LIST, { request: "rare", limit: 3 });
  assert.deepEqual(rare.items.map(({ id }) => id), [ids[9], ids[8], ids[7]]);
  assert.equal(rare.next, ids[7]);
  const between = { since: NOW_MS + 3, until: NOW_MS + 5, subject: "u00000002" };
  const none = await listPart(database, EVENT_LIST, { ...between, limit: 9 });
  assert.deepEqual(none, { items: [], next: undefined });
  const both = { since: NOW_MS + 3, until: NOW_MS + 5 };
  const { items } = await listPart(database, EVENT_LIST, { ...both, limit: 9 });
  assert.deepEqual(items.map(({ id }) => id), [ids[4], ids[3]]);
});

test("events between two times are listed page by page, each once", async (t) => {
  const database = openDatabase(t);
  const ids = Array.from({ length: 5 }, (_, at) => idBound("e", NOW_MS + at).padEnd(25, "0"));
  await database.write([sql`INSERT INTO events
    (id, name, data, scopes, status, lastSubscription, createdAtMs)
    SELECT value, 'a', '1', '[]', 'pending', 0, 1 FROM json_each(${JSON.stringify(ids)})`]);
  const given = { since: NOW_MS + 1, until: NOW_MS + 4 };
  const found: string[] = [];
  for (let cursor: string | undefined = NEWEST; cursor !== undefined && found.length < 9;) {
    const page: Page<EventSummary> =
      await listPart(database, EVENT_LIST, { ...given, limit: 1, cursor });
    found.push(...page.items.map(({ id }) => id));
    cursor = page.next;
  }
  assert.deepEqual(found, [ids[3], ids[2], ids[1]]);
});

test("a subscription's deliveries are listed, all or by status", async (t) => {
  const database = openDatabase(t);
  const [own, other] = [newId("s", NOW_MS), newId("s", NOW_MS)];
  const event = newId("e", NOW_MS);
  const rows = ["failed", "delivered", "failed", "pending", "cancelled", "failed"];
  await database.write([
    ...[own, other].map((id) => sql`INSERT INTO subscriptions
        (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${id}, 'u00000001', 'login', ${id}, 'https://a.example/', 'active', 'x', 1)`),
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event}, 'a', '1', '[]', 'distributed', 2, 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
      SELECT 'd' || key, ${event}, iif(key = 5, 2, 1), value, 1
      FROM json_each(${JSON.stringify(rows)})`,
  ]);
  const list = async (given: { subscription?: string; status?: "failed" }) => {
    const { items } = await listPart(database, DELIVERY_LIST, { ...given, limit: 9 });
    return items.map(({ id }) => id);
  };
  assert.deepEqual(await list({ subscription: own }), ["d4", "d3", "d2", "d1", "d0"]);
  assert.deepEqual(await list({ subscription: own, status: "failed" }), ["d2", "d0"]);
});

test("a search of an owner's endpoints looks at that owner's subscriptions alone", async (t) => {
  const database = openDatabase(t);
  const owner = "u00000001";
  const ids = Array.from({ length: 1_002 }, (_, at) => newId("s", NOW_MS + at));
  await database.write([sql`INSERT INTO subscriptions
    (id, principal, app, event, endpoint, status, secret, createdAtMs, failingSinceMs)
    SELECT value, iif(key < 1001, 'u00000002', ${owner}), 'login', 'e',
      iif(key < 1001, 'https://a.example/' || key, 'https://b.example/'), 'active', 'x', 1, 1
    FROM json_each(${JSON.stringify(ids)})`]);
  const given = { owner, q: "https://", limit: 9 };
  for (const part of [
    await listPart(database, SUBSCRIPTION_LIST, given),
    await listFailing(database, given),
  ]) {
    assert.deepEqual(part.items.map(({ endpoint }) => endpoint), ["https://b.example/"]);
  }
  const other = await listPart(database, SUBSCRIPTION_LIST, { ...given, q: "a.example" });
  assert.deepEqual(other.items, []);
});

test("an endpoint is found without its scheme, also with a URL in its query", async (t) => {
  const database = openDatabase(t);
  const [plain, nested] = ["https://a.example/?to=1", "https://a.example/?to=http://b.example"];
  await database.write([sql`INSERT INTO subscriptions
    (id, principal, app, event, endpoint, status, secret, createdAtMs)
    SELECT 's' || key, 'u00000001', 'login', 'e', value, 'active', 'x', 1
    FROM json_each(${JSON.stringify([plain, nested])})`]);
  const find = async (q: string) => {
    const { items } = await listPart(database, SUBSCRIPTION_LIST, { q, limit: 9 });
    return items.map(({ endpoint }) => endpoint);
  };
  assert.deepEqual(await find("A.example/"), [nested, plain]);
  assert.deepEqual(await find("a.example/?to=http://b"), [nested]);
  assert.deepEqual(await find("HTTPS://a.example/?to=1"), [plain]);
  assert.deepEqual(await find("http://a.example/"), []);
});

test("a search by endpoint finds an active subscription behind many deleted ones", async (t) => {
  const database = openDatabase(t);
  const ids = Array.from({ length: 1_002 }, (_, at) => newId("s", NOW_MS + at));
  await database.write([sql`INSERT INTO subscriptions
    (id, principal, app, event, endpoint, status, secret, createdAtMs, failingSinceMs)
    SELECT value, 'u00000001', 'login', 'e' || key, 'https://q.example/' || (key + 1000),
      iif(key < 1001, 'deleted', 'active'), 'x', 1, 1
    FROM json_each(${JSON.stringify(ids)})`]);
  const given = { q: "q.example", limit: 9 };
  for (const part of [
    await listPart(database, SUBSCRIPTION_LIST, given),
    await listFailing(database, given),
  ]) {
    assert.deepEqual(part.items.map(({ id }) => id), [ids[1001]]);
  }
});

test("the list of failing subscriptions goes on though its last item has recovered", async (t) => {
  const database = openDatabase(t);
  const ids = Array.from({ length: 5 }, (_, at) => newId("s", NOW_MS + at));
  await database.write([sql`INSERT INTO subscriptions
    (id, principal, app, event, endpoint, status, secret, createdAtMs, failingSinceMs)
    SELECT value, 'u00000001', 'login', 'e' || key, 'https://a.example/', 'active', 'x', 1,
      ${NOW_MS} + key / 3
    FROM json_each(${JSON.stringify(ids)})`]);
  const list = (cursor: string) => listFailing(database, { limit: 2, cursor });
  const first = await list(NEWEST);
  const [, recovered = "", , purged = ""] = ids;
  const succeeds = sql`UPDATE subscriptions SET failingSinceMs = NULL WHERE id = ${recovered}`;
  await database.write([succeeds]);
  const second = await list(first.next ?? "");
  await database.write([sql`DELETE FROM subscriptions WHERE id = ${purged}`]);
  const third = await list(second.next ?? "");
  assert.deepEqual([first, second, third].map(({ items }) => items.map(({ id }) => id)),
    [ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
  assert.equal(third.next, undefined);
});
