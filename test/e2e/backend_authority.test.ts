import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  bearer,
  decodeJwt,
  expectStatus,
  type Gatepost,
  newAddress,
  newName,
  readObject,
  readTokens,
  startGatepost,
  type TestApp,
  type TestUser,
} from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";

// Jobs that the tests run by hand: one ends at once, one waits, one fails.
const MODULE = `
export const quick = { name: "quick", every: "1d", run() {} };
export const slow = {
  name: "slow",
  every: "1d",
  run: ({ signal }) => new Promise((resolve) => {
    const timer = setTimeout(resolve, 2000);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
  }),
};
export const failing = {
  name: "failing",
  every: "1d",
  run() { throw new Error("no luck today"); },
};
`;

let gatepost: Gatepost;
let other: Gatepost; // another process on the same database
let endpoints: string;

before(async () => {
  endpoints = await mkdtemp(join(tmpdir(), "gatepost-endpoints-"));
  await writeFile(join(endpoints, "jobs.mjs"), MODULE);
  const env = {
    GATEPOST_ENDPOINTS: endpoints,
    GATEPOST_BASE_URL: "http://127.0.0.1:9999",
  };
  gatepost = await startGatepost({ env });
  other = await startGatepost({ env, folder: gatepost.server.folder });
});

after(async () => {
  await other.stop();
  await gatepost.stop();
  await rm(endpoints, { recursive: true });
});

type Item = Readonly<Record<string, unknown>>;

/** Sends as the administrator, or with another token, or with none (""). */
function send(
  method: string,
  path: string,
  body?: unknown,
  token: string = gatepost.adminToken,
): Promise<ClientResponse> {
  return gatepost.api.sendJson(method, path, body, token === "" ? {} : bearer(token));
}

async function list(path: string): Promise<Item[]> {
  const response = await send("GET", path);
  assert.equal(response.status, 200, response.text);
  const { items } = readObject(response);
  assert.ok(Array.isArray(items), response.text);
  return items;
}

/** Tries every 50 ms until the condition holds, and fails after the given time. */
async function within(ms: number, holds: () => Promise<boolean>, what: string): Promise<void> {
  const endMs = Date.now() + ms;
  while (!await holds()) {
    if (Date.now() > endMs) assert.fail(`not within ${ms} ms: ${what}`);
    await sleep(50);
  }
}

const createPasswordApp = () =>
  gatepost.createApp({ grants: ["password", "refresh_token", "client_credentials"] });

async function grantOf(user: TestUser, app: string): Promise<Item> {
  const [grant] = await list(`/backend/grant?user=${user.id}&app=${app}`);
  assert.ok(grant);
  return grant;
}

const ROUTES: readonly (readonly [string, string])[] = [
  ["GET", "/backend/grant"],
  ["DELETE", "/backend/grant/g0"],
  ["POST", "/backend/grant/revoke"],
  ["GET", "/backend/audit"],
  ["GET", "/backend/cronjob"],
  ["POST", "/backend/cronjob/quick/run"],
];

for (const [method, path] of ROUTES) {
  test(`${method} ${path} needs a token with scope backend`, async () => {
    const user = await gatepost.createUser();
    await expectStatus(401, send(method, path, undefined, ""));
    const response = await expectStatus(
      403,
      send(method, path, undefined, await gatepost.login(user)),
    );
    assert.match(response.headers.get("www-authenticate") ?? "", /insufficient_scope.*backend/);
  });
}

test("grants are listed newest first, and can be filtered by user and by app", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp();
  await gatepost.login(user);
  await gatepost.passwordTokens(app, user);
  await gatepost.passwordTokens(app, await gatepost.createUser());
  const ofUser = await list(`/backend/grant?user=${user.id}`);
  assert.deepEqual(ofUser.map((grant) => [grant["app"], grant["type"]]), [
    [app.id, "password"],
    ["login", "login"],
  ]);
  assert.equal((await list(`/backend/grant?app=${app.id}`)).length, 2);
  const [grant] = await list(`/backend/grant?app=${app.id}&user=${user.id}`);
  assert.match(String(grant?.["name"]), /^App-/);
  assert.deepEqual({ ...grant, id: "", name: "", created_at: "", expires_at: "" }, {
    id: "",
    user: user.id,
    app: app.id,
    type: "password",
    name: "",
    scopes: ["consumer"],
    status: "active",
    created_at: "",
    last_used_at: null,
    expires_at: "",
  });
  assert.ok(Date.parse(String(grant?.["expires_at"])) > Date.now() + 29 * 86_400_000);
});

