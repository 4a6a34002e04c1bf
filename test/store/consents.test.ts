import assert from "node:assert/strict";
import { test } from "node:test";
import { deleteConsent, findConsentedScopes, putConsent } from "../../src/store/consents.ts";
import { ConflictError } from "../../src/store/database.ts";
import { addApp, addUser, openDatabase } from "../helpers/database.ts";

test("a consent is found for its user and its app, and for no other", async (t) => {
  const database = openDatabase(t);
  const [user, other] = [await addUser(database), await addUser(database)];
  const [app, otherApp] = [await addApp(database), await addApp(database)];
  await database.write([putConsent(user, app, ["consumer", "orders"])]);
  assert.deepEqual(await findConsentedScopes(database, user, app), ["consumer", "orders"]);
  assert.deepEqual(await findConsentedScopes(database, other, app), []);
  assert.deepEqual(await findConsentedScopes(database, user, otherApp), []);
});

test("a new consent takes the place of the one before", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  await database.write([putConsent(user, app, ["consumer", "orders"])]);
  await database.write([putConsent(user, app, ["orders"])]);
  assert.deepEqual(await findConsentedScopes(database, user, app), ["orders"]);
});

test("deleteConsent() forgets one consent alone", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const [app, other] = [await addApp(database), await addApp(database)];
  await database.write([putConsent(user, app, ["a"]), putConsent(user, other, ["b"])]);
  assert.deepEqual(await database.write([deleteConsent(user, app)]), [1]);
  assert.deepEqual(await findConsentedScopes(database, user, app), []);
  assert.deepEqual(await findConsentedScopes(database, user, other), ["b"]);
  assert.deepEqual(await database.write([deleteConsent(user, app)]), [0]);
});

test("no consent is remembered for a user or an app that is gone", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = await addApp(database);
  await assert.rejects(database.write([putConsent("u0", app, [])]), ConflictError);
  await assert.rejects(database.write([putConsent(user, "a0", [])]), ConflictError);
});
