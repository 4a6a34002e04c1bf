import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { sha256 } from "../../src/base/secret.ts";
import { insertCode } from "../../src/store/codes.ts";
import {
  deleteConsent,
  deleteConsentsOf,
  findConsentedScopes,
  listActingApps,
  putConsentOfCode,
} from "../../src/store/consents.ts";
import { type Database, sql } from "../../src/store/database.ts";
import { revokeGrant } from "../../src/store/grant_end.ts";
import { insertGrant } from "../../src/store/grants.ts";
import { endSubscriptions } from "../../src/store/subscription_end.ts";
import { insertSubscription } from "../../src/store/subscriptions.ts";
import { cutUser, updateUser } from "../../src/store/users.ts";
import { addApp, addSession, addUser, openDatabase, sampleGrant } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

test("a consent is found for its user and its app, and for no other", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  assert.deepEqual(await consent(database, user, app, ["consumer", "orders"]), [1, 1]);
  assert.deepEqual(await findConsentedScopes(database, user, app), ["consumer", "orders"]);
  assert.deepEqual(await findConsentedScopes(database, other, app), []);
  assert.deepEqual(await findConsentedScopes(database, user, otherApp), []);
});

test("a new consent takes the place of the one before", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  await consent(database, user, app, ["consumer", "orders"]);
  await consent(database, user, app, ["orders"]);
  assert.deepEqual(await findConsentedScopes(database, user, app), ["orders"]);
});

test("no consent is remembered where its code was not stored", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  assert.deepEqual(await consent(database, user, app, ["none"]), [0, 0]);
  assert.deepEqual(await database.write([putConsentOfCode(newId("g", NOW_MS))]), [0]);
  assert.deepEqual(await findConsentedScopes(database, user, app), []);
});

test("deleteConsent() forgets one consent alone", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const [app, other] = [await addApp(database), await addApp(database)];
  await consent(database, user, app, ["consumer"]);
  await consent(database, user, other, ["orders"]);
  assert.deepEqual(await database.write([deleteConsent(user, app)]), [1]);
  assert.deepEqual(await findConsentedScopes(database, user, app), []);
  assert.deepEqual(await findConsentedScopes(database, user, other), ["orders"]);
  assert.deepEqual(await database.write([deleteConsent(user, app)]), [0]);
});

test("deleteConsentsOf() forgets all of a user, or all of an app", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  const pairs = [[user, app], [user, otherApp], [other, app], [other, otherApp]] as const;
  for (const [by, to] of pairs) await consent(database, by, to, ["orders"]);
  const left = async () => {
    const found = pairs.map(([by, to]) => findConsentedScopes(database, by, to));
    return (await Promise.all(found)).map((scopes) => scopes.length);
  };
  assert.deepEqual(await database.write([deleteConsentsOf({ user })]), [2]);
  assert.deepEqual(await left(), [0, 0, 1, 1]);
  assert.deepEqual(await database.write([deleteConsentsOf({ app })]), [1]);
  assert.deepEqual(await left(), [0, 0, 0, 1]);
});

describe("listActingApps() lists", () => {
  type Arrange = (database: Database, user: string, app: string) => Promise<unknown>;
  const give = (database: Database, app: string, user: string, more: object = {}) =>
    insertGrant(database, sampleGrant(app, user, more));
  const table: [what: string, arrange: Arrange, scopes: string[] | undefined][] = [
    ["no app that was never allowed anything", async () => {}, undefined],
    ["an app with a consent", (database, user, app) => consent(database, user, app, ["orders"]),
      ["orders"]],
    ["an app with a grant that stands", (database, user, app) => give(database, app, user),
      ["consumer"]],
    ["what both say, each scope once", async (database, user, app) => {
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
      await database.write(endSubscriptions({ user, app }, "why", NOW_MS));
    }, undefined],
    ["no app whose grant was made before its user was cut off", async (database, user, app) => {
      await give(database, app, user);
      await database.write(cutUser(user, NOW_MS + HOUR_MS, HOUR_MS));
    }, undefined],
    ["no app of another user", async (database, _, app) =>
      give(database, app, await addUser(database)), undefined],
    ["no app that is disabled", async (database, user, app) => {
      await consent(database, user, app, ["orders"]);
      await database.write([sql("UPDATE apps SET status = 'disabled'")]);
    }, undefined],
    ["no scope that the user has lost", async (database, user, app) => {
      await consent(database, user, app, ["orders", "consumer"]);
      const change = { phc: undefined, scopes: ["consumer"], status: undefined };
      await database.write([updateUser(user, change)]);
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
    });
  }
});

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
    }, createSeal(undefined)),
    sql("DELETE FROM grants"),
  ]);
}

/** Stores a consent as the consent page does: with a code, in one batch. */
async function consent(
  database: Database,
  user: string,
  app: string,
  scopes: readonly string[],
): Promise<number[]> {
  const code = {
    id: newId("g", NOW_MS),
    app,
    user,
    scopes,
    redirectUri: "https://orders.example/cb",
    challenge: null,
    untilMs: NOW_MS + 60_000,
  };
  const session = await addSession(database, user);
  return database.write([insertCode(code, sha256(code.id), session), putConsentOfCode(code.id)]);
}
