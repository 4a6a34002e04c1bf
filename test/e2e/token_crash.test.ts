import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { createDataFolder } from "../helpers/process.ts";
import { newPkce } from "../helpers/requests.ts";
import { assertOAuthError, readTokens } from "../helpers/responses.ts";

// Without a fixed base URL each start has a new port, and so another issuer.
const BASE = { GATEPOST_BASE_URL: "http://gatepost.test" };

let folder: string;
let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
before(async () => {
  folder = await createDataFolder();
  gatepost = await startGatepost({ folder, env: BASE });
  user = await gatepost.createUser();
  app = await gatepost.createApp({ trusted: true });
});
after(async () => {
  await gatepost.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Ends the server as a power cut would, and starts it on what is left. */
async function crash(env: Readonly<Record<string, string>> = {}): Promise<void> {
  await gatepost.server.kill();
  gatepost = await startGatepost({ folder, env: { ...BASE, ...env } });
}

const refresh = (token: string) => gatepost.refresh(app, token);

describe("what was acknowledged survives kill -9", () => {
  test("a code, with its challenge", async () => {
    const pair = newPkce();
    const code = await gatepost.code(app, user, pair.challenge);
    await crash();
    const fields = { grant_type: "authorization_code", code };
    assertOAuthError(await gatepost.token(app, fields), 400, "invalid_grant");
    readTokens(await gatepost.token(app, { ...fields, ...pair.verifier }));
  });

  test("the exchange of a code: its tokens are valid, and the code is used up", async () => {
    const code = await gatepost.code(app, user);
    const fields = { grant_type: "authorization_code", code };
    const tokens = readTokens(await gatepost.token(app, fields));
    await crash();
    assert.equal(await gatepost.isAlive(tokens.access_token), true);
    readTokens(await refresh(tokens.refresh_token));
    assertOAuthError(await gatepost.token(app, fields), 400, "invalid_grant");
    assert.equal(await gatepost.isAlive(tokens.access_token), false);
  });

  test("a refresh: the new token is valid, and the old one counts as used", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = readTokens(await refresh(first.refresh_token));
    await crash();
    const third = readTokens(await refresh(second.refresh_token));
    await crash();
    assert.equal(await gatepost.isAlive(third.access_token), true);
    assertOAuthError(await refresh(first.refresh_token), 400, "invalid_grant");
    assert.equal(await gatepost.isAlive(third.access_token), false);
    assertOAuthError(await refresh(third.refresh_token), 400, "invalid_grant");
  });

  test("a revocation", async () => {
    const tokens = await gatepost.codeTokens(app, user);
    await refresh((readTokens(await refresh(tokens.refresh_token))).refresh_token);
    assertOAuthError(await refresh(tokens.refresh_token), 400, "invalid_grant");
    await crash();
    assert.equal(await gatepost.isAlive(tokens.access_token), false);
  });

  test("a browser session", async () => {
    const browser = gatepost.openBrowser();
    await gatepost.allow(browser, app, user);
    const cookie = browser.cookies().map(({ name, value }) => `${name}=${value}`).join("; ");
    await crash();
    const path = `/authorization/authorize?client_id=${app.id}&redirect_uri=${app.redirectUri}`;
    const response = await gatepost.api.get(path, { cookie });
    assert.equal(response.status, 303, response.text);
    assert.ok(response.location?.startsWith(app.redirectUri));
  });
});

describe("access tokens issued before GATEPOST_ACCESS_TOKEN_TTL was shortened", () => {
  let token: string;
  let leaver: TestUser;
  beforeEach(async () => {
    await crash();
    leaver = await gatepost.createUser();
    token = await gatepost.login(leaver);
    await crash({ GATEPOST_ACCESS_TOKEN_TTL: "3s" });
  });

  test("stay valid", async () => {
    assert.equal(await gatepost.isAlive(token), true);
  });

  test("stay revoked beyond the new lifetime when their user was disabled", async () => {
    await gatepost.change(leaver, { status: "disabled" });
    await sleep(3100);
    await crash({ GATEPOST_ACCESS_TOKEN_TTL: "3s" });
    assert.equal(await gatepost.isAlive(token), false);
  });
});
