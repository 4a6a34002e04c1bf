import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { idTimeMs, newId } from "../../src/base/id.ts";
import { revokeTokensOfApp, deleteApp } from "../../src/store/apps.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { NEWEST } from "../../src/database/rows.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { revokeGrant } from "../../src/store/grant_end.ts";
import { findGrant, insertGrant, listGrants, type NewGrant } from "../../src/store/grants.ts";
import { revokeTokensOfUser, deleteUser } from "../../src/store/users.ts";
import { addApp, addUser, changeUser, openDatabase, sampleGrant } from "../helpers/database.ts";
import {
  find,
  FIRST,
  HOUR_MS,
  NOW_MS,
  openWithGrant,
  rotate,
  SECOND,
} from "../helpers/grant_stage.ts";

test("a grant is found as it was stored", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const { refresh: _, ...rest } = grant;
  assert.deepEqual({ ...await findGrant(database, grant.id) }, { ...rest, revokedAtMs: null });
  assert.equal(await findGrant(database, newId("g", NOW_MS)), undefined);
});

test("an app's grant for itself has no user, and a login's grant no stored app", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  const own = sampleGrant(app, null, { type: "client_credentials" });
  const login = sampleGrant("login", user, { type: "login" });
  assert.equal(await insertGrant(database, own), true);
  assert.equal(await insertGrant(database, login), true);
  assert.equal((await findGrant(database, own.id))?.user, null);
  assert.equal((await findGrant(database, login.id))?.app, "login");
});

describe("no grant is stored and no refresh token is rotated if, at the commit,", () => {
  type Change = (database: Database, grant: NewGrant) => Promise<unknown>;
  const table: [what: string, change: Change][] = [
    ["the user was disabled", (database, { user }) =>
      changeUser(database, user ?? "", { status: "disabled" })],
    ["the user was deleted", (database, { user }) => database.write([deleteUser(user ?? "")])],
    ["the user's tokens were revoked", (database, { user, id }) =>
      database.write(revokeTokensOfUser(user ?? "", idTimeMs(id), 1))],
    ["the user has lost a scope", (database, { user }) =>
      changeUser(database, user ?? "", { scopes: ["orders"] })],
    ["the app was disabled", (database, { app }) =>
      database.write([sql`UPDATE apps SET status = 'disabled' WHERE id = ${app}`])],
    ["the app was deleted", (database, { app }) => database.write([deleteApp(app)])],
    ["the app's tokens were revoked", (database, { app, id }) =>
      database.write(revokeTokensOfApp(app, idTimeMs(id), 1))],
    ["the app has lost a scope", (database, { app }) => database.write([
      sql`UPDATE apps SET scopes = '["orders","consumerx"]' WHERE id = ${app}`,
    ])],
  ];
  for (const [what, change] of table) {
    test(what, async (t) => {
      const { database, grant } = await openWithGrant(t);
      await change(database, grant);
      assert.equal(await rotate(database, grant.id, FIRST, SECOND), false);
      assert.equal((await find(database, grant.id, FIRST))?.state, "current");
      assert.equal(await find(database, grant.id, SECOND), undefined);
      const late = { ...grant, id: grant.id.slice(0, -1) + (grant.id.endsWith("0") ? "1" : "0") };
      assert.equal(await insertGrant(database, late), false);
      assert.equal(await findGrant(database, late.id), undefined);
    });
  }
});

test("a grant decided before its user's tokens were revoked is refused", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  await database.write(revokeTokensOfUser(user, NOW_MS, HOUR_MS));
  const later = newId("g", NOW_MS + HOUR_MS);
  const grant = sampleGrant(app, user, { id: later });
  assert.equal(await insertGrant(database, { ...grant, decidedAtMs: NOW_MS }), false);
  assert.equal(await insertGrant(database, { ...grant, decidedAtMs: NOW_MS + 1 }), true);
});

test("an audit entry is stored only together with its grant", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const user = await addUser(database);
  const entry = { actor: user, action: "user.login", target: user, address: "192.0.2.1" };
  assert.equal(await insertGrant(database, sampleGrant(app, user), entry), true);
  assert.equal((await database.query(sql`SELECT 1 FROM audit`)).length, 1);
  const bad = sampleGrant(app, user, { scopes: ["none"] });
  assert.equal(await insertGrant(database, bad, entry), false);
  assert.equal((await database.query(sql`SELECT 1 FROM audit`)).length, 1);
});

