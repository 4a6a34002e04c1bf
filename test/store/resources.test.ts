import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { newId } from "../../src/base/id.ts";
import { ConflictError, type Database } from "../../src/database/database.ts";
import { insertCode, redeemCode } from "../../src/store/codes.ts";
import { insertGrant, rotateRefreshToken } from "../../src/store/grants.ts";
import { findResource, RESOURCES } from "../../src/store/resources.ts";
import { addApp, addSession, addUser, openDatabase, sampleGrant } from "../helpers/database.ts";
import { FIRST, NOW_MS, SECOND } from "../helpers/grant_stage.ts";
import { sampleCode, sampleRedemption } from "./code_stage.ts";


async function open(t: TestContext) {
  const database = openDatabase(t);
  const resource = {
    id: newId("p", NOW_MS), url: "https://mcp.example", scopes: ["consumer"], createdAtMs: NOW_MS,
  };
  // One that is never changed.
  const other = { ...resource, id: newId("p", NOW_MS), url: "https://other.example" };
  await database.write([RESOURCES.insert(other), RESOURCES.insert(resource)]);
  const [app, user] = [await addApp(database), await addUser(database)];
  return { database, resource, app, user };
}

/** Changes of a resource after which nothing may be stored for it any more. */
const ENDS: readonly (readonly [string, (database: Database, id: string) => Promise<unknown>])[] = [
  ["was removed", (database, id) => database.write([RESOURCES.remove(id)])],
  ["has lost its scope", async (database, id) => {
    const before = await RESOURCES.find(database, id);
    assert.ok(before);
    await database.write([RESOURCES.update(before, { ...before, scopes: ["x"] })]);
  }],
];

test("a resource is found by its id and by its URL, with a slash or without", async (t) => {
  const { database, resource } = await open(t);
  for (const key of [resource.id, resource.url, `${resource.url}/`]) {
    assert.deepEqual({ ...await findResource(database, key) }, resource);
  }
  assert.equal(await findResource(database, "https://mcp.example/x"), undefined);
});

test("a change of a resource that has changed since it was read is a conflict", async (t) => {
  const { database, resource } = await open(t);
  const change = (scopes: string[]) =>
    database.write([RESOURCES.update(resource, { ...resource, scopes })]);
  await change(["files"]);
  await assert.rejects(change(["notes"]), ConflictError);
  assert.deepEqual((await RESOURCES.find(database, resource.id))?.scopes, ["files"]);
});

for (const [what, end] of ENDS) {
  test(`no grant is stored for a resource that ${what}`, async (t) => {
    const { database, resource: { id: resource }, app, user } = await open(t);
    assert.equal(await insertGrant(database, sampleGrant(app, user, { resource })), true);
    await end(database, resource);
    assert.equal(await insertGrant(database, sampleGrant(app, user, { resource })), false);
  });

  test(`a code for a resource that ${what} is neither stored nor redeemed`, async (t) => {
    const { database, resource: { id: resource }, app, user } = await open(t);
    const session = await addSession(database, user);
    const code = sampleCode(app, user, { resource });
    assert.deepEqual(await database.write([insertCode(code, FIRST, session, NOW_MS)]), [1]);
    await end(database, resource);
    const later = sampleCode(app, user, { resource });
    assert.deepEqual(await database.write([insertCode(later, SECOND, session, NOW_MS)]), [0]);
    const redemption = sampleRedemption(code, FIRST);
    assert.equal(await redeemCode(database, redemption, NOW_MS + 1), false);
  });

  test(`a refresh token for a resource that ${what} is not exchanged`, async (t) => {
    const { database, resource: { id: resource }, app, user } = await open(t);
    const grant = sampleGrant(app, user, { resource });
    assert.equal(await insertGrant(database, grant), true);
    const rotation = {
      old: { grantId: grant.id, hash: FIRST, isGenuine: () => true },
      state: "current" as const, head: FIRST, newHash: SECOND, scopes: ["consumer"],
      refreshUntilMs: grant.refreshUntilMs, accessUntilMs: grant.accessUntilMs,
    };
    await end(database, resource);
    assert.equal(await rotateRefreshToken(database, rotation, NOW_MS + 1), false);
  });
}
