import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { revokeTokensOfApp, deleteApp } from "../../src/store/apps.ts";
import {
  type Code,
  deleteCodesOf,
  findCode,
  findRedeemedCode,
  insertCode,
  redeemCode,
} from "../../src/store/codes.ts";
import { findConsentedScopes, putConsentOfCode } from "../../src/store/consents.ts";
import { type Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { findGrant, findRefreshToken } from "../../src/store/grants.ts";
import { deleteSession, insertSession } from "../../src/store/sessions.ts";
import { revokeTokensOfUser, deleteUser } from "../../src/store/users.ts";
import {
  addApp,
  addSession,
  addUser,
  changeUser,
  makeFolder,
  openDatabase,
  openWithOthers,
} from "../helpers/database.ts";
import { NOW_MS } from "../helpers/grant_stage.ts";
import { sampleCode, sampleRedemption } from "./code_stage.ts";

const UNTIL_MS = NOW_MS + 60_000;
const HASH = sha256("code");
const REFRESH = sha256("refresh");
/** The lifetimes of what is made from a code. */
const REDEEMED = {
  refresh: REFRESH,
  refreshUntilMs: NOW_MS + 1_000_000,
  accessUntilMs: NOW_MS + 10_000,
};

test("a code is found as it was stored, by its id and hash", async (t) => {
  const { database, code } = await openWithCode(t, { challenge: "challenge" });
  assert.deepEqual(await findCode(database, code.id, HASH), code);
});

test("a code is not found by its id alone, by another hash, or by its hash alone", async (t) => {
  const { database, code } = await openWithCode(t);
  assert.equal(await findCode(database, code.id, sha256("other")), undefined);
  assert.equal(await findCode(database, code.id, Buffer.alloc(0)), undefined);
  assert.equal(await findCode(database, newId("g", NOW_MS), HASH), undefined);
});

test("the text of a code is not stored, only its SHA-256", async (t) => {
  const { database } = await openWithCode(t);
  const rows = await database.query<{ hash: Uint8Array }>(sql`SELECT * FROM codes`);
  assert.equal(rows[0]?.hash.length, 32);
  assert.doesNotMatch(JSON.stringify(rows), /"code"/);
});

test("redeemCode() turns one code into the grant with the code's id", async (t) => {
  const { database, code, redemption } = await openWithCode(t);
  const other = sampleCode(code.app, code.user);
  const session = await addSession(database, code.user);
  await database.write([insertCode(other, sha256("other"), session, NOW_MS)]);
  assert.equal(await redeemCode(database, redemption, NOW_MS + 1), true);
  assert.deepEqual({ ...await findGrant(database, code.id) }, {
    id: code.id,
    app: code.app,
    user: code.user,
    type: "authorization_code",
    scopes: ["consumer"],
    resource: null,
    refreshUntilMs: redemption.refreshUntilMs,
    accessUntilMs: redemption.accessUntilMs,
    revokedAtMs: null,
  });
  assert.equal((await find(database, code.id, REFRESH))?.state, "current");
  assert.equal(await findCode(database, code.id, HASH), undefined);
  assert.deepEqual(await findCode(database, other.id, sha256("other")), other);
  assert.equal((await findRedeemedCode(database, code.id, HASH))?.app, code.app);
});

test("redeemCode() without a refresh token stores none", async (t) => {
  const { database, code, redemption } = await openWithCode(t);
  const without = { ...redemption, refresh: undefined, refreshUntilMs: 0 };
  assert.equal(await redeemCode(database, without, NOW_MS), true);
  assert.equal(await find(database, code.id, REFRESH), undefined);
});

test("a code is redeemed once", async (t) => {
  const { database, redemption } = await openWithCode(t);
  assert.equal(await redeemCode(database, redemption, NOW_MS), true);
  const again = { ...redemption, refresh: sha256("another") };
  assert.equal(await redeemCode(database, again, NOW_MS), false);
  assert.equal((await find(database, redemption.id, REFRESH))?.state, "current");
});

test("of many redemptions at once in two processes exactly one succeeds", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const databases = [openDatabase(t, path), openDatabase(t, path)];
  const [one] = databases;
  assert.ok(one);
  const app = await addApp(one);
  const user = await addUser(one);
  const session = await addSession(one, user);
  for (let round = 0; round < 10; round++) {
    const code = sampleCode(app, user);
    await one.write([insertCode(code, HASH, session, NOW_MS)]);
    const results: boolean[] = await Promise.all(Array.from({ length: 8 }, (_, at) =>
      redeemCode(databases[at % 2] ?? one, sampleRedemption(code, HASH, {
        ...REDEEMED,
        refresh: sha256(`refresh ${at}`),
      }), NOW_MS)
    ));
    assert.equal(results.filter((isWinner) => isWinner).length, 1);
    const winner = sha256(`refresh ${results.indexOf(true)}`);
    assert.equal((await find(one, code.id, winner))?.state, "current");
  }
});

