import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fieldsOf } from "../helpers/authorize_pages.ts";
import { queryDatabase } from "../helpers/engine.ts";
import type { TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";
import { sendSlowly } from "../helpers/raw_http.ts";
import { authorizePath } from "../helpers/requests.ts";
import { readTokens } from "../helpers/responses.ts";
import { startAuthorizeStage } from "./authorize_stage.ts";

type Fields = Readonly<Record<string, string>>;

const stage = await startAuthorizeStage();
const { gatepost, user, app, otherApp, trustedApp, isLoggedIn } = stage;
after(() => gatepost.stop());

const OWN_PAGE = { "sec-fetch-site": "same-origin", origin: "null" };

const openLoggedIn = () => gatepost.openLoggedIn(trustedApp, user);

/** Checks that the response is an error and that no code is sent to the app. */
function assertNoCode(response: ClientResponse): void {
  const location = response.headers.get("location") ?? "";
  assert.ok(!/[?&]code=/.test(location), location);
  assert.ok(response.status >= 400, String(response.status));
}

describe("a login form is refused", () => {
  const credentials = () => ({ username: user.username, password: user.password });
  const forgeries: [what: string, fields: (page: ClientResponse) => Promise<Fields>][] = [
    ["without its CSRF token", async () => credentials()],
    ["with an empty token", async () => ({ csrf: "", ...credentials() })],
    ["with the token of another browser", async () => {
      const foreign = await gatepost.authorize(gatepost.openBrowser(), app);
      return { ...fieldsOf(foreign), ...credentials() };
    }],
    ["with a changed token", async (page) => {
      const csrf = fieldsOf(page)["csrf"] ?? "";
      return { csrf: csrf.slice(0, -1) + (csrf.endsWith("A") ? "B" : "A"), ...credentials() };
    }],
    ["with the token of a consent page", async () => {
      const consent = await gatepost.authorize(await openLoggedIn(), app);
      return { ...fieldsOf(consent), ...credentials() };
    }],
  ];
  for (const [what, fields] of forgeries) {
    test(what, async () => {
      const browser = gatepost.openBrowser();
      const page = await gatepost.authorize(browser, app);
      assertNoCode(await browser.postForm(page.url, await fields(page), OWN_PAGE));
      assert.equal(await isLoggedIn(browser), false);
    });
  }

  test("without the cookie that belongs to it", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    browser.clearCookies();
    const fields = { ...fieldsOf(page), ...credentials() };
    assertNoCode(await browser.postForm(page.url, fields, OWN_PAGE));
    assert.equal(await isLoggedIn(browser), false);
  });

  test("for another authorization request", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app, { state: "1" });
    const path = authorizePath(otherApp, { state: "1" });
    const fields = { ...fieldsOf(page), ...credentials() };
    assertNoCode(await browser.postForm(path, fields, OWN_PAGE));
    assert.equal(await isLoggedIn(browser), false);
  });

  test("a second time", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    const fields = { ...fieldsOf(page), ...credentials() };
    assert.equal((await browser.postForm(page.url, fields, OWN_PAGE)).status, 303);
    assertNoCode(await browser.postForm(page.url, fields, OWN_PAGE));
  });
});

