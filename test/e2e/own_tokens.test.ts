import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sql } from "../../src/database/sql.ts";
import { openDatabaseAt } from "../helpers/database.ts";
import {
  assertOAuthError,
  basicAuth,
  bearer,
  type Gatepost,
  newAddress,
  newName,
  PASSWORD,
  readObject,
  startGatepost,
  type TestUser,
  waitUntilDead,
} from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { createDataFolder } from "../helpers/process.ts";
import { until } from "../helpers/until.ts";

// Both have one base URL; otherwise each would be an issuer of its own.
const env = { GATEPOST_BASE_URL: "http://gatepost.test" };
const PATH = "/consumer/token";
const NEW_PASSWORD = "a password that is new";

type Item = Readonly<Record<string, unknown>>;

let first: Gatepost;
let second: Gatepost;
before(async () => {
  first = await startGatepost({ env });
  second = await startGatepost({ env, folder: first.server.folder });
});
after(async () => {
  await second.stop();
  await first.stop();
});

const SCOPES = ["consumer", "orders", "backend"];

function make(token: string, more: object = {}, at = first): Promise<ClientResponse> {
  const body = { name: "script", scopes: ["consumer"], expires_in: 3600, ...more };
  return at.api.postJson(PATH, body, bearer(token));
}

async function makeToken(token: string, more: object = {}): Promise<{ id: string; token: string }> {
  const response = await make(token, more);
  assert.equal(response.status, 201, response.text);
  const made = readObject(response);
  return { id: String(made["id"]), token: String(made["token"]) };
}

async function list(token: string, query = "", at = first): Promise<Item[]> {
  const response = await at.api.get(`${PATH}${query}`, bearer(token));
  assert.equal(response.status, 200, response.text);
  return readObject(response)["items"] as Item[];
}

const end = (token: string, id = ""): Promise<ClientResponse> =>
  first.api.send("DELETE", `${PATH}${id && `/${id}`}`, { headers: bearer(token) });

const changePassword = (token: string, current: string, more = {}, address = newAddress()) =>
  first.api.sendJson("PUT", "/consumer/account/password", { current, new: NEW_PASSWORD, ...more }, {
    ...bearer(token),
    "x-forwarded-for": address,
  });

async function subscribe(token: string): Promise<string> {
  const body = { event: newName("event"), endpoint: "https://hooks.example/in" };
  const response = await first.api.postJson("/consumer/subscription", body, bearer(token));
  assert.equal(response.status, 201, response.text);
  return `/consumer/subscription/${String(readObject(response)["id"])}`;
}

const statusOf = async (token: string, path: string) =>
  readObject(await first.api.get(path, bearer(token)))["status"];

async function open(scopes = SCOPES): Promise<{ user: TestUser; login: string }> {
  const user = await first.createUser({ scopes });
  return { user, login: await first.login(user) };
}

