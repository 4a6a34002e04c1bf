import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Gatepost,
  PASSWORD,
  startGatepost,
  type TestApp,
  type TestUser,
  type TokenResponse,
  waitUntilDead,
} from "../helpers/gatepost.ts";
import { DEVICE_GRANT } from "../../src/oauth/grant_type.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";
import { assertOAuthError, readItems, readObject, readTokens } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

// One public address for both: without it each would be its own issuer.
const env = { GATEPOST_BASE_URL: "http://gatepost.test" };

let first: Gatepost;
let second: Gatepost;
let user: TestUser;
let app: TestApp;
before(async () => {
  first = await startGatepost({ env });
  second = await startGatepost({ env, folder: first.server.folder });
  user = await first.createUser();
  app = await first.createApp({ trusted: true });
});
after(async () => {
  await second.stop();
  await first.stop();
});

/** The same request 20 times at once, half of them at each process. */
function sendToBoth(send: (at: Gatepost) => Promise<ClientResponse>): Promise<ClientResponse[]> {
  return Promise.all(Array.from({ length: 20 }, (_, index) => send(index % 2 ? first : second)));
}

async function waitUntilBothRefuse({ access_token }: TokenResponse): Promise<void> {
  await waitUntilDead(first, access_token);
  await waitUntilDead(second, access_token);
}