describe("a consent form is refused", () => {
  let browser: Client;
  before(async () => {
    browser = await openLoggedIn();
  });
  const consent = async (by = browser) => {
    const page = await gatepost.authorize(by, app, { scope: "consumer", state: "1" });
    assert.equal(page.status, 200);
    return page;
  };

  test("in a browser where nobody has logged in", async () => {
    const page = await consent();
    const fields = { ...fieldsOf(page), decision: "allow" };
    assertNoCode(await gatepost.openBrowser().postForm(page.url, fields, OWN_PAGE));
  });

  test("in a browser where another user has logged in", async () => {
    const page = await consent();
    const fields = { ...fieldsOf(page), decision: "allow" };
    const other = gatepost.openBrowser();
    await gatepost.allow(other, trustedApp, await gatepost.createUser());
    assertNoCode(await other.postForm(page.url, fields, OWN_PAGE));
  });

  const forgeries: [what: string, fields: (page: ClientResponse) => Promise<Fields>][] = [
    ["without its CSRF token", async () => ({})],
    ["with an empty token", async () => ({ csrf: "" })],
    ["with the token of another session of the same user", async () =>
      fieldsOf(await consent(await openLoggedIn()))],
    ["with the token of a login page", async () =>
      fieldsOf(await gatepost.authorize(gatepost.openBrowser(), app))],
  ];
  for (const [what, fields] of forgeries) {
    test(what, async () => {
      const page = await consent();
      const sent = { ...await fields(page), decision: "allow" };
      assertNoCode(await browser.postForm(page.url, sent, OWN_PAGE));
    });
  }

  const altered: [what: string, path: () => string][] = [
    ["another app", () => authorizePath(otherApp, { scope: "consumer", state: "1" })],
    ["more scopes", () => authorizePath(app, { scope: "consumer orders", state: "1" })],
    ["no scope, which means all scopes", () => authorizePath(app, { state: "1" })],
    ["another state", () => authorizePath(app, { scope: "consumer", state: "2" })],
    ["another redirect URI", () =>
      authorizePath(app, { scope: "consumer", state: "1", redirect_uri: `${app.url}/other` })],
    ["a code_challenge of the attacker", () =>
      authorizePath(app, {
        scope: "consumer",
        state: "1",
        code_challenge: "A".repeat(43),
        code_challenge_method: "S256",
      })],
    ["one more parameter", () => `${authorizePath(app, { scope: "consumer", state: "1" })}&x=1`],
  ];
  for (const [what, path] of altered) {
    test(`for a request that differs by ${what}`, async () => {
      const sent = { ...fieldsOf(await consent()), decision: "allow" };
      assertNoCode(await browser.postForm(path(), sent, OWN_PAGE));
    });
  }

  test("but not for a scope, client_id or redirect_uri of its own: it ignores these", async () => {
    const own = await gatepost.createApp({ scopes: ["consumer", "orders"] });
    const page = await gatepost.authorize(browser, own, { scope: "consumer" });
    const sent = {
      ...fieldsOf(page),
      decision: "allow",
      scope: "consumer orders",
      redirect_uri: "https://evil.example/",
      client_id: otherApp.id,
    };
    const response = await browser.postForm(page.url, sent, OWN_PAGE);
    const location = new URL(response.location ?? "");
    assert.equal(location.origin, "https://app.example");
    const code = location.searchParams.get("code") ?? "";
    const fields = { grant_type: "authorization_code", code };
    const tokens = readTokens(await gatepost.token(own, fields));
    assert.equal(tokens.scope, "consumer");
  });

  for (const decision of ["", "ALLOW", "yes", "allow deny"]) {
    test(`with the unknown decision "${decision}"`, async () => {
      const page = await gatepost.authorize(await openLoggedIn(), otherApp);
      const sent = { ...fieldsOf(page), decision };
      assertNoCode(await browser.postForm(page.url, sent, OWN_PAGE));
    });
  }

  test("with two decisions", async () => {
    const by = await openLoggedIn();
    const page = await gatepost.authorize(by, otherApp);
    const body = `${new URLSearchParams(fieldsOf(page))}&decision=deny&decision=allow`;
    const headers = { "content-type": "application/x-www-form-urlencoded", ...OWN_PAGE };
    assertNoCode(await by.send("POST", page.url, { headers, body }));
  });

  test("as a link: a decision in the query is ignored", async () => {
    const by = await openLoggedIn();
    const page = await gatepost.authorize(by, otherApp);
    const query = new URLSearchParams({ ...fieldsOf(page), decision: "allow" });
    const response = await by.get(`${authorizePath(otherApp)}&${query}`);
    assert.equal(response.status, 200);
  });
});

describe("a form of another site is refused even with a valid CSRF token (RFC 9700 §4.9)", () => {
  const headers: [what: string, headers: () => Fields][] = [
    ["Origin of another site", () => ({ origin: "https://evil.example" })],
    ["Origin of the app", () => ({ origin: "https://app.example" })],
    ["Origin of this host on another port", () => ({ origin: "http://127.0.0.1:1" })],
    ["Sec-Fetch-Site cross-site", () => ({ "sec-fetch-site": "cross-site" })],
    ["Sec-Fetch-Site same-site", () => ({ "sec-fetch-site": "same-site" })],
    ["Sec-Fetch-Site none", () => ({ "sec-fetch-site": "none" })],
    ["Sec-Fetch-Site cross-site with our own Origin", () =>
      ({ origin: new URL(gatepost.issuer).origin, "sec-fetch-site": "cross-site" })],
    ["Origin null without Sec-Fetch-Site, from a sandboxed frame", () => ({ origin: "null" })],
  ];
  for (const [what, sent] of headers) {
    test(`${what}: no login`, async () => {
      const browser = gatepost.openBrowser();
      const page = await gatepost.authorize(browser, app);
      const fields = { ...fieldsOf(page), username: user.username, password: user.password };
      assert.equal((await browser.postForm(page.url, fields, sent())).status, 403);
      assert.equal(await isLoggedIn(browser), false);
    });
    test(`${what}: no consent`, async () => {
      const browser = await openLoggedIn();
      const page = await gatepost.authorize(browser, otherApp);
      const fields = { ...fieldsOf(page), decision: "allow" };
      assert.equal((await browser.postForm(page.url, fields, sent())).status, 403);
    });
  }

  const own: [what: string, headers: () => Fields][] = [
    ["our own Origin", () => ({ origin: new URL(gatepost.issuer).origin })],
    ["our own Origin and same-origin", () =>
      ({ origin: new URL(gatepost.issuer).origin, "sec-fetch-site": "same-origin" })],
    ["Origin null and same-origin, as no-referrer makes it", () => OWN_PAGE],
    ["neither header, as from an old browser", () => ({})],
  ];
  for (const [what, sent] of own) {
    test(`a form with ${what} is accepted`, async () => {
      const browser = gatepost.openBrowser();
      const page = await gatepost.authorize(browser, app);
      const fields = { ...fieldsOf(page), username: user.username, password: user.password };
      assert.equal((await browser.postForm(page.url, fields, sent())).status, 303);
    });
  }

  for (const type of ["text/plain", "application/json", "multipart/form-data; boundary=x"]) {
    test(`a form of type ${type} is refused`, async () => {
      const browser = await openLoggedIn();
      const page = await gatepost.authorize(browser, otherApp);
      const body = new URLSearchParams({ ...fieldsOf(page), decision: "allow" }).toString();
      const sent = { "content-type": type, ...OWN_PAGE };
      assertNoCode(await browser.send("POST", page.url, { headers: sent, body }));
    });
  }
});

