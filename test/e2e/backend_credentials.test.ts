import assert from "node:assert/strict";
import { after, test } from "node:test";
import { expectObject, type Item, startBackendStage } from "../helpers/backend_stage.ts";
import type { TestApp, TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";
import { bearer, newName } from "../helpers/requests.ts";
import {
  assertOAuthError,
  expectStatus,
  readItems,
  readObject,
  readTokens,
} from "../helpers/responses.ts";

const { gatepost, send, createPasswordApp } = await startBackendStage();
after(() => gatepost.stop());

/** Everything that lets somebody act for a user. */
interface Credentials {
  readonly loginToken: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly code: string;
  readonly browser: Client;
  readonly app: TestApp;
}

async function createCredentials(user: TestUser): Promise<Credentials> {
  const app = await gatepost.createApp({ trusted: true });
  const tokens = await gatepost.codeTokens(app, user);
  const browser = gatepost.openBrowser();
  const code = (await gatepost.allow(browser, app, user)).searchParams.get("code") ?? "";
  return {
    loginToken: await gatepost.login(user),
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token,
    code,
    browser,
    app,
  };
}

/** Whether each is valid: login token, access token, refresh token, code, browser session. */
async function probe(credentials: Credentials): Promise<Item> {
  const { app, code } = credentials;
  return {
    loginToken: await gatepost.isAlive(credentials.loginToken),
    accessToken: await gatepost.isAlive(credentials.accessToken),
    code: (await gatepost.token(app, { grant_type: "authorization_code", code })).status === 200,
    refreshToken: (await gatepost.refresh(app, credentials.refreshToken)).status === 200,
    browser: (await gatepost.authorize(credentials.browser, app)).status === 303,
  };
}

const [ALIVE, DEAD] = [true, false].map((is) => (
  { loginToken: is, accessToken: is, code: is, refreshToken: is, browser: is }
));

const ENDINGS: readonly (readonly [string, (user: TestUser) => Promise<unknown>])[] = [
  ["disabling a user", (user) => gatepost.change(user, { status: "disabled" })],
  [
    "disabling and enabling a user",
    async (user) => {
      await gatepost.change(user, { status: "disabled" });
      await gatepost.change(user, { status: "active" });
    },
  ],
  ["a new password", (user) => gatepost.change(user, { password: "a new long password" })],
  ["setting the same password again", (user) => gatepost.change(user, { password: user.password })],
  ["deleting a user", (user) => expectStatus(204, send("DELETE", `/backend/user/${user.id}`))],
];

for (const [what, end] of ENDINGS) {
  test(`${what} ends the login tokens, grants, codes and browser sessions`, async () => {
    const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
    const credentials = await createCredentials(user);
    const spared = await createCredentials(neighbour);
    await end(user);
    assert.deepEqual(await probe(credentials), DEAD);
    assert.deepEqual(await probe(spared), ALIVE);
  });
}

test("a disabled user is refused like an unknown one until enabled again", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp();
  await gatepost.change(user, { status: "disabled" });
  const refused = await gatepost.tryLogin(user);
  const unknown = await gatepost.tryLogin({ ...user, username: newName("nobody") });
  const problemOf = ({ text }: ClientResponse) => ({ ...JSON.parse(text), request_id: "" });
  assert.deepEqual([refused.status, problemOf(refused)], [401, problemOf(unknown)]);
  const { username, password } = user;
  const response = await gatepost.token(app, { grant_type: "password", username, password });
  assertOAuthError(response, 400, "invalid_grant");
  await gatepost.change(user, { status: "active" });
  assert.equal(await gatepost.isAlive(await gatepost.login(user)), true);
});

test("after a change of password only the new one works for a login", async () => {
  const user = await gatepost.createUser();
  await gatepost.change(user, { password: "a new long password" });
  assert.equal((await gatepost.tryLogin(user)).status, 401);
  assert.equal((await gatepost.tryLogin({ ...user, password: "a new long password" })).status, 200);
});

