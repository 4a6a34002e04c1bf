import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { type TestContext, test } from "node:test";
import { newId } from "../../../src/base/id.ts";
import { createPasswordHasher } from "../../../src/base/password.ts";
import { sha256 } from "../../../src/base/secret.ts";
import { jsonResponse } from "../../../src/http/respond.ts";
import { toAppRecord } from "../../../src/oauth/app.ts";
import { toUserRecord } from "../../../src/oauth/user.ts";
import { appOperations } from "../../../src/api/app.ts";
import { principalOperations } from "../../../src/api/backend/principal.ts";
import { resourceOperations } from "../../../src/api/backend/resource.ts";
import { userOperations } from "../../../src/api/backend/user.ts";
import { readBody } from "../../../src/api/input.ts";
import { findApp, replaceAppSecret, updateApp } from "../../../src/store/apps.ts";
import { type Database, UnavailableError } from "../../../src/database/database.ts";
import { sql, type Sql } from "../../../src/database/sql.ts";
import { findGrant, insertGrant } from "../../../src/store/grants.ts";
import { ISSUERS, PRINCIPALS } from "../../../src/store/issuers.ts";
import { RESOURCES } from "../../../src/store/resources.ts";
import { loadRevocations } from "../../../src/store/revocations.ts";
import { findUser } from "../../../src/store/users.ts";
import { configOf } from "../../helpers/config.ts";
import { addApp, addUser, changeUser, openDatabase, sampleGrant } from "../../helpers/database.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const CALLER = backendCaller(NOW_MS + 1000);

/**
 * The backend's PATCH operations, on a database in which `meanwhile` is stored before each write.
 */
async function openStage(
  t: TestContext,
  meanwhile: () => Promise<readonly Sql[]> = async () => [],
  endsAfterWrite = false,
) {
  const stored = openDatabase(t);
  let isDown = false;
  const database: Database = {
    ...stored,
    query: <Row>(select: Sql) =>
      isDown ? Promise.reject(new UnavailableError("down")) : stored.query<Row>(select),
    async write(statements) {
      const other = await meanwhile();
      if (other.length > 0) await stored.write(other);
      const changes = await stored.write(statements);
      isDown = endsAfterWrite;
      return changes;
    },
  };
  const services = {
    database,
    revocations: await loadRevocations(stored, () => NOW_MS),
    config: configOf({}),
    hasher: createPasswordHasher(1),
    wake: () => {},
    now: () => NOW_MS,
  };
  const operations = [
    ...userOperations(services),
    ...appOperations("/backend", services),
    ...resourceOperations({ ...services, issuer: "http://127.0.0.1" }),
    ...principalOperations(services),
  ].filter(({ method }) => method === "PATCH");
  const replaceOwnSecret = appOperations("/consumer", services)
    .find(({ path }) => path.endsWith("/secret"));
  const kinds: Readonly<Record<string, string>> =
    { u: "user", a: "app", p: "resource", x: "principal" };
  const patch = async (id: string, change: object) => {
    const found = operations.find(({ path }) => path.includes(`/${kinds[id.charAt(0)]}/`));
    const request = sampleRequest({
      headers: { "content-type": "application/json" },
      body: JSON.stringify(change),
    });
    assert.ok(found?.body);
    return found.handle({
      request,
      params: { id, client_id: id },
      caller: CALLER,
      query: {},
      body: await readBody(found.body, request, 1000),
      authenticateAgain: () => Promise.resolve(),
    });
  };
  const replaceSecret = (id: string, owner: string) =>
    replaceOwnSecret?.handle({
      request: sampleRequest(),
      params: { client_id: id },
      caller: { ...CALLER, sub: owner },
      query: {},
      body: undefined,
      authenticateAgain: () => Promise.resolve(),
    });
  return { stored, patch, replaceSecret };
}

for (const kind of ["user", "app"] as const) {
  test(`a change also takes away a scope that the ${kind} gets at the same time`, async (t) => {
    let others: (() => Promise<readonly Sql[]>) | undefined;
    const { stored, patch } = await openStage(t, async () => await others?.() ?? []);
    const all = ["consumer", "orders"];
    const user = await addUser(stored, { scopes: kind === "user" ? ["consumer"] : all });
    const app = await addApp(stored, { scopes: kind === "app" ? ["consumer"] : all });
    const grant = sampleGrant(app, user, { scopes: ["orders"] });
    others = async () => {
      others = undefined;
      const found = await findApp(stored, app);
      assert.ok(found);
      if (kind === "user") await changeUser(stored, user, { scopes: all });
      else await stored.write([updateApp(found, { ...found, scopes: all })]);
      assert.equal(await insertGrant(stored, grant), true);
      return [];
    };
    const response = await patch(kind === "user" ? user : app, { scopes: ["consumer"] });
    assert.equal(response.status, 200);
    const party = kind === "user" ? await findUser(stored, user) : await findApp(stored, app);
    assert.deepEqual(party?.scopes, ["consumer"]);
    assert.notEqual((await findGrant(stored, grant.id))?.revokedAtMs, null);
    assert.equal((await stored.query(sql`SELECT 1 FROM audit`)).length, 1);
  });
}

