import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { assertConsentPage, passLogin } from "../helpers/authorize_pages.ts";
import { type Clock, createClock } from "../helpers/clock.ts";
import { signIn, tokensOf } from "../helpers/console.ts";
import { DEVICE_GRANT, newDevice, pollFor, typeCode, VERIFY } from "../helpers/device.ts";
import {
  type ForeignIssuer,
  registerIssuer,
  startForeignIssuer,
} from "../helpers/foreign_issuer.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import type { Client } from "../helpers/http_client.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertOAuthError, assertProblem, readItems, readObject } from "../helpers/responses.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SCOPES = ["backend", "consumer"];

let clock: Clock;
let gatepost: Gatepost;
let issuer: ForeignIssuer;
before(async () => {
  clock = await createClock();
  const env = { GATEPOST_ACCESS_TOKEN_TTL: "30d", GATEPOST_CALLBACK_ALLOW: "127.0.0.1/32" };
  gatepost = await startGatepost({ env: { ...clock.env, ...env } });
  issuer = await startForeignIssuer(gatepost.issuer);
});
after(async () => {
  await gatepost.stop();
  await issuer.close();
  await clock.remove();
});
beforeEach(() => clock.set(0));

const refresh = (browser: Client, refresh_token: string) =>
  browser.postForm("/authorization/token", {
    grant_type: "refresh_token", client_id: "console", refresh_token,
  });

/** The access token of a console whose user typed the password 16 minutes ago. */
async function openOld() {
  const operator = await gatepost.createUser({ scopes: SCOPES });
  const { browser, tokens } = await tokensOf(gatepost, operator);
  await clock.set(16 * MINUTE_MS);
  const refreshed = await refresh(browser, tokens.refresh_token);
  assert.equal(refreshed.status, 200, refreshed.text);
  return { operator, browser, token: String(readObject(refreshed)["access_token"]) };
}

const send = (token: string, method: string, path: string, body?: unknown) =>
  gatepost.api.sendJson(method, path, body, bearer(token));

type Act = readonly [method: string, path: string, body: object | undefined, status: number];
const user = (scopes: readonly string[]) => gatepost.createUser({ scopes });
const app = (more = {}) => gatepost.createApp({ scopes: SCOPES, ...more });
const newUser = (scopes: readonly string[]) =>
  ({ username: newName("user"), password: "long enough", scopes });
const newApp = (scopes: readonly string[]) =>
  ({ name: "x", url: "https://x.example", scopes });
const to = (path: string, { id }: { readonly id: string }) => `/backend/${path}/${id}`;

const CODE = ["authorization_code"];
const ADDRESSES = { url: "https://app.example", redirect_uris: ["https://app.example/cb"] };

async function disabled(party: TestUser | TestApp) {
  await gatepost.change(party, { status: "disabled" });
  return party;
}

/** The path of the issuer, whose tokens may have `backend`. */
async function trusted(status = "active") {
  const issuers = readItems(await send(gatepost.adminToken, "GET", "/backend/issuer"));
  const { id } = issuers[0] ?? await registerIssuer(gatepost, issuer, { scopes: SCOPES });
  const path = to("issuer", { id: String(id) });
  await send(gatepost.adminToken, "PATCH", path, { status });
  return path;
}

/** The path of a disabled principal of an issuer whose tokens may have `backend`. */
async function disabledPrincipal() {
  const own = await startForeignIssuer(gatepost.issuer);
  await registerIssuer(gatepost, own, { scopes: SCOPES });
  const { sub } = readObject(await send(own.token(), "GET", "/authorization/whoami"));
  await own.close();
  const principal = to("principal", { id: String(sub) });
  await send(gatepost.adminToken, "PATCH", principal, { status: "disabled" });
  return principal;
}