test("a login that is under way while the password changes leaves no valid token", async () => {
  const user = await gatepost.createUser();
  const login = () => gatepost.tryLogin(user);
  const logins = Array.from({ length: 4 }, login); // most of these come before the change
  // The new password waits in the queue of hashes, so these logins come before it is stored.
  const changed = gatepost.change(user, { password: "a new long password" });
  logins.push(...Array.from({ length: 12 }, login));
  await changed;
  for (const { status, text } of await Promise.all(logins)) {
    if (status === 200) assert.equal(await gatepost.isAlive(JSON.parse(text).token), false);
  }
});

test("a login that is under way while a scope is removed does not get that scope", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const logins = Promise.all(
    Array.from({ length: 12 }, () => gatepost.tryLogin(user)),
  );
  await gatepost.change(user, { scopes: ["consumer"] });
  for (const { status, text } of await logins) {
    if (status !== 200) continue;
    const response = await gatepost.api.get(
      "/authorization/whoami",
      bearer(JSON.parse(text).token),
    );
    const scope = response.status === 200 ? readObject(response)["scope"] : "consumer";
    assert.equal(scope, "consumer");
  }
});

test("removing a user's scope revokes the grants that carry it, and no others", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const app = await createPasswordApp({ scopes: ["consumer", "orders"] });
  const carries = await gatepost.passwordTokens(app, user, { scope: "consumer orders" });
  const spared = await gatepost.passwordTokens(app, user, { scope: "consumer" });
  const login = await gatepost.login(user);
  await gatepost.change(user, { scopes: ["consumer", "stock"] });
  assert.equal(await gatepost.isAlive(carries.access_token), false);
  assertOAuthError(await gatepost.refresh(app, carries.refresh_token), 400, "invalid_grant");
  assert.equal(await gatepost.isAlive(login), false, "a login token carries every scope");
  assert.equal(await gatepost.isAlive(spared.access_token), true);
  readTokens(await gatepost.refresh(app, spared.refresh_token));
  assert.equal((await gatepost.tryLogin(user)).status, 200);
});

for (const kind of ["user", "app"] as const) {
  test(`removing a scope of a ${kind} ends the codes with it, even if given back`, async () => {
    const scopes = ["consumer", "orders"];
    const user = await gatepost.createUser({ scopes });
    const app = await gatepost.createApp({ scopes });
    const carries = await gatepost.code(app, user);
    const spared = await gatepost.code(app, user, { scope: "consumer" });
    const party = kind === "user" ? user : app;
    await gatepost.change(party, { scopes: ["consumer"] });
    await gatepost.change(party, { scopes });
    const exchange = (code: string) =>
      gatepost.token(app, { grant_type: "authorization_code", code });
    assertOAuthError(await exchange(carries), 400, "invalid_grant");
    assert.equal(readTokens(await exchange(spared)).scope, "consumer");
  });
}

test("giving a user another scope revokes nothing", async () => {
  const user = await gatepost.createUser();
  const credentials = await createCredentials(user);
  await gatepost.change(user, { scopes: ["consumer", "orders"] });
  assert.deepEqual(await probe(credentials), ALIVE);
});

test("removing a scope keeps grants with scopes whose names begin with its name", async () => {
  const user = await gatepost.createUser({ scopes: ["order", "orders", "order.read"] });
  const app = await createPasswordApp({ scopes: ["orders", "order.read"] });
  const spared = await gatepost.passwordTokens(app, user);
  await gatepost.change(user, { scopes: ["orders", "order.read"] });
  assert.equal(await gatepost.isAlive(spared.access_token), true);
});

test("a deleted user's name is free again, and the next user of it inherits nothing", async () => {
  const user = await gatepost.createUser();
  const credentials = await createCredentials(user);
  await expectStatus(204, send("DELETE", `/backend/user/${user.id}`));
  const { username, password } = user;
  const record = await expectObject(201, send("POST", "/backend/user", { username, password }));
  assert.notEqual(record["id"], user.id);
  assert.deepEqual(await probe(credentials), DEAD);
});

