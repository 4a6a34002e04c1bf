import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { createDataFolder } from "../helpers/process.ts";
import { bearer } from "../helpers/requests.ts";
import { readObject, readTokens } from "../helpers/responses.ts";

let gatepost: Gatepost;

before(async () => {
  gatepost = await startGatepost();
});

after(() => gatepost.stop());

type Item = Readonly<Record<string, unknown>>;

const getGrants = (token: string, query = ""): Promise<ClientResponse> =>
  gatepost.api.get(`/consumer/grant${query}`, bearer(token));

const withdraw = (token: string, id: string): Promise<ClientResponse> =>
  gatepost.api.send("DELETE", `/consumer/grant/${id}`, { headers: bearer(token) });

async function listGrants(token: string): Promise<Item[]> {
  const response = await getGrants(token);
  assert.equal(response.status, 200, response.text);
  return readObject(response)["items"] as Item[];
}

async function listedIds(token: string): Promise<unknown[]> {
  return (await listGrants(token)).map(({ id }) => id);
}

async function subscribe(token: string, event: string): Promise<string> {
  const body = { event, endpoint: "https://hooks.example/in" };
  const response = await gatepost.api.postJson("/consumer/subscription", body, bearer(token));
  assert.equal(response.status, 201, response.text);
  return String(readObject(response)["id"]);
}

test("a user without apps has an empty list", async () => {
  const token = await gatepost.login(await gatepost.createUser());
  assert.deepEqual(readObject(await getGrants(token)), { items: [], next_cursor: null });
});

test("an app that was allowed twice is listed once, with the scopes of both", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders", "rest"] });
  const scopes = ["consumer", "orders", "rest"];
  const app = await gatepost.createApp({ name: "The Shop", scopes });
  await gatepost.codeTokens(app, user, { scope: "consumer" });
  await gatepost.codeTokens(app, user, { scope: "orders" });
  const [item, ...more] = await listGrants(await gatepost.login(user));
  assert.deepEqual(more, []);
  assert.deepEqual({ ...item, scopes: (item?.["scopes"] as string[]).toSorted() }, {
    id: app.id,
    name: "The Shop",
    url: app.url,
    scopes: ["consumer", "orders"],
  });
});

test("an app is listed if it has a remembered consent or a valid grant", async () => {
  const user = await gatepost.createUser();
  const consented = await gatepost.createApp();
  await gatepost.code(consented, user); // never exchanged
  const trusted = await gatepost.createApp({ trusted: true });
  await gatepost.codeTokens(trusted, user); // never consented
  const given = await gatepost.createApp({ grants: ["password"] });
  await gatepost.passwordTokens(given, user);
  const token = await gatepost.login(user);
  assert.deepEqual(await listedIds(token), [given.id, trusted.id, consented.id]);
});

test("an app whose grant was revoked or that was disabled is not listed", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ grants: ["password", "refresh_token"] });
  const disabled = await gatepost.createApp();
  const tokens = await gatepost.passwordTokens(app, user);
  await gatepost.code(disabled, user);
  const token = await gatepost.login(user);
  assert.equal((await listGrants(token)).length, 2);
  await gatepost.api.postForm("/authorization/revoke", {
    token: tokens.refresh_token,
    client_id: app.id,
    client_secret: app.secret,
  });
  await gatepost.change(disabled, { status: "disabled" });
  assert.deepEqual(await listGrants(token), []);
});

test("scopes that the user or the app has lost are not listed", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders", "stock"] });
  const app = await gatepost.createApp({ scopes: ["consumer", "orders", "stock"] });
  await gatepost.code(app, user);
  await gatepost.change(user, { scopes: ["consumer", "orders"] });
  await gatepost.change(app, { scopes: ["consumer", "stock"] });
  const [item] = await listGrants(await gatepost.login(user));
  assert.deepEqual(item?.["scopes"], ["consumer"]);
});

test("a user cannot see or withdraw the apps of another user", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const app = await gatepost.createApp();
  const { access_token: accessToken } = await gatepost.codeTokens(app, user);
  const token = await gatepost.login(neighbour);
  assert.deepEqual(await listGrants(token), []);
  assert.equal((await withdraw(token, app.id)).status, 404);
  assert.equal(await gatepost.isAlive(accessToken), true);
});

test("the list has pages, newest app first", async () => {
  const user = await gatepost.createUser();
  const apps = [await gatepost.createApp(), await gatepost.createApp(), await gatepost.createApp()];
  for (const app of apps) await gatepost.code(app, user);
  const token = await gatepost.login(user);
  const ids = apps.map(({ id }) => id).reverse();
  const first = readObject(await getGrants(token, "?limit=2"));
  const rest = readObject(await getGrants(token, `?limit=2&cursor=${first["next_cursor"]}`));
  assert.deepEqual([first, rest].map((page) => (page["items"] as Item[]).map(({ id }) => id)), [
    ids.slice(0, 2),
    ids.slice(2),
  ]);
  assert.equal(rest["next_cursor"], null);
});

