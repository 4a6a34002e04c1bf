import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import {
  revokeTokensOfApp,
  deleteApp,
  findApp,
  hasAppOrigin,
  insertApp,
  APP_LIST,
  replaceAppSecret,
  updateApp,
} from "../../src/store/apps.ts";
import { listPart } from "../../src/store/list.ts";
import { findValue } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import { loadRevocations } from "../../src/store/revocations.ts";
import { addApp, addUser, openDatabase, sampleApp } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const [SECRET, NEXT, THIRD] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2), Buffer.alloc(32, 3)];

test("an app is found as it was stored, with the hash of its secret", async (t) => {
  const database = openDatabase(t);
  const app = sampleApp({
    scopes: ["a", "b"],
    grants: ["refresh_token", "password"],
    redirectUris: ["https://orders.example/cb?x=1", "https://orders.example/\"quoted\""],
    trusted: true,
    resourceServer: true,
  });
  await database.write([insertApp(app, SECRET)]);
  const found = await findApp(database, app.id);
  assert.ok(found);
  const { secret, oldSecret, oldSecretUntilMs, ...rest } = found;
  assert.deepEqual(rest, app);
  assert.deepEqual(Buffer.from(secret ?? []), SECRET);
  assert.equal(oldSecret, null);
  assert.equal(oldSecretUntilMs, null);
});

test("a public app has no secret, and lists may be empty", async (t) => {
  const database = openDatabase(t);
  const app = sampleApp({ type: "public", scopes: [], grants: [], redirectUris: [] });
  await database.write([insertApp(app, undefined)]);
  const found = await findApp(database, app.id);
  assert.equal(found?.secret, null);
  assert.deepEqual([found?.scopes, found?.grants, found?.redirectUris], [[], [], []]);
});

test("an unknown id finds no app, nor does `login`", async (t) => {
  const database = openDatabase(t);
  const id = await addApp(database);
  for (const other of ["", "login", id.slice(0, -1), id.toUpperCase()]) {
    assert.equal(await findApp(database, other), undefined);
  }
});

test("apps are listed newest first, page by page", async (t) => {
  const database = openDatabase(t);
  const ids: string[] = [];
  for (let at = 0; at < 3; at++) {
    ids.unshift(await addApp(database, { id: newId("a", NOW_MS + at) }));
  }
  const first = await listPart(database, APP_LIST, { limit: 2 });
  assert.deepEqual(first.items.map(({ id }) => id), ids.slice(0, 2));
  assert.ok(first.next !== undefined);
  const second = await listPart(database, APP_LIST, { limit: 2, cursor: first.next });
  assert.deepEqual(second.items.map(({ id }) => id), ids.slice(2));
  assert.equal(second.next, undefined);
});

test("hasAppOrigin() is true for the origins of active apps' URLs alone", async (t) => {
  const database = openDatabase(t);
  await addApp(database, { url: "https://orders.example:8443/app/" });
  await addApp(database, { url: "https://old.example/", status: "disabled" });
  const table: [origin: string, isKnown: boolean][] = [
    ["https://orders.example:8443", true],
    ["https://orders.example", false],
    ["http://orders.example:8443", false],
    ["https://orders.example:8443/", false],
    ["https://orders.example:8443/app/", false],
    ["https://evil.orders.example:8443", false],
    ["https://old.example", false],
    ["null", false],
    ["", false],
  ];
  for (const [origin, isKnown] of table) {
    assert.equal(await hasAppOrigin(database, origin, "off"), isKnown, origin);
  }
});

test("hasAppOrigin() is true for an app of a document while its host is allowed", async (t) => {
  const database = openDatabase(t);
  const origin = "https://client.example";
  await addApp(database, { url: origin, metadataUrl: `${origin}/oauth/client.json` });
  assert.equal(await hasAppOrigin(database, origin, "on"), true);
  assert.equal(await hasAppOrigin(database, origin, ["client.example"]), true);
  assert.equal(await hasAppOrigin(database, origin, ["other.example"]), false);
  assert.equal(await hasAppOrigin(database, origin, "off"), false);
});

