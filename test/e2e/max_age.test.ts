import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import {
  assertCode,
  assertConsentPage,
  assertErrorRedirect,
  assertLoginPage,
  passLogin,
} from "../helpers/authorize_pages.ts";
import { type Clock, createClock } from "../helpers/clock.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { authorizePath } from "../helpers/requests.ts";

const MINUTE_MS = 60_000;

let clock: Clock;
let gatepost: Gatepost;
before(async () => {
  clock = await createClock();
  gatepost = await startGatepost({ env: { ...clock.env, GATEPOST_ACCESS_TOKEN_TTL: "30d" } });
});
after(async () => {
  await gatepost.stop();
  await clock.remove();
});
beforeEach(() => clock.set(0));

/** An app, and a browser whose user has just signed in and allowed what the app asks for. */
async function open(more: object = {}) {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ ...more });
  const browser = await gatepost.openLoggedIn(app, user);
  const ask = (max_age: string) => gatepost.authorize(browser, app, { max_age });
  return { user, app, browser, ask };
}

function assertAsksAgain(page: ClientResponse, username: string, status = 200): void {
  assertLoginPage(page, status);
  assert.match(page.text, /<h1>Sign in again<\/h1>/);
  const name = page.forms()[0]?.inputs.find(({ name }) => name === "username");
  assert.equal(name?.value, username);
}

test("a sign-in older than max_age must be repeated, with the name filled in", async () => {
  const { user, app, browser, ask } = await open();
  await clock.set(5 * MINUTE_MS);
  assertCode(gatepost, await ask("600"), app);
  const page = await ask("299");
  assertAsksAgain(page, user.username);
  const wrong = await browser.submit(page, { password: "something else" });
  assertAsksAgain(wrong, user.username, 403);
  assertCode(gatepost, await ask("600"), app);
  assertCode(gatepost, await passLogin(browser, wrong, user), app);
  assertCode(gatepost, await ask("60"), app);
});

test("max_age=0 asks for one sign-in at each request", async () => {
  const { user, app, browser, ask } = await open();
  for (let times = 0; times < 2; times++) {
    const page = await ask("0");
    assertAsksAgain(page, user.username);
    assertCode(gatepost, await passLogin(browser, page, user), app);
  }
});

test("a sign-in from before the clock was set back must be repeated", async () => {
  const { user, app, browser, ask } = await open();
  await clock.set(-5 * MINUTE_MS);
  const page = await ask("60");
  assertAsksAgain(page, user.username);
  assertAsksAgain(await ask("0"), user.username);
  assertCode(gatepost, await passLogin(browser, page, user), app);
  assertCode(gatepost, await ask("60"), app);
});

test("max_age=0 asks a new browser once, even if its name is percent-encoded", async () => {
  const { user, app } = await open();
  for (const name of ["max_age", "max%5Fage", "%6dax_age"]) {
    const browser = gatepost.openBrowser();
    const page = await browser.get(`${authorizePath(app, { state: "a b&c=ä" })}&${name}=0`);
    assertLoginPage(page);
    assert.match(page.text, /<h1>Sign in<\/h1>/);
    const response = await passLogin(browser, page, user);
    assertCode(gatepost, response, app);
    assert.equal(new URL(response.location ?? "").searchParams.get("state"), "a b&c=ä");
  }
});

test("the other parameters are the same after the login as before", async () => {
  const { user: { username, password }, app } = await open();
  const path = `${authorizePath(app)}&state=${"~".repeat(6_000)}`;
  for (const asked of [path, `${path}&max_age=0`]) {
    const browser = gatepost.openBrowser();
    const response = await browser.submit(await browser.get(asked), { username, password });
    assert.equal(response.location, new URL(path, response.url).href);
    assertCode(gatepost, await browser.follow(response), app);
  }
});

test("another user may sign in when the password is asked for again", async () => {
  const { app, browser, ask } = await open({ trusted: true });
  const other = await gatepost.createUser();
  assertCode(gatepost, await passLogin(browser, await ask("0"), other), app);
  assertAsksAgain(await ask("0"), other.username);
});

test("consent is asked for after the login that max_age requires", async () => {
  const { user, browser } = await open();
  const other = await gatepost.createApp();
  const page = await gatepost.authorize(browser, other, { max_age: "0", scope: "consumer" });
  const consent = await passLogin(browser, page, user);
  assertConsentPage(consent);
  assertCode(gatepost, await browser.submit(consent, {}, "allow"), other);
});

test("consent can be given only within max_age of a sign-in, and denied at any time", async () => {
  const { user, browser } = await open();
  const app = await gatepost.createApp();
  const page = await gatepost.authorize(browser, app, { max_age: "60" });
  assertConsentPage(page);
  await clock.set(5 * MINUTE_MS);
  const denied = await browser.submit(page, {}, "deny");
  assertErrorRedirect(gatepost, denied, app, { error: "access_denied" });
  const late = await browser.submit(page, {}, "allow");
  assertAsksAgain(late, user.username, 400);
  const again = await passLogin(browser, late, user);
  assertConsentPage(again);
  assertCode(gatepost, await browser.submit(again, {}, "allow"), app);
});

test("a login form is refused if its max_age was changed", async () => {
  const { user, app, browser, ask } = await open();
  const form = (await ask("0")).forms()[0];
  assert.ok(form);
  const action = form.action.replace("max_age=0", "max_age=9999");
  const { username, password } = user;
  const fields = { username, password };
  const page = await browser.submit(await ask("0"), fields, undefined, { ...form, action });
  assert.equal(page.status, 400, page.text);
  assertCode(gatepost, await ask("9999"), app);
});

const BAD = ["-1", "1.5", "1e3", "0x10", "abc", "+5", " 5", "5 ", "5,6", "٣", "Infinity", "NaN"];
for (const value of BAD) {
  test(`max_age=${value} is an invalid request`, async () => {
    const { app, ask } = await open();
    assertErrorRedirect(gatepost, await ask(value), app, { error: "invalid_request" });
  });
}

test("max_age may be empty, have leading zeros and be huge, but not be sent twice", async () => {
  const { app, browser, ask } = await open();
  for (const value of ["0600", "9".repeat(400)]) assertCode(gatepost, await ask(value), app);
  const path = authorizePath(app);
  assertCode(gatepost, await browser.get(`${path}&max_age=`), app);
  const twice = await browser.get(`${path}&max_age=1&max_age=1`);
  assertErrorRedirect(gatepost, twice, app, { error: "invalid_request" });
});
