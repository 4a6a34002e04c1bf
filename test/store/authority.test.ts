import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import {
  declareEvents,
  ENDS,
  findEventScopes,
  LAST_ENDING,
  mayReceive,
} from "../../src/store/authority.ts";
import { type Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { insertEvent } from "../../src/store/events.ts";
import { fanOut, listPendingEvents } from "../../src/store/fan_out.ts";
import { insertGrant } from "../../src/store/grants.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import {
  clearEndedSubscriptions,
  type Ending,
  endSubscriptions,
  type SubscriptionsEnd,
} from "../../src/store/subscription_end.ts";
import { insertSubscription, updateSubscription } from "../../src/store/subscriptions.ts";
import {
  addApp,
  addUser,
  makeFolder,
  openDatabase,
  sampleApp,
  sampleGrant,
} from "../helpers/database.ts";
import { openEmptyOldDatabase } from "../helpers/old_database.ts";

const NOW_MS = Date.UTC(2026, 0, 1, 1);
const SEAL = createSeal(undefined);
const ACTIVE = { endpoint: undefined, status: "active" } as const;
const NEVER = new AbortController().signal;
/** How many rows one statement changes at most. */
const AT_ONCE = 500;

interface Row {
  readonly id: string;
  readonly status: string;
  readonly reason: string | null;
}

/** A database with one app. */
async function openStage(t: TestContext) {
  const database = openDatabase(t);
  const app = sampleApp();
  await addApp(database, app);

  /** A new user's grant of these scopes, and a subscription by a token of it. */
  async function subscribe(scopes = ["consumer"], tokenScopes = scopes) {
    const user = await addUser(database);
    const grant = sampleGrant(app.id, user, { scopes });
    assert.equal(await insertGrant(database, grant), true);
    const record = { id: newId("s", NOW_MS), principal: user, app: app.id, event: "a" };
    const [inserted] = await database.write([insertSubscription({
      ...record,
      endpoint: "https://a.example/",
      secret: "whsec_",
      createdAtMs: NOW_MS,
      grant: { id: grant.id, scopes: tokenScopes },
    }, SEAL)]);
    assert.equal(inserted, 1);
    return { ...record, grant: { id: grant.id, scopes: tokenScopes } };
  }

  /** Makes that many copies of a subscription, each with a pending delivery. */
  async function multiply(count: number): Promise<void> {
    const { id } = await subscribe();
    await database.write([
      sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
         INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, dueAtMs,
           createdAtMs, grantId, granted)
         SELECT id || i, principal, app, event, endpoint || i, 'paused', secret, 1, createdAtMs,
           grantId, granted FROM subscriptions, n WHERE id = ${id}`,
      sql`UPDATE subscriptions SET dueAtMs = 1`,
      insertEvent({ id: "e0", name: "a", json: "1", subject: undefined, createdAtMs: NOW_MS }),
      sql`UPDATE events SET status = 'distributed' WHERE id = 'e0'`,
      sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
         SELECT 'd' || seq, 'e0', seq, 'pending', 1 FROM subscriptions`,
    ]);
  }

  async function list(): Promise<Row[]> {
    const rows = await database.query<Row>(
      sql`SELECT id, status, disabledReason AS reason FROM subscriptions ORDER BY seq`,
    );
    return rows.map((row) => ({ ...row }));
  }

  /** Dispatches an event, and counts the deliveries that it gets. */
  async function dispatch(): Promise<number> {
    const id = newId("e", NOW_MS);
    await database.write([
      insertEvent({ id, name: "a", json: "1", subject: undefined, createdAtMs: NOW_MS }),
    ]);
    const events = await listPendingEvents(database, { oldest: 9999, newest: 0 });
    const event = events.find((each) => each.id === id);
    assert.ok(event);
    const part = { event, end: event.lastSubscription, claimed: [] };
    await fanOut(database, [part], "", 0, NOW_MS);
    return (await database.query(sql`SELECT 1 FROM deliveries WHERE event = ${id}`)).length;
  }

  return {
    database,
    app: app.id,
    subscribe,
    multiply,
    list,
    dispatch,
    end: (ending: Ending, how: Partial<SubscriptionsEnd> = {}) =>
      database.write(endSubscriptions(ending, { reason: "why", ...how }, NOW_MS)),
    clear: (signal = NEVER) => clearEndedSubscriptions(database, () => NOW_MS, signal),
    count: async (rows: string) =>
      (await database.query({ sql: `SELECT 1 FROM ${rows}`, params: [] })).length,
  };
}