test("findRedeemedCode() finds neither an unredeemed code nor another hash", async (t) => {
  const { database, code, redemption } = await openWithCode(t);
  assert.equal(await findRedeemedCode(database, code.id, HASH), undefined);
  await redeemCode(database, redemption, NOW_MS);
  assert.equal(await findRedeemedCode(database, code.id, sha256("other")), undefined);
});

describe("redeemCode() makes no grant from", () => {
  type Arrange = (database: Database, code: Code) => Promise<unknown>;
  const table: [what: string, arrange: Arrange, nowMs: number][] = [
    ["a code that has expired", async () => {}, UNTIL_MS],
    ["a code whose user was disabled", (database, code) =>
      changeUser(database, code.user, { status: "disabled" }), NOW_MS + 5],
    ["a code whose user's tokens were revoked since", (database, code) =>
      database.write(revokeTokensOfUser(code.user, NOW_MS + 3, 1)), NOW_MS + 5],
    ["a code made in the millisecond of its user's revocation", async (database, code) => {
      const [row] = await database.query<{ id: string }>(sql`SELECT id FROM codes`);
      const madeAtMs = parseInt(row?.id.slice(1, 10) ?? "", 36);
      await database.write(revokeTokensOfUser(code.user, madeAtMs, 1));
    }, NOW_MS + 5],
    ["a code whose user was deleted", (database, code) => database.write([deleteUser(code.user)]),
      NOW_MS + 5],
    ["a code whose app was disabled", (database, { app }) =>
      database.write([sql`UPDATE apps SET status = 'disabled' WHERE id = ${app}`]), NOW_MS + 5],
    ["a code whose app's tokens were revoked since", (database, code) =>
      database.write(revokeTokensOfApp(code.app, NOW_MS + 3, 1)), NOW_MS + 5],
    ["a code whose app was deleted", (database, code) => database.write([deleteApp(code.app)]),
      NOW_MS + 5],
    ["a code whose user has lost the scope", (database, code) =>
      changeUser(database, code.user, { scopes: [] }), NOW_MS + 5],
    ["a code whose app has lost the scope", (database, { app }) => database.write([
      sql`UPDATE apps SET scopes = '["consumers","xconsumer"]' WHERE id = ${app}`,
    ]), NOW_MS + 5],
  ];
  for (const [what, arrange, nowMs] of table) {
    test(what, async (t) => {
      const { database, code, redemption } = await openWithCode(t);
      await arrange(database, code);
      assert.equal(await redeemCode(database, redemption, nowMs), false);
      assert.equal(await findGrant(database, code.id), undefined);
    });
  }

  test("a code with another hash, which stays valid", async (t) => {
    const { database, code, redemption } = await openWithCode(t);
    const other = { ...redemption, hash: sha256("other") };
    assert.equal(await redeemCode(database, other, NOW_MS), false);
    assert.deepEqual(await findCode(database, code.id, HASH), code);
    assert.equal(await redeemCode(database, redemption, NOW_MS), true);
  });
});