test("a grant of an app for itself has no user", async () => {
  const app = await createPasswordApp();
  readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const [grant] = await list(`/backend/grant?app=${app.id}`);
  assert.deepEqual([grant?.["user"], grant?.["type"]], [null, "client_credentials"]);
});

test("a list of grants continues at its cursor", async () => {
  const user = await gatepost.createUser();
  for (let i = 0; i < 3; i++) await gatepost.login(user);
  const path = `/backend/grant?user=${user.id}&limit=2`;
  const first = readObject(await send("GET", path));
  assert.ok(typeof first["next_cursor"] === "string");
  const rest = readObject(await send("GET", `${path}&cursor=${first["next_cursor"]}`));
  const ids = [first, rest].flatMap((page) => (page["items"] as Item[]).map(({ id }) => id));
  assert.equal(new Set(ids).size, 3);
  assert.deepEqual(ids, ids.toSorted().reverse());
  assert.equal(rest["next_cursor"], null);
});

test("revoking a grant ends its tokens, and the list shows it as revoked", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp();
  const tokens = await gatepost.passwordTokens(app, user);
  const spared = await gatepost.passwordTokens(app, await gatepost.createUser());
  const { id } = await grantOf(user, app.id);
  await expectStatus(204, send("DELETE", `/backend/grant/${id}`));
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  assert.equal((await gatepost.refresh(app, tokens.refresh_token)).status, 400);
  assert.equal(await gatepost.isAlive(spared.access_token), true);
  const grant = await grantOf(user, app.id);
  assert.equal(grant["status"], "revoked");
  assert.ok(Date.parse(String(grant["revoked_at"])) <= Date.now());
});

test("a revocation takes effect within a second in another process on the database", async () => {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);
  assert.equal(await other.isAlive(token), true);
  const { id } = await grantOf(user, "login");
  await send("DELETE", `/backend/grant/${id}`);
  await within(1000, async () => !await other.isAlive(token), "the token is invalid there");
});

test("revoking a grant that does not exist is 404", async () => {
  await expectStatus(404, send("DELETE", "/backend/grant/g0"));
});

test("revoking by user ends that user's browser session too", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ trusted: true });
  const browser = gatepost.openBrowser();
  await gatepost.allow(browser, app, user);
  assert.equal((await gatepost.authorize(browser, app)).status, 303);
  await expectStatus(204, send("POST", "/backend/grant/revoke", { user: user.id }));
  const page = await gatepost.authorize(browser, app);
  assert.ok(page.forms()[0]?.inputs.some(({ name }) => name === "password"), page.text);
});

test("revoking by user ends every grant of that user and of nobody else", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const app = await createPasswordApp();
  const tokens = await gatepost.passwordTokens(app, user);
  const login = await gatepost.login(user);
  const spared = await gatepost.login(neighbour);
  await expectStatus(204, send("POST", "/backend/grant/revoke", { user: user.id }));
  assert.deepEqual(
    [
      await gatepost.isAlive(tokens.access_token),
      await gatepost.isAlive(login),
      await gatepost.isAlive(spared),
    ],
    [false, false, true],
  );
  assert.equal((await gatepost.refresh(app, tokens.refresh_token)).status, 400);
  const statuses = (await list(`/backend/grant?user=${user.id}`)).map(({ status }) => status);
  assert.deepEqual(statuses, ["revoked", "revoked"]);
  assert.equal(await gatepost.isAlive(await gatepost.login(user)), true, "they may log in again");
});

test("revoking by app ends every grant of that app and of no other", async () => {
  const user = await gatepost.createUser();
  const [app, another] = [await createPasswordApp(), await createPasswordApp()];
  const tokens = await gatepost.passwordTokens(app, user);
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const spared = await gatepost.passwordTokens(another, user);
  await expectStatus(204, send("POST", "/backend/grant/revoke", { app: app.id }));
  assert.deepEqual(
    [
      await gatepost.isAlive(tokens.access_token),
      await gatepost.isAlive(own.access_token),
      await gatepost.isAlive(spared.access_token),
    ],
    [false, false, true],
  );
  assert.equal((await gatepost.refresh(app, tokens.refresh_token)).status, 400);
});