test("an app that moves to another origin loses its consents and codes", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ url: "https://old.example/app" });
  const browser = gatepost.openBrowser();
  await gatepost.allow(browser, app, user);
  const within = { ...app, url: "https://old.example/", redirectUri: "https://old.example/new" };
  await gatepost.change(app, { url: within.url });
  const callback = await gatepost.authorize(browser, within);
  assert.equal(callback.status, 303, "the same origin is the same app");
  const code = new URL(callback.location ?? "").searchParams.get("code") ?? "";
  const moved = { ...app, url: "https://new.example", redirectUri: "https://new.example/cb" };
  await gatepost.change(app, { url: moved.url });
  assert.equal((await gatepost.authorize(browser, moved)).status, 200, "the consent page");
  const exchange = { grant_type: "authorization_code", code };
  assertOAuthError(await gatepost.token(app, exchange), 400, "invalid_grant");
});

test("disabling an app ends its tokens and codes, and enabling it revives none", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp({
    grants: ["password", "refresh_token", "client_credentials", "authorization_code"],
  });
  const tokens = await gatepost.passwordTokens(app, user);
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const code = await gatepost.code(app, user);
  const spared = await gatepost.login(user);
  await gatepost.change(app, { status: "disabled" });
  for (const { access_token: token } of [tokens, own]) {
    assert.equal(await gatepost.isAlive(token), false);
  }
  assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 401, "invalid_client");
  assert.equal((await gatepost.authorize(gatepost.openBrowser(), app)).status, 400);
  await gatepost.change(app, { status: "active" });
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 400, "invalid_grant");
  const exchange = { grant_type: "authorization_code", code };
  assertOAuthError(await gatepost.token(app, exchange), 400, "invalid_grant");
  readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  assert.equal(await gatepost.isAlive(spared), true);
});

test("removing an app's scope revokes its grants that carry it, and no others", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const app = await createPasswordApp({ scopes: ["consumer", "orders"] });
  const another = await createPasswordApp({ scopes: ["consumer", "orders"] });
  const carries = await gatepost.passwordTokens(app, user);
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const narrow = await gatepost.passwordTokens(app, user, { scope: "consumer" });
  const ofAnother = await gatepost.passwordTokens(another, user);
  await gatepost.change(app, { scopes: ["consumer"] });
  const alive = [carries, own, narrow, ofAnother]
    .map(({ access_token: token }) => gatepost.isAlive(token));
  assert.deepEqual(await Promise.all(alive), [false, false, true, true]);
  assertOAuthError(await gatepost.refresh(app, carries.refresh_token), 400, "invalid_grant");
});

test("deleting an app ends its tokens and removes it from its users' grants", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const tokens = await gatepost.codeTokens(app, user);
  await expectStatus(204, send("DELETE", `/backend/app/${app.id}`));
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 401, "invalid_client");
  await expectStatus(404, send("GET", `/backend/app/${app.id}`));
  const grants = await gatepost.api.get("/consumer/grant", bearer(await gatepost.login(user)));
  assert.deepEqual(readObject(grants)["items"], []);
});

test("disabling a user or an app disables its subscriptions", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const body = { event: "order.created", endpoint: "https://hooks.example/in" };
  for (const token of [await gatepost.login(user), own.access_token]) {
    await expectStatus(201, send("POST", "/consumer/subscription", body, token));
  }
  for (const party of [user, app]) {
    await gatepost.change(party, { status: "disabled" });
    await gatepost.change(party, { status: "active" });
  }
  const again = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  for (const token of [await gatepost.login(user), again.access_token]) {
    const items = readItems(await send("GET", "/consumer/subscription", undefined, token));
    assert.deepEqual(items.map(({ status }) => status), ["disabled"]);
  }
});
