import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  askForDevice,
  type Device,
  DEVICE_GRANT,
  openVerify,
  poll,
  typeCode,
  VERIFY,
} from "../helpers/device.ts";
import { startForeignIssuer } from "../helpers/foreign_issuer.ts";
import { PASSWORD, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { asFields, lookUp } from "../helpers/openapi_rules.ts";
import { basicAuth, bearer, newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";
import { startOpenApiStage } from "./openapi_stage.ts";

const { gatepost, receiver, document, operations, checkResponse, ask, succeeded, stop } =
  await startOpenApiStage();
after(stop);

test("responses about users, apps and resources are as declared", async () => {
  const password = PASSWORD;
  const user = await ask("POST", "/backend/user", { username: newName("u"), password });
  await ask("GET", "/backend/user?limit=2");
  await ask("GET", `/backend/user/${String(user["id"])}`);
  await ask("PATCH", `/backend/user/${String(user["id"])}`, { scopes: ["consumer", "orders"] });
  const fields = { name: "App", url: "https://app.example", scopes: ["consumer", "orders"] };
  const app = await ask("POST", "/backend/app", fields);
  const id = String(app["client_id"]);
  await ask("GET", "/backend/app");
  await ask("GET", `/backend/app/${id}`);
  await ask("PATCH", `/backend/app/${id}`, { trusted: true });
  await ask("POST", `/backend/app/${id}/secret`, { revoke: true });
  await ask("DELETE", `/backend/app/${id}`);
  await ask("DELETE", `/backend/user/${String(user["id"])}`);
  const resource = await ask("POST", "/backend/resource",
    { url: "https://mcp.example/mcp", scopes: ["files"] });
  await ask("GET", "/backend/resource");
  const at = `/backend/resource/${String(resource["id"])}`;
  await ask("GET", at);
  await ask("PATCH", at, { scopes: ["files", "files:write"] });
  await ask("DELETE", at);
  await ask("GET", "/backend/audit?limit=200");
});

test("responses of the OAuth endpoints are as declared", async () => {
  const user = await gatepost.createUser();
  const login = await gatepost.api.postJson("/consumer/login", user);
  checkResponse("POST", "/consumer/login", login);
  const app: TestApp = await gatepost.createApp({ resource_server: true });
  const tokens = await gatepost.codeTokens(app, user);
  const post = async (path: string, form: Record<string, string>, headers = basicAuth(app)) =>
    checkResponse("POST", path, await gatepost.api.postForm(path, form, headers));

  const grant = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
  const fresh = readObject(await post("/authorization/token", grant));
  await post("/authorization/token", { grant_type: "client_credentials" });
  const token = String(fresh["access_token"]);
  const described = await post("/authorization/introspect", { token });
  const { properties } = asFields(lookUp(document, "#/components/schemas/Introspection"));
  const members = (record: object) => Object.keys(record).sort();
  assert.deepEqual(members(readObject(described)), members(asFields(properties)));
  await post("/authorization/introspect", { token: String(fresh["refresh_token"]) });
  await post("/authorization/introspect", { token: "nothing" });
  await ask("GET", "/authorization/whoami", undefined, token);
  await ask("GET", "/consumer/grant", undefined, String(readObject(login)["token"]));
  await askOfAccount();
  await ask("GET", `/backend/grant?user=${user.id}`);
  const page = checkResponse(
    "GET",
    "/authorization/authorize",
    await gatepost.authorize(gatepost.openBrowser(), app),
  );
  assert.equal(page.status, 200);
  succeeded.add("submitAuthorizeForm"); // by codeTokens
  const withdrawn = String(readObject(login)["token"]);
  await ask("DELETE", `/consumer/grant/${app.id}`, undefined, withdrawn);
  await askOfDevice(user);
  await post("/authorization/revoke", { token });
  await ask("POST", "/backend/grant/revoke", { user: user.id });
  const other = await gatepost.login(await gatepost.createUser());
  assert.ok(other);
  const { items } = await ask("GET", "/backend/grant?limit=1");
  await ask("DELETE", `/backend/grant/${String(asFields(Object(items)[0])["id"])}`);
});

/** Sends the requests of a device and of its user. */
async function askOfDevice(user: TestUser): Promise<void> {
  const app = await gatepost.createApp({ grants: [DEVICE_GRANT] });
  const asked = checkResponse("POST", "/authorization/device", await askForDevice(gatepost, app));
  const device: Device = JSON.parse(asked.text);
  checkResponse("POST", "/authorization/token", await poll(gatepost, app, device));
  const { browser, page } = await openVerify(gatepost, user);
  checkResponse("GET", VERIFY, page);
  const consent = checkResponse("POST", VERIFY, await typeCode(browser, page, device.user_code));
  checkResponse("POST", VERIFY, await browser.submit(consent, {}, "allow"));
  checkResponse("POST", VERIFY, await browser.submit(consent, {}, "allow"));
  checkResponse("POST", "/authorization/token", await poll(gatepost, app, device));
}

/** Sends what a user may send about the own account; this ends the user's grants. */
async function askOfAccount(): Promise<void> {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);
  const body = { name: "script", scopes: ["consumer"], expires_in: 60 };
  const made = await ask("POST", "/consumer/token", body, token);
  await ask("GET", "/consumer/token", undefined, token);
  await ask("DELETE", `/consumer/token/${String(made["id"])}`, undefined, token);
  await ask("DELETE", "/consumer/token", undefined, token);
  const app = await gatepost.createApp({ owner: user.id });
  await gatepost.openLoggedIn(app, user);
  await ask("GET", `/backend/user/${user.id}/session`);
  const { items } = await ask("GET", "/consumer/session", undefined, token);
  const session = String(asFields(Object(items)[0])["id"]);
  await ask("DELETE", `/consumer/session/${session}`, undefined, token);
  await ask("DELETE", "/consumer/session", undefined, token);
  await ask("GET", "/consumer/app", undefined, token);
  await ask("GET", `/consumer/app/${app.id}`, undefined, token);
  await ask("PATCH", `/consumer/app/${app.id}`, { name: "Mine" }, token);
  await ask("POST", `/consumer/app/${app.id}/secret`, undefined, token);
  await ask("GET", "/consumer/account", undefined, token);
  const change = { current: user.password, new: "another password" };
  await ask("PUT", "/consumer/account/password", change, token);
}

test("responses about subscriptions, events and deliveries are as declared", async () => {
  const token = await gatepost.login(await gatepost.createUser());
  const event = newName("event");
  const endpoint = `${receiver.url}/a`;
  const mine = await ask("POST", "/consumer/subscription", { event, endpoint }, token);
  const path = `/consumer/subscription/${String(mine["id"])}`;
  await ask("GET", "/consumer/subscription", undefined, token);
  await ask("GET", path, undefined, token);
  await ask("PATCH", path, { status: "paused" }, token);
  await ask("PATCH", path, { status: "active" }, token);
  await ask("POST", `${path}/secret`, undefined, token);
  await ask("GET", "/consumer/event", undefined, token);
  receiver.answer("/a", 500);
  const dispatched = await ask("POST", "/backend/event", { name: event, data: { a: [1] } });
  await until(async () => {
    const { items } = await ask("GET", `${path}/delivery`, undefined, token);
    return asFields(Object(items)[0])["status"] === "failed";
  });
  const { items } = await ask("GET", `${path}/delivery`, undefined, token);
  const delivery = String(asFields(Object(items)[0])["id"]);
  await ask("GET", "/backend/event?status=distributed");
  await ask("GET", `/backend/event/${String(dispatched["id"])}`);
  await ask("GET", "/backend/delivery?status=failed");
  await ask("GET", `/backend/delivery/${delivery}`);
  await ask("GET", `${path}/delivery/${delivery}`, undefined, token);
  await ask("GET", `/consumer/subscription/delivery/${delivery}`, undefined, token);
  const isFailed = async () =>
    (await ask("GET", `/backend/delivery/${delivery}`))["status"] === "failed";
  const paths = [`${path}/delivery/${delivery}`, `/consumer/subscription/delivery/${delivery}`];
  for (const resend of paths) {
    await ask("POST", `${resend}/resend`, undefined, token);
    await until(isFailed);
  }
  await ask("POST", `/backend/delivery/${delivery}/resend`);
  await until(isFailed);
  await ask("POST", "/backend/delivery/resend", { status: "failed", dry_run: true });
  const { id } = await ask("POST", "/backend/delivery/resend", { status: "failed" });
  await ask("GET", "/backend/resend");
  await ask("GET", `/backend/resend/${String(id)}`);
  succeeded.add("stopResend"); // in e2e/bulk_resend.test.ts: this one has ended already
  await until(isFailed);
  await ask("POST", `${path}/resend`, { status: "failed", first: "one" }, token);
  await until(isFailed);
  const own = await ask("POST", `${path}/resend`, { status: "failed" }, token);
  await ask("GET", `${path}/resend`, undefined, token);
  await ask("GET", `${path}/resend/${String(own["id"])}`, undefined, token);
  succeeded.add("stopResendOfSubscription"); // in api/resend.test.ts: this one has ended already
  await ask("PATCH", path, { paused_until: "2130-01-31T12:00:00Z" }, token);
  await ask("PATCH", path, { status: "active" }, token);
  await ask("POST", `${path}/test`, undefined, token);
  const managed = `/backend/subscription/${String(mine["id"])}`;
  await ask("GET", "/backend/subscription");
  await ask("GET", managed);
  await ask("GET", `${managed}/health`);
  await ask("GET", `${path}/health`, undefined, token);
  const worst = await ask("GET", "/backend/problem"); // this one fails
  const muted = `/backend/problem/${String(asFields(Object(worst["items"])[0])["id"])}/mute`;
  await ask("PUT", muted, { until: "2099-01-01T00:00:00Z" });
  await ask("GET", "/backend/problem");
  await ask("DELETE", muted);
  await ask("PATCH", managed, { status: "disabled" });
  await ask("GET", path, undefined, token); // with its reason
  await ask("DELETE", path, undefined, token);
  const other = await ask("POST", "/consumer/subscription", { event, endpoint }, token);
  await ask("DELETE", `/backend/subscription/${String(other["id"])}`);
});

test("responses about other issuers and their principals are as declared", async (t) => {
  const issuer = await startForeignIssuer(gatepost.issuer);
  t.after(() => issuer.close());
  const made = await ask("POST", "/backend/issuer", { issuer: issuer.url, scopes: ["consumer"] });
  const path = `/backend/issuer/${String(made["id"])}`;
  await ask("GET", "/backend/issuer");
  await ask("GET", path);
  await ask("PATCH", path, { scopes: ["consumer", "backend"], audience: null });
  const { sub } = await ask("GET", "/authorization/whoami", undefined, issuer.token());
  await ask("GET", "/backend/principal");
  await ask("GET", `/backend/principal/${String(sub)}`);
  await ask("PATCH", `/backend/principal/${String(sub)}`, { status: "disabled" });
  await ask("DELETE", `/backend/principal/${String(sub)}`);
  await ask("DELETE", path);
});

test("responses of the rest of the backend and of the system are as declared", async () => {
  const { items } = await ask("GET", "/backend/cronjob");
  await ask("POST", `/backend/cronjob/${String(asFields(Object(items)[0])["name"])}/run`);
  const key = await ask("POST", "/backend/key", { at_once: true });
  await ask("GET", "/backend/key");
  await ask("GET", "/backend/config");
  await ask("POST", "/backend/backup");
  const { id, url } = await ask("POST", "/backend/receiver");
  const receiver = `/backend/receiver/${String(id)}`;
  assert.equal((await fetch(String(url), { method: "POST", body: "1" })).status, 200);
  await ask("GET", receiver);
  await ask("PUT", receiver, { answer: "503" });
  await ask("DELETE", receiver);
  await ask("GET", "/backend/series?step=hour&of=logins");
  const headers = bearer(gatepost.adminToken);
  const watched = await gatepost.api.send("HEAD", "/backend/stream", { headers });
  checkResponse("GET", "/backend/stream", watched);
  await ask("GET", "/.well-known/jwks.json", undefined, "");
  await ask("GET", "/.well-known/oauth-authorization-server", undefined, "");
  await ask("GET", "/.well-known/openid-configuration", undefined, "");
  await ask("GET", "/.well-known/oauth-protected-resource", undefined, "");
  await ask("GET", "/.well-known/oauth-protected-resource/orders", undefined, "");
  await ask("GET", "/system/health", undefined, "");
  await ask("GET", "/system/about", undefined, "");
  await ask("GET", "/system/ready", undefined, "");
  await ask("GET", "/system/ready");
  const metrics = await gatepost.api.get("/system/metrics", bearer(gatepost.adminToken));
  checkResponse("GET", "/system/metrics", metrics);
  for (const path of ["/openapi.json", "/asyncapi.json"]) {
    checkResponse("GET", path, await gatepost.api.get(path));
  }
  // The admin's token was signed by the key before.
  await ask("DELETE", `/backend/key/${String(key["kid"])}`);
});

test("responses to refused requests are as declared", async () => {
  const refused: [method: string, path: string, status: number, body?: string, type?: string][] = [
    ["GET", "/authorization/whoami", 401],
    ["GET", "/backend/app", 401],
    ["GET", "/consumer/subscription", 401],
    ["GET", "/system/metrics", 401],
    ["POST", "/consumer/login", 400, "{", "application/json"],
    ["POST", "/consumer/login", 400, "{}", "application/json"],
    ["POST", "/consumer/login", 401, '{"username":"nobody","password":"x"}', "application/json"],
    ["POST", "/consumer/login", 415, "{}", "text/plain"],
    ["POST", "/consumer/login", 413, `"${"x".repeat(1_100_000)}"`, "application/json"],
    ["POST", "/authorization/token", 400, "a=b", "application/x-www-form-urlencoded"],
    ["POST", "/authorization/token", 400, "{}", "application/json"],
    [
      "POST",
      "/authorization/token",
      401,
      "grant_type=password&client_id=a1",
      "application/x-www-form-urlencoded",
    ],
    ["GET", "/authorization/authorize", 400],
  ];
  for (const [method, path, status, body, type] of refused) {
    const response = await gatepost.api.send(method, path, {
      headers: type === undefined ? {} : { "content-type": type },
      ...(body !== undefined && { body }),
    });
    assert.equal(response.status, status, response.text);
    checkResponse(method, path, response);
  }
  const token = await gatepost.login(await gatepost.createUser());
  for (const path of ["/backend/app", "/system/metrics"]) {
    const response = await gatepost.api.get(path, bearer(token));
    assert.equal(response.status, 403);
    checkResponse("GET", path, response);
  }
});

test("every built-in operation has had a successful response in these tests", () => {
  const ids = operations.filter(([, , { tags }]) => String(tags) !== "hosted")
    .map(([, , { operationId }]) => String(operationId));
  assert.deepEqual(ids.filter((id) => !succeeded.has(id)), []);
});
