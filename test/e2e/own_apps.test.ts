import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { bearer } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost();
});
after(() => gatepost.stop());

const call = (method: string, path: string, token: string, body?: unknown) =>
  gatepost.api.sendJson(method, path, body, bearer(token));

/** A user with an app. */
async function own(more = {}) {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ ...more, owner: user.id });
  return { user, app, token: await gatepost.login(user), path: `/consumer/app/${app.id}` };
}

test("a user sees and changes only apps that the user owns", async () => {
  const { app, user, token, path } = await own();
  await gatepost.createApp();
  const items = readItems(await call("GET", "/consumer/app", token));
  assert.deepEqual(items.map(({ client_id: id }) => id), [app.id]);
  assert.equal(readObject(await call("GET", path, token))["owner"], user.id);
  const stranger = await gatepost.login(await gatepost.createUser());
  for (const [method, below] of [["GET", ""], ["PATCH", ""], ["POST", "/secret"]] as const) {
    const body = method === "GET" ? undefined : {};
    assertProblem(await call(method, path + below, stranger, body), 404);
    assertProblem(await call(method, path + below, gatepost.adminToken, body), 404);
  }
  assert.deepEqual(readItems(await call("GET", "/consumer/app", stranger)), []);
});

test("an owner may change name, url and redirect_uris, and nothing else", async () => {
  const { token, path } = await own();
  const change = {
    name: "Mine",
    url: "https://mine.example/a",
    redirect_uris: ["https://mine.example/a/cb"],
  };
  const changed = readObject(await call("PATCH", path, token, change));
  assert.deepEqual(
    { name: changed["name"], url: changed["url"], redirect_uris: changed["redirect_uris"] },
    change,
  );
  const more = { scopes: ["backend"], grants: ["password"], trusted: true, resource_server: true,
    owner: null, status: "active", rate: null, require_pkce: false, jwks: null };
  const refused = assertProblem(await call("PATCH", path, token, more), 400);
  assert.deepEqual(refused, Object.keys(more).map((name) => `/${name}`).sort());
});

test("an owner rotates the secret; the old one is valid for a day, or is revoked", async () => {
  const { app, token, path } = await own();
  const { client_secret: secret } = readObject(await call("POST", `${path}/secret`, token));
  const works = async (value: unknown) =>
    (await gatepost.token({ ...app, secret: String(value) }, { grant_type: "client_credentials" }))
      .status;
  assert.deepEqual([await works(secret), await works(app.secret)], [200, 200]);
  const until = async () => readObject(await call("GET", path, token))["old_secret_until"];
  const leftMs = Date.parse(String(await until())) - Date.now();
  assert.ok(Math.abs(leftMs - 86_400_000) < 60_000, String(leftMs));
  const leaked = await call("POST", `${path}/secret`, token, { revoke: true });
  assert.equal(await works(readObject(leaked)["client_secret"]), 200);
  assert.deepEqual([await works(secret), await works(app.secret)], [401, 401]);
  assert.equal(await until(), undefined);
});

test("only an operator may change url and redirect_uris of a trusted app", async () => {
  const { app, token, path } = await own({ trusted: true });
  assertProblem(await call("PATCH", path, token, { url: "https://evil.example" }), 403);
  assertProblem(await call("PATCH", path, token, { redirect_uris: null }), 403);
  assert.equal((await call("PATCH", path, token, { name: "Mine" })).status, 200);
  await gatepost.change(app, { url: "https://new.example" });
});

test("a token issued to an app, even to a user's own, may not see or change apps", async () => {
  const { app, user, path } = await own();
  const { access_token: through } = await gatepost.codeTokens(app, user);
  assertProblem(await call("GET", "/consumer/app", through), 403);
  assertProblem(await call("PATCH", path, through, { name: "Mine" }), 403);
  assertProblem(await call("POST", `${path}/secret`, through), 403);
});

test("an app loses its owner if an operator says so or the user is deleted", async () => {
  const { app, user, token, path } = await own();
  await gatepost.change(app, { owner: null });
  assertProblem(await call("GET", path, token), 404);
  await gatepost.change(app, { owner: user.id });
  const deleted = await call("DELETE", `/backend/user/${user.id}`, gatepost.adminToken);
  assert.equal(deleted.status, 204);
  const shown = readObject(await call("GET", `/backend/app/${app.id}`, gatepost.adminToken));
  assert.equal(shown["owner"], null);
  const unknown = { owner: `u${"0".repeat(24)}` };
  const fresh = { name: "App", url: "https://a.example", ...unknown };
  for (const response of [
    await call("PATCH", `/backend/app/${app.id}`, gatepost.adminToken, unknown),
    await call("POST", "/backend/app", gatepost.adminToken, fresh),
  ]) {
    assert.deepEqual(assertProblem(response, 400), ["/owner"]);
  }
});