describe("neither a code nor the consent given with it is stored", () => {
  type Arrange = (database: Database, code: Code, session: Uint8Array) => Promise<unknown>;
  const table: [what: string, arrange: Arrange][] = [
    ["once its session has ended", (database, _, session) =>
      database.write([deleteSession(session)])],
    ["once its session has expired", (database) =>
      database.write([sql`UPDATE sessions SET untilMs = ${NOW_MS}`])],
    ["for another user's session", async (database) => {
      const other = await addUser(database);
      await database.write([sql`UPDATE sessions SET user = ${other}`]);
    }],
    ["once its user's tokens were revoked, even if a session is left",
      (database, { user }, session) =>
        database.write([
          ...revokeTokensOfUser(user, 2_000, 1),
          insertSession(session, user, 2_000, UNTIL_MS),
        ])],
    ["once its user has been disabled", (database, { user }) =>
      changeUser(database, user, { status: "disabled" })],
    ["once its user has lost the scope", (database, { user }) =>
      changeUser(database, user, { scopes: ["orders"] })],
    ["once its user has been deleted", (database, { user }) => database.write([deleteUser(user)])],
    ["once its app has been disabled", (database, { app }) =>
      database.write([sql`UPDATE apps SET status = 'disabled' WHERE id = ${app}`])],
    ["once its app has lost the scope", (database, { app }) =>
      database.write([sql`UPDATE apps SET scopes = '["orders"]' WHERE id = ${app}`])],
    ["once its app has been deleted", (database, { app }) => database.write([deleteApp(app)])],
  ];
  for (const [what, arrange] of table) {
    test(what, async (t) => {
      const database = await openWithOthers(t);
      const code = sampleCode(await addApp(database), await addUser(database));
      const session = await addSession(database, code.user);
      await arrange(database, code, session);
      const batch = [insertCode(code, HASH, session, NOW_MS), putConsentOfCode(code.id)];
      assert.deepEqual(await database.write(batch), [0, 0]);
      assert.equal(await findCode(database, code.id, HASH), undefined);
      assert.deepEqual(await findConsentedScopes(database, code.user, code.app), []);
    });
  }
});

test("a code is stored for a session that began after the clock was set back", async (t) => {
  const database = openDatabase(t);
  const code = sampleCode(await addApp(database), await addUser(database));
  const nowMs = NOW_MS - 30 * 86_400_000;
  const session = sha256("session");
  await database.write([insertSession(session, code.user, nowMs, nowMs + 1_000)]);
  assert.deepEqual(await database.write([insertCode(code, HASH, session, nowMs)]), [1]);
});

test("deleteCodesOf() removes the codes of one app alone", async (t) => {
  const { database, code } = await openWithCode(t);
  const other = sampleCode(await addApp(database), code.user);
  const session = await addSession(database, code.user);
  await database.write([insertCode(other, HASH, session, NOW_MS)]);
  await database.write([deleteCodesOf(code.app)]);
  assert.equal(await findCode(database, code.id, HASH), undefined);
  assert.deepEqual(await findCode(database, other.id, HASH), other);
});

test("a code can be redeemed until the last millisecond of its life", async (t) => {
  const { database, redemption } = await openWithCode(t);
  assert.equal(await redeemCode(database, redemption, UNTIL_MS - 1), true);
});

async function openWithCode(t: TestContext, more: Partial<Code> = {}) {
  const database = await openWithOthers(t);
  const code = sampleCode(await addApp(database), await addUser(database), more);
  await database.write([insertCode(code, HASH, await addSession(database, code.user), NOW_MS)]);
  return { database, code, redemption: sampleRedemption(code, HASH, REDEEMED) };
}

function find(database: Database, grantId: string, hash: Uint8Array) {
  return findRefreshToken(database, { grantId, hash }, NOW_MS);
}
