import assert from "node:assert/strict";
import { test } from "node:test";
import { idBound, idTimeMs, newId } from "../../src/base/id.ts";
import { type Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import {
  revokeAllOf,
  revokeBareGrant,
  REVOKED,
  revokeGrant,
  revokeGrantsOf,
  revokeOthersOf,
  revokeOwnOf,
} from "../../src/store/grant_end.ts";
import { findGrant, insertGrant } from "../../src/store/grants.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { findSession } from "../../src/store/sessions.ts";
import {
  addApp,
  addSession,
  addUser,
  countChanges,
  openDatabase,
  sampleGrant,
} from "../helpers/database.ts";
import {
  addGrants,
  addMany,
  callerOf,
  countValid,
  FIRST,
  HOUR_MS,
  listCodes,
  listRevoked,
  NOW_MS,
  openWithGrant,
  putCode,
  rotate,
  SECOND,
} from "../helpers/grant_stage.ts";

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

test("revokeBareGrant() ends one grant once, and none that has a refresh token", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const bare = { refresh: undefined, refreshUntilMs: 0 };
  const grants = {
    withRefreshToken: grant,
    one: sampleGrant(grant.app, grant.user, bare),
    other: sampleGrant(grant.app, grant.user, bare),
  };
  for (const each of [grants.one, grants.other]) assert.ok(await insertGrant(database, each));
  const revoke = (id: string) => database.write([revokeBareGrant(id, NOW_MS + 1)]);
  assert.deepEqual(await revoke(grant.id), [0]);
  assert.deepEqual(await revoke(grants.one.id), [1]);
  assert.deepEqual(await revoke(grants.one.id), [0]);
  assert.deepEqual(await listRevoked(database, grants), ["one"]);
});

test("revokeGrant() disables the subscriptions made by that grant, and no others", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const other = sampleGrant(grant.app, grant.user);
  await insertGrant(database, other);
  for (const each of [grant, other]) await subscribe(database, each.id, each);
  await database.write(revokeGrant(grant.id, NOW_MS + 1));
  assert.deepEqual(await subscribed(database), [other.id]);
});

test("revokeGrant() takes effect though the clock is behind the time of the grant", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const revocations = await loadRevocations(database, () => NOW_MS - HOUR_MS);
  await database.write(revokeGrant(grant.id, NOW_MS - HOUR_MS));
  await revocations.refresh();
  assert.equal(revocations.has(callerOf(grant)), true);
});

test("a second revokeGrant() changes nothing and stores no second revocation", async (t) => {
  const { database, grant } = await openWithGrant(t);
  for (const nowMs of [NOW_MS + 1, NOW_MS + 2, NOW_MS + 3]) {
    await database.write(revokeGrant(grant.id, nowMs));
  }
  assert.equal((await findGrant(database, grant.id))?.revokedAtMs, NOW_MS + 1);
  assert.equal((await database.query(sql`SELECT 1 FROM revocations`)).length, 1);
});

test("a revocation is kept until the grant's last access token expires", async (t) => {
  const { database, grant } = await openWithGrant(t);
  await database.write(revokeGrant(grant.id, NOW_MS + 1));
  const rows = await database.query<{ untilMs: number }>(sql`SELECT untilMs FROM revocations`);
  assert.deepEqual(rows.map(({ untilMs }) => untilMs), [grant.accessUntilMs]);
});

test("revoking one access token leaves the other tokens of its grant valid", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const one = callerOf(grant);
  await database.write([revocation(one.jti, NOW_MS + HOUR_MS, NOW_MS + HOUR_MS)]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  assert.equal(revocations.has(one), true);
  assert.equal(revocations.has({ ...one, jti: `${grant.id}another` }), false);
  assert.equal(await rotate(database, grant.id, FIRST, SECOND, { isGenuine: true }), true);
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
  await addGrants(database, grants);
  await database.write(revokeOwnOf(user, "login", NOW_MS + 1));
  assert.deepEqual(await listRevoked(database, grants), ["mine"]);
  await revokeAllOf(database, "login", NOW_MS + 2);
  assert.deepEqual(await listRevoked(database, grants), ["mine", "theirs"]);
});

test("revokeOwnOf() of a user's console ends its codes and subscriptions alone", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  for (const [app, by] of [["console", user], ["console", other], ["login", user]] as const) {
    await database.write([putCode(`${app} ${by}`, app, by)]);
    await subscribe(database, `${app} ${by}`, { app, user: by, id: null });
  }
  await database.write(revokeOwnOf(user, "login", NOW_MS));
  assert.equal((await listCodes(database)).length, 3, "logins have no codes to end");
  assert.deepEqual(await subscribed(database), [`console ${user}`, `console ${other}`].sort());
  await database.write(revokeOwnOf(user, "console", NOW_MS));
  assert.deepEqual(await listCodes(database), [`console ${other}`, `login ${user}`]);
  assert.deepEqual(await subscribed(database), [`console ${other}`]);
});

