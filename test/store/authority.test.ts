import assert from "node:assert/strict";
import { test } from "node:test";
import {
  declareEvents,
  ENDS,
  findEventScopes,
  LAST_ENDING,
  mayReceive,
} from "../../src/store/authority.ts";
import { sql } from "../../src/database/sql.ts";
import { updateSubscription } from "../../src/store/subscriptions.ts";
import { addApp, addUser, openDatabase, sampleApp } from "../helpers/database.ts";
import { ACTIVE, openStage } from "./authority_stage.ts";

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
