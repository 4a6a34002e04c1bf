import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { idBound, newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { sha256 } from "../../src/base/secret.ts";
import { insertCode, redeemCode } from "../../src/store/codes.ts";
import {
  findConsentedScopes,
  forgetConsentsOf,
  listActingApps,
  putConsentOfCode,
  withdrawConsent,
} from "../../src/store/consents.ts";
import { type Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { revokeGrant } from "../../src/store/grant_end.ts";
import { insertGrant, listGrants, rotateRefreshToken } from "../../src/store/grants.ts";
import { insertKey } from "../../src/store/key_ring.ts";
import { loadRevocations } from "../../src/store/revocations.ts";
import { endSubscriptions } from "../../src/store/subscription_end.ts";
import { insertSubscription } from "../../src/store/subscriptions.ts";
import { revokeTokensOfUser } from "../../src/store/users.ts";
import {
  addApp,
  addSession,
  addUser,
  changeUser,
  countChanges,
  countRows,
  openDatabase,
  sampleGrant,
} from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
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
  for (const grant of Object.values(grants)) assert.ok(await insertGrant(database, grant));
  const code = await addCode(database, user, app);
  const revocations = await loadRevocations(database, () => withdrawnMs);
  await database.write(withdrawConsent(user, app, END, withdrawnMs, HOUR_MS));
  await revocations.refresh();

  const ended = async (name: keyof typeof grants) => {
    const { id, user: sub, app: clientId } = grants[name];
    const caller = { jti: `${id}0`, grantId: id, sub: sub ?? clientId, clientId };
    const rotated = await rotateRefreshToken(database, {
      old: { grantId: id, hash: sha256("first"), isGenuine: () => true },
      state: "current",
      head: sha256("first"),
      newHash: sha256("second"),
      scopes: ["consumer"],
      refreshUntilMs: withdrawnMs + 20 * HOUR_MS,
      accessUntilMs: withdrawnMs + HOUR_MS,
    }, withdrawnMs);
    return [revocations.has(caller), !rotated];
  };
  assert.deepEqual(await ended("pair"), [true, true]);
  assert.deepEqual(await ended("ahead"), [true, true]);
  assert.deepEqual(await ended("theirs"), [false, false]);
  assert.deepEqual(await ended("elsewhere"), [false, false]);
  assert.deepEqual(await ended("own"), [false, false]);
  const redemption = {
    ...code,
    type: "authorization_code",
    accessScopes: code.scopes,
    refresh: undefined,
    refreshUntilMs: 0,
    accessUntilMs: withdrawnMs,
  };
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
  const numbers = sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
    WHERE i < 1201)`;
  await database.write([
    sql`INSERT INTO users (id, username, phc, scopes, status, createdAtMs) ${numbers}
      SELECT 'u' || printf('%06d', i), i, '', '["orders"]', 'active', 1 FROM n`,
    sql`INSERT INTO consents (user, app, scopes) ${numbers}
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

describe("listActingApps() lists", () => {
  type Arrange = (database: Database, user: string, app: string) => Promise<unknown>;
  const give = (database: Database, app: string, user: string, more: object = {}) =>
    insertGrant(database, sampleGrant(app, user, more));
  const table: [what: string, arrange: Arrange, scopes: string[] | undefined][] = [
    ["no app without a consent, a grant and a subscription", async () => {}, undefined],
    ["an app with a consent", (database, user, app) => consent(database, user, app, ["orders"]),
      ["orders"]],
    ["an app with a valid grant", (database, user, app) => give(database, app, user),
      ["consumer"]],
    ["the scopes of a consent and a grant, each once", async (database, user, app) => {
      await consent(database, user, app, ["orders", "consumer"]);
      await give(database, app, user);
    }, ["orders", "consumer"]],
    ["no app whose grant was revoked", async (database, user, app) => {
      const grant = sampleGrant(app, user);
      await insertGrant(database, grant);
      await database.write(revokeGrant(grant.id, NOW_MS + 1));
    }, undefined],
    ["no app whose grant has expired", (database, user, app) =>
      give(database, app, user, { refreshUntilMs: 0, accessUntilMs: NOW_MS + 1 }), undefined],
    ["an app whose subscription has outlived its grant", subscribe, ["consumer"]],
    ["no app whose subscription has ended", async (database, user, app) => {
      await subscribe(database, user, app);
      await database.write(endSubscriptions({ user, app }, END, NOW_MS));
    }, undefined],
    ["no app of a user whose tokens were revoked since", async (database, user, app) => {
      await give(database, app, user);
      await database.write(revokeTokensOfUser(user, NOW_MS + HOUR_MS, HOUR_MS));
    }, undefined],
    ["no app whose consent the user has withdrawn", async (database, user, app) => {
      await consent(database, user, app, ["orders"]);
      await give(database, app, user);
      const atMs = NOW_MS + HOUR_MS;
      await database.write(withdrawConsent(user, app, END, atMs, HOUR_MS));
    }, undefined],
    ["no app of another user", async (database, _, app) =>
      give(database, app, await addUser(database)), undefined],
    ["no app that is disabled", async (database, user, app) => {
      await consent(database, user, app, ["orders"]);
      await database.write([sql`UPDATE apps SET status = 'disabled'`]);
    }, undefined],
    ["no scope that the user has lost", async (database, user, app) => {
      await consent(database, user, app, ["orders", "consumer"]);
      await changeUser(database, user, { scopes: ["consumer"] });
    }, ["consumer"]],
  ];
  for (const [what, arrange, scopes] of table) {
    test(what, async (t) => {
      const database = openDatabase(t);
      const user = await addUser(database);
      const app = await addApp(database);
      await arrange(database, user, app);
      const listed = await listActingApps(database, user, NOW_MS + 2);
      assert.deepEqual(listed.map(({ id }) => id), scopes === undefined ? [] : [app]);
      assert.deepEqual([...listed[0]?.scopes ?? []].sort(), [...scopes ?? []].sort());
      assert.deepEqual(await listActingApps(database, user, NOW_MS + 2, app), listed);
      assert.deepEqual(await listActingApps(database, user, NOW_MS + 2, "a1"), []);
    });
  }
});

test("listActingApps() reads at most 500 grants", async (t) => {
  const database = openDatabase(t);
  const [user, app] = [await addUser(database), await addApp(database)];
  await database.write([sql`INSERT INTO grants
     (id, app, user, type, scopes, refreshUntilMs, accessUntilMs)
     WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
     SELECT 'g' || printf('%06d', i), ${app}, ${user}, 'password', '["scope' || i || '"]',
       ${NOW_MS + HOUR_MS}, 0 FROM n`]);
  const { counted, found } = countRows(database);
  await listActingApps(counted, user, NOW_MS);
  assert.equal(found.rows, 500);
});

/** An id of a grant that was made then, whatever was made before. */
function idAt(timeMs: number): string {
  return idBound("g", timeMs) + newId("g", 0).slice(10);
}

/** Stores a subscription that the user's grant to the app has made, and lets the grant expire. */
async function subscribe(database: Database, user: string, app: string): Promise<void> {
  const grant = sampleGrant(app, user);
  await insertGrant(database, grant);
  await database.write([
    insertSubscription({
      id: newId("s", NOW_MS),
      principal: user,
      app,
      event: "a",
      endpoint: "https://a.example/",
      secret: "whsec_",
      createdAtMs: NOW_MS,
      grant,
    }, createSeal()),
    sql`DELETE FROM grants`,
  ]);
}

function sampleCode(user: string, app: string, scopes: readonly string[]) {
  return {
    id: newId("g", NOW_MS),
    app,
    user,
    scopes,
    redirectUri: "https://orders.example/cb",
    challenge: null,
    untilMs: NOW_MS + 60_000,
  };
}

async function addCode(database: Database, user: string, app: string) {
  const code = sampleCode(user, app, ["orders"]);
  const hash = sha256(code.id);
  await database.write([insertCode(code, hash, await addSession(database, user), NOW_MS)]);
  return { ...code, hash };
}

/** Stores a consent as the consent page does: with a code, in one batch. */
async function consent(
  database: Database,
  user: string,
  app: string,
  scopes: readonly string[],
): Promise<number[]> {
  const code = sampleCode(user, app, scopes);
  const session = await addSession(database, user);
  const stored = insertCode(code, sha256(code.id), session, NOW_MS);
  return database.write([stored, putConsentOfCode(code.id)]);
}
