import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { idBound } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { type Database } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { revokeTokensOfApp } from "../../src/store/apps.ts";
import { insertCode, redeemCode } from "../../src/store/codes.ts";
import { withdrawConsent } from "../../src/store/consents.ts";
import { dateEndsAhead } from "../../src/store/ends_ahead.ts";
import { REVOKED, revokeGrantsOf } from "../../src/store/grant_end.ts";
import { findGrant, insertGrant } from "../../src/store/grants.ts";
import { loadRevocations } from "../../src/store/revocations.ts";
import { findSession, insertSession } from "../../src/store/sessions.ts";
import { revokeTokensOfUser } from "../../src/store/users.ts";
import { addApp, addSession, addUser, openDatabase, sampleGrant } from "../helpers/database.ts";
import { HOUR_MS, NOW_MS } from "../helpers/grant_stage.ts";
import { sampleCode, sampleRedemption } from "./code_stage.ts";

/** A time that the clock showed before it was set back. */
const AHEAD_MS = NOW_MS + 400 * 24 * HOUR_MS;

/** The id of a grant that was made then, whatever ids were made before. */
const grantId = (atMs: number) => idBound("g", atMs).padEnd(25, "0");

const addGrant = (database: Database, app: string, user: string, atMs: number) =>
  insertGrant(database, sampleGrant(app, user, {
    id: grantId(atMs),
    refreshUntilMs: atMs + 20 * HOUR_MS,
    accessUntilMs: atMs + HOUR_MS,
  }));

type End = (user: string, app: string) => readonly Sql[];
const ENDS: [of: string, app: string | undefined, end: End][] = [
  ["a user", undefined, (user) => revokeTokensOfUser(user, AHEAD_MS, HOUR_MS)],
  ["an app", undefined, (_user, app) => revokeTokensOfApp(app, AHEAD_MS, HOUR_MS)],
  ["an app for a user", undefined, (user, app) =>
    withdrawConsent(user, app, REVOKED, AHEAD_MS, HOUR_MS)],
  ["the login endpoint", "login", (_user, app) =>
    revokeGrantsOf({ app }, REVOKED, AHEAD_MS, HOUR_MS)],
];

for (const [of, builtIn, end] of ENDS) {
  describe(`when the clock is set back to before a revocation of ${of},`, () => {
    async function openStage(t: TestContext) {
      const database = openDatabase(t);
      const user = await addUser(database);
      const app = builtIn ?? await addApp(database);
      const caller = (atMs: number) => ({
        sub: user, clientId: app, grantId: grantId(atMs), jti: `${grantId(atMs)}1`,
      });
      for (const atMs of [NOW_MS - HOUR_MS, AHEAD_MS - HOUR_MS, AHEAD_MS]) {
        await addGrant(database, app, user, atMs);
      }
      await database.write(end(user, app));
      await addGrant(database, app, user, AHEAD_MS + 1);
      return { database, user, app, caller };
    }

    test("revoked tokens stay revoked, also for a process that starts then", async (t) => {
      const { database, caller } = await openStage(t);
      const early = await loadRevocations(database, () => NOW_MS);
      await dateEndsAhead(database, NOW_MS);
      await early.refresh();
      for (const revocations of [early, await loadRevocations(database, () => NOW_MS)]) {
        assert.equal(revocations.has(caller(NOW_MS - HOUR_MS)), true);
        assert.equal(revocations.has(caller(AHEAD_MS - HOUR_MS)), true);
        assert.equal(revocations.has(caller(AHEAD_MS)), true);
        assert.equal(revocations.has(caller(AHEAD_MS + 1)), false);
      }
      assert.equal((await findGrant(database, grantId(AHEAD_MS + 1)))?.revokedAtMs, null);
    });

    test("tokens that are issued then are valid", async (t) => {
      const { database, user, app, caller } = await openStage(t);
      const early = await loadRevocations(database, () => NOW_MS);
      await dateEndsAhead(database, NOW_MS);
      assert.equal(await addGrant(database, app, user, NOW_MS + 1), true);
      await dateEndsAhead(database, NOW_MS + 2); // the next start
      await early.refresh();
      for (const revocations of [early, await loadRevocations(database, () => NOW_MS)]) {
        assert.equal(revocations.has(caller(NOW_MS + 1)), false);
      }
    });
  });
}

test("after the clock is set back ended sessions stay ended, and new ones are valid", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const [old, young] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const untilMs = AHEAD_MS + 12 * HOUR_MS;
  await database.write([
    ...revokeTokensOfUser(user, AHEAD_MS, HOUR_MS),
    insertSession(old, user, AHEAD_MS, untilMs), // its password was checked before
  ]);
  await dateEndsAhead(database, NOW_MS);
  await database.write([insertSession(young, user, NOW_MS + 1, untilMs)]);
  assert.equal(await findSession(database, old, NOW_MS + 1), undefined);
  assert.equal((await findSession(database, young, NOW_MS + 1))?.user, user);
});

test("a revoked code cannot be redeemed after the clock is set back", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  const session = await addSession(database, user);
  const hash = sha256("code");
  const lives = { id: grantId(AHEAD_MS - 1_000), untilMs: AHEAD_MS + 59_000 };
  const code = sampleCode(app, user, lives);
  await database.write([insertCode(code, hash, session, AHEAD_MS - 1_000)]);
  await database.write(revokeTokensOfApp(app, AHEAD_MS, HOUR_MS));
  await dateEndsAhead(database, NOW_MS);
  const redemption = sampleRedemption(code, hash, { accessUntilMs: AHEAD_MS });
  assert.equal(await redeemCode(database, redemption, NOW_MS + 1), false);
});

