import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import { openDatabaseAt } from "../helpers/database.ts";
import { PASSWORD } from "../helpers/gatepost.ts";
import { bearer, newAddress } from "../helpers/requests.ts";
import { assertOAuthError, readItems, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";
import { NEW_PASSWORD, SCOPES, startAccountStage } from "./account_stage.ts";

const stage = await startAccountStage();
const { first, second, makeToken, list, end, changePassword, open, subscribe, statusOf } = stage;
after(() => stage.stop());

describe("the list of a user's tokens", () => {
  test("has logins, personal tokens and apps, newest first, up to a limit", async () => {
    const { user, login } = await open();
    const app = await first.createApp({ name: "The Shop", scopes: ["consumer"] });
    await first.codeTokens(app, user);
    const { id } = await makeToken(login, { name: "Backup <b>", scopes: ["orders"] });
    const items = await list(login, "?limit=2");
    const rest = await list(login);
    assert.deepEqual(items, rest.slice(0, 2));
    const facts = rest.map(({ kind, name, app: of, scopes, current }) =>
      ({ kind, name, app: of, scopes, current }));
    assert.deepEqual(facts, [
      { kind: "personal", name: "Backup <b>", app: undefined, scopes: ["orders"], current: false },
      { kind: "app", name: "The Shop", app: app.id, scopes: ["consumer"], current: false },
      { kind: "login", name: undefined, app: undefined, scopes: SCOPES, current: true },
    ]);
    assert.equal(rest[0]?.["id"], id);
    for (const item of rest) assert.ok(String(item["created_at"]) < String(item["expires_at"]));
  });

  test("has no tokens of other users, and none of those can be ended", async () => {
    const [{ login }, other] = [await open(), await open()];
    const { id, token } = await makeToken(login);
    assert.equal((await list(other.login)).length, 1);
    for (const wrong of [id, "g1", "..%00"]) {
      assert.ok([400, 404].includes((await end(other.login, wrong)).status));
    }
    assert.equal((await end(other.login)).status, 204);
    assert.equal(await first.isAlive(token), true);
  });

  test("leaves out logins and apps that have ended", async () => {
    const { user, login } = await open();
    const app = await first.createApp();
    const tokens = await first.codeTokens(app, user);
    const other = await first.login(user);
    assert.equal((await list(login)).length, 3);
    await first.api.send("POST", "/authorization/revoke", { headers: bearer(other) });
    assert.equal((await list(login)).length, 2, "a login that was revoked");
    await first.api.send("DELETE", `/consumer/grant/${app.id}`, { headers: bearer(login) });
    assert.equal((await list(login)).length, 1, "an app that was withdrawn");
    assert.equal(await first.isAlive(tokens.access_token), false);
  });

  test("has a login, an app and the current login, and each can be ended at once", async () => {
    const { user, login } = await open();
    const app = await first.createApp();
    const { access_token: ofApp } = await first.codeTokens(app, user);
    const other = await first.login(user);
    for (const item of await list(login)) {
      if (item["current"] === true) continue;
      assert.equal((await end(login, String(item["id"]))).status, 204);
    }
    assert.equal(await first.isAlive(other), false);
    assert.equal(await first.isAlive(ofApp), false);
    const [current] = await list(login);
    assert.equal((await end(login, String(current?.["id"]))).status, 204);
    assert.equal(await first.isAlive(login), false);
  });
});

describe("signing out everywhere", () => {
  test("ends all tokens but the current one, in every process, and all sessions", async () => {
    const { user, login } = await open();
    const app = await first.createApp({ trusted: true });
    const browser = await first.openLoggedIn(app, user);
    const code = await first.code(app, user);
    const other = await first.login(user);
    const { access_token: ofApp } = await first.codeTokens(app, user);
    const { token } = await makeToken(login);
    const subscription = await subscribe(other);
    for (const each of [other, ofApp, token, login]) assert.equal(await second.isAlive(each), true);
    assert.equal((await end(login)).status, 204);
    const endedMs = performance.now();
    for (const each of [other, ofApp, token]) assert.equal(await first.isAlive(each), false);
    for (const each of [other, ofApp, token]) await second.assertDies(each, endedMs);
    assert.equal(await first.isAlive(login), true);
    assert.equal(await second.isAlive(login), true);
    assert.deepEqual((await list(login)).map((item) => item["current"]), [true]);
    assert.equal(await statusOf(login, subscription), "disabled");
    assert.equal((await first.authorize(browser, app)).status, 200, "the login page");
    assertOAuthError(
      await first.token(app, { grant_type: "authorization_code", code }), 400, "invalid_grant",
    );
  });
});

describe("an account", () => {
  test("is shown to its user", async () => {
    const { user, login } = await open();
    const { created_at: createdAt, ...rest } = readObject(
      await first.api.get("/consumer/account", bearer(login)),
    );
    const { id, username } = user;
    assert.deepEqual(rest, { id, username, scopes: SCOPES, rate: null, status: "active" });
    assert.ok(Math.abs(Date.parse(String(createdAt)) - Date.now()) < 60_000);
  });

  test("loses all tokens and sessions in every process with a new password", async () => {
    const { user, login } = await open();
    const app = await first.createApp({ trusted: true });
    const browser = await first.openLoggedIn(app, user);
    const { access_token: ofApp } = await first.codeTokens(app, user);
    const { token } = await makeToken(login);
    const own = await subscribe(login);
    for (const each of [login, ofApp, token]) assert.equal(await second.isAlive(each), true);
    const changed = await changePassword(login, user.password);
    assert.equal(changed.status, 204, changed.text);
    const endedMs = performance.now();
    for (const each of [login, ofApp, token]) assert.equal(await first.isAlive(each), false);
    for (const each of [login, ofApp, token]) await second.assertDies(each, endedMs);
    assert.equal((await first.authorize(browser, app)).status, 200, "the login page");
    assert.equal((await first.tryLogin(user)).status, 401);
    const again = await first.login({ ...user, password: NEW_PASSWORD });
    assert.equal(await statusOf(again, own), "active", "what it made by its own login stays");
    assert.equal((await list(again)).length, 1);
  });

  test("keeps its password if the current one is wrong or the new one is invalid", async () => {
    const { user, login } = await open();
    for (const current of ["wrong", "", "x".repeat(5_000)]) {
      const response = await changePassword(login, current);
      assert.equal(response.status, 400, response.text);
      const { type, errors } = readObject(response);
      assert.equal(type, "urn:gatepost:problem:wrong_password");
      assert.deepEqual(errors, [{ pointer: "/current", detail: "Is wrong." }]);
    }
    for (const wrong of ["short", "x".repeat(1_025), 7]) {
      assert.equal((await changePassword(login, user.password, { new: wrong })).status, 400);
    }
    assert.equal(await first.isAlive(login), true);
    const audited = async () => {
      const path = `/backend/audit?target=${user.id}&actor=${user.id}&action=user.login_failed`;
      return readItems(await first.api.get(path, bearer(first.adminToken)));
    };
    await until(async () => (await audited()).length > 0, () => "the user is not the actor");
    assert.equal((await first.tryLogin(user)).status, 200);
  });

  test("can replace a one-time password after the one login that it allows", async () => {
    const user = await first.createUser();
    const database = openDatabaseAt(join(first.server.folder, "gatepost.db"));
    await database.write([
      sql`UPDATE users SET passwordUntilMs = ${Date.now() + 60_000} WHERE id = ${user.id}`,
    ]);
    await database.close();
    const login = await first.login(user);
    assert.equal((await first.tryLogin(user)).status, 401);
    assert.equal((await changePassword(login, user.password)).status, 204);
    const changed = { ...user, password: NEW_PASSWORD };
    for (let times = 0; times < 2; times++) assert.ok(await first.login(changed));
  });

  test("has one throttle for password changes and logins", async () => {
    const { user, login } = await open();
    const address = newAddress();
    for (let tries = 0; tries < 10; tries++) {
      assert.equal((await changePassword(login, "wrong", {}, address)).status, 400);
    }
    const throttled = await changePassword(login, user.password, {}, address);
    assert.equal(throttled.status, 429);
    assert.ok(Number(throttled.headers.get("retry-after")) > 0);
    assert.equal((await first.tryLogin(user, address)).status, 429);
    assert.equal((await first.tryLogin(user)).status, 200);
  });

  test("accepts one of two password changes that are sent at the same time", async () => {
    const { user, login } = await open();
    const responses = await Promise.all(["new password 1", "new password 2"].map((each) =>
      changePassword(login, user.password, { new: each })));
    const statuses = responses.map(({ status }) => status).sort();
    assert.ok(statuses[0] === 204 && statuses[1] !== 204, statuses.join());
  });
});

test("the audit has each change of tokens and password; no file or log has a secret", async () => {
  const { user, login } = await open();
  const { id, token } = await makeToken(login);
  assert.equal(await first.isAlive(token), true);
  await first.api.get("/consumer/subscription", bearer(token));
  await end(login, id);
  await end(login);
  await changePassword(login, PASSWORD);
  const audit = await first.api.get(`/backend/audit?actor=${user.id}`, bearer(first.adminToken));
  const entries = readItems(audit)
    .map(({ action, target }) => [action, target === id ? "token" : "user"]);
  assert.deepEqual(entries, [
    ["user.change_password", "user"],
    ["grant.revoke", "user"],
    ["grant.revoke", "token"],
    ["grant.create", "token"],
    ["user.login", "user"],
  ]);
  const { folder } = first.server;
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), "latin1"));
  for (const text of [...texts, first.server.lines.join("\n"), first.server.stderr()]) {
    assert.ok(!text.includes(token.slice(31)), "the secret part");
    assert.ok(!text.includes(NEW_PASSWORD));
  }
});
