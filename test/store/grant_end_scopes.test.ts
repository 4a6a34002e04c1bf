import assert from "node:assert/strict";
import { test } from "node:test";
import { ID_LENGTH, idBound } from "../../src/base/id.ts";
import { revokeGrantsWithScopes } from "../../src/store/grant_end.ts";
import { loadRevocations } from "../../src/store/revocations.ts";
import { addApp, addUser, countChanges, openDatabase, sampleGrant } from "../helpers/database.ts";
import {
  addGrants,
  addMany,
  callerOf,
  countValid,
  listCodes,
  listRevoked,
  NOW_MS,
  openWithGrant,
  putCode,
} from "../helpers/grant_stage.ts";

test("revokeGrantsWithScopes() ends grants with one of the scopes, by whole names", async (t) => {
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
  await addGrants(database, grants);

  await database.write(await revokeGrantsWithScopes(database, { user }, ["a", "none"], NOW_MS + 1));
  assert.deepEqual(await listRevoked(database, grants), ["a", "last"]);
  await database.write(await revokeGrantsWithScopes(database, { user }, ["%"], NOW_MS + 2));
  assert.deepEqual(await listRevoked(database, grants), ["a", "last", "percent"]);
  await database.write(await revokeGrantsWithScopes(database, { app }, ["a"], NOW_MS + 3));
  assert.deepEqual(await listRevoked(database, grants), ["a", "last", "percent", "theirs"]);
  const revocations = await loadRevocations(database, () => NOW_MS);
  assert.equal(revocations.has(callerOf(grants.a)), true);
  assert.equal(revocations.has(callerOf(grants.ab)), false);
});

test("revokeGrantsWithScopes() also ends codes with one of the scopes", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database, { scopes: ["a", "ab"] });
  const otherUser = await addUser(database, { scopes: ["a", "ab"] });
  const app = await addApp(database, { scopes: ["a", "ab"] });
  await database.write([
    putCode("g1", app, user, ["ab", "a"]),
    putCode("g2", app, user, ["ab"]),
    putCode("g3", app, otherUser, ["a"]),
  ]);
  await database.write(await revokeGrantsWithScopes(database, { user }, ["a"], NOW_MS));
  assert.deepEqual(await listCodes(database), ["g2", "g3"]);
  await database.write(await revokeGrantsWithScopes(database, { app }, ["a"], NOW_MS));
  assert.deepEqual(await listCodes(database), ["g2"]);
});

for (const [age, from] of [["old", "g"], ["new", idBound("g", NOW_MS - 1_000)]] as const) {
  test(`revokeGrantsWithScopes() ends very many ${age} grants in bounded writes`, async (t) => {
    const database = openDatabase(t);
    const app = await addApp(database);
    await addMany(database, app, "orders", from);
    const user = await addUser(database);
    const others = {
      without: sampleGrant(app, user),
      elsewhere: sampleGrant(await addApp(database), user, { scopes: ["orders"] }),
    };
    await addGrants(database, others);
    const { counted, changes } = countChanges(database);
    const batch = await revokeGrantsWithScopes(counted, { app }, ["orders"], NOW_MS + 1);
    assert.deepEqual(changes, [500, 500], "the rest, which fits one step, is left to the batch");
    const scopes = ["orders"];
    const made = (atMs: number) =>
      sampleGrant(app, user, { id: idBound("g", atMs).padEnd(ID_LENGTH, "x"), scopes });
    // A grant made from a code has the code's id, and so looks as old as the code.
    const later = { meanwhile: made(NOW_MS), redeemed: made(NOW_MS - 10 * 60_000) };
    await addGrants(database, later);
    await counted.write(batch);
    assert.equal(changes[2], 203);
    assert.equal(await countValid(database), 2);
    const revoked = await listRevoked(database, { ...others, ...later });
    assert.deepEqual(revoked, ["meanwhile", "redeemed"]);
  });
}

test("revokeGrantsWithScopes() leaves a few grants to the batch that it returns", async (t) => {
  const { database, grant } = await openWithGrant(t);
  const { counted, changes } = countChanges(database);
  const batch = await revokeGrantsWithScopes(counted, { app: grant.app }, grant.scopes, NOW_MS + 1);
  assert.deepEqual(changes, []);
  await database.write(batch);
  assert.equal(await countValid(database), 0);
});

test("revokeGrantsWithScopes() without scopes does nothing", async (t) => {
  const database = openDatabase(t);
  assert.deepEqual(await revokeGrantsWithScopes(database, { user: "u" }, [], NOW_MS), []);
});
