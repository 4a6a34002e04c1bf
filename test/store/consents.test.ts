import assert from "node:assert/strict";
import { test } from "node:test";
import { idBound, newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { sql } from "../../src/database/sql.ts";
import { insertCode, redeemCode } from "../../src/store/codes.ts";
import {
  findConsentedScopes,
  forgetConsentsOf,
  putConsentOfCode,
  withdrawConsent,
} from "../../src/store/consents.ts";
import { insertGrant, listGrants, rotateRefreshToken } from "../../src/store/grants.ts";
import { insertKey } from "../../src/store/key_ring.ts";
import { loadRevocations } from "../../src/store/revocations.ts";
import {
  addApp,
  addSession,
  addUser,
  countChanges,
  openDatabase,
  sampleGrant,
} from "../helpers/database.ts";
import { addGrants, callerOf, FIRST, HOUR_MS, NOW_MS, SECOND } from "../helpers/grant_stage.ts";
import { numbers } from "../helpers/numbers.ts";
import { consent, sampleCode, sampleRedemption } from "./code_stage.ts";

const END = { reason: "grant withdrawn" };

test("a consent is found for its user and its app, and for no other", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  assert.deepEqual(await consent(database, user, app, ["consumer", "orders"]), [1, 1]);
  assert.deepEqual(await findConsentedScopes(database, user, app), ["consumer", "orders"]);
  assert.deepEqual(await findConsentedScopes(database, other, app), []);
  assert.deepEqual(await findConsentedScopes(database, user, otherApp), []);
});

test("a new consent adds its scopes to the earlier one", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  await consent(database, user, app, ["consumer"]);
  await consent(database, user, app, ["orders"]);
  await consent(database, user, app, ["orders"]);
  assert.deepEqual(await findConsentedScopes(database, user, app), ["consumer", "orders"]);
});

test("no consent is stored if its code is not", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  assert.deepEqual(await consent(database, user, app, ["none"]), [0, 0]);
  assert.deepEqual(await database.write([putConsentOfCode(newId("g", NOW_MS))]), [0]);
  assert.deepEqual(await findConsentedScopes(database, user, app), []);
});

test("withdrawConsent() removes the consent of that user and app alone", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const [app, other] = [await addApp(database), await addApp(database)];
  await consent(database, user, app, ["consumer"]);
  await consent(database, user, other, ["orders"]);
  await database.write(withdrawConsent(user, app, END, NOW_MS + HOUR_MS, HOUR_MS));
  assert.deepEqual(await findConsentedScopes(database, user, app), []);
  assert.deepEqual(await findConsentedScopes(database, user, other), ["orders"]);
  await consent(database, user, app, ["orders"]);
  assert.deepEqual(await findConsentedScopes(database, user, app), ["orders"]);
});

test("withdrawConsent() ends the user's grants and codes of that app, and no others", async (t) => {
  const database = openDatabase(t);
  const [user, otherUser] = [await addUser(database), await addUser(database)];
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  const withdrawnMs = NOW_MS + HOUR_MS;
  const grants = {
    pair: sampleGrant(app, user),
    theirs: sampleGrant(app, otherUser),
    elsewhere: sampleGrant(otherApp, user),
    own: sampleGrant(app, null),
    ahead: sampleGrant(app, user, { // of a clock that has stepped back
      id: idAt(withdrawnMs + 50),
      accessUntilMs: withdrawnMs + HOUR_MS,
    }),
  };
  await addGrants(database, grants);
  const [code, hash] = [sampleCode(app, user, { scopes: ["orders"] }), sha256("code")];
  await database.write([insertCode(code, hash, await addSession(database, user), NOW_MS)]);
  const revocations = await loadRevocations(database, () => withdrawnMs);
  await database.write(withdrawConsent(user, app, END, withdrawnMs, HOUR_MS));
  await revocations.refresh();

  const ended = async (name: keyof typeof grants) => {
    const { id } = grants[name];
    const rotated = await rotateRefreshToken(database, {
      old: { grantId: id, hash: FIRST, isGenuine: () => true },
      state: "current",
      head: FIRST,
      newHash: SECOND,
      scopes: ["consumer"],
      refreshUntilMs: withdrawnMs + 20 * HOUR_MS,
      accessUntilMs: withdrawnMs + HOUR_MS,
    }, withdrawnMs);
    return [revocations.has(callerOf(grants[name])), !rotated];
  };
  assert.deepEqual(await ended("pair"), [true, true]);
  assert.deepEqual(await ended("ahead"), [true, true]);
  assert.deepEqual(await ended("theirs"), [false, false]);
  assert.deepEqual(await ended("elsewhere"), [false, false]);
  assert.deepEqual(await ended("own"), [false, false]);
  const redemption = sampleRedemption(code, hash);
  assert.equal(await redeemCode(database, redemption, NOW_MS + 1), false);
  const { items } = await listGrants(database, { user, app, limit: 9 }, withdrawnMs);
  assert.deepEqual(items.map(({ status }) => status), ["revoked", "revoked"]);
  assert.ok(await insertGrant(database, sampleGrant(app, user, { id: idAt(withdrawnMs + 1) })));
});