test("a change of an app that keeps changing is a conflict, and nothing is stored", async (t) => {
  let app = "";
  let round = 0;
  const { stored, patch } = await openStage(t, async () => {
    const found = await findApp(stored, app);
    return found ? [updateApp(found, { ...found, name: `Round ${round++}` })] : [];
  });
  app = await addApp(stored);
  await assert.rejects(patch(app, { trusted: true }), { status: 409, code: "conflict" });
  assert.equal((await findApp(stored, app))?.trusted, false);
  assert.deepEqual(await stored.query(sql`SELECT 1 FROM audit`), []);
});

test("a change of a resource that keeps changing is a conflict, and not stored", async (t) => {
  const id = newId("p", NOW_MS);
  let resource = { id, url: "https://ships.example/", scopes: ["a"], createdAtMs: NOW_MS };
  const { stored, patch } = await openStage(t, async () => {
    const before = resource;
    resource = { ...before, scopes: [`${before.scopes[0]}a`] };
    return [RESOURCES.update(before, resource)];
  });
  await stored.write([RESOURCES.insert(resource)]);
  await assert.rejects(patch(id, { scopes: ["orders"] }), { status: 409, code: "conflict" });
  assert.deepEqual((await RESOURCES.find(stored, id))?.scopes, resource.scopes);
  assert.deepEqual(await stored.query(sql`SELECT 1 FROM audit`), []);
});

test("a change of a principal that another request changes meanwhile is retried", async (t) => {
  let others: (() => readonly Sql[]) | undefined;
  const { stored, patch } = await openStage(t, async () => others?.() ?? []);
  const common = { status: "active", createdAtMs: NOW_MS } as const;
  const issuer = {
    ...common, id: newId("i", NOW_MS), issuer: "https://id.example", audience: null,
    scopes: ["orders"], scopeClaim: "scope", jwksUri: "https://id.example/keys", jwtType: false,
  } as const;
  const principal = { ...common, id: newId("x", NOW_MS), issuer: issuer.id, subject: "ann" };
  await stored.write([ISSUERS.insert(issuer), PRINCIPALS.insert(principal)]);
  let tries = 0;
  others = () => {
    if (++tries > 1) return [];
    return [PRINCIPALS.update(principal, { ...principal, status: "disabled" })];
  };
  assert.equal((await patch(principal.id, { status: "active" })).status, 200);
  assert.equal(tries, 2);
  assert.equal((await PRINCIPALS.find(stored, principal.id))?.status, "active");
});

test("a change of an app that has just been deleted is 404", async (t) => {
  let app = "";
  const { stored, patch } = await openStage(t, async () => [
    { sql: "DELETE FROM apps WHERE id = ?1", params: [app] },
  ]);
  app = await addApp(stored);
  await assert.rejects(patch(app, { trusted: true }), { status: 404 });
});

test("a user who has just lost an app cannot replace its secret", async (t) => {
  let others = (): Sql[] => [];
  const { stored, replaceSecret } = await openStage(t, async () => others());
  const owner = await addUser(stored);
  const app = await addApp(stored, { owner });
  assert.equal((await replaceSecret(app, owner))?.status, 200);
  others = () => [{ sql: "UPDATE apps SET owner = NULL WHERE id = ?1", params: [app] }];
  await assert.rejects(async () => replaceSecret(app, owner), { status: 404 });
  assert.equal((await stored.query(sql`SELECT 1 FROM audit`)).length, 1);
});

test("the response to a change shows the record as stored, without another read", async (t) => {
  const ofUser = await openStage(t, undefined, true);
  const user = await addUser(ofUser.stored);
  const changedUser = await ofUser.patch(user, { status: "disabled", scopes: ["orders"] });
  const foundUser = await findUser(ofUser.stored, user);
  assert.ok(foundUser);
  assert.deepEqual(changedUser, jsonResponse(200, toUserRecord(foundUser)));

  const ofApp = await openStage(t, undefined, true);
  const app = await addApp(ofApp.stored);
  await ofApp.stored.write([replaceAppSecret(app, sha256("secret"), NOW_MS + 1000)]);
  const jwk = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const keys = [{ ...jwk, kid: "k1" }];
  const changedApp = await ofApp.patch(app, { name: "Quay", jwks: { keys } });
  const foundApp = await findApp(ofApp.stored, app);
  assert.ok(foundApp);
  assert.deepEqual(changedApp, jsonResponse(200, toAppRecord(foundApp)));
});