test("a session begun later, or whose user only withdrew a consent, stays valid", async (t) => {
  const database = openDatabase(t);
  const [since, other] = [await addUser(database), await addUser(database)];
  const app = await addApp(database);
  await database.write([
    ...revokeTokensOfUser(since, AHEAD_MS, HOUR_MS),
    ...withdrawConsent(other, app, REVOKED, AHEAD_MS, HOUR_MS),
  ]);
  const sessions = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const;
  const untilMs = AHEAD_MS + 12 * HOUR_MS;
  await database.write([
    insertSession(sessions[0], since, AHEAD_MS + 1, untilMs),
    insertSession(sessions[1], other, AHEAD_MS - HOUR_MS, untilMs),
  ]);
  await dateEndsAhead(database, NOW_MS);
  const found = sessions.map((hash) => findSession(database, hash, NOW_MS + 1));
  assert.deepEqual((await Promise.all(found)).map((each) => each?.user), [since, other]);
});

test("others keep tokens, codes and sessions, and no revocation becomes shorter", async (t) => {
  const database = openDatabase(t);
  const [user, other, app] = [
    await addUser(database),
    await addUser(database),
    await addApp(database),
  ];
  await database.write(revokeTokensOfUser(other, NOW_MS - HOUR_MS, 1_000 * 24 * HOUR_MS));
  const session = sha256("session");
  await database.write([insertSession(session, other, NOW_MS + 1, 2 * AHEAD_MS)]);
  const hash = sha256("code");
  const lives = { id: grantId(AHEAD_MS - 1_000), untilMs: AHEAD_MS + 59_000 };
  const code = sampleCode(app, other, lives);
  const selectLongest = sql`SELECT max(untilMs) AS untilMs FROM revocations WHERE target = ${user}`;
  await database.write([
    ...revokeTokensOfUser(user, AHEAD_MS - 1, 9 * HOUR_MS),
    ...revokeTokensOfUser(user, AHEAD_MS, HOUR_MS),
    insertCode(code, hash, session, AHEAD_MS - 1_000),
  ]);
  const longest = await database.query(selectLongest);
  await addGrant(database, app, other, NOW_MS - 1);
  await addGrant(database, app, other, AHEAD_MS - HOUR_MS);
  await dateEndsAhead(database, NOW_MS);
  const revocations = await loadRevocations(database, () => NOW_MS);
  for (const atMs of [NOW_MS - 1, AHEAD_MS - HOUR_MS]) {
    const id = grantId(atMs);
    const caller = { sub: other, clientId: app, grantId: id, jti: `${id}1` };
    assert.equal(revocations.has(caller), false);
    assert.equal((await findGrant(database, id))?.revokedAtMs, null);
  }
  assert.equal((await database.query(sql`SELECT id FROM codes`)).length, 1);
  assert.equal((await findSession(database, session, NOW_MS + 1))?.user, other);
  assert.deepEqual(await database.query(selectLongest), longest);
});

test("revocations that lie ahead are dated back for every built-in app", async (t) => {
  const database = openDatabase(t);
  for (const app of ["login", "personal", "console"]) {
    await database.write(revokeGrantsOf({ app }, REVOKED, AHEAD_MS, HOUR_MS));
  }
  await dateEndsAhead(database, NOW_MS);
  const ends = await database.query<{ notBeforeMs: number }>(sql`SELECT * FROM revocations`);
  assert.deepEqual(ends.map(({ notBeforeMs }) => notBeforeMs), [NOW_MS, NOW_MS, NOW_MS]);
});

test("of several revocations that lie ahead the last one counts", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const end = (atMs: number) =>
    database.write(revokeGrantsOf({ app: "login" }, REVOKED, atMs, HOUR_MS));
  await end(AHEAD_MS - 2 * HOUR_MS);
  await addGrant(database, "login", user, AHEAD_MS - HOUR_MS);
  await end(AHEAD_MS);
  await dateEndsAhead(database, NOW_MS);
  const revocations = await loadRevocations(database, () => NOW_MS);
  const id = grantId(AHEAD_MS - HOUR_MS);
  const caller = { sub: user, clientId: "login", grantId: id, jti: `${id}1` };
  assert.equal(revocations.has(caller), true);
});

test("a user's notBeforeMs that lies ahead is dated back without a revocation", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write(revokeTokensOfUser(user, AHEAD_MS, HOUR_MS));
  await database.write([sql`DELETE FROM revocations`]);
  await dateEndsAhead(database, NOW_MS);
  const [found] = await database.query<{ notBeforeMs: number }>(sql`SELECT * FROM users`);
  assert.equal(found?.notBeforeMs, NOW_MS);
});

test("nothing is written if no revocation lies ahead", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  await database.write(revokeTokensOfUser(user, NOW_MS, HOUR_MS));
  const before = await database.query(sql`SELECT seq FROM revocations`);
  await dateEndsAhead(database, NOW_MS);
  assert.deepEqual(await database.query(sql`SELECT seq FROM revocations`), before);
});
