import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { listActingApps, withdrawConsent } from "../../src/store/consents.ts";
import { revokeGrant, REVOKED } from "../../src/store/grant_end.ts";
import { insertGrant } from "../../src/store/grants.ts";
import { endSubscriptions } from "../../src/store/subscription_end.ts";
import { insertSubscription } from "../../src/store/subscriptions.ts";
import { revokeTokensOfUser } from "../../src/store/users.ts";
import {
  addApp,
  addUser,
  changeUser,
  countRows,
  openDatabase,
  sampleGrant,
} from "../helpers/database.ts";
import { HOUR_MS, NOW_MS } from "../helpers/grant_stage.ts";
import { numbers } from "../helpers/numbers.ts";
import { consent } from "./code_stage.ts";

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
      await database.write(endSubscriptions({ user, app }, REVOKED, NOW_MS));
    }, undefined],
    ["no app of a user whose tokens were revoked since", async (database, user, app) => {
      await give(database, app, user);
      await database.write(revokeTokensOfUser(user, NOW_MS + HOUR_MS, HOUR_MS));
    }, undefined],
    ["no app whose consent the user has withdrawn", async (database, user, app) => {
      await consent(database, user, app, ["orders"]);
      await give(database, app, user);
      const atMs = NOW_MS + HOUR_MS;
      await database.write(withdrawConsent(user, app, REVOKED, atMs, HOUR_MS));
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
     ${numbers(600)}
     SELECT 'g' || printf('%06d', i), ${app}, ${user}, 'password', '["scope' || i || '"]',
       ${NOW_MS + HOUR_MS}, 0 FROM n`]);
  const { counted, found } = countRows(database);
  await listActingApps(counted, user, NOW_MS);
  assert.equal(found.rows, 500);
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
    }, createSeal()),
    sql`DELETE FROM grants`,
  ]);
}
