import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openCommandLine } from "../helpers/command_line.ts";
import { signIn } from "../helpers/console.ts";
import {
  type EventStage,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import {
  PASSWORD,
  startGatepost,
  type TestApp,
  type TestUser,
  type TokenResponse,
} from "../helpers/gatepost.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject, readTokens } from "../helpers/responses.ts";

const MODULE = `
export const order = {
  method: "POST",
  path: "/order",
  public: true,
  emits: { "order.secret": { description: "With a card's number", scope: "orders" } },
  handle: ({ dispatch }) => ({ id: dispatch("order.secret", { card: "4111" }) }),
};
export const audit = {
  method: "POST",
  path: "/audit",
  public: true,
  emits: { "audit.read": { description: "For who reads all", scope: "backend:read" } },
  handle: ({ dispatch }) => ({ id: dispatch("audit.read", 1) }),
};
`;
/** One issuer, so that several processes accept each other's tokens. */
const ENV = { GATEPOST_BASE_URL: "http://gatepost.test" };
const SCOPED = "order.secret";
const ALL = ["consumer", "orders"];

let stage: EventStage;

before(async () => {
  stage = await startEventStage(ENV, { "order.mjs": MODULE });
});
after(() => stage.stop());

/** A user's authorization of an app, and a subscription that was made by its token. */
interface Authorized {
  readonly user: TestUser;
  readonly app: TestApp;
  readonly tokens: TokenResponse;
  readonly code: string;
  readonly subscription: StagedSubscription;
}

async function authorize(): Promise<Authorized> {
  const user = await stage.gatepost.createUser({ scopes: ALL });
  const app = await stage.gatepost.createApp({ scopes: ALL });
  const code = await stage.gatepost.code(app, user);
  const tokens = readTokens(await redeem(app, code));
  const subscription = await stage.subscribe(tokens.access_token, newName("e"));
  return { user, app, tokens, code, subscription };
}

const redeem = (app: TestApp, code: string) =>
  stage.gatepost.token(app, { grant_type: "authorization_code", code });

const administer = async (method: string, path: string, body?: unknown) => {
  const response = await stage.call(method, path, stage.admin, body);
  assert.ok(response.status < 300, response.text);
};

const patch = ({ id }: StagedSubscription, token: string, body: unknown) =>
  stage.call("PATCH", `/consumer/subscription/${id}`, token, body);

async function look({ id }: StagedSubscription) {
  const { status, disabled_reason: reason } = readObject(
    await stage.call("GET", `/backend/subscription/${id}`, stage.admin),
  );
  return { status, reason };
}

/** The statuses of all deliveries of a subscription, as the backend lists them. */
async function statusesOf({ id }: StagedSubscription): Promise<unknown[]> {
  const path = `/backend/delivery?subscription=${id}`;
  return readItems(await stage.call("GET", path, stage.admin)).map(({ status }) => status);
}

/** Dispatches to a witness too: once it is called, so is everybody else who gets the event. */
async function dispatchTo(event: string, witnessToken: string): Promise<void> {
  const witness = await stage.subscribe(witnessToken, event);
  await stage.dispatch(event, "news");
  await stage.receiver.waitFor(1, 5000, witness.path);
}

const grantIdOf = async ({ user, app }: Authorized) => {
  const path = `/backend/grant?user=${user.id}&app=${app.id}`;
  return readItems(await stage.call("GET", path, stage.admin))[0]?.["id"];
};

const REVOKED = "grant revoked";
type End = (of: Authorized) => Promise<unknown>;
const ENDS: readonly (readonly [name: string, end: End, reason: string])[] =
  [
    ["the user withdraws the grant", async ({ user, app }) => {
      const token = await stage.gatepost.login(user);
      const response = await stage.call("DELETE", `/consumer/grant/${app.id}`, token);
      assert.equal(response.status, 204);
    }, "grant withdrawn"],
    ["an administrator revokes the grant", async (of) =>
      administer("DELETE", `/backend/grant/${await grantIdOf(of)}`), REVOKED],
    ["an administrator revokes the user's grants for the app", ({ user, app }) =>
      administer("POST", "/backend/grant/revoke", { user: user.id, app: app.id }), REVOKED],
    ["an administrator revokes all grants of the user", ({ user }) =>
      administer("POST", "/backend/grant/revoke", { user: user.id }), REVOKED],
    ["an administrator revokes all grants of the app", ({ app }) =>
      administer("POST", "/backend/grant/revoke", { app: app.id }), REVOKED],
    ["the grant's refresh token is revoked", ({ app, tokens }) =>
      stage.gatepost.api.postForm("/authorization/revoke", {
        token: tokens.refresh_token,
        client_id: app.id,
        client_secret: app.secret,
      }), REVOKED],
    ["the grant's refresh token is used twice", async ({ app, tokens }) => {
      const next = readTokens(await stage.gatepost.refresh(app, tokens.refresh_token));
      readTokens(await stage.gatepost.refresh(app, next.refresh_token));
      await stage.gatepost.refresh(app, tokens.refresh_token);
    }, REVOKED],
    ["the grant's code is used twice", ({ app, code }) => redeem(app, code), REVOKED],
    ["the user loses a scope", ({ user }) =>
      stage.gatepost.change(user, { scopes: ["consumer"] }), "scope removed"],
    ["the app loses a scope", ({ app }) =>
      stage.gatepost.change(app, { scopes: ["consumer"] }), "scope removed"],
    ["the user gets a new password", ({ user }) =>
      stage.gatepost.change(user, { password: "another long password" }), "password changed"],
    ["the user is disabled", ({ user }) =>
      stage.gatepost.change(user, { status: "disabled" }), "user disabled"],
    ["the app is disabled", ({ app }) =>
      stage.gatepost.change(app, { status: "disabled" }), "app disabled"],
  ];

describe("a subscription ends with the grant that made it:", () => {
  for (const [name, end, reason] of ENDS) {
    test(name, async () => {
      const of = await authorize();
      const { subscription } = of;
      await end(of);
      assert.deepEqual(await look(subscription), { status: "disabled", reason });
      await dispatchTo(subscription.event, await stage.newConsumer());
      assert.equal(stage.receiver.count(subscription.path), 0);
      const path = `/backend/subscription/${subscription.id}`;
      assertProblem(await stage.call("PATCH", path, stage.admin, { status: "active" }), 409);
    });
  }

  test("a later token of its owner can set it active again", async () => {
    const of = await authorize();
    await administer("DELETE", `/backend/grant/${await grantIdOf(of)}`);
    const { access_token: token } = await stage.gatepost.codeTokens(of.app, of.user);
    assert.equal((await patch(of.subscription, token, { status: "active" })).status, 200);
    await stage.dispatch(of.subscription.event, 1);
    await stage.receiver.waitFor(1, 5000, of.subscription.path);
    // From now on it depends on that token's grant.
    await administer("DELETE", `/backend/grant/${await grantIdOf(of)}`);
    assert.deepEqual(await look(of.subscription), { status: "disabled", reason: REVOKED });
  });
});

test("an app's subscription that a login token sets active ends with the logins", async () => {
  const { user, app, subscription } = await authorize();
  await administer("POST", "/backend/grant/revoke", { user: user.id, app: app.id });
  const login = await stage.gatepost.login(user);
  assert.equal((await patch(subscription, login, { status: "active" })).status, 200);
  await administer("POST", "/backend/grant/revoke", { user: user.id, app: "login" });
  assert.deepEqual(await look(subscription), { status: "disabled", reason: REVOKED });
});

describe("a subscription outlives", () => {
  test("an access token that is revoked alone", async () => {
    const { app, tokens, subscription } = await authorize();
    await stage.gatepost.api.postForm("/authorization/revoke", {
      token: tokens.access_token,
      client_id: app.id,
      client_secret: app.secret,
    });
    assert.equal((await look(subscription)).status, "active");
    await stage.dispatch(subscription.event, 1);
    await stage.receiver.waitFor(1, 5000, subscription.path);
  });

  test("another grant of the same user and app", async () => {
    const of = await authorize();
    const others = await stage.gatepost.codeTokens(of.app, of.user);
    await stage.gatepost.refresh(of.app, others.refresh_token);
    await stage.gatepost.refresh(of.app, others.refresh_token);
    assert.equal((await look(of.subscription)).status, "active");
  });

  test("a new password, if a login token of its user made it", async () => {
    const user = await stage.gatepost.createUser();
    const subscription = await stage.subscribe(await stage.gatepost.login(user), newName("e"));
    await stage.gatepost.change(user, { password: "another long password" });
    await stage.dispatch(subscription.event, 1);
    await stage.receiver.waitFor(1, 5000, subscription.path);
  });
});

test("revoking all grants of a user ends a subscription made with a stolen login", async () => {
  const user = await stage.gatepost.createUser();
  const subscription = await stage.subscribe(await stage.gatepost.login(user), newName("e"));
  await stage.gatepost.change(user, { password: "another long password" });
  await administer("POST", "/backend/grant/revoke", { user: user.id });
  assert.deepEqual(await look(subscription), { status: "disabled", reason: REVOKED });
  await dispatchTo(subscription.event, await stage.newConsumer());
  assert.equal(stage.receiver.count(subscription.path), 0);
  // The user may set it active again.
  const token = await stage.gatepost.login({ ...user, password: "another long password" });
  assert.equal((await patch(subscription, token, { status: "active" })).status, 200);
});

test("revoking app login ends subscriptions made by login tokens, and none of apps", async () => {
  const shared = stage;
  stage = await startEventStage(); // of its own: the administrator's login ends too
  try {
    const { subscription: ofApp } = await authorize();
    const own = await stage.subscribe(await stage.newConsumer(), newName("e"));
    await administer("POST", "/backend/grant/revoke", { app: "login" });
    const { login } = stage.gatepost;
    stage = { ...stage, admin: await login({ id: "", username: "admin", password: PASSWORD }) };
    assert.deepEqual(await look(own), { status: "disabled", reason: REVOKED });
    assert.equal((await look(ofApp)).status, "active");
  } finally {
    await stage.stop();
    stage = shared;
  }
});

describe("scopes", () => {
  test("a user without scope consumer gets no events until the scope is given back", async () => {
    const user = await stage.gatepost.createUser();
    const subscription = await stage.subscribe(await stage.gatepost.login(user), newName("e"));
    await stage.gatepost.change(user, { scopes: [] });
    await dispatchTo(subscription.event, await stage.newConsumer());
    assert.deepEqual(await statusesOf(subscription), []);
    await stage.gatepost.change(user, { scopes: ["consumer"] });
    await stage.dispatch(subscription.event, 2);
    await stage.receiver.waitFor(1, 5000, subscription.path);
  });

  test("an app gets no event whose scope it was not granted, even if declared later", async () => {
    const [user, app] = [
      await stage.gatepost.createUser({ scopes: ALL }),
      await stage.gatepost.createApp({ scopes: ALL }),
    ];
    const tokens = await stage.gatepost.codeTokens(app, user, { scope: "consumer" });
    const token = tokens.access_token;
    const event = newName("late");
    const subscription = await stage.subscribe(token, event);
    const source = MODULE.replace("order.secret", event);
    const later = await startEventStage({
      ...ENV,
      GATEPOST_DATABASE: `${stage.gatepost.server.folder}/gatepost.db`,
    }, { "late.mjs": source });
    try {
      await dispatchTo(event, await stage.newConsumer(ALL));
      assert.equal(stage.receiver.count(subscription.path), 0);
      const body = { event, endpoint: stage.receiver.url };
      assertProblem(await stage.call("POST", "/consumer/subscription", token, body), 403);
      assertProblem(await patch(subscription, token, { status: "active" }), 403);
    } finally {
      await later.stop();
    }
  });

  test("a token without the event's scope cannot change a subscription's endpoint", async () => {
    const login = await stage.newConsumer(ALL);
    const [wide = "", narrow = ""] = await Promise.all([ALL, ["consumer"]].map(async (scopes) => {
      const body = { name: newName("script"), scopes, expires_in: 3600 };
      const made = await stage.call("POST", "/consumer/token", login, body);
      return String(readObject(made)["token"]);
    }));
    const subscription = await stage.subscribe(wide, SCOPED);
    const change = { endpoint: `${stage.receiver.url}/${newName("elsewhere")}` };
    assertProblem(await patch(subscription, narrow, change), 403);
    assert.equal((await patch(subscription, narrow, { status: "paused" })).status, 200);
    await administer("PATCH", `/backend/subscription/${subscription.id}`, { status: "disabled" });
    assertProblem(await patch(subscription, narrow, { status: "paused" }), 403);
    assert.equal((await patch(subscription, wide, { status: "paused" })).status, 200);
    assert.equal((await patch(subscription, wide, change)).status, 200);
  });

  test("deliveries of a paused subscription are cancelled once the scope is lost", async () => {
    const user = await stage.gatepost.createUser({ scopes: ALL });
    const token = await stage.gatepost.login(user);
    const subscription = await stage.subscribe(token, SCOPED);
    await patch(subscription, token, { status: "paused" });
    await stage.gatepost.api.postJson("/order", {});
    await stage.deliveries(subscription, "pending");
    await stage.gatepost.change(user, { scopes: ["consumer"] });
    const poorer = await stage.gatepost.login(user);
    assertProblem(await patch(subscription, poorer, { status: "active" }), 403);
    // Nor is it sent when an administrator sets it active.
    await administer("PATCH", `/backend/subscription/${subscription.id}`, { status: "active" });
    await stage.deliveries({ ...subscription, token: poorer }, "cancelled");
    assert.equal(stage.receiver.count(subscription.path), 0);
  });

  test("a failed delivery is not resent once the user has lost the scope", async () => {
    const user = await stage.gatepost.createUser({ scopes: ALL });
    const token = await stage.gatepost.login(user);
    const subscription = await stage.subscribe(token, SCOPED, 500, 500, 500, 500, 204);
    await stage.gatepost.api.postJson("/order", {});
    const [failed] = await stage.deliveries(subscription, "failed");
    await stage.gatepost.change(user, { scopes: ["consumer"] });
    const sent = stage.receiver.count(subscription.path);
    await administer("POST", `/backend/delivery/${String(failed?.["id"])}/resend`);
    const poorer = await stage.gatepost.login(user);
    await stage.deliveries({ ...subscription, token: poorer }, "cancelled");
    assert.equal(stage.receiver.count(subscription.path), sent);
  });

  test("the CLI and a process without modules follow the scopes of the server", async (t) => {
    const user = await stage.gatepost.createUser({ scopes: ALL });
    const subscription = await stage.subscribe(await stage.gatepost.login(user), SCOPED);
    await stage.gatepost.change(user, { scopes: ["consumer"] });
    const { folder } = stage.gatepost.server;
    const cli = await openCommandLine(t, { folder });
    const other = await startGatepost({
      folder,
      env: { ...ENV, GATEPOST_CRON: "off" }, // it sends no callbacks
    });
    try {
      const witness = await stage.subscribe(await stage.newConsumer(ALL), SCOPED);
      assert.equal((await cli.run("event", "dispatch", SCOPED, '"cli"')).code, 0);
      const event = { name: SCOPED, data: "other" };
      const headers = bearer(other.adminToken);
      assert.equal((await other.api.postJson("/backend/event", event, headers)).status, 202);
      await stage.receiver.waitFor(2, 5000, witness.path);
      assert.equal(stage.receiver.count(subscription.path), 0);
      const body = { event: SCOPED, endpoint: "https://hooks.example/" };
      const refused = await other.api.postJson(
        "/consumer/subscription",
        body,
        bearer(await stage.gatepost.login(user)),
      );
      assertProblem(refused, 403);
    } finally {
      await other.stop();
    }
  });
});

for (const scopes of [ALL, ["consumer"]]) {
  test(`the webhooks page offers the events that scopes ${scopes.join(" ")} allow`, async () => {
    const { gatepost, receiver } = stage;
    const webhooks = `${gatepost.issuer}/account/webhooks`;
    const user = await gatepost.createUser({ scopes });
    const visit = await signIn(gatepost, user, "consumer", webhooks);
    const tokens = await visit.exchange(visit.location.searchParams.get("code") ?? "");
    const token = bearer(tokens.access_token);
    const events = readItems(await gatepost.api.get("/consumer/event", token));
    const isAllowed = scopes === ALL;
    assert.equal(events.some(({ name }) => name === SCOPED), isAllowed);
    const body = { event: SCOPED, endpoint: `${receiver.url}/${newName("hook")}` };
    const response = await gatepost.api.postJson("/consumer/subscription", body, token);
    assert.equal(response.status, isAllowed ? 201 : 403, response.text);
  });
}

test("an app's subscription set active on the webhooks page gets its user's events", async () => {
  const { gatepost } = stage;
  const { user, tokens } = await authorize();
  const subscription = await stage.subscribe(tokens.access_token, SCOPED);
  const webhooks = `${gatepost.issuer}/account/webhooks`;
  const visit = await signIn(gatepost, user, "consumer", webhooks);
  const own = await visit.exchange(visit.location.searchParams.get("code") ?? "");
  for (const status of ["paused", "active"]) {
    const path = `/consumer/subscription/${subscription.id}`;
    const response = await stage.call("PATCH", path, own.access_token, { status });
    assert.equal(response.status, 200, response.text);
  }
  await stage.dispatch(SCOPED, 1);
  await stage.deliveries({ ...subscription, token: own.access_token }, "delivered");
  const fields = { client_id: "console", token: own.refresh_token };
  const closed = await gatepost.api.postForm("/authorization/revoke", fields);
  assert.equal(closed.status, 200, closed.text);
  const path = `/consumer/subscription/${subscription.id}`;
  const after = await stage.call("GET", path, await gatepost.login(user));
  assert.equal(readObject(after)["status"], "active", after.text);
});

test("scope backend is enough for an event that needs scope backend:read", async () => {
  const read = await stage.gatepost.createUser({ scopes: ["consumer", "backend:read"] });
  const whole = await stage.gatepost.createUser({ scopes: ["consumer", "backend"] });
  for (const user of [read, whole]) {
    const token = await stage.gatepost.login(user);
    const catalogue = readItems(await stage.call("GET", "/consumer/event", token));
    assert.deepEqual(catalogue.map(({ name }) => name), ["audit.read"]);
    const { path } = await stage.subscribe(token, "audit.read");
    await stage.dispatch("audit.read", "news");
    await stage.receiver.waitFor(1, 5000, path);
  }
});