/** A subscription of a principal through an app, with the scopes that its token had. */
const subscription = (principal: string, app: string, granted: string | null) =>
  sql`INSERT INTO subscriptions
      (id, principal, app, granted, event, endpoint, status, secret, createdAtMs)
    VALUES (${`${principal} ${app} ${granted ?? "any"}`}, ${principal}, ${app},
      ${granted && JSON.stringify(granted.split("+"))}, 'a', ${`https://${app}.${granted}/`},
      'active', '', 1)`;

test("mayReceive() holds for active parties that all have every needed scope", async (t) => {
  const database = openDatabase(t);
  const all = ["consumer", "orders"];
  const apps = { all: sampleApp(), disabled: sampleApp(), plain: sampleApp() };
  await addApp(database, { ...apps.all, scopes: all });
  await addApp(database, { ...apps.disabled, scopes: all, status: "disabled" });
  await addApp(database, { ...apps.plain, scopes: ["consumer"] });
  const user = await addUser(database, { scopes: all });
  const gone = await addUser(database, { scopes: all });
  const admin = await addUser(database, { scopes: ["consumer", "backend"] });
  const issuer = (id: string, scopes: readonly string[], status = "active") =>
    sql`INSERT INTO issuers
        (id, issuer, scopes, scopeClaim, jwksUri, jwtType, status, createdAtMs)
      VALUES (${id}, ${id}, ${JSON.stringify(scopes)}, 'scope', '', 0, ${status}, 1)`;
  const principal = (id: string, of: string, status = "active") =>
    sql`INSERT INTO principals (id, issuer, subject, status, createdAtMs)
      VALUES (${id}, ${of}, ${id}, ${status}, 1)`;
  await database.write([
    sql`UPDATE users SET status = 'disabled' WHERE id = ${gone}`,
    issuer("i1", all),
    issuer("i2", all, "disabled"),
    issuer("i3", ["consumer"]),
    principal("x1", "i1"),
    principal("x2", "i1", "disabled"),
    principal("x3", "i2"),
    principal("x4", "i3"),
    subscription(user, "login", null),
    subscription(gone, "login", null),
    subscription(user, apps.all.id, "consumer+orders"),
    subscription(user, apps.all.id, "consumer"),
    subscription(user, apps.disabled.id, "consumer+orders"),
    subscription(user, apps.plain.id, "consumer+orders"),
    subscription(user, "a0", "consumer+orders"), // an app that was deleted
    subscription(apps.all.id, apps.all.id, "consumer+orders"),
    subscription("x1", "i1", "consumer+orders"),
    subscription("x2", "i1", "consumer+orders"),
    subscription("x3", "i2", "consumer+orders"),
    subscription("x4", "i3", "consumer+orders"),
    subscription(admin, "login", "consumer+backend"),
  ]);
  const whoReceive = async (...needed: string[]) => {
    const select = sql`SELECT id FROM subscriptions s WHERE ${mayReceive(JSON.stringify(needed))}`;
    return new Set((await database.query<{ id: string }>(select)).map(({ id }) => id));
  };
  const withOrders = [
    `${user} login any`,
    `${user} ${apps.all.id} consumer+orders`,
    `${apps.all.id} ${apps.all.id} consumer+orders`,
    "x1 i1 consumer+orders",
  ];
  const backend = `${admin} login consumer+backend`;
  assert.deepEqual(await whoReceive("orders"), new Set(withOrders));
  assert.deepEqual(await whoReceive(), new Set([
    ...withOrders,
    `${user} ${apps.all.id} consumer`,
    `${user} ${apps.plain.id} consumer+orders`,
    "x4 i3 consumer+orders",
    backend,
  ]));
  assert.deepEqual(await whoReceive("backend:read"), new Set([backend]));
  assert.deepEqual(await whoReceive("backend"), new Set([backend]));
  assert.deepEqual(await whoReceive("backend", "orders"), new Set());
});

test("an ending applies to its owner's earlier subscriptions, by granted scopes", async (t) => {
  const database = openDatabase(t);
  await database.write([
    subscription("u1", "login", null),
    subscription("u1", "a1", "consumer"),
    subscription("u1", "a1", "consumer+orders"),
    subscription("u1", "a1", "late"),
    subscription("u2", "a1", "other"),
    sql`INSERT INTO subscriptions
        (id, principal, app, granted, event, endpoint, status, secret, createdAtMs)
      VALUES ('ended', 'u1', 'a1', '[]', 'a', 'https://ended.example/', 'disabled', '', 1)`,
    sql`INSERT INTO subscriptions (id, principal, app, granted, grantId, event, endpoint, status,
        secret, createdAtMs)
      VALUES ('of grant', 'u1', 'a1', '["consumer"]', 'g1', 'a', 'https://of.example/', 'active',
        '', 1)`,
    sql`INSERT INTO grants (id, app, user, type, scopes, refreshUntilMs, accessUntilMs)
      VALUES ('g1', 'a1', 'u1', 'any', '["consumer","orders"]', 0, 1)`,
    sql`UPDATE subscriptions SET grantId = 'g1' WHERE app = 'login'`,
  ]);
  const concerned = async (owner: string, isOwn: boolean, scopes: readonly string[] | null) => {
    const late = sql`UPDATE subscriptions SET grantedAfter = ${LAST_ENDING} WHERE id LIKE '%late'`;
    const insert = sql`INSERT INTO subscription_endings (owner, own, scopes, deletes, reason)
      VALUES (${owner}, ${isOwn ? 1 : 0}, ${scopes && JSON.stringify(scopes)}, 0, '')`;
    await database.write([insert, late]);
    const rows = await database.query<{ id: string }>(sql`SELECT s.id FROM subscriptions s
      JOIN subscription_endings x ON x.seq = ${LAST_ENDING} AND ${ENDS} ORDER BY s.id`);
    return rows.map(({ id }) => id);
  };
  const granted = ["ended", "of grant", "u1 a1 consumer", "u1 a1 consumer+orders"];
  assert.deepEqual(await concerned("u1", true, null), [...granted, "u1 login any"]);
  assert.deepEqual(await concerned("u1", false, null), granted);
  assert.deepEqual(await concerned("a1", true, null), [...granted, "u2 a1 other"]);
  assert.deepEqual(await concerned("u1", true, ["orders", "none"]),
    ["ended", "of grant", "u1 a1 consumer+orders"]);
  assert.deepEqual(await concerned("u3", true, null), []);
});

test("many ended subscriptions get no event any more, and are disabled step by step", async (t) => {
  const stage = await openStage(t);
  const all = 2 * AT_ONCE + 300;
  await stage.multiply(all);
  const changes = await stage.end({ app: stage.app });
  assert.ok(Math.max(...changes) <= AT_ONCE, String(changes));
  assert.equal(await stage.count("subscriptions WHERE status = 'disabled'"), AT_ONCE);
  assert.equal(await stage.dispatch(), 0);

  await stage.clear();
  const ended = (await stage.list()).filter(({ status, reason }) =>
    status + reason === "disabledwhy");
  assert.equal(ended.length, all);
  assert.equal(await stage.count("deliveries WHERE status = 'cancelled'"), all);
  assert.equal(await stage.count("subscriptions WHERE dueAtMs IS NOT NULL"), 0);
  assert.equal(await stage.count("events WHERE name = 'gatepost.subscription.disabled'"), all);
  assert.equal(await stage.count("subscription_endings"), 0);
});

test("clearEndedSubscriptions() changes at most 500 rows a step, and then pauses", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(3 * AT_ONCE);
  await stage.end({ app: stage.app });
  let endedMs = -Infinity;
  let steps = 0;
  const slow: Database = {
    ...stage.database,
    async write(statements) {
      const startedMs = performance.now();
      assert.ok(startedMs - endedMs >= 59, `a step came ${startedMs - endedMs} ms after another`);
      const changes = await stage.database.write(statements);
      assert.ok(Math.max(...changes) <= AT_ONCE, String(changes));
      await new Promise((resolve) => setTimeout(resolve, 20));
      endedMs = performance.now();
      steps++;
      return changes;
    },
  };
  await clearEndedSubscriptions(slow, () => NOW_MS, NEVER);
  assert.ok(steps >= 3, `${steps} steps`);
});

test("ending many subscriptions goes on where it was stopped", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(3 * AT_ONCE);
  await stage.end({ app: stage.app });
  const stop = new AbortController();
  const stopping: Database = {
    ...stage.database,
    write: (statements) => stage.database.write(statements).finally(() => stop.abort()),
  };
  await clearEndedSubscriptions(stopping, () => NOW_MS, stop.signal);
  assert.equal(await stage.dispatch(), 0);
  await stage.clear();
  assert.equal(await stage.count("subscriptions WHERE status = 'disabled'"), 3 * AT_ONCE);
});

test("a subscription made or set active after an ending is not ended by it", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(AT_ONCE + 1);
  const early = await stage.subscribe();
  await stage.end({ app: stage.app });
  const late = await stage.subscribe();
  await stage.database.write([updateSubscription(early.id, ACTIVE, early.grant)]);
  assert.equal(await stage.dispatch(), 2);
  await stage.clear();
  assert.deepEqual((await stage.list()).slice(-2), [
    { id: early.id, status: "active", reason: null },
    { id: late.id, status: "active", reason: null },
  ]);
});

test("subscriptions of a deleted app are deleted, also those disabled before", async (t) => {
  const stage = await openStage(t);
  await stage.multiply(2 * AT_ONCE);
  await stage.database.write([
    sql`UPDATE subscriptions SET status = 'disabled' WHERE seq > ${2 * AT_ONCE - 3}`,
  ]);
  await stage.end({ app: stage.app }, { deletes: true });
  await stage.clear();
  assert.equal(await stage.count("subscriptions WHERE status = 'deleted'"), 2 * AT_ONCE);
  // What was disabled has been announced already.
  const announced = "events WHERE name = 'gatepost.subscription.disabled'";
  assert.equal(await stage.count(announced), 2 * AT_ONCE - 3);
});

test("a lost scope ends the subscriptions of grants that have it, for any token", async (t) => {
  const stage = await openStage(t);
  const [both, narrowed, other] = [
    await stage.subscribe(["consumer", "orders"]),
    await stage.subscribe(["consumer", "orders"], ["consumer"]),
    await stage.subscribe(["consumer"]),
  ];
  await stage.end({ app: stage.app }, { scopes: ["orders", "stock"] });
  assert.deepEqual((await stage.list()).map(({ id, status }) => [id, status]), [
    [both.id, "disabled"],
    [narrowed.id, "disabled"],
    [other.id, "active"],
  ]);
});

test("endSubscriptions() ends those of an app for a user, of a grant or of a user", async (t) => {
  const stage = await openStage(t);
  const [first, second, third, spared] = [
    await stage.subscribe(),
    await stage.subscribe(),
    await stage.subscribe(),
    await stage.subscribe(),
  ];
  await stage.end({ user: first.principal, app: stage.app });
  await stage.end({ grant: second.grant.id });
  await stage.end({ user: third.principal });
  assert.deepEqual(
    (await stage.list()).filter(({ status }) => status === "active").map(({ id }) => id),
    [spared.id],
  );
});

test("an ended subscription becomes active again only by a grant", async (t) => {
  const stage = await openStage(t);
  const { id, grant } = await stage.subscribe();
  await stage.end({ grant: grant.id });
  assert.deepEqual(await stage.database.write([updateSubscription(id, ACTIVE)]), [0]);
  assert.deepEqual(await stage.database.write([updateSubscription(id, ACTIVE, grant)]), [1]);
  assert.equal(await stage.dispatch(), 1);
});

test("an app's subscription set active by its user has the scopes of that login", async (t) => {
  const stage = await openStage(t);
  const { id, principal, grant } = await stage.subscribe();
  const login = { id: grant.id, scopes: ["consumer"] };
  await stage.database.write([updateSubscription(id, ACTIVE, login)]);
  assert.equal(await stage.dispatch(), 1);
  await stage.database.write([declareEvents([{ name: "a", scope: ["orders"] }])]);
  assert.equal(await stage.dispatch(), 0);
  await stage.end({ user: principal }, { scopes: ["consumer"] });
  assert.deepEqual((await stage.list()).map(({ status }) => status), ["disabled"]);
});

test("the grant, the app and the user must each have the scopes of an event", async (t) => {
  const stage = await openStage(t);
  const { database } = stage;
  await database.write([declareEvents([{ name: "a", scope: ["consumer"] }])]);
  const granted = await stage.subscribe(["consumer", "orders"]);
  await stage.subscribe(["consumer"]);
  await database.write([declareEvents([{ name: "a", scope: ["orders"] }])]);
  assert.equal(await stage.dispatch(), 1);
  for (const [table, id] of [["apps", stage.app], ["users", granted.principal]] as const) {
    const setScopes = (scopes: readonly string[]) =>
      database.write([{
        sql: `UPDATE ${table} SET scopes = ? WHERE id = ?`,
        params: [JSON.stringify(scopes), id],
      }]);
    await setScopes(["consumer"]);
    assert.equal(await stage.dispatch(), 0, table);
    await setScopes(["consumer", "orders"]);
    assert.equal(await stage.dispatch(), 1, table);
    await setScopes(["orders"]);
    assert.equal(await stage.dispatch(), 0, `${table} without scope consumer`);
    await setScopes(["consumer", "orders"]);
  }
});

test("an event has the scopes of its last declaration, whatever others declare", async (t) => {
  const database = openDatabase(t);
  const declare = (name: string, scope: readonly string[]) =>
    database.write([declareEvents([{ name, scope }])]);
  assert.deepEqual(await findEventScopes(database, "a"), []);
  await declare("a", ["orders", "audit"]);
  await declare("b", []);
  assert.deepEqual(await findEventScopes(database, "a"), ["orders", "audit"]);
  await declare("a", []);
  assert.deepEqual(await findEventScopes(database, "a"), []);
});

test("a subscription of 0.1.0 gets the newest earlier grant that has not ended", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const old = openEmptyOldDatabase(path);
  const at = (ms: number) => newId("g", NOW_MS + ms);
  const grants = {
    older: at(1),
    newer: at(2),
    revoked: at(3),
    gone: at(4),
    tooOld: at(5),
    itself: at(6),
    maker: at(7),
    narrower: at(9),
  };
  const insert = old.prepare(
    `INSERT INTO grants (id, app, user, type, scope, refresh_until, access_until, revoked_at)
     VALUES (?, 'a1', ?, 'authorization_code', ?, 0, 1, ?)`,
  );
  insert.run(grants.older, "u1", "consumer", null);
  insert.run(grants.newer, "u1", "consumer orders", null);
  insert.run(grants.revoked, "u1", "consumer orders", 7);
  insert.run(grants.gone, "u2", "consumer", 7);
  insert.run(grants.tooOld, "u3", "consumer", null);
  insert.run(grants.itself, null, "consumer orders", null);
  insert.run(grants.maker, "u5", "consumer orders", null);
  insert.run(grants.narrower, "u5", "consumer", null);
  old.exec(`
    INSERT INTO apps (id, name, url, origin, type, scope, grants, redirect_uris, trusted,
        resource_server, status, created_at)
      VALUES ('a1', 'A', 'https://a.example', '', 'confidential', 'consumer orders', '', '[]', 0, 0,
        'active', 1);
    INSERT INTO users (id, username, password, scope, status, created_at, cut_at)
      SELECT value, value, '', 'consumer orders', 'active', 1,
        CASE value WHEN 'u3' THEN ${NOW_MS + 5} WHEN 'u1' THEN ${NOW_MS + 1} ELSE 0 END
      FROM json_each('["u1", "u2", "u3", "u4", "u5"]');
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, created_at)
      SELECT 's' || key, value ->> 0, value ->> 1, 'e', 'https://a.example/' || key,
        value ->> 2, '',
        iif(value ->> 0 = 'u5', ${NOW_MS + 8}, 1)
        FROM json_each('[["u1", "login", "active"], ["u1", "a1", "paused"], ["u2", "a1", "active"],
        ["u3", "a1", "active"], ["u4", "a1", "active"], ["a1", "a1", "active"],
        ["u2", "a1", "deleted"], ["u5", "a1", "active"]]')`);
  const before = old.prepare(
    `SELECT seq, id, principal, app, event, endpoint, secret, created_at FROM subscriptions`,
  );
  const known = before.all().map((row) => ({ ...row }));
  old.close();

  const database = openSqliteDatabase(path);
  t.after(() => database.close());
  assert.deepEqual(
    await database.query(sql`SELECT seq, id, principal, app, event, endpoint, secret,
      createdAtMs AS created_at FROM subscriptions`),
    known,
  );
  const rows = await database.query<Record<string, unknown>>(
    sql`SELECT id, status, disabledReason, grantId, granted FROM subscriptions ORDER BY seq`,
  );
  assert.deepEqual(rows.map((row) => Object.values(row)), [
    ["s0", "active", null, null, null],
    ["s1", "paused", null, grants.newer, '["consumer","orders"]'],
    ["s2", "disabled", "grant revoked", null, "[]"],
    ["s3", "disabled", "grant revoked", null, "[]"],
    ["s4", "active", null, null, '["consumer"]'],
    ["s5", "active", null, grants.itself, '["consumer","orders"]'],
    ["s6", "deleted", null, null, "[]"],
    ["s7", "active", null, grants.maker, '["consumer","orders"]'],
  ]);
});