test("revoking by user and app ends only that user's grants to that app", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const app = await createPasswordApp();
  const tokens = await gatepost.passwordTokens(app, user);
  const spared = [
    (await gatepost.passwordTokens(app, neighbour)).access_token,
    await gatepost.login(user),
  ];
  await expectStatus(204, send("POST", "/backend/grant/revoke", { user: user.id, app: app.id }));
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  for (const token of spared) assert.equal(await gatepost.isAlive(token), true);
});

test("a code that was not yet exchanged ends with the grants of its user or app", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  for (const body of [{ user: user.id }, { user: user.id, app: app.id }, { app: app.id }]) {
    const code = await gatepost.code(app, user);
    await expectStatus(204, send("POST", "/backend/grant/revoke", body));
    const response = await gatepost.token(app, { grant_type: "authorization_code", code });
    assert.equal(readObject(response)["error"], "invalid_grant", JSON.stringify(body));
  }
});

test("a revocation ends the consents of its user and app, and no others", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const [app, another] = [await gatepost.createApp(), await gatepost.createApp()];
  const trusted = await gatepost.createApp({ trusted: true });
  const isAsked = async (by: TestUser, at: TestApp) => {
    const browser = gatepost.openBrowser();
    await gatepost.allow(browser, trusted, by);
    return (await gatepost.authorize(browser, at)).status === 200;
  };
  const table = [
    [{ user: user.id, app: app.id }, [true, false, false]],
    [{ user: user.id }, [true, true, false]],
    [{ app: app.id }, [true, false, true]],
  ] as const;
  const pairs = [[user, app], [user, another], [neighbour, app]] as const;
  for (const [body, expected] of table) {
    for (const [by, at] of pairs) await gatepost.allow(gatepost.openBrowser(), at, by);
    await expectStatus(204, send("POST", "/backend/grant/revoke", body));
    const asked = [];
    for (const [by, at] of pairs) asked.push(await isAsked(by, at));
    assert.deepEqual(asked, expected, JSON.stringify(body));
  }
});

const BAD_REVOCATIONS: readonly (readonly [string, unknown, readonly string[]])[] = [
  ["nothing", {}, ["/user"]],
  ["a list", [], [""]],
  ["numbers", { user: 1, app: 2 }, ["/user", "/app"]],
  ["invalid ids", { user: "admin", app: "shop" }, ["/user", "/app"]],
  ["an unknown member", { app: "login", all: true }, ["/all"]],
];

for (const [what, body, pointers] of BAD_REVOCATIONS) {
  test(`a revocation by ${what} is refused with every error`, async () => {
    const response = await expectStatus(400, send("POST", "/backend/grant/revoke", body));
    const errors = readObject(response)["errors"] as Item[];
    assert.deepEqual(errors.map(({ pointer }) => pointer), pointers);
  });
}

test("a revocation by a user or an app that does not exist is 404", async () => {
  const { id } = await gatepost.createUser();
  const none = (kind: string) => kind + id.slice(1);
  await expectStatus(404, send("POST", "/backend/grant/revoke", { app: none("a") }));
  const gone = await gatepost.createUser();
  await send("DELETE", `/backend/user/${gone.id}`);
  await expectStatus(404, send("POST", "/backend/grant/revoke", { user: gone.id }));
});

for (const query of ["user=admin", "app=shop", "limit=0", "cursor=.", "user=u1&app=1"]) {
  test(`a list of grants with ${query} is refused`, async () => {
    await expectStatus(400, send("GET", `/backend/grant?${query}`));
  });
}

const isAudited = async (target: string, action: string) =>
  (await list(`/backend/audit?target=${target}&action=${action}`)).length > 0;

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
    await within(3000, () => isAudited(user.id, "user.login_failed"), what);
    const [entry] = await list(`/backend/audit?target=${user.id}&action=user.login_failed`);
    assert.equal(entry?.["actor"], actor, what);
  }
});

test("a disabled user's login with the right password is audited as failed", async () => {
  const user = await gatepost.createUser();
  await gatepost.change(user, { status: "disabled" });
  const { username, password } = user;
  await expectStatus(401, gatepost.api.postJson("/consumer/login", { username, password }));
  await within(3000, () => isAudited(user.id, "user.login_failed"), "the failure");
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
  await within(3000, async () => await find() !== undefined, "the failure");
  assert.equal((await find())?.["actor"], "anonymous");
  const all = await send("GET", "/backend/audit?limit=200");
  assert.ok(!all.text.includes(typed) && !all.text.includes("alice the user"));
});

