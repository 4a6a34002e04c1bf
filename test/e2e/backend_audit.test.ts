import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startBackendStage } from "../helpers/backend_stage.ts";
import type { TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { newAddress } from "../helpers/requests.ts";
import { decodeJwt, expectStatus, readObject, readTokens } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const { gatepost, send, list, createPasswordApp, grantOf, isAudited } = await startBackendStage();
after(() => gatepost.stop());

test("changes are audited with their actor and address", async () => {
  const user = await gatepost.createUser();
  await gatepost.change(user, { scopes: ["consumer", "orders"] });
  await send("DELETE", `/backend/user/${user.id}`);
  const entries = await list(`/backend/audit?target=${user.id}`);
  const actions = entries.map(({ action }) => action);
  assert.deepEqual(actions, ["user.delete", "user.change", "user.create"]);
  const admin = String(decodeJwt(gatepost.adminToken).claims["sub"]);
  for (const entry of entries) {
    const members = ["id", "time", "actor", "action", "target", "address", "app"];
    assert.deepEqual(Object.keys(entry), members);
    assert.deepEqual([entry["actor"], entry["app"]], [admin, null]);
    assert.match(String(entry["address"]), /^10\./);
    assert.ok(Math.abs(Date.now() - Date.parse(String(entry["time"]))) < 60_000);
  }
});

test("logins are audited: at the endpoint, on the page and by a password grant", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ grants: ["password", "authorization_code"] });
  await gatepost.login(user);
  await gatepost.passwordTokens(app, user);
  await gatepost.code(app, user);
  const logins = await list(`/backend/audit?target=${user.id}&action=user.login`);
  assert.deepEqual(logins.map(({ actor }) => actor), [user.id, app.id, user.id]);
});

test("a failed login is audited with its account: endpoint, page and password grant", async () => {
  const app = await createPasswordApp();
  const wrong = { password: "not the right one" };
  const failures: readonly [
    what: string,
    fail: (user: TestUser) => Promise<ClientResponse>,
    actor: string,
  ][] = [
    [
      "endpoint",
      ({ username }) => gatepost.api.postJson("/consumer/login", { username, ...wrong }),
      "anonymous",
    ],
    [
      "page",
      async ({ username }) => {
        const browser = gatepost.openBrowser();
        const page = await gatepost.authorize(browser, await gatepost.createApp());
        return browser.submit(page, { username, ...wrong });
      },
      "anonymous",
    ],
    [
      "password grant",
      ({ username }) => gatepost.token(app, { grant_type: "password", username, ...wrong }),
      app.id,
    ],
  ];
  for (const [what, fail, actor] of failures) {
    const user = await gatepost.createUser();
    await fail(user);
    await until(() => isAudited(user.id, "user.login_failed"), () => what, 3000);
    const [entry] = await list(`/backend/audit?target=${user.id}&action=user.login_failed`);
    assert.equal(entry?.["actor"], actor, what);
  }
});

test("a disabled user's login with the right password is audited as failed", async () => {
  const user = await gatepost.createUser();
  await gatepost.change(user, { status: "disabled" });
  const { username, password } = user;
  await expectStatus(401, gatepost.api.postJson("/consumer/login", { username, password }));
  await until(() => isAudited(user.id, "user.login_failed"), () => "the failure", 3000);
});

test("an unknown user name of a failed login is not in the audit", async () => {
  const address = newAddress();
  const typed = "My-Password-In-The-Wrong-Field-1";
  const headers = { "x-forwarded-for": address };
  const client = gatepost.api;
  await expectStatus(
    401,
    client.postJson("/consumer/login", { username: typed, password: "alice the user" }, headers),
  );
  const find = async () =>
    (await list("/backend/audit?target=unknown&action=user.login_failed&limit=200"))
      .find((entry) => entry["address"] === address);
  await until(async () => await find() !== undefined, () => "the failure", 3000);
  assert.equal((await find())?.["actor"], "anonymous");
  const all = await send("GET", "/backend/audit?limit=200");
  assert.ok(!all.text.includes(typed) && !all.text.includes("alice the user"));
});