/** What a console may do only soon after its user typed the password. */
const GRAVE: Readonly<Record<string, () => Promise<Act>>> = {
  "deleting a user": async () => ["DELETE", to("user", await user([])), undefined, 204],
  "deleting an app": async () => ["DELETE", to("app", await app()), undefined, 204],
  "withdrawing a key": async () => {
    const made = await send(gatepost.adminToken, "POST", "/backend/key", {});
    return ["DELETE", to("key", { id: String(readObject(made)["kid"]) }), undefined, 204];
  },
  "a new user with backend": async () => ["POST", "/backend/user", newUser(SCOPES), 201],
  "backend for a user": async () =>
    ["PATCH", to("user", await user(["consumer"])), { scopes: SCOPES }, 200],
  "a password for a user with backend": async () =>
    ["PATCH", to("user", await user(SCOPES)), { password: "another one" }, 200],
  "a new app with backend": async () => ["POST", "/backend/app", newApp(SCOPES), 201],
  "backend for an app": async () =>
    ["PATCH", to("app", await app({ scopes: ["consumer"] })), { scopes: SCOPES }, 200],
  "a secret for an app with backend": async () =>
    ["POST", `${to("app", await app())}/secret`, {}, 200],
  "an issuer whose tokens may have backend": async () =>
    ["POST", "/backend/issuer", { issuer: "https://issuer.invalid", scopes: SCOPES }, 400],
  "other keys for an app with backend": async () => {
    const key = () => {
      const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      return { ...publicKey.export({ format: "jwk" }), kid: newName("k") };
    };
    const made = await app({ jwks: { keys: [key()] } });
    return ["PATCH", to("app", made), { jwks: { keys: [key()] } }, 200];
  },
  "an owner for an app with backend": async () =>
    ["PATCH", to("app", await app()), { owner: (await user([])).id }, 200],
  "another grant for an app with backend": async () =>
    ["PATCH", to("app", await app({ grants: CODE })), { grants: [...CODE, "password"] }, 200],
  "another URL of an app with backend": async () =>
    ["PATCH", to("app", await app()), { url: "https://elsewhere.example" }, 200],
  "no redirect_uris for an app with backend": async () =>
    ["PATCH", to("app", await app(ADDRESSES)), { redirect_uris: null }, 200],
  "other keys of an issuer whose tokens may have backend": async () =>
    ["PATCH", await trusted(), { jwks_uri: `${issuer.receiver.url}/keys` }, 200],
  "another audience of such an issuer": async () =>
    ["PATCH", await trusted(), { audience: "https://other.example" }, 200],
  "enabling a user with backend": async () =>
    ["PATCH", to("user", await disabled(await user(SCOPES))), { status: "active" }, 200],
  "enabling an app with backend": async () =>
    ["PATCH", to("app", await disabled(await app())), { status: "active" }, 200],
  "enabling an issuer whose tokens may have backend": async () =>
    ["PATCH", await trusted("disabled"), { status: "active" }, 200],
  "enabling a principal whose tokens may have backend": async () =>
    ["PATCH", await disabledPrincipal(), { status: "active" }, 200],
  "deleting such a principal, which is disabled": async () =>
    ["DELETE", await disabledPrincipal(), undefined, 204],
  "a personal token with backend": async () =>
    ["POST", "/consumer/token", { name: "x", scopes: SCOPES, expires_in: 60 }, 201],
};

