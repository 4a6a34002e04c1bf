import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { idTimeMs, newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { revokeTokensOfApp, deleteApp, updateApp } from "../../src/store/apps.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { revokeGrant } from "../../src/store/grant_end.ts";
import { insertGrant } from "../../src/store/grants.ts";
import {
  findSubscription,
  hasActiveGrant,
  insertSubscription,
  replaceSubscriptionSecret,
  updateSubscription,
  wakePaused,
} from "../../src/store/subscriptions.ts";
import { revokeTokensOfUser, deleteUser } from "../../src/store/users.ts";
import { addApp, addUser, openDatabase, sampleApp, sampleGrant } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1, 1);
const HOUR_MS = 3_600_000;
const SEAL = createSeal(undefined);

/** A user's grant through an app, and a subscription that is made by it. */
async function openStage(t: TestContext) {
  const database = openDatabase(t);
  const user = await addUser(database);
  const app = sampleApp();
  await addApp(database, app);
  const grant = sampleGrant(app.id, user);
  assert.equal(await insertGrant(database, grant), true);
  return { database, user, app, grant };
}

type Stage = Awaited<ReturnType<typeof openStage>>;

async function insert({ database, user, app, grant }: Stage, endpoint: string) {
  const id = newId("s", NOW_MS);
  const [inserted] = await database.write([
    insertSubscription({
      id,
      principal: user,
      app: app.id,
      event: "a",
      endpoint,
      secret: "whsec_",
      createdAtMs: NOW_MS,
      grant,
    }, SEAL),
  ]);
  return { id, inserted };
}

const ENDS: readonly (readonly [name: string, end: (stage: Stage) => Sql[]])[] = [
  ["its grant is revoked", ({ grant }) => revokeGrant(grant.id, NOW_MS)],
  ["its user is disabled", ({ user }) =>
    [sql`UPDATE users SET status = 'disabled' WHERE id = ${user}`]],
  ["its user is deleted", ({ user }) => [deleteUser(user)]],
  ["the tokens of its user are revoked", ({ user, grant }) =>
    revokeTokensOfUser(user, idTimeMs(grant.id), HOUR_MS)],
  ["its app is disabled", ({ app }) => [updateApp(app, { ...app, status: "disabled" })]],
  ["its app is deleted", ({ app }) => [deleteApp(app.id)]],
  ["the tokens of its app are revoked", ({ app, grant }) =>
    revokeTokensOfApp(app.id, idTimeMs(grant.id), HOUR_MS)],
];
for (const [name, end] of ENDS) {
  test(`a token can neither make nor change a subscription once ${name}`, async (t) => {
    const stage = await openStage(t);
    const { database, grant } = stage;
    const { id, inserted } = await insert(stage, "https://a.example/");
    assert.equal(inserted, 1);
    assert.equal(await hasActiveGrant(database, grant.id), true);
    await database.write(end(stage));
    const statusOf = async () => (await findSubscription(database, id))?.status;
    const left = await statusOf();
    assert.equal((await insert(stage, "https://b.example/")).inserted, 0);
    assert.equal(await hasActiveGrant(database, grant.id), false);
    for (const status of ["active", "paused"] as const) {
      const change = { endpoint: undefined, status };
      assert.deepEqual(await database.write([updateSubscription(id, change, grant)]), [0]);
    }
    assert.equal(await statusOf(), left);
  });
}

test("an app that acts for itself can subscribe until it is disabled", async (t) => {
  const stage = await openStage(t);
  const own = { ...stage, user: stage.app.id, grant: sampleGrant(stage.app.id, null) };
  assert.equal(await insertGrant(stage.database, own.grant), true);
  assert.equal((await insert(own, "https://a.example/")).inserted, 1);
  await stage.database.write([updateApp(stage.app, { ...stage.app, status: "disabled" })]);
  assert.equal((await insert(own, "https://b.example/")).inserted, 0);
});

test("replaced secrets are kept for 24 h after the last change; of many, the newest", async (t) => {
  const stage = await openStage(t);
  const { id } = await insert(stage, "https://a.example/");
  const replace = async (secret: string, nowMs: number) => {
    const change = replaceSubscriptionSecret(id, secret, nowMs, SEAL);
    assert.deepEqual(await stage.database.write([change]), [1]);
    const [row] = await stage.database.query<{ secret: string; old: string; untilMs: number }>(
      sql`SELECT secret, oldSecret AS old, oldSecretUntilMs AS untilMs FROM subscriptions
        WHERE id = ${id}`,
    );
    assert.ok(row);
    assert.equal(row.untilMs, nowMs + 24 * HOUR_MS);
    return [row.secret, ...row.old.split(" ")].map((each) => SEAL.decrypt(each, id));
  };
  assert.deepEqual(await replace("second", NOW_MS), ["second", "whsec_"]);
  const lateMs = NOW_MS + 24 * HOUR_MS - 1;
  assert.deepEqual(await replace("third", lateMs), ["third", "second", "whsec_"]);
  const laterMs = lateMs + 24 * HOUR_MS;
  assert.deepEqual(await replace("fourth", laterMs), ["fourth", "third"]);
  for (let count = 0; count < 50; count++) await replace(`secret${count}`, laterMs);
  const many = await replace("last", laterMs);
  assert.deepEqual(many.slice(0, 3), ["last", "secret49", "secret48"]);
  assert.ok(many.length < 50, String(many.length));
});

test("a subscription made active, by a request or by time, is no longer failing", async (t) => {
  const stage = await openStage(t);
  const { database } = stage;
  const UNTIL_MS = NOW_MS + HOUR_MS;
  const ways: readonly (() => Promise<unknown>)[] = [
    () => database.write([updateSubscription(changed.id, { status: "active" }, stage.grant)]),
    () => wakePaused(database, UNTIL_MS),
  ];
  const changed = await insert(stage, "https://a.example/");
  const { id } = await insert(stage, "https://b.example/");
  await database.write([
    sql`UPDATE subscriptions SET failingSinceMs = 1, hasSucceeded = 1, meanMs = 2000`,
    ...[changed.id, id].map((each) =>
      updateSubscription(each, { paused_until: UNTIL_MS, status: "paused" }, stage.grant)),
  ]);
  for (const activate of ways) await activate();
  for (const each of [changed.id, id]) {
    const found = await findSubscription(database, each);
    assert.deepEqual([found?.status, found?.failingSinceMs], ["active", null]);
  }
});