test("the list needs a login token with scope consumer, not an app's token", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ grants: ["authorization_code", "client_credentials"] });
  const ofUser = await gatepost.codeTokens(app, user);
  const ofApp = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  for (const { access_token: token } of [ofUser, ofApp]) {
    assert.equal((await getGrants(token)).status, 403);
    assert.equal((await withdraw(token, app.id)).status, 403);
  }
  assert.equal((await gatepost.api.get("/consumer/grant")).status, 401);
  const bare = await gatepost.createUser({ scopes: ["orders"] });
  assert.equal((await getGrants(await gatepost.login(bare))).status, 403);
});

test("a withdrawal ends the app's tokens and codes for this user, and nothing else", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const [app, another] = [await gatepost.createApp(), await gatepost.createApp()];
  const ended = await gatepost.codeTokens(app, user);
  const code = await gatepost.code(app, user);
  const spared = [
    await gatepost.codeTokens(app, neighbour),
    await gatepost.codeTokens(another, user),
  ];
  const token = await gatepost.login(user);
  assert.equal((await withdraw(token, app.id)).status, 204);
  assert.equal(await gatepost.isAlive(ended.access_token), false);
  for (const fields of [
    { grant_type: "refresh_token", refresh_token: ended.refresh_token },
    { grant_type: "authorization_code", code },
  ]) {
    assert.equal(readObject(await gatepost.token(app, fields))["error"], "invalid_grant");
  }
  for (const tokens of spared) assert.equal(await gatepost.isAlive(tokens.access_token), true);
  assert.equal(await gatepost.isAlive(token), true);
  assert.deepEqual(await listedIds(token), [another.id]);
  assert.equal((await withdraw(token, app.id)).status, 404);
});

test("after a withdrawal the app needs a new consent", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const browser = gatepost.openBrowser();
  await gatepost.allow(browser, app, user);
  assert.equal((await gatepost.authorize(browser, app)).status, 303);
  await withdraw(await gatepost.login(user), app.id);
  const page = await gatepost.authorize(browser, app);
  assert.ok(page.forms()[0]?.buttons.some(({ value }) => value === "allow"), page.text);
});

test("a withdrawal disables only the subscriptions that the app made for this user", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const { access_token: ofApp } = await gatepost.codeTokens(app, user);
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const token = await gatepost.login(user);
  const made = await subscribe(ofApp, "order.created");
  const kept = await subscribe(token, "order.paid");
  const ofAppItself = await subscribe(own.access_token, "order.sent");
  await withdraw(token, app.id);
  const statusOf = async (id: string, as: string) =>
    readObject(await gatepost.api.get(`/consumer/subscription/${id}`, bearer(as)))["status"];
  assert.deepEqual(
    [
      await statusOf(made, token),
      await statusOf(kept, token),
      await statusOf(ofAppItself, own.access_token),
    ],
    ["disabled", "active", "active"],
  );
});

test("a withdrawal is audited", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  await gatepost.code(app, user);
  await withdraw(await gatepost.login(user), app.id);
  const path = `/backend/audit?target=${app.id}&action=grant.withdraw`;
  const response = await gatepost.api.get(path, bearer(gatepost.adminToken));
  const entries = readObject(response)["items"] as Item[];
  assert.deepEqual(entries.map(({ actor }) => actor), [user.id]);
});

test("the 101st grant of a user to an app ends the oldest at once", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ trusted: true });
  const browser = gatepost.openBrowser();
  await gatepost.allow(browser, app, user);
  const authorize = async () => {
    const { location = "" } = await gatepost.authorize(browser, app);
    const code = new URL(location).searchParams.get("code") ?? "";
    return readTokens(await gatepost.token(app, { grant_type: "authorization_code", code }));
  };
  const first = await authorize();
  const second = await authorize();
  for (let count = 2; count < 100; count++) await authorize();
  assert.equal(await gatepost.isAlive(first.access_token), true);
  await authorize();
  assert.equal(await gatepost.isAlive(first.access_token), false);
  assert.equal(await gatepost.isAlive(second.access_token), true);
  const refresh = { grant_type: "refresh_token", refresh_token: first.refresh_token };
  assert.equal(readObject(await gatepost.token(app, refresh))["error"], "invalid_grant");
});

test("a withdrawal ends refreshed tokens too, and still holds after a restart", async () => {
  const folder = await createDataFolder();
  const stages: Gatepost[] = [];
  try {
    const early = await startGatepost({ folder });
    stages.push(early);
    const user = await early.createUser();
    const app = await early.createApp();
    const tokens = await early.codeTokens(app, user);
    const refresh = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    const renewed = readTokens(await early.token(app, refresh));
    const headers = bearer(await early.login(user));
    await early.api.send("DELETE", `/consumer/grant/${app.id}`, { headers });
    assert.equal(await early.isAlive(renewed.access_token), false);
    await early.stop();
    stages.pop();
    const late = await startGatepost({ folder, env: { GATEPOST_BASE_URL: early.issuer } });
    stages.push(late);
    assert.equal(await late.isAlive(renewed.access_token), false);
    const again = { ...refresh, refresh_token: renewed.refresh_token };
    assert.equal(readObject(await late.token(app, again))["error"], "invalid_grant");
  } finally {
    for (const stage of stages) await stage.stop();
    await rm(folder, { recursive: true });
  }
});