/** What a console may do at any time. */
const PLAIN: Readonly<Record<string, () => Promise<Act>>> = {
  "a new user without backend": async () => ["POST", "/backend/user", newUser(["consumer"]), 201],
  "a new app without backend": async () => ["POST", "/backend/app", newApp(["consumer"]), 201],
  "another name for an app with backend, and the same addresses": async () =>
    ["PATCH", to("app", await app(ADDRESSES)), { name: "y", ...ADDRESSES }, 200],
  "another URL of an app without backend": async () =>
    ["PATCH", to("app", await app({ scopes: [] })), { url: "https://elsewhere.example" }, 200],
  "the same scopes for a user with backend": async () =>
    ["PATCH", to("user", await user(SCOPES)), { scopes: SCOPES, rate: "5/1m" }, 200],
  "fewer scopes for a user with backend": async () =>
    ["PATCH", to("user", await user(SCOPES)), { scopes: ["consumer"] }, 200],
  "a password for a user without backend": async () =>
    ["PATCH", to("user", await user(["consumer"])), { password: "another one" }, 200],
  "disabling a user": async () =>
    ["PATCH", to("user", await user(SCOPES)), { status: "disabled" }, 200],
  "disabling an issuer whose tokens may have backend": async () =>
    ["PATCH", await trusted(), { status: "disabled" }, 200],
  "another rate for a disabled user with backend": async () =>
    ["PATCH", to("user", await disabled(await user(SCOPES))), { rate: "5/1m" }, 200],
  "one grant less for an app with backend": async () =>
    ["PATCH", to("app", await app()), { grants: CODE }, 200],
  "a personal token without backend": async () =>
    ["POST", "/consumer/token", { name: "x", scopes: ["consumer"], expires_in: 60 }, 201],
};

describe("a console whose user typed the password more than 15 minutes ago", () => {
  let old: string;
  before(async () => {
    old = (await openOld()).token;
  });

  for (const [what, prepare] of Object.entries(GRAVE)) {
    test(`is refused ${what} until the password is typed again`, async () => {
      const [method, path, body, status] = await prepare();
      const { operator, browser, token } = await openOld();
      const { adminToken } = gatepost;
      const last = async () =>
        readItems(await send(adminToken, "GET", "/backend/audit?limit=1"))[0];
      const before = await last();
      const refused = await send(token, method, path, body);
      assertProblem(refused, 401);
      assert.match(refused.text, /"urn:gatepost:problem:insufficient_user_authentication"/);
      assert.match(String(readObject(refused)["detail"]), /^Type your password again to /);
      const challenge = refused.headers.get("www-authenticate") ?? "";
      assert.match(challenge, /^Bearer .*\berror="insufficient_user_authentication"/);
      assert.match(challenge, /\bmax_age="900", resource_metadata="[^"]+"$/);
      assert.deepEqual(await last(), before, "nothing is stored");
      const visit = { browser, more: { max_age: "900" } };
      const { tokens } = await tokensOf(gatepost, operator, visit);
      const done = await send(tokens.access_token, method, path, body);
      assert.equal(done.status, status, done.text);
    });

    test(`does not limit other programs: ${what}`, async () => {
      const [method, path, body, status] = await prepare();
      await clock.set(16 * MINUTE_MS);
      const done = await send(gatepost.adminToken, method, path, body);
      assert.equal(done.status, status, done.text);
    });
  }

  for (const [what, prepare] of Object.entries(PLAIN)) {
    test(`is allowed ${what}`, async () => {
      const [method, path, body, status] = await prepare();
      await clock.set(16 * MINUTE_MS);
      const done = await send(old, method, path, body);
      assert.equal(done.status, status, done.text);
    });
  }

  test("needs a sign-in of its user, in any browser", async () => {
    const { operator, token } = await openOld();
    const { id } = await user([]);
    await signIn(gatepost, await user(SCOPES), "backend");
    assert.equal((await send(token, "DELETE", to("user", { id }))).status, 401);
    await signIn(gatepost, operator, "backend");
    assert.equal((await send(token, "DELETE", to("user", { id }))).status, 204);
  });
});

test("a sign-in from before the clock was set back is not recent", async () => {
  const { tokens: { access_token } } = await tokensOf(gatepost, await user(SCOPES));
  const { id } = await user([]);
  await clock.set(-16 * MINUTE_MS);
  assert.equal((await send(access_token, "DELETE", to("user", { id }))).status, 401);
  await clock.set(0);
  assert.equal((await send(access_token, "DELETE", to("user", { id }))).status, 204);
});