test("a subscription of 0.1.0 without a grant keeps the scopes that need no consent", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const old = openEmptyOldDatabase(path);
  const later = newId("g", NOW_MS + 9);
  const narrow = newId("g", NOW_MS + 1);
  old.exec(`
    INSERT INTO apps (id, name, url, origin, type, scope, grants, redirect_uris, trusted,
        resource_server, status, created_at)
      SELECT value, value, 'https://a.example', '', 'confidential', 'consumer orders backend',
        iif(value = 'typed', 'password', ''), '[]', value = 'trusted', 0, 'active', 1
        FROM json_each('["a1", "narrow", "trusted", "typed"]');
    INSERT INTO users (id, username, password, scope, status, created_at)
      SELECT value, value, '', 'consumer orders backend', 'active', 1
        FROM json_each('["allowed", "asked", "back"]');
    INSERT INTO consents (user, app, scope)
      SELECT value, 'a1', 'consumer orders' FROM json_each('["allowed", "back"]');
    INSERT INTO grants (id, app, user, type, scope, refresh_until, access_until)
      VALUES ('${later}', 'a1', 'back', 'authorization_code', 'consumer', 0, 1),
        ('${narrow}', 'narrow', NULL, 'client_credentials', 'orders', 0, 1);
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, created_at)
      SELECT key, value ->> 0, value ->> 1, 'e', 'https://a.example/' || key, 'active',
        '', ${NOW_MS + 5} FROM json_each('[["a1", "a1"], ["narrow", "narrow"],
        ["allowed", "a1"], ["asked", "a1"], ["asked", "trusted"], ["asked", "typed"],
        ["back", "a1"]]')`);
  old.close();

  const database = openSqliteDatabase(path);
  t.after(() => database.close());
  const rows = await database.query<Record<string, unknown>>(
    sql`SELECT principal, app, status, grantId, granted FROM subscriptions ORDER BY seq`,
  );
  assert.deepEqual(rows.map((row) => Object.values(row)), [
    ["a1", "a1", "active", null, '["consumer","orders","backend"]'],
    ["narrow", "narrow", "active", null, '["consumer","orders","backend"]'],
    ["allowed", "a1", "active", null, '["consumer","orders"]'],
    ["asked", "a1", "active", null, '["consumer"]'],
    ["asked", "trusted", "active", null, '["consumer","orders"]'],
    ["asked", "typed", "active", null, '["consumer","orders"]'],
    ["back", "a1", "active", later, '["consumer","orders"]'],
  ]);
});