test("a failed client authentication is audited with its app, or as unknown", async () => {
  const app = await gatepost.createApp();
  const wrong = { ...app, secret: "not the secret" };
  await expectStatus(401, gatepost.token(wrong, { grant_type: "client_credentials" }));
  await until(() => isAudited(app.id, "app.authenticate_failed"), () => "the failure", 3000);
  const address = newAddress();
  const unknown = { authorization: `Basic ${Buffer.from("who:knows").toString("base64")}` };
  const fields = { grant_type: "client_credentials" };
  const headers = { ...unknown, "x-forwarded-for": address };
  await expectStatus(401, gatepost.api.postForm("/authorization/token", fields, headers));
  const path = "/backend/audit?target=unknown&action=app.authenticate_failed&limit=200";
  await until(
    async () => (await list(path)).some((entry) => entry["address"] === address),
    () => "the failure of an unknown app",
    3000,
  );
});

test("15 failed logins of one user from one address make one audit entry", async () => {
  const user = await gatepost.createUser();
  const headers = { "x-forwarded-for": newAddress() };
  const body = { username: user.username, password: "not the right one" };
  const responses = await Promise.all(
    Array.from({ length: 15 }, () => gatepost.api.postJson("/consumer/login", body, headers)),
  );
  assert.ok(responses.some(({ status }) => status === 429), "some are throttled");
  await until(() => isAudited(user.id, "user.login_failed"), () => "the first failure", 3000);
  await sleep(1200); // by now later failures would be stored
  assert.equal((await list(`/backend/audit?target=${user.id}&action=user.login_failed`)).length, 1);
});

test("a reused refresh token and a replayed code are each audited once", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const tokens = await gatepost.codeTokens(app, user);
  const second = readTokens(await gatepost.refresh(app, tokens.refresh_token));
  readTokens(await gatepost.refresh(app, second.refresh_token));
  for (let i = 0; i < 3; i++) await expectStatus(400, gatepost.refresh(app, tokens.refresh_token));
  const reused = await list(`/backend/audit?target=${(await grantOf(user, app.id))["id"]}`);
  assert.deepEqual(reused.map(({ actor, action }) => [actor, action]), [
    [app.id, "grant.reuse"],
    [user.id, "grant.allow"],
  ]);
  const code = await gatepost.code(app, user);
  const exchange = () => gatepost.token(app, { grant_type: "authorization_code", code });
  readTokens(await exchange());
  for (let i = 0; i < 3; i++) await expectStatus(400, exchange());
  const { id } = await grantOf(user, app.id);
  assert.deepEqual((await list(`/backend/audit?target=${id}`)).map(({ action }) => action), [
    "grant.replay",
    "grant.allow",
  ]);
});

test("revocations by grant and by user are audited", async () => {
  const user = await gatepost.createUser();
  await gatepost.login(user);
  const { id } = await grantOf(user, "login");
  await send("DELETE", `/backend/grant/${id}`);
  await send("POST", "/backend/grant/revoke", { user: user.id });
  for (const target of [String(id), user.id]) {
    assert.equal(await isAudited(target, "grant.revoke"), true);
  }
});

test("a consent, its grant and the grant's revocation are audited with the app", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const browser = gatepost.openBrowser();
  await gatepost.allow(browser, app, user);
  const code = (await gatepost.allow(browser, app, user)).searchParams.get("code") ?? "";
  const tokens = readTokens(await gatepost.token(app, { grant_type: "authorization_code", code }));
  const { id } = await grantOf(user, app.id);
  const consents = await list(`/backend/audit?actor=${user.id}&action=consent.allow`);
  const [consent, ...moreConsents] = consents;
  assert.deepEqual([consent?.["target"], consent?.["app"], moreConsents], [app.id, app.id, []]);
  assert.match(String(consent?.["address"]), /^10\./);
  const allowed = await list(`/backend/audit?actor=${user.id}&action=grant.allow`);
  assert.deepEqual(allowed.map((entry) => entry["app"]), [app.id, app.id]);
  assert.equal(allowed[0]?.["target"], id);
  for (const { address } of allowed) assert.match(String(address), /^10\./);
  await gatepost.api.postForm("/authorization/revoke", {
    token: tokens.refresh_token,
    client_id: app.id,
    client_secret: app.secret,
  });
  const [end] = await list(`/backend/audit?target=${id}&action=grant.revoke`);
  assert.equal(end?.["actor"], app.id);
});