test("a user with backend makes tokens on the account page only soon after a sign-in", async () => {
  const page = "/account?do=make";
  const webhooks = `${gatepost.issuer}/account/webhooks`;
  for (const scopes of [SCOPES, ["consumer"]]) {
    await clock.set(0);
    const who = await user(scopes);
    const { browser } = await signIn(gatepost, who, "consumer", webhooks);
    const form = await browser.get(page);
    await clock.set(16 * MINUTE_MS);
    const fields = { name: "x", "scope consumer": "on", days: "7" };
    const late = await browser.submit(form, fields, "make", form.forms()[1]);
    const isAsked = scopes === SCOPES;
    assert.equal(late.text.includes("gpat_"), !isAsked, late.text);
    const again = await browser.get(page);
    assert.equal(again.text.includes("<h1>Sign in again</h1>"), isAsked, again.text);
    if (!isAsked) continue;
    const { username, password } = who;
    const wrong = await browser.submit(again, { username, password: "something else" });
    assert.match(wrong.text, /<h1>Sign in again<\/h1>/);
    const back = await browser.follow(await browser.submit(wrong, { username, password }));
    assert.match(back.text, /<h1[^>]*>New personal token<\/h1>/);
    const made = await browser.submit(back, fields, "make", back.forms()[1]);
    assert.match(made.text, /gpat_/);
  }
});

test("the account page asks for a recent sign-in whatever follows an action's name", async () => {
  const who = await user(SCOPES);
  const webhooks = `${gatepost.issuer}/account/webhooks`;
  const { browser } = await signIn(gatepost, who, "consumer", webhooks);
  await clock.set(16 * MINUTE_MS);
  const page = await browser.get("/account");
  const csrf = page.forms()[0]?.fields["csrf"] ?? "";
  for (const act of ["make x", "make "]) {
    const fields = { csrf, do: act, name: "x", "scope backend": "on", days: "366" };
    const made = await browser.postForm("/account", fields, { origin: gatepost.issuer });
    assert.doesNotMatch(made.text, /gpat_/);
    assert.match(made.text, /<h1>Sign in again<\/h1>/);
  }
});

describe("scope backend is granted", () => {
  const grants = ["authorization_code", DEVICE_GRANT];

  /** A browser in which a user signed in so many minutes ago. */
  async function openBrowserOf(who: TestUser, minutes: number) {
    await clock.set(0);
    const { browser } = await signIn(gatepost, who, "consumer");
    await clock.set(minutes * MINUTE_MS);
    return browser;
  }

  test("to an app only by a user who has signed in recently", async () => {
    const [who, asking] = [await user(SCOPES), await app({ grants })];
    const browser = await openBrowserOf(who, 16);
    assertConsentPage(await gatepost.authorize(browser, asking, { scope: "consumer" }));
    const other = await openBrowserOf(await user(["consumer"]), 16);
    assertConsentPage(await gatepost.authorize(other, asking, { scope: "consumer backend" }));
    const again = await gatepost.authorize(browser, asking, { scope: "backend" });
    assert.match(again.text, /<h1>Sign in again<\/h1>/);
    const consent = await passLogin(browser, again, who);
    assertConsentPage(consent);
    await clock.set(32 * MINUTE_MS);
    const late = await browser.submit(consent, {}, "allow");
    assert.match(late.text, /<h1>Sign in again<\/h1>/);
    const allowed = await browser.submit(await passLogin(browser, late, who), {}, "allow");
    assert.match(allowed.location ?? "", /\?code=/);
  });

  test("to a device only by a user who has signed in recently", async () => {
    const [who, asking] = [await user(SCOPES), await app({ grants })];
    const browser = await openBrowserOf(who, 16);
    const page = await browser.get(VERIFY);
    const plain = await newDevice(gatepost, asking, { scope: "consumer" });
    assertConsentPage(await typeCode(browser, page, plain.user_code));
    const device = await newDevice(gatepost, asking, { scope: "backend" });
    const again = await browser.submit(page, { user_code: device.user_code });
    assert.match(again.text, /<h1>Sign in again<\/h1>/);
    const { username } = who;
    const wrong = await browser.submit(again, { username, password: "something else" });
    assert.match(wrong.text, /<h1>Sign in again<\/h1>/);
    const consent = await browser.submit(await passLogin(browser, wrong, who));
    assertConsentPage(consent);
    await browser.submit(consent, {}, "allow");
    assert.equal(await pollFor(gatepost, asking, device), "backend");
  });

  test("to a device only by a decision soon after the sign-in", async () => {
    const [who, asking] = [await user(SCOPES), await app({ grants })];
    const browser = await openBrowserOf(who, 14);
    const device = await newDevice(gatepost, asking, { scope: "backend" });
    const consent = await typeCode(browser, await browser.get(VERIFY), device.user_code);
    await clock.set(16 * MINUTE_MS);
    const late = await browser.submit(consent, {}, "allow");
    assert.match(late.text, /<h1>Sign in again<\/h1>/);
    assert.equal(await pollFor(gatepost, asking, device), "authorization_pending");
    await browser.submit(consent, {}, "deny");
    assert.equal(await pollFor(gatepost, asking, device), "access_denied");
  });
});