describe("a personal token", () => {
  test("is accepted like an access token, within its scopes, in every process", async () => {
    const { user, login } = await open();
    const { id, token } = await makeToken(login, { scopes: ["consumer", "backend"] });
    assert.match(token, /^gpat_[\w-]{80,}$/);
    for (const at of [first, second]) {
      const who = readObject(await at.api.get("/authorization/whoami", bearer(token)));
      const { expires_at: expiresAt, ...rest } = who;
      assert.deepEqual(rest, {
        sub: user.id,
        kind: "user",
        username: user.username,
        client_id: "personal",
        scope: "consumer backend",
      });
      const leftMs = Date.parse(String(expiresAt)) - Date.now();
      assert.ok(leftMs > 3_500_000 && leftMs <= 3_600_000, String(expiresAt));
    }
    assert.equal((await first.api.get("/backend/user", bearer(token))).status, 200);
    const { token: poor } = await makeToken(login);
    assert.equal((await first.api.get("/backend/user", bearer(poor))).status, 403);
    const [item] = (await list(login)).filter((each) => each["id"] === id);
    assert.deepEqual([item?.["kind"], item?.["name"]], ["personal", "script"]);
  });

  test("is described by introspection, and an app may not revoke it", async () => {
    const { user, login } = await open();
    const { id, token } = await makeToken(login);
    const app = await first.createApp({ resource_server: true });
    const introspect = async () => {
      const headers = basicAuth(app);
      const response = await first.api.postForm("/authorization/introspect", { token }, headers);
      const { exp, ...rest } = readObject(response);
      return rest;
    };
    assert.deepEqual(await introspect(), {
      active: true,
      aud: first.issuer,
      iss: first.issuer,
      scope: "consumer",
      client_id: "personal",
      username: user.username,
      sub: user.id,
      token_type: "bearer",
      jti: id,
    });
    const form = { token };
    const refused = await first.api.postForm("/authorization/revoke", form, basicAuth(app));
    assertOAuthError(refused, 400, "unauthorized_client");
    assert.equal((await end(login, id)).status, 204);
    assert.deepEqual(await introspect(), { active: false });
  });

  test("can revoke itself, which disables its subscriptions", async () => {
    const { login } = await open();
    const { id, token } = await makeToken(login);
    assert.equal(await second.isAlive(token), true);
    const subscription = await subscribe(token);
    const headers = bearer(token);
    const revoked = await first.api.send("POST", "/authorization/revoke", { headers });
    assert.equal(revoked.status, 200);
    assert.equal(await first.isAlive(token), false);
    await waitUntilDead(second, token);
    assert.ok(!(await list(login)).some((each) => each["id"] === id));
    assert.equal(await statusOf(login, subscription), "disabled");
  });

  test("stays valid when the login that made it is revoked", async () => {
    const { login } = await open();
    const { token } = await makeToken(login);
    await first.api.send("POST", "/authorization/revoke", { headers: bearer(login) });
    assert.equal(await first.isAlive(login), false);
    assert.equal(await first.isAlive(token), true);
  });

  test("is not issued to a login that has just ended in another process", async () => {
    const { user, login } = await open();
    const other = await first.login(user);
    for (const token of [login, other]) assert.equal(await second.isAlive(token), true);
    await first.api.send("POST", "/authorization/revoke", { headers: bearer(login) });
    const late = await make(login, {}, second);
    assert.ok([401, 409].includes(late.status), late.text);
    await end(other);
    const another = await first.login(user);
    assert.equal((await end(another)).status, 204);
    const later = await make(other, {}, second);
    assert.ok([401, 409].includes(later.status), later.text);
    assert.equal((await list(another)).length, 1);
  });

  test("expires", async () => {
    const { login } = await open();
    const { token } = await makeToken(login, { expires_in: 1 });
    assert.equal(await first.isAlive(token), true);
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    assert.equal(await first.isAlive(token), false);
    assert.equal((await list(login)).length, 1);
  });

  test("may not manage tokens or the account, and neither may an app's token", async () => {
    const { user, login } = await open();
    const { id, token } = await makeToken(login);
    const app = await first.createApp({ grants: ["password", "client_credentials"] });
    const { access_token: ofApp } = await first.passwordTokens(app, user);
    const own = await first.token(app, { grant_type: "client_credentials" });
    for (const other of [token, ofApp, String(readObject(own)["access_token"])]) {
      for (const response of [
        await first.api.get(PATH, bearer(other)),
        await make(other),
        await end(other, id),
        await end(other),
        await first.api.get("/consumer/account", bearer(other)),
        await changePassword(other, PASSWORD),
        await first.api.get("/consumer/grant", bearer(other)),
      ]) {
        assert.equal(response.status, 403, response.text);
        assert.equal(readObject(response)["type"], "urn:gatepost:problem:login_only");
        const challenge = response.headers.get("www-authenticate") ?? ""; // RFC 6750 §3
        assert.match(challenge, /^Bearer realm="gatepost", resource_metadata="[^"]+"$/);
      }
    }
    assert.equal(await first.isAlive(token), true);
  });

  const ENDS: [what: string, how: (user: TestUser, id: string) => Promise<unknown>][] = [
    ["its user is disabled", (user) => first.change(user, { status: "disabled" })],
    ["its user is disabled and enabled again", async (user) => {
      await first.change(user, { status: "disabled" });
      await first.change(user, { status: "active" });
    }],
    ["its user loses one of its scopes", (user) => first.change(user, { scopes: ["consumer"] })],
    ["its user gets a new password", (user) => first.change(user, { password: NEW_PASSWORD })],
    ["its user is deleted", (user) => admin("DELETE", `/backend/user/${user.id}`)],
    ["an administrator revokes it", (_, id) => admin("DELETE", `/backend/grant/${id}`)],
    ["all of its user's grants are revoked", ({ id: user }) => revoke({ user })],
    ["all of its user's personal tokens are", ({ id: user }) => revoke({ user, app: "personal" })],
    ["all personal tokens are revoked", () => revoke({ app: "personal" })],
  ];
  async function admin(method: string, path: string, body?: object) {
    const headers = { ...bearer(first.adminToken), "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await first.api.send(method, path, { headers, ...sent });
    assert.equal(response.status, 204, response.text);
  }
  const revoke = (body: object) => admin("POST", "/backend/grant/revoke", body);

  for (const [what, how] of ENDS) {
    test(`ends at once here, and within a second elsewhere, when ${what}`, async () => {
      const { user, login } = await open();
      const { id, token } = await makeToken(login, { scopes: ["consumer", "orders"] });
      const { token: unused } = await makeToken(login, { scopes: ["consumer", "orders"] });
      assert.equal(await first.isAlive(token), true);
      assert.equal(await second.isAlive(token), true);
      await how(user, id);
      const endedMs = performance.now();
      assert.equal(await first.isAlive(token), false);
      await second.assertDies(token, endedMs);
      const isAlone = what.startsWith("an administrator");
      assert.equal(await second.isAlive(unused), isAlone, "a token that no process has seen");
    });
  }

  test("is one of at most 100 of its user", async () => {
    const { login } = await open();
    const many = await Promise.all(Array.from({ length: 104 }, () => make(login)));
    assert.equal(many.filter(({ status }) => status === 201).length, 100);
    const refused = many.find(({ status }) => status === 409);
    assert.match(refused?.text ?? "", /problem:limit/);
    const [item] = await list(login);
    assert.equal((await end(login, String(item?.["id"]))).status, 204);
    assert.equal((await make(login)).status, 201);
  });

  test("is refused with an invalid name, scope or expiry", async () => {
    const { login } = await open(["consumer"]);
    const table: [more: object, pointer: string][] = [
      [{ name: "" }, "/name"],
      [{ name: "a\nb" }, "/name"],
      [{ name: 7 }, "/name"],
      [{ scopes: "consumer" }, "/scopes"],
      [{ scopes: ["consumer", "backend"] }, "/scopes"],
      [{ scopes: ["con sumer"] }, "/scopes/0"],
      [{ expires_in: 0 }, "/expires_in"],
      [{ expires_in: 1.5 }, "/expires_in"],
      [{ expires_in: "3600" }, "/expires_in"],
      [{ expires_in: 366 * 86_400 + 1 }, "/expires_in"],
      [{ expires_in: 1e300 }, "/expires_in"],
      [{ token: "gpat_mine" }, "/token"],
    ];
    for (const [more, pointer] of table) {
      const response = await make(login, more);
      assert.equal(response.status, 400, response.text);
      const errors = readObject(response)["errors"] as Item[];
      assert.deepEqual(errors.map((error) => error["pointer"]), [pointer]);
    }
    assert.equal((await make(login, { expires_in: 366 * 86_400 })).status, 201);
  });

  test("that was altered, cut or made up is refused", async () => {
    const { login } = await open();
    const { token } = await makeToken(login);
    const last = token.endsWith("A") ? "B" : "A";
    const altered = token.slice(0, 40) + (token[40] === "a" ? "b" : "a") + token.slice(41);
    for (const bad of [
      "gpat_", token.slice(5), token.slice(0, -1), token.slice(0, -1) + last, altered,
      `${token}A`, `x${token}`, token.toUpperCase(), `gpat_${"g".repeat(8000)}`,
    ]) {
      const response = await first.api.get("/authorization/whoami", bearer(bad));
      assert.equal(response.status, 401);
      assert.match(response.headers.get("www-authenticate") ?? "", /error="invalid_token"/);
    }
    assert.equal(await first.isAlive(token), true);
    const app = await first.createApp();
    assertOAuthError(await first.refresh(app, token), 400, "invalid_grant");
    assertOAuthError(await first.refresh(app, token.slice(5)), 400, "invalid_grant");
  });

  test("may subscribe, sees no other subscriptions, and its own end with it", async () => {
    const { login } = await open();
    const { id, token } = await makeToken(login);
    const [ofLogin, ofToken] = [await subscribe(login), await subscribe(token)];
    assert.equal((await first.api.get(ofLogin, bearer(token))).status, 404);
    assert.equal(await statusOf(token, ofToken), "active");
    await end(login, id);
    assert.equal(await statusOf(login, ofToken), "disabled");
    assert.equal(await statusOf(login, ofLogin), "active");
  });
});

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
      return readObject(await first.api.get(path, bearer(first.adminToken)))["items"] as Item[];
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
  const entries = (readObject(audit)["items"] as Item[])
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

test("the backend lists a personal token with its type and name", async () => {
  const { user, login } = await open();
  const { id } = await makeToken(login, { name: "nightly" });
  const query = `?user=${user.id}&app=personal`;
  const response = await first.api.get(`/backend/grant${query}`, bearer(first.adminToken));
  const [item, ...more] = readObject(response)["items"] as Item[];
  assert.deepEqual(more, []);
  const { type, app, status, name } = item ?? {};
  assert.deepEqual({ id: item?.["id"], type, app, status, name }, {
    id, type: "personal", app: "personal", status: "active", name: "nightly",
  });
});

test("a restart keeps personal tokens, and the time of the last use of tokens", async () => {
  const data = await createDataFolder();
  let gatepost = await startGatepost({ env, folder: data });
  const user = await gatepost.createUser();
  const login = await gatepost.login(user);
  const made = readObject(await make(login, {}, gatepost));
  const token = String(made["token"]);
  assert.equal(made["last_used_at"], null);
  assert.equal(await gatepost.isAlive(token), true);
  await gatepost.stop();
  gatepost = await startGatepost({ env, folder: data });
  assert.equal(await gatepost.isAlive(token), true);
  const [personal, ofLogin] = await list(login, "", gatepost);
  for (const item of [personal, ofLogin]) {
    const usedMs = Date.parse(String(item?.["last_used_at"]));
    assert.ok(Math.abs(usedMs - Date.now()) < 60_000, JSON.stringify(item));
  }
  await gatepost.stop();
  await rm(data, { recursive: true });
});
