import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { idTimeMs, newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { type Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import {
  revokeAllOf,
  REVOKED,
  revokeGrant,
  revokeGrantsOf,
  revokeGrantsWithScopes,
  revokeOwnOf,
} from "../../src/store/grant_end.ts";
import {
  findGrant,
  insertGrant,
  type NewGrant,
  rotateRefreshToken,
} from "../../src/store/grants.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { addApp, addUser, countChanges, openDatabase, sampleGrant } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

test("revokeGrant() ends a grant and its access tokens, and no other grant", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const other = sampleGrant(grant.app, grant.user);
  await insertGrant(database, other);
  const revocations = await loadRevocations(database, () => NOW_MS + 1);
  await database.write(revokeGrant(grant.id, NOW_MS + 1));
  await revocations.refresh();
  assert.equal((await findGrant(database, grant.id))?.revokedAtMs, NOW_MS + 1);
  assert.equal((await findGrant(database, other.id))?.revokedAtMs, null);
  assert.equal(revocations.has(callerOf(grant)), true);
  assert.equal(revocations.has(callerOf(other)), false);
});

test("revokeGrant() takes effect though the clock is before the grant's own time", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const revocations = await loadRevocations(database, () => NOW_MS - HOUR_MS);
  await database.write(revokeGrant(grant.id, NOW_MS - HOUR_MS));
  await revocations.refresh();
  assert.equal(revocations.has(callerOf(grant)), true);
});

test("revokeGrant() again changes nothing, and stores no second entry", async (t) => {
  const { database, grant } = await openWithGrant(t);
  for (const nowMs of [NOW_MS + 1, NOW_MS + 2, NOW_MS + 3]) {
    await database.write(revokeGrant(grant.id, nowMs));
  }
  assert.equal((await findGrant(database, grant.id))?.revokedAtMs, NOW_MS + 1);
  assert.equal((await database.query(sql`SELECT 1 FROM revocations`)).length, 1);
});

test("a revocation lasts as long as the grant's last access token", async (t) => {
  const { database, grant } = await openWithGrant(t);
  await database.write(revokeGrant(grant.id, NOW_MS + 1));
  const rows = await database.query<{ untilMs: number }>(sql`SELECT untilMs FROM revocations`);
  assert.deepEqual(rows.map(({ untilMs }) => untilMs), [grant.accessUntilMs]);
});

test("the revocation of a token ends it and nothing else of its grant", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const one = callerOf(grant);
  await database.write([revocation(one.jti, NOW_MS + HOUR_MS, NOW_MS + HOUR_MS)]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  assert.equal(revocations.has(one), true);
  assert.equal(revocations.has({ ...one, jti: `${grant.id}another` }), false);
  const rotation = {
    old: { grantId: grant.id, hash: sha256("first"), isGenuine: () => true },
    state: "current" as const,
    head: sha256("first"),
    newHash: sha256("second"),
    scopes: ["consumer"],
    refreshUntilMs: NOW_MS + 30 * HOUR_MS,
    accessUntilMs: NOW_MS + HOUR_MS,
  };
  assert.equal(await rotateRefreshToken(database, rotation, NOW_MS + 5), true);
});

test("revokeOwnOf() ends a user's logins, and revokeAllOf() those of all users", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const [user, otherUser] = [await addUser(database), await addUser(database)];
  const login = { type: "login", refresh: undefined, refreshUntilMs: 0 };
  const grants = {
    mine: sampleGrant("login", user, login),
    theirs: sampleGrant("login", otherUser, login),
    throughApp: sampleGrant(app, user),
  };
  for (const grant of Object.values(grants)) assert.ok(await insertGrant(database, grant));
  await database.write(revokeOwnOf(user, "login", NOW_MS + 1));
  assert.deepEqual(await revoked(database, grants), ["mine"]);
  await revokeAllOf(database, "login", NOW_MS + 2);
  assert.deepEqual(await revoked(database, grants), ["mine", "theirs"]);
});

test("revokeAllOf() ends very many in writes that are bounded", async (t) => {
  const database = openDatabase(t);
  await addMany(database, "login", "consumer");
  const { counted, changes } = countChanges(database);
  await revokeAllOf(counted, "login", NOW_MS + 1);
  assert.deepEqual(changes, [500, 500, 201]);
  assert.equal(await countValid(database), 0);
});

test("revokeGrantsOf() of logins ends those made by then, and no app's", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const login = sampleGrant("login", grant.user, { type: "login" });
  const revocations = await loadRevocations(database, () => NOW_MS);
  await database.write(revokeGrantsOf({ app: "login" }, REVOKED, idTimeMs(login.id), HOUR_MS));
  await revocations.refresh();
  assert.equal(revocations.has(callerOf(login)), true);
  assert.equal(revocations.has(callerOf({ ...login, id: newId("g", NOW_MS + HOUR_MS) })), false);
  assert.equal(revocations.has(callerOf(grant)), false);
});