describe("two processes on one database", () => {
  test("accept users, apps, codes and tokens that the other has made", async () => {
    const at = await first.createApp({ trusted: true });
    const someone = await first.createUser();
    const code = await first.code(at, someone);
    const fields = { grant_type: "authorization_code", code };
    const tokens = readTokens(await second.token(at, fields));
    assert.equal(await first.isAlive(tokens.access_token), true);
    const next = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    const renewed = readTokens(await first.token(at, next));
    assert.equal(await second.isAlive(renewed.access_token), true);
  });

  test("share browser sessions", async () => {
    const browser = first.openBrowser();
    await first.allow(browser, app, user);
    const cookie = browser.cookies().map(({ name, value }) => `${name}=${value}`).join("; ");
    const query = `client_id=${app.id}&redirect_uri=${app.redirectUri}`;
    const response = await second.api.get(`/authorization/authorize?${query}`, { cookie });
    assert.equal(response.status, 303);
  });

  test("refuse a token that was revoked while one was suspended, once it resumes", async () => {
    const token = await first.login(user);
    assert.equal(await second.isAlive(token), true);
    process.kill(second.server.pid, "SIGSTOP");
    try {
      const revoked = await first.api.send("POST", "/authorization/revoke", {
        headers: bearer(token),
      });
      assert.equal(revoked.status, 200);
      await sleep(1_200);
      // These wait at its port until it resumes.
      const asked = Array.from({ length: 5 }, () => second.isAlive(token));
      await sleep(100);
      process.kill(second.server.pid, "SIGCONT");
      assert.deepEqual(await Promise.all(asked), asked.map(() => false));
    } finally {
      process.kill(second.server.pid, "SIGCONT");
    }
  });

  test("redeem a code once of 20 requests at once, then revoke its tokens", async () => {
    const fields = { grant_type: "authorization_code", code: await first.code(app, user) };
    const responses = await sendToBoth((at) => at.token(app, fields));
    const [succeeded, ...others] = responses.filter(({ status }) => status === 200);
    assert.ok(succeeded !== undefined && others.length === 0);
    await waitUntilBothRefuse(readTokens(succeeded));
  });

  test("exchange a refresh token once or twice of 20 at once, then revoke the grant", async () => {
    const { refresh_token } = await first.codeTokens(app, user);
    const fields = { grant_type: "refresh_token", refresh_token };
    const responses = await sendToBoth((at) => at.token(app, fields));
    const succeeded = responses.filter(({ status }) => status === 200);
    // The second may have come after the first response, as when that response was lost.
    assert.ok(succeeded.length === 1 || succeeded.length === 2, String(succeeded.length));
    for (const tokens of succeeded.map(readTokens)) {
      await waitUntilBothRefuse(tokens);
      const next = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
      assertOAuthError(await second.token(app, next), 400, "invalid_grant");
    }
  });

  test("revoke the grant when a token that the other exchanged is used again", async () => {
    const old = await first.codeTokens(app, user);
    const fields = { grant_type: "refresh_token", refresh_token: old.refresh_token };
    const tokens = readTokens(await first.token(app, fields));
    const next = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    readTokens(await first.token(app, next));
    assertOAuthError(await second.token(app, fields), 400, "invalid_grant");
    await waitUntilBothRefuse(tokens);
  });

  test("accept a secret, scopes and grants that the other has just given an app", async () => {
    const at = await first.createApp({ grants: ["client_credentials"] });
    const fields = { grant_type: "client_credentials" };
    readTokens(await second.token(at, fields)); // from now on the app is cached
    const path = `/backend/app/${at.id}/secret`;
    const made = await first.api.postJson(path, { revoke: true }, bearer(first.adminToken));
    const next = { ...at, secret: String(readObject(made)["client_secret"]) };
    readTokens(await second.token(next, fields));

    await first.change(at, { scopes: ["consumer", "orders"] });
    const { scope } = readTokens(await second.token(next, { ...fields, scope: "orders" }));
    assert.equal(scope, "orders");

    await first.change(at, { grants: ["client_credentials", DEVICE_GRANT, "password"] });
    const headers = basicAuth(next);
    const device = await second.api.postForm("/authorization/device", {}, headers);
    assert.equal(device.status, 200, device.text);

    await first.change(at, { grants: ["password"] });
    await first.change(at, { scopes: ["consumer"] });
    const { username, password } = user;
    const login = { grant_type: "password", username, password };
    assert.equal(readTokens(await second.token(next, login)).scope, "consumer");
  });

  test("give a code the scopes that the other has just added to its app", async () => {
    const someone = await first.createUser({ scopes: ["consumer", "orders"] });
    const at = await first.createApp({ trusted: true });
    const fields = { grant_type: "authorization_code" };
    for (const scopes of [["consumer"], ["consumer", "orders"]]) {
      await first.change(at, { scopes });
      const code = await second.code(at, someone);
      const { scope } = readTokens(await second.token(at, { ...fields, code }));
      assert.equal(scope, scopes.join(" "));
    }
  });

  test("give an app only those scopes that the other has left it", async () => {
    const at = await first.createApp({ scopes: ["consumer", "orders"] });
    const fields = { grant_type: "client_credentials" };
    assert.equal(readTokens(await second.token(at, fields)).scope, "consumer orders");
    await first.change(at, { scopes: ["consumer"] });
    assert.equal(readTokens(await second.token(at, fields)).scope, "consumer");
  });

  test("refuse an app that the other has disabled", async () => {
    const short = await first.createApp();
    const fields = { grant_type: "client_credentials" };
    const tokens = readTokens(await second.token(short, fields));
    await first.change(short, { status: "disabled" });
    assertOAuthError(await second.token(short, fields), 401, "invalid_client");
    await waitUntilBothRefuse(tokens);
    assertOAuthError(await second.token(short, fields), 401, "invalid_client");
  });

  test("refuse a user that the other has disabled", async () => {
    const leaver = await first.createUser();
    const access_token = await second.login(leaver);
    await first.change(leaver, { status: "disabled" });
    await waitUntilDead(second, access_token);
    const { username, password } = leaver;
    const response = await second.api.postJson("/consumer/login", { username, password });
    assert.equal(response.status, 401);
  });

  test("list one purge job, with the same last run after one has run it", async () => {
    const find = async (at: Gatepost) => {
      const response = await at.api.get("/backend/cronjob", bearer(at.adminToken));
      const jobs: { name: string; last_run: string | null }[] = JSON.parse(response.text).items;
      return jobs.filter(({ name }) => name === "gatepost.purge");
    };
    const path = "/backend/cronjob/gatepost.purge/run";
    const ran = await first.api.postJson(path, undefined, bearer(first.adminToken));
    assert.equal(ran.status, 202, ran.text);
    const [job] = await find(second);
    assert.notEqual(job?.last_run, null);
    assert.equal((await find(first)).length, 1);
    assert.equal((await find(first))[0]?.last_run, job?.last_run);
  });

  test("are not ready when they cannot decrypt the key that the other signs with", async (t) => {
    const [old, next] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"));
    const outdated = await startGatepost({ env: { ...env, GATEPOST_SECRET_KEY: old } });
    t.after(() => outdated.stop());
    const { folder } = outdated.server;
    const rotated = { ...env, GATEPOST_SECRET_KEY: `${next},${old}` };
    const updated = await startGatepost({ env: rotated, folder });
    t.after(() => updated.stop());
    const isReady = async ({ api }: Gatepost) => (await api.get("/system/ready")).status === 200;
    assert.deepEqual([await isReady(outdated), await isReady(updated)], [true, true]);
    const asAdmin = bearer(updated.adminToken);
    const made = await updated.api.postJson("/backend/key", { at_once: true }, asAdmin);
    assert.equal(made.status, 201, made.text);
    await until(async () => !await isReady(outdated));
    const parts = await outdated.api.get("/system/ready", bearer(outdated.adminToken));
    assert.match(parts.text, /"database":"sealed"/);
    assert.equal((await outdated.tryLogin({ username: "admin", password: PASSWORD })).status, 503);
    assert.equal(await isReady(updated), true);
  });

  test("accept tokens of a signing key that the other has just made", async () => {
    for (let round = 0; round < 5; round++) {
      const headers = bearer(first.adminToken);
      const made = await first.api.postJson("/backend/key", { at_once: true }, headers);
      assert.equal(made.status, 201, made.text);
      assert.ok(await second.isAlive(await first.login(user)));
    }
  });
});

test("a revocation takes effect within a second in another process on the database", async () => {
  const someone = await first.createUser();
  const token = await first.login(someone);
  assert.equal(await second.isAlive(token), true);
  const headers = bearer(first.adminToken);
  const [grant] = readItems(await first.api.get(`/backend/grant?user=${someone.id}`, headers));
  await first.api.send("DELETE", `/backend/grant/${String(grant?.["id"])}`, { headers });
  await second.assertDies(token, performance.now());
});