test("a failed client authentication is audited with its app, or as unknown", async () => {
  const app = await gatepost.createApp();
  const wrong = { ...app, secret: "not the secret" };
  await expectStatus(401, gatepost.token(wrong, { grant_type: "client_credentials" }));
  await within(3000, () => isAudited(app.id, "app.authenticate_failed"), "the failure");
  const address = newAddress();
  const unknown = { authorization: `Basic ${Buffer.from("who:knows").toString("base64")}` };
  const fields = { grant_type: "client_credentials" };
  const headers = { ...unknown, "x-forwarded-for": address };
  await expectStatus(401, gatepost.api.postForm("/authorization/token", fields, headers));
  const path = "/backend/audit?target=unknown&action=app.authenticate_failed&limit=200";
  await within(
    3000,
    async () => (await list(path)).some((entry) => entry["address"] === address),
    "the failure of an unknown app",
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
  await within(3000, () => isAudited(user.id, "user.login_failed"), "the first failure");
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

async function findJob(name: string): Promise<Item> {
  const job = (await list("/backend/cronjob")).find((each) => each["name"] === name);
  assert.ok(job, name);
  return job;
}

test("the list of cronjobs has the service's own and those of endpoint modules", async () => {
  const jobs = await list("/backend/cronjob");
  const names = jobs.map(({ name }) => name);
  for (const name of ["gatepost.distribute", "gatepost.purge", "quick", "slow", "failing"]) {
    assert.ok(names.includes(name), name);
  }
  const quick = await findJob("quick");
  assert.deepEqual({ ...quick, next_run: "" }, {
    name: "quick",
    every: "1d",
    status: "waiting",
    last_run: null,
    duration_ms: null,
    error: null,
    next_run: "",
  });
  const waitMs = Date.parse(String(quick["next_run"])) - Date.now();
  assert.ok(waitMs > 86_000_000 && waitMs <= 86_400_000, String(waitMs));
});

test("a job of the service shows when it last ran and for how long", async () => {
  const ran = async () => (await findJob("gatepost.distribute"))["last_run"] !== null;
  await within(3000, ran, "a run");
  const { last_run: last, duration_ms: ms, error } = await findJob("gatepost.distribute");
  assert.ok(Math.abs(Date.now() - Date.parse(String(last))) < 60_000);
  assert.ok(typeof ms === "number" && ms >= 0);
  assert.equal(error, null);
});

test("a list of cronjobs has pages", async () => {
  const names: unknown[] = [];
  let path = "/backend/cronjob?limit=2";
  for (let next: unknown = ""; next !== null;) {
    const page = readObject(await send("GET", path));
    names.push(...(page["items"] as Item[]).map(({ name }) => name));
    next = page["next_cursor"];
    path = `/backend/cronjob?limit=2&cursor=${next}`;
  }
  assert.deepEqual(names, (await list("/backend/cronjob")).map(({ name }) => name));
});

test("running a cronjob by hand does not change its next run", async () => {
  const before = await findJob("quick");
  await expectStatus(202, send("POST", "/backend/cronjob/quick/run"));
  await within(2000, async () => (await findJob("quick"))["duration_ms"] !== null, "the run");
  const job = await findJob("quick");
  assert.equal(job["next_run"], before["next_run"]);
  assert.ok(Math.abs(Date.now() - Date.parse(String(job["last_run"]))) < 60_000);
  assert.equal(await isAudited("quick", "cronjob.run"), true);
});

test("a job of the service can be run by hand", async () => {
  await expectStatus(202, send("POST", "/backend/cronjob/gatepost.purge/run"));
  await within(2000, async () => (await findJob("gatepost.purge"))["last_run"] !== null, "the run");
});

test("a cronjob that is running is not run again, not even by another process", async () => {
  await expectStatus(202, send("POST", "/backend/cronjob/slow/run"));
  assert.equal((await findJob("slow"))["status"], "running");
  await expectStatus(409, send("POST", "/backend/cronjob/slow/run"));
  const elsewhere = await other.api.postJson("/backend/cronjob/slow/run", undefined, {
    ...bearer(gatepost.adminToken),
  });
  assert.equal(elsewhere.status, 409, elsewhere.text);
});

test("a cronjob that fails shows its error", async () => {
  await expectStatus(202, send("POST", "/backend/cronjob/failing/run"));
  await within(2000, async () => (await findJob("failing"))["error"] !== null, "the error");
  assert.equal((await findJob("failing"))["error"], "no luck today");
});

test("running a cronjob that does not exist is 404", async () => {
  await expectStatus(404, send("POST", `/backend/cronjob/${newName("none")}/run`));
});