test("revokeGrantsWithScopes() ends the grants that carry any, by whole names", async (t) => {
  const database = openDatabase(t);
  const scopes = ["a", "b", "ab", "a-b", "%", "orders"];
  const app = await addApp(database, { scopes });
  const user = await addUser(database, { scopes });
  const otherUser = await addUser(database, { scopes });
  const grants = {
    a: sampleGrant(app, user, { scopes: ["a"] }),
    last: sampleGrant(app, user, { scopes: ["b", "a"] }),
    ab: sampleGrant(app, user, { scopes: ["ab", "a-b"] }),
    percent: sampleGrant(app, user, { scopes: ["%"] }),
    theirs: sampleGrant(app, otherUser, { scopes: ["a"] }),
  };
  for (const grant of Object.values(grants)) assert.ok(await insertGrant(database, grant));

  await database.write(await revokeGrantsWithScopes(database, { user }, ["a", "none"], NOW_MS + 1));
  assert.deepEqual(await revoked(database, grants), ["a", "last"]);
  await database.write(await revokeGrantsWithScopes(database, { user }, ["%"], NOW_MS + 2));
  assert.deepEqual(await revoked(database, grants), ["a", "last", "percent"]);
  await database.write(await revokeGrantsWithScopes(database, { app }, ["a"], NOW_MS + 3));
  assert.deepEqual(await revoked(database, grants), ["a", "last", "percent", "theirs"]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  assert.equal(revocations.has(callerOf(grants.a)), true);
  assert.equal(revocations.has(callerOf(grants.ab)), false);
});

test("revokeGrantsWithScopes() ends the codes that carry any, too", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database, { scopes: ["a", "ab"] });
  const otherUser = await addUser(database, { scopes: ["a", "ab"] });
  const app = await addApp(database, { scopes: ["a", "ab"] });
  const insert = (id: string, by: string, scopes: readonly string[]) =>
    sql`INSERT INTO codes (id, hash, app, user, scopes, redirectUri, untilMs)
       VALUES (${id}, x'00', ${app}, ${by}, ${JSON.stringify(scopes)}, '', 1)`;
  await database.write([
    insert("g1", user, ["ab", "a"]),
    insert("g2", user, ["ab"]),
    insert("g3", otherUser, ["a"]),
  ]);
  const codes = async () =>
    (await database.query<{ id: string }>(sql`SELECT id FROM codes`)).map(({ id }) => id);
  await database.write(await revokeGrantsWithScopes(database, { user }, ["a"], NOW_MS));
  assert.deepEqual(await codes(), ["g2", "g3"]);
  await database.write(await revokeGrantsWithScopes(database, { app }, ["a"], NOW_MS));
  assert.deepEqual(await codes(), ["g2"]);
});

test("revokeGrantsWithScopes() ends very many of an app in writes that are bounded", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  await addMany(database, app, "orders");
  const user = await addUser(database);
  const others = {
    without: sampleGrant(app, user),
    elsewhere: sampleGrant(await addApp(database), user, { scopes: ["orders"] }),
  };
  for (const grant of Object.values(others)) assert.ok(await insertGrant(database, grant));
  const { counted, changes } = countChanges(database);
  const batch = await revokeGrantsWithScopes(counted, { app }, ["orders"], NOW_MS + 1);
  assert.deepEqual(changes, [500, 500], "what fits one step is left to the batch");
  const meanwhile = sampleGrant(app, user, { id: newId("g", NOW_MS), scopes: ["orders"] });
  assert.ok(await insertGrant(database, meanwhile));
  await counted.write(batch);
  assert.equal(changes[2], 202);
  assert.equal(await countValid(database), 2);
  assert.deepEqual(await revoked(database, { ...others, meanwhile }), ["meanwhile"]);
});

test("revokeGrantsWithScopes() writes nothing of its own where a step is enough", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const { counted, changes } = countChanges(database);
  const batch = await revokeGrantsWithScopes(counted, { app: grant.app }, grant.scopes, NOW_MS + 1);
  assert.deepEqual(changes, []);
  await database.write(batch);
  assert.equal(await countValid(database), 0);
});

test("revokeGrantsWithScopes() of no scopes does nothing", async (t) => {
  const database = openDatabase(t);
  assert.deepEqual(await revokeGrantsWithScopes(database, { user: "u" }, [], NOW_MS), []);
});

/** Stores 1,201 valid grants of as many users. */
async function addMany(database: Database, app: string, scope: string): Promise<void> {
  await database.write([sql`INSERT INTO grants
     (id, app, user, type, scopes, refreshUntilMs, accessUntilMs)
     WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1201)
     SELECT 'g' || printf('%06d', i), ${app}, 'u' || i, 'any', ${JSON.stringify([scope])}, 0,
       ${NOW_MS + HOUR_MS} FROM n`]);
}

async function countValid(database: Database): Promise<number> {
  return (await database.query(sql`SELECT 1 FROM grants WHERE revokedAtMs IS NULL`)).length;
}

async function openWithGrant(t: TestContext) {
  const database = openDatabase(t);
  const grant = sampleGrant(await addApp(database), await addUser(database));
  assert.equal(await insertGrant(database, grant), true);
  return { database, grant };
}

function callerOf({ id, app, user }: NewGrant) {
  return { jti: `${id}0123456789abcdef`, grantId: id, sub: user ?? app, clientId: app };
}

/** The names of those that have been revoked. */
async function revoked(
  database: Database,
  grants: Readonly<Record<string, NewGrant>>,
): Promise<string[]> {
  const names: string[] = [];
  for (const [name, { id }] of Object.entries(grants)) {
    if ((await findGrant(database, id))?.revokedAtMs !== null) names.push(name);
  }
  return names;
}