describe("a request that is not a navigation of a window (Fetch Metadata)", () => {
  const others: Fields[] = [
    { "sec-fetch-dest": "empty" },
    { "sec-fetch-dest": "iframe" },
    { "sec-fetch-dest": "empty", "sec-fetch-mode": "cors", "sec-fetch-site": "same-origin" },
  ];
  for (const sent of others) {
    test(`gets no form: ${JSON.stringify(sent)}`, async () => {
      const browser = await openLoggedIn();
      const page = await browser.get(authorizePath(otherApp), sent);
      assert.equal(page.status, 403);
      assert.deepEqual(page.forms(), []);
      assertNoCode(await browser.get(authorizePath(trustedApp), sent));
    });
    test(`cannot submit a form: ${JSON.stringify(sent)}`, async () => {
      const browser = await openLoggedIn();
      const page = await gatepost.authorize(browser, otherApp);
      const fields = { ...fieldsOf(page), decision: "allow" };
      assertNoCode(await browser.postForm(page.url, fields, { ...OWN_PAGE, ...sent }));
    });
  }

  test("but a navigation gets the form and submits it", async () => {
    const browser = await openLoggedIn();
    const sent = { "sec-fetch-dest": "document" };
    const page = await browser.get(authorizePath(await gatepost.createApp()), sent);
    const fields = { ...fieldsOf(page), decision: "allow" };
    const response = await browser.postForm(page.url, fields, { ...OWN_PAGE, ...sent });
    assert.equal(response.status, 303);
  });
});

describe("a consent form gives no code if its session ends while it is being sent, by", () => {
  const ENDINGS: [what: string, end: (of: TestUser, browser: Client) => Promise<unknown>][] = [
    ["a new password", (of) => gatepost.change(of, { password: "another long password" })],
    ["disabling and enabling the user", async (of) => {
      await gatepost.change(of, { status: "disabled" });
      await gatepost.change(of, { status: "active" });
    }],
    ["a sign-out in another tab", async (_, browser) =>
      browser.submit(await gatepost.authorize(browser, otherApp), {}, "switch")],
  ];
  for (const [what, end] of ENDINGS) {
    test(what, async () => {
      const victim = await gatepost.createUser();
      const browser = gatepost.openBrowser();
      await gatepost.allow(browser, trustedApp, victim);
      const page = await gatepost.authorize(browser, app);
      const [cookie] = browser.cookies();
      const finish = await sendSlowly(gatepost.url, "POST", authorizePath(app), {
        head: {
          "Content-Type": "application/x-www-form-urlencoded",
          Cookie: `${cookie?.name}=${cookie?.value}`,
        },
        body: new URLSearchParams({ ...fieldsOf(page), decision: "allow" }).toString(),
      });
      await end(victim, browser);
      const response = await finish();
      assert.equal(response.headers["location"], undefined);
      assert.match(response.body, /name="password"/);
      const { folder } = gatepost.server;
      for (const table of ["consents", "codes"]) {
        const theirs = `SELECT * FROM ${table} WHERE user = ? AND app = ?`;
        assert.deepEqual(await queryDatabase(folder, theirs, victim.id, app.id), [], table);
      }
    });
  }
});