test("revokeOthersOf() ends all that acts for a user except one grant", async (t) => {
  const database = openDatabase(t);
  const app = await addApp(database);
  const [user, other] = [await addUser(database), await addUser(database)];
  const grants = {
    kept: sampleGrant(app, user),
    mine: sampleGrant(app, user),
    theirs: sampleGrant(app, other),
  };
  await addGrants(database, grants);
  const sessions = [await addSession(database, user), await addSession(database, other)] as const;
  for (const by of [user, other]) {
    await database.write([putCode(by, app, by)]);
    await subscribe(database, by, { app, user: by, id: null });
  }
  await database.write(revokeOthersOf(user, grants.kept.id, NOW_MS + 1));
  assert.deepEqual(await listRevoked(database, grants), ["mine"]);
  assert.deepEqual(await listCodes(database), [other]);
  assert.deepEqual(await subscribed(database), [other]);
  const left = await Promise.all(sessions.map((each) => findSession(database, each, NOW_MS)));
  assert.deepEqual(left.map((each) => each?.user), [undefined, other]);
});

test("revokeGrantsOf() ends grants, codes and subscriptions made ahead of the clock", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const { app, user } = grant;
  assert.ok(user);
  const early = NOW_MS - HOUR_MS;
  const other = sampleGrant(await addApp(database), user);
  await insertGrant(database, other);
  const ahead = newId("g", NOW_MS);
  await database.write([
    putCode(ahead, app, user),
    putCode(`${ahead}0`, other.app, user),
    putCode("g0", app, user), // of before
  ]);
  for (const each of [grant, other]) await subscribe(database, each.app, { ...each, id: null });
  await database.write(revokeGrantsOf({ app }, REVOKED, early, HOUR_MS));
  assert.deepEqual(await listRevoked(database, { grant, other }), ["grant"]);
  assert.deepEqual(await listCodes(database), ["g0", `${ahead}0`]);
  assert.deepEqual(await subscribed(database), [other.app]);
});

test("a revocation is kept as long as the longest-lived tokens of any process", async (t) => {
  const database = openDatabase(t);
  const untilMs = async (ttlMs: number) => {
    await database.write(revokeGrantsOf({ app: "a1" }, REVOKED, NOW_MS, ttlMs));
    const rows = await database.query<{ untilMs: number }>(
      sql`SELECT untilMs FROM revocations ORDER BY seq DESC`,
    );
    return rows[0]?.untilMs ?? 0;
  };
  assert.equal(await untilMs(HOUR_MS), NOW_MS + HOUR_MS + 1_000);
  for (const [kid, ttlMs] of [["k1", 3 * HOUR_MS], ["k2", 2 * HOUR_MS]] as const) {
    await database.write([sql`INSERT INTO keys
        (kid, alg, private, createdAtMs, signsFromMs, tokenTtlMs)
      VALUES (${kid}, 'ES256', '', 1, 1, ${ttlMs})`]);
  }
  assert.equal(await untilMs(HOUR_MS), NOW_MS + 3 * HOUR_MS);
  assert.equal(await untilMs(4 * HOUR_MS), NOW_MS + 4 * HOUR_MS + 1_000);
});

test("revokeAllOf() ends very many grants in bounded writes", async (t) => {
  const database = openDatabase(t);
  await addMany(database, "login", "consumer");
  const oldest = { id: idBound("g", 1).padEnd(25, "0") };
  const other = sampleGrant(await addApp(database), await addUser(database), oldest);
  assert.ok(await insertGrant(database, other));
  const { counted, changes } = countChanges(database);
  await revokeAllOf(counted, "login", NOW_MS + 1);
  assert.deepEqual(changes, [500, 500, 201]);
  assert.equal(await countValid(database), 1);
});

test("revokeGrantsOf() of logins ends those made up to its time, and no app's grant", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const login = sampleGrant("login", grant.user, { type: "login" });
  const revocations = await loadRevocations(database, () => NOW_MS);
  await database.write(revokeGrantsOf({ app: "login" }, REVOKED, idTimeMs(login.id), HOUR_MS));
  await revocations.refresh();
  assert.equal(revocations.has(callerOf(login)), true);
  assert.equal(revocations.has(callerOf({ ...login, id: newId("g", NOW_MS + HOUR_MS) })), false);
  assert.equal(revocations.has(callerOf(grant)), false);
});

/** Stores a subscription of a user through an app, by a grant where that is given. */
async function subscribe(
  database: Database,
  id: string,
  by: { readonly app: string; readonly user: string | null; readonly id: string | null },
): Promise<void> {
  await database.write([sql`INSERT INTO subscriptions
      (id, principal, app, event, endpoint, status, secret, createdAtMs, grantId)
    VALUES (${id}, ${by.user}, ${by.app}, ${id}, 'https://a.example/', 'active', '', 1,
      ${by.id})`]);
}

/** The ids of the subscriptions that are active. */
async function subscribed(database: Database): Promise<string[]> {
  const select = sql`SELECT id FROM subscriptions WHERE status = 'active' ORDER BY id`;
  return (await database.query<{ id: string }>(select)).map(({ id }) => id);
}