test("other windows keep their tokens when the user types the password again", async () => {
  const operator = await user(SCOPES);
  const { browser, tokens } = await tokensOf(gatepost, operator);
  const visit = { browser, more: { max_age: "0" } };
  const { tokens: { access_token: token } } = await tokensOf(gatepost, operator, visit);
  assert.equal(readItems(await send(token, "GET", "/consumer/session")).length, 1);
  assert.equal(await gatepost.isAlive(tokens.access_token), true);
  const refreshed = await refresh(browser, tokens.refresh_token);
  assert.equal(refreshed.status, 200, refreshed.text);
});

test("a console gets no tokens once its user's last session has expired", async () => {
  const operator = await user(SCOPES);
  const { browser } = await tokensOf(gatepost, operator);
  await clock.set(11 * HOUR_MS);
  const { tokens } = await tokensOf(gatepost, operator, { browser }); // without a password
  const again = await refresh(browser, tokens.refresh_token);
  assert.equal(again.status, 200, again.text);
  await clock.set(12 * HOUR_MS + MINUTE_MS);
  const late = await refresh(browser, String(readObject(again)["refresh_token"]));
  assertOAuthError(late, 400, "invalid_grant");
});

test("a console gets tokens as long as another session of its user lasts", async () => {
  const operator = await user(SCOPES);
  const { browser } = await tokensOf(gatepost, operator);
  await clock.set(11 * HOUR_MS);
  const { tokens } = await tokensOf(gatepost, operator, { browser });
  await tokensOf(gatepost, operator);
  await clock.set(12 * HOUR_MS + MINUTE_MS);
  const again = await refresh(browser, tokens.refresh_token);
  assert.equal(again.status, 200, again.text);
});

test("a window that revokes its grant makes no audit entry and disables nothing else", async () => {
  const operator = await user(SCOPES);
  const { browser, tokens } = await tokensOf(gatepost, operator);
  const other = await tokensOf(gatepost, operator, { browser });
  const body = { event: newName("event"), endpoint: "https://hooks.example/x" };
  const made = await send(tokens.access_token, "POST", "/consumer/subscription", body);
  assert.equal(made.status, 201, made.text);
  const fields = { client_id: "console", token: tokens.refresh_token };
  const revoked = await browser.postForm("/authorization/revoke", fields);
  assert.equal(revoked.status, 200, revoked.text);
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  const { access_token: token } = other.tokens;
  assert.equal(await gatepost.isAlive(token), true);
  const path = `/consumer/subscription/${String(readObject(made)["id"])}`;
  assert.equal(readObject(await send(token, "GET", path))["status"], "active");
  const [newest] = readItems(await send(token, "GET", "/backend/audit?limit=1"));
  assert.equal(newest?.["action"], "subscription.create");
});
