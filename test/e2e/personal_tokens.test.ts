import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { PASSWORD, startGatepost, type TestUser, waitUntilDead } from "../helpers/gatepost.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";
import {
  assertOAuthError,
  assertProblem,
  expectStatus,
  readItems,
  readObject,
} from "../helpers/responses.ts";
import { ENV, NEW_PASSWORD, startAccountStage, TOKENS_PATH } from "./account_stage.ts";

const stage = await startAccountStage();
const { first, second, make, makeToken, list, end, changePassword } = stage;
const { open, subscribe, statusOf } = stage;
after(() => stage.stop());

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
        await first.api.get(TOKENS_PATH, bearer(other)),
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
  const admin = (method: string, path: string, body?: object) =>
    expectStatus(204, first.api.sendJson(method, path, body, bearer(first.adminToken)));
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
      assert.deepEqual(assertProblem(response, 400), [pointer]);
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

test("the backend lists a personal token with its type and name", async () => {
  const { user, login } = await open();
  const { id } = await makeToken(login, { name: "nightly" });
  const query = `?user=${user.id}&app=personal`;
  const response = await first.api.get(`/backend/grant${query}`, bearer(first.adminToken));
  const [item, ...more] = readItems(response);
  assert.deepEqual(more, []);
  const { type, app, status, name } = item ?? {};
  assert.deepEqual({ id: item?.["id"], type, app, status, name }, {
    id, type: "personal", app: "personal", status: "active", name: "nightly",
  });
});

// The last test of this file, since it stops the second process.
test("a restart keeps personal tokens, and the time of the last use of tokens", async () => {
  const user = await second.createUser();
  const login = await second.login(user);
  const made = readObject(await make(login, {}, second));
  const token = String(made["token"]);
  assert.equal(made["last_used_at"], null);
  assert.equal(await second.isAlive(token), true);
  await second.stop();
  const restarted = await startGatepost({ env: ENV, folder: first.server.folder });
  assert.equal(await restarted.isAlive(token), true);
  const [personal, ofLogin] = await list(login, "", restarted);
  for (const item of [personal, ofLogin]) {
    const usedMs = Date.parse(String(item?.["last_used_at"]));
    assert.ok(Math.abs(usedMs - Date.now()) < 60_000, JSON.stringify(item));
  }
  await restarted.stop();
});