test("withdrawConsent() revokes for as long as the longest-lived token of any key", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  await database.write([insertKey({
    kid: "k1",
    alg: "ES256",
    private: "",
    createdAtMs: 1,
    signsFromMs: 1,
    tokenTtlMs: 5 * HOUR_MS,
  })]);
  await database.write(withdrawConsent(user, app, END, NOW_MS, HOUR_MS));
  const [row] = await database.query<{ untilMs: number }>(sql`SELECT untilMs FROM revocations`);
  assert.ok(row && row.untilMs >= NOW_MS + 5 * HOUR_MS, String(row?.untilMs));
});

test("withdrawConsent() stores nothing for a user or an app that does not exist", async (t) => {
  const database = openDatabase(t);
  const pairs = [[await addUser(database), "a1"], ["u1", await addApp(database)]] as const;
  for (const [user, app] of pairs) {
    await database.write(withdrawConsent(user, app, END, NOW_MS, HOUR_MS));
  }
  assert.deepEqual(await database.query(sql`SELECT 1 FROM consents`), []);
});

test("forgetConsentsOf() removes all consents of a user, or of an app", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  const pairs = [[user, app], [user, otherApp], [other, app], [other, otherApp]] as const;
  for (const [by, to] of pairs) await consent(database, by, to, ["orders"]);
  const left = async () => {
    const found = pairs.map(([by, to]) => findConsentedScopes(database, by, to));
    return (await Promise.all(found)).map((scopes) => scopes.length);
  };
  assert.deepEqual(await database.write(await forgetConsentsOf(database, { user })), [2]);
  assert.deepEqual(await left(), [0, 0, 1, 1]);
  const forget = await forgetConsentsOf(database, { app });
  assert.deepEqual(await left(), [0, 0, 1, 1], "a few are removed by the returned batch alone");
  await consent(database, user, app, ["orders"]); // meanwhile
  assert.deepEqual(await database.write(forget), [2]);
  assert.deepEqual(await left(), [0, 0, 0, 1]);
});

test("forgetConsentsOf() removes very many consents of an app in bounded writes", async (t) => {
  const database = openDatabase(t);
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  await database.write([
    sql`INSERT INTO users (id, username, phc, scopes, status, createdAtMs) ${numbers(1201)}
      SELECT 'u' || printf('%06d', i), i, '', '["orders"]', 'active', 1 FROM n`,
    sql`INSERT INTO consents (user, app, scopes) ${numbers(1201)}
      SELECT 'u' || printf('%06d', i), ${app}, '["orders"]' FROM n`,
  ]);
  const user = "u000007"; // has withdrawn a consent: the row that says so must stay
  await consent(database, user, otherApp, ["orders"]);
  await database.write(withdrawConsent(user, app, END, NOW_MS + HOUR_MS, HOUR_MS));
  await consent(database, user, app, ["orders"]);
  const { counted, changes } = countChanges(database);
  const forget = await forgetConsentsOf(counted, { app });
  assert.deepEqual(changes, [499, 1, 500, 0]);
  assert.deepEqual(await database.write(forget), [201]);
  assert.deepEqual(await findConsentedScopes(database, user, otherApp), ["orders"]);
  const select = sql`SELECT 1 FROM consents WHERE app = ${app} AND scopes <> '[]'`;
  assert.equal((await database.query(select)).length, 0);
  const kept = sql`SELECT 1 FROM consents
    WHERE user = ${user} AND app = ${app} AND notBeforeMs > 0`;
  assert.equal((await database.query(kept)).length, 1);
});

/** An id of a grant that was made then, whatever was made before. */
function idAt(timeMs: number): string {
  return idBound("g", timeMs) + newId("g", 0).slice(10);
}