test("updateApp() stores the changed fields, and the origin with the URL", async (t) => {
  const database = openDatabase(t);
  const before = sampleApp();
  await database.write([insertApp(before, SECRET)]);
  const after = {
    ...before,
    name: "Harbour",
    url: "https://harbour.example/",
    scopes: [],
    redirectUris: ["https://harbour.example/cb"],
    trusted: true,
    status: "disabled" as const,
  };
  await database.write([updateApp(before, after)]);
  const found = await findApp(database, before.id);
  assert.ok(found);
  const { secret, oldSecret: _, oldSecretUntilMs: __, ...rest } = found;
  assert.deepEqual(rest, after);
  assert.deepEqual(Buffer.from(secret ?? []), SECRET);
  await database.write([updateApp(after, { ...after, status: "active" })]);
  assert.equal(await hasAppOrigin(database, "https://harbour.example", "off"), true);
  assert.equal(await hasAppOrigin(database, "https://orders.example", "off"), false);
});

test("updateApp() of an app that has changed meanwhile stores nothing of its batch", async (t) => {
  const database = openDatabase(t);
  const read = sampleApp();
  await database.write([insertApp(read, SECRET)]);
  await database.write([updateApp(read, { ...read, status: "disabled" })]);
  const stale = updateApp(read, { ...read, name: "Renamed" });
  await assert.rejects(
    database.write([replaceAppSecret(read.id, NEXT, 0), stale]),
    { name: "ConflictError" },
  );
  const found = await findApp(database, read.id);
  assert.deepEqual([found?.status, found?.name], ["disabled", read.name]);
  assert.deepEqual(Buffer.from(found?.secret ?? []), SECRET);
});

test("replaceAppSecret() keeps the previous secret until its time, and no older one", async (t) => {
  const database = openDatabase(t);
  const app = sampleApp();
  await database.write([insertApp(app, SECRET)]);
  await database.write([replaceAppSecret(app.id, NEXT, NOW_MS + HOUR_MS)]);
  const found = await findApp(database, app.id);
  assert.deepEqual(Buffer.from(found?.secret ?? []), NEXT);
  assert.deepEqual(Buffer.from(found?.oldSecret ?? []), SECRET);
  assert.equal(found?.oldSecretUntilMs, NOW_MS + HOUR_MS);
  await database.write([replaceAppSecret(app.id, THIRD, NOW_MS)]);
  const later = await findApp(database, app.id);
  assert.deepEqual(Buffer.from(later?.secret ?? []), THIRD);
  assert.deepEqual(Buffer.from(later?.oldSecret ?? []), NEXT);
  assert.equal(later?.oldSecretUntilMs, NOW_MS);
});

test("revokeTokensOfApp() ends the tokens of earlier grants, its own and its users'", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  const revocations = await loadRevocations(database, () => NOW_MS);
  await database.write(revokeTokensOfApp(app, NOW_MS + 10, HOUR_MS));
  await revocations.refresh();
  const caller = (sub: string, clientId: string, atMs: number) => {
    const grantId = newId("g", atMs);
    return { sub, clientId, grantId, jti: `${grantId}0` };
  };
  assert.equal(revocations.has(caller(user, app, NOW_MS)), true);
  assert.equal(revocations.has(caller(app, app, NOW_MS + 10)), true);
  assert.equal(revocations.has(caller(app, app, NOW_MS + 20)), false);
  assert.equal(revocations.has(caller(user, "login", NOW_MS)), false);
  const end = sql`SELECT notBeforeMs FROM apps WHERE id = ${app}`;
  assert.equal(await findValue(database, end), NOW_MS + 10);
});

test("deleteApp() removes the app and all consents to it", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  await database.write([
    sql`INSERT INTO consents (user, app, scopes) VALUES (${user}, ${app}, '')`,
  ]);
  assert.deepEqual(await database.write([deleteApp(app)]), [1]);
  assert.equal(await findApp(database, app), undefined);
  assert.deepEqual(await database.query(sql`SELECT 1 FROM consents`), []);
  assert.equal(await hasAppOrigin(database, "https://orders.example", "off"), false);
});