test("an app's tokens for itself, their refresh and revocation are not audited", async () => {
  const app = await gatepost.createApp();
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  readTokens(await gatepost.refresh(app, own.refresh_token));
  await gatepost.api.postForm("/authorization/revoke", {
    token: own.refresh_token,
    client_id: app.id,
    client_secret: app.secret,
  });
  assert.deepEqual(await list(`/backend/audit?actor=${app.id}`), []);
});

test("what an app does with a user's token is audited with the app", async () => {
  const scopes = ["consumer", "backend"];
  const user = await gatepost.createUser({ scopes });
  const app = await gatepost.createApp({ scopes, grants: ["password", "client_credentials"] });
  const { username, password } = user;
  const fields = { scope: "backend consumer" };
  const login = { ...fields, grant_type: "password", username, password };
  const ofUser = readTokens(await gatepost.token(app, login)).access_token;
  const own = { ...fields, grant_type: "client_credentials" };
  const ofApp = readTokens(await gatepost.token(app, own)).access_token;
  const change = { name: "Changed" };
  const appOf = async (token: string) => {
    const target = await gatepost.createApp();
    await expectStatus(200, send("PATCH", `/backend/app/${target.id}`, change, token));
    const [entry] = await list(`/backend/audit?target=${target.id}&action=app.change`);
    return [entry?.["actor"], entry?.["app"]];
  };
  assert.deepEqual(await appOf(ofUser), [user.id, app.id]);
  assert.deepEqual(await appOf(ofApp), [app.id, null]);
  assert.deepEqual(await appOf(await gatepost.login(user)), [user.id, null]);

  const body = { event: "order.created", endpoint: "https://hooks.example/in" };
  const made = await expectStatus(201, send("POST", "/consumer/subscription", body, ofUser));
  const id = String(readObject(made)["id"]);
  await expectStatus(200, send("POST", `/consumer/subscription/${id}/secret`, undefined, ofUser));
  const entries = await list(`/backend/audit?target=${id}`);
  assert.deepEqual(entries.map((entry) => [entry["actor"], entry["app"], entry["action"]]), [
    [user.id, app.id, "subscription.rotate_secret"],
    [user.id, app.id, "subscription.create"],
  ]);
});

test("the audit has no password, secret, token or user name", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const { username } = user;
  const password = "another long password";
  await gatepost.change(user, { password });
  const token = await gatepost.login({ ...user, password });
  const tokens = await gatepost.codeTokens(app, { ...user, password });
  const { text } = await send("GET", "/backend/audit?limit=200");
  for (const secret of [password, app.secret, token, tokens.refresh_token, username]) {
    assert.ok(!text.includes(secret));
  }
});

test("the audit can be filtered by actor, action, target and time", async () => {
  const user = await gatepost.createUser();
  await sleep(5);
  const since = new Date().toISOString();
  await gatepost.change(user, { status: "disabled" });
  await sleep(5);
  const until = new Date().toISOString();
  await gatepost.change(user, { status: "active" });
  const count = async (query: string) => (await list(`/backend/audit?${query}`)).length;
  const actor = String(decodeJwt(gatepost.adminToken).claims["sub"]);
  const target = user.id;
  assert.equal(await count(`target=${target}`), 3);
  assert.equal(await count(`target=${target}&action=user.change`), 2);
  assert.equal(await count(`target=${target}&actor=${actor}&action=user.create`), 1);
  assert.equal(await count(`target=${target}&actor=nobody`), 0);
  assert.equal(await count(`target=${target}&since=${since}`), 2);
  assert.equal(await count(`target=${target}&since=${since}&until=${until}`), 1);
  assert.equal(await count(`target=${target}&until=${since}`), 1);
  await expectStatus(400, send("GET", "/backend/audit?since=yesterday&until=1"));
});