describe("simultaneous grants of apps for themselves", () => {
  /** Grants of two apps, of which the second may not have the scope, and the writes they cost. */
  async function insertTogether(t: TestContext, fail?: (call: "query" | "write") => void) {
    const real = openDatabase(t);
    const [app, other] = [await addApp(real), await addApp(real, { scopes: ["orders"] })];
    const grants = [app, other, app, app].map((id) =>
      sampleGrant(id, null, { refresh: id === other ? undefined : FIRST })
    );
    let writes = 0;
    const database: Database = {
      ...real,
      async query<Row>(select: Sql) {
        fail?.("query");
        return real.query<Row>(select);
      },
      async write(batch) {
        writes++;
        const changes = await real.write(batch);
        fail?.("write");
        return changes;
      },
    };
    const results = await Promise.allSettled(grants.map((grant) => insertGrant(database, grant)));
    return { real, grants, results, writes };
  }

  test("are stored in one write, in which a refused one does not fail the others", async (t) => {
    const { real, grants, results, writes } = await insertTogether(t);
    assert.equal(writes, 1);
    const stored = results.map((each) => each.status === "fulfilled" && each.value);
    assert.deepEqual(stored, [true, false, true, true]);
    for (const [at, { refresh: _, ...grant }] of grants.entries()) {
      const found = await findGrant(real, grant.id);
      assert.deepEqual(found && { ...found }, stored[at] ? { ...grant, revokedAtMs: null }
        : undefined);
      assert.equal((await find(real, grant.id, FIRST))?.state, stored[at] ? "current" : undefined);
    }
  });

  for (const failing of ["query", "write"] as const) {
    test(`all have an unknown outcome if the ${failing} fails`, async (t) => {
      const { results } = await insertTogether(t, (call) => {
        if (call !== failing) return;
        throw call === "query" ? new UnavailableError("down") : new OutcomeUnknownError("down");
      });
      const names = results.map((each) => each.status === "rejected" && each.reason.name);
      assert.deepEqual(names, Array(4).fill("OutcomeUnknownError"));
    });
  }

  test("are stored with their audit entries", async (t) => {
    const database = openDatabase(t);
    const app = await addApp(database);
    const entry = { actor: app, action: "test", target: app, address: null };
    const grants = [sampleGrant(app, null), sampleGrant(app, null, { scopes: ["none"] })];
    const results = await Promise.all(grants.map((grant) => insertGrant(database, grant, entry)));
    assert.deepEqual(results, [true, false]);
    assert.equal((await database.query(sql`SELECT 1 FROM audit`)).length, 1);
  });
});

test("listGrants() lists by user, by app, by both, or all, newest first", async (t) => {
  const database = openDatabase(t);
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  const [user, otherUser] = [await addUser(database), await addUser(database)];
  const made = [
    sampleGrant(app, user),
    sampleGrant(otherApp, user),
    sampleGrant(app, otherUser),
    sampleGrant(app, null),
  ];
  for (const grant of made) assert.ok(await insertGrant(database, grant));
  const [first, second, third, fourth] = made.map(({ id }) => id);
  const list = async (filter: { user?: string; app?: string }) =>
    (await listGrants(database, { ...filter, limit: 9 }, NOW_MS)).items
      .map(({ id }) => id);
  assert.deepEqual(await list({}), [fourth, third, second, first]);
  assert.deepEqual(await list({ user }), [second, first]);
  assert.deepEqual(await list({ app }), [fourth, third, first]);
  assert.deepEqual(await list({ user, app }), [first]);
  assert.deepEqual(await list({ user: "u0" }), []);
  const page = await listGrants(database, { limit: 3 }, NOW_MS);
  assert.equal(page.items.length, 3);
  const rest = await listGrants(database, { limit: 3, cursor: page.next ?? "" }, NOW_MS);
  assert.deepEqual(rest.items.map(({ id }) => id), [first]);
});

test("listGrants() lists a user's ended grants in order among the others", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const { app } = grant;
  const user = grant.user ?? "";
  const made = [grant, ...Array.from({ length: 6 }, () => sampleGrant(app, user))];
  for (const more of made.slice(1)) assert.ok(await insertGrant(database, more));
  for (const at of [0, 2, 3, 5]) {
    await database.write(revokeGrant(made[at]?.id ?? "", NOW_MS + 1));
  }
  for (const filter of [{ user }, { user, app }]) {
    const found: string[] = [];
    for (let cursor: string | undefined = NEWEST; cursor !== undefined;) {
      const given = { ...filter, limit: 2, cursor };
      const { items, next } = await listGrants(database, given, NOW_MS + 1);
      found.push(...items.map(({ id, status }) => `${id} ${status}`));
      cursor = next;
    }
    const states = ["revoked", "active", "revoked", "revoked", "active", "revoked", "active"];
    assert.deepEqual(found, made.map(({ id }, at) => `${id} ${states[at]}`).toReversed());
  }
});

test("listGrants() gives the status of each grant", async (t) => {
  const ends = { accessUntilMs: NOW_MS + HOUR_MS, refreshUntilMs: NOW_MS + 9 * HOUR_MS };
  const { database, grant } = await openWithGrant(t, ends);
  const revoked = sampleGrant(grant.app, await addUser(database));
  const gone = sampleGrant(grant.app, await addUser(database));
  const login = sampleGrant("login", grant.user, { type: "login" });
  for (const more of [revoked, gone, login]) assert.ok(await insertGrant(database, more));
  await database.write(revokeTokensOfUser(revoked.user ?? "", idTimeMs(revoked.id), HOUR_MS));
  await database.write([deleteUser(gone.user ?? "")]);
  const statuses = async (nowMs: number) =>
    (await listGrants(database, { limit: 9 }, nowMs)).items
      .map(({ status }) => status);
  assert.deepEqual(await statuses(NOW_MS + 1), ["active", "revoked", "revoked", "active"]);
  assert.equal((await statuses(ends.refreshUntilMs - 1)).at(-1), "active");
  const later = await statuses(NOW_MS + 99 * HOUR_MS);
  assert.deepEqual(later, ["expired", "revoked", "revoked", "expired"]);
  await database.write(revokeGrant(grant.id, NOW_MS + 1));
  assert.deepEqual(await statuses(NOW_MS + 1), ["active", "revoked", "revoked", "revoked"]);
});
