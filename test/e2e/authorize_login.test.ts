import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { assertConsentPage, assertLoginPage, passLogin } from "../helpers/authorize_pages.ts";
import { PASSWORD, type TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";
import { bearer, newAddress } from "../helpers/requests.ts";
import { startAuthorizeStage } from "./authorize_stage.ts";

const { gatepost, user, app, trustedApp } = await startAuthorizeStage();
after(() => gatepost.stop());

const openLoggedIn = (as = user) => gatepost.openLoggedIn(trustedApp, as);

/** Signs the browser's user out, and returns the login page. */
async function signOut(browser: Client): Promise<ClientResponse> {
  return browser.submit(await gatepost.authorize(browser, app), {}, "switch");
}

describe("the login page", () => {
  test("is shown to an anonymous browser", async () => {
    assertLoginPage(await gatepost.authorize(gatepost.openBrowser(), app));
  });

  test("shows the name and the origin of the app", async () => {
    const asking = await gatepost.createApp({ name: "Harbour <Orders>", url: "https://h.example" });
    const { text } = await gatepost.authorize(gatepost.openBrowser(), asking);
    for (const shown of ["Harbour &lt;Orders&gt;", "https://h.example"]) {
      assert.ok(text.includes(shown), text);
    }
  });

  test("fills in login_hint until the user types another name or switches", async () => {
    const browser = gatepost.openBrowser();
    const hint = { login_hint: `"${user.username}` };
    const page = await gatepost.authorize(browser, app, hint);
    assert.equal(page.forms()[0]?.fields["username"], hint.login_hint);
    const again = await browser.submit(page, { username: "somebody", password: "x" });
    assert.equal(again.forms()[0]?.fields["username"], "somebody");
    const consent = await passLogin(browser, page, user);
    const switched = await browser.submit(consent, {}, "switch");
    assert.equal(switched.forms()[0]?.fields["username"], "");
  });

  test("comes again after a wrong password, with the user name but no password", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    const { username } = user;
    const again = await browser.submit(page, { username, password: "not the password" });
    assert.ok(again.status >= 400 && again.status < 500, String(again.status));
    assertLoginPage(again, again.status);
    assert.equal(again.forms()[0]?.fields["username"], username);
    assert.equal(again.forms()[0]?.fields["password"], "");
    assert.ok(!again.text.includes("not the password"));
    assertConsentPage(await passLogin(browser, again, user));
  });

  test("shows the same for a wrong password, an unknown user and a disabled user", async () => {
    const disabled = await gatepost.createUser();
    await gatepost.change(disabled, { status: "disabled" });
    const texts = new Set<string>();
    for (const { username, password } of [
      { username: user.username, password: "not the password" },
      { username: "nobody-at-all", password: PASSWORD },
      disabled,
    ]) {
      const browser = gatepost.openBrowser();
      const page = await gatepost.authorize(browser, app);
      const again = await browser.submit(page, { username, password });
      const neutral = again.text
        .replaceAll(username, "")
        .replace(/name="csrf" value="[^"]*"/, "");
      texts.add(`${again.status} ${neutral}`);
    }
    assert.equal(texts.size, 1);
  });

  test("is throttled together with the login endpoint, and sends Retry-After", async () => {
    const victim = await gatepost.createUser();
    const from = { "x-forwarded-for": newAddress() };
    const { username } = victim;
    for (let count = 0; count < 10; count++) {
      await gatepost.api.postJson("/consumer/login", { username, password: "wrong" }, from);
    }
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    const fields = { ...page.forms()[0]?.fields, username, password: victim.password };
    const headers = { ...from, "sec-fetch-site": "same-origin" };
    const refused = await browser.postForm(page.url, fields, headers);
    assertLoginPage(refused, 429);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assertConsentPage(await passLogin(browser, refused, victim));
  });

  test("ignores the address limit in a browser where the user logged in before", async () => {
    const [one, other] = [await gatepost.createUser(), await gatepost.createUser()];
    const browser = await openLoggedIn(one);
    await passLogin(browser, await signOut(browser), other);
    let page = await signOut(browser);
    const from = { "x-forwarded-for": newAddress(), "sec-fetch-site": "same-origin" };
    for (let count = 0; count < 50; count++) {
      const nobody = { username: `nobody-${count}`, password: PASSWORD };
      await gatepost.api.postJson("/consumer/login", nobody, from);
    }
    const submit = ({ username, password }: TestUser, at: Client) => {
      const fields = { ...page.forms()[0]?.fields, username, password };
      return at.postForm(page.url, fields, from);
    };
    const stranger = gatepost.openBrowser();
    assertLoginPage(await submit(await gatepost.createUser(), browser), 429);
    for (const known of [one, other]) {
      const wrong = { ...known, password: "not the password" };
      assertLoginPage(await submit(wrong, browser), 403);
      const cookie = browser.cookies().map(({ name, value }) => `${name}=${value}`).join("; ");
      const altered = cookie.replaceAll(/\.(.)/g, (_, first) => first === "A" ? ".B" : ".A");
      const fields = { ...page.forms()[0]?.fields, username: known.username, password: PASSWORD };
      assertLoginPage(await stranger.postForm(page.url, fields, { ...from, cookie: altered }), 429);
      assert.equal((await submit(known, browser)).status, 303);
      page = await signOut(browser);
    }
  });

  test("remembers the browser in an HttpOnly cookie that does not name the user", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    const { username, password } = user;
    const response = await browser.submit(page, { username, password });
    const [, device = "", ...more] = response.headers.getSetCookie();
    assert.equal(more.length, 0);
    const [pair = "", ...attributes] = device.split("; ");
    assert.match(pair, /^gatepost-[\w-]{8}-device=[\w.-]+$/);
    assert.deepEqual(attributes, ["Max-Age=15552000", "Path=/", "HttpOnly", "SameSite=Lax"]);
    assert.ok(!device.includes(username) && !device.includes(user.id));
  });

  test("accepts the user name in upper case", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    const username = user.username.toUpperCase();
    assertConsentPage(await passLogin(browser, page, { ...user, username }));
  });
});

describe("a session", () => {
  test("skips the login page", async () => {
    assertConsentPage(await gatepost.authorize(await openLoggedIn(), await gatepost.createApp()));
  });

  test("is not shared with another browser", async () => {
    await openLoggedIn();
    assertLoginPage(await gatepost.authorize(gatepost.openBrowser(), app));
  });

  const ends: [what: string, end: (of: TestUser) => Promise<unknown>][] = [
    ["the password changes", (of) => gatepost.change(of, { password: `${PASSWORD} 2` })],
    ["its user is disabled", async (of) => {
      await gatepost.change(of, { status: "disabled" });
      await gatepost.change(of, { status: "active" });
    }],
    ["its user is deleted", (of) =>
      gatepost.api.send("DELETE", `/backend/user/${of.id}`, {
        headers: bearer(gatepost.adminToken),
      })],
  ];
  for (const [what, end] of ends) {
    test(`ends when ${what}`, async () => {
      const someone = await gatepost.createUser();
      const browser = await openLoggedIn(someone);
      await end(someone);
      assertLoginPage(await gatepost.authorize(browser, trustedApp));
    });
  }

  test("does not open the API, which accepts only tokens", async () => {
    const browser = await openLoggedIn();
    assert.equal((await browser.get("/authorization/whoami")).status, 401);
    assert.equal((await browser.get("/consumer/subscription")).status, 401);
  });
});
