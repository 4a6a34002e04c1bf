import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  assertCode,
  assertConsentPage,
  assertErrorPage,
  assertLoginPage,
  passLogin,
} from "../helpers/authorize_pages.ts";
import type { TestApp, TestUser } from "../helpers/gatepost.ts";
import { authorizePath, basicAuth, bearer, newPkce } from "../helpers/requests.ts";
import { readObject, readTokens } from "../helpers/responses.ts";
import { startAuthorizeStage } from "./authorize_stage.ts";

type Fields = Readonly<Record<string, string>>;

const { gatepost, user, app, trustedApp } = await startAuthorizeStage();
after(() => gatepost.stop());

const openLoggedIn = (as = user) => gatepost.openLoggedIn(trustedApp, as);

describe("the consent page", () => {
  test("names the app, its origin, the user and each scope that will be granted", async () => {
    const browser = gatepost.openBrowser();
    const page = await passLogin(browser, await gatepost.authorize(browser, app), user);
    assertConsentPage(page);
    for (const word of ["Harbour Orders", "https://app.example", user.username, "orders"]) {
      assert.ok(page.text.includes(word), word);
    }
    assert.ok(!page.text.includes("stock"), "the user has no scope stock");
  });

  test("separates new scopes from those allowed before", async () => {
    const someone = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const browser = gatepost.openBrowser();
    await gatepost.allow(browser, app, someone, { scope: "consumer" });
    const page = await gatepost.authorize(browser, app, { scope: "consumer orders" });
    assert.match(page.text, /id="new"[^]*>orders<[^]*id="before"[^]*>consumer</);
  });

  test("grants the scopes that it showed", async () => {
    const callback = await gatepost.allow(gatepost.openBrowser(), app, user);
    const code = callback.searchParams.get("code") ?? "";
    const fields = { grant_type: "authorization_code", code };
    const tokens = readTokens(await gatepost.token(app, fields));
    assert.deepEqual(tokens.scope.split(" ").sort(), ["consumer", "orders"]);
  });

  test("lets another user log in", async () => {
    const [one, other] = [await gatepost.createUser(), await gatepost.createUser()];
    const browser = await openLoggedIn(one);
    const page = await gatepost.authorize(browser, app);
    assert.ok(page.text.includes(one.username));
    const switched = await browser.submit(page, {}, "switch");
    const login = switched.status === 303 ? await browser.follow(switched) : switched;
    assertLoginPage(login);
    const next = await passLogin(browser, login, other);
    assertConsentPage(next);
    assert.ok(next.text.includes(other.username) && !next.text.includes(one.username));
  });

  test("ends the session when the user switches, and audits that", async () => {
    const one = await gatepost.createUser();
    const browser = await openLoggedIn(one);
    const [before] = browser.cookies();
    const page = await gatepost.authorize(browser, app);
    await browser.submit(page, {}, "switch");
    const cookie = `${before?.name}=${before?.value}`;
    assertLoginPage(await gatepost.api.get(authorizePath(trustedApp), { cookie }));
    assertLoginPage(await gatepost.authorize(browser, trustedApp));
    const path = `/backend/audit?actor=${one.id}&action=session.end`;
    const { items } = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
    assert.ok(Array.isArray(items) && items.length === 1);
    assert.match(JSON.stringify(items), /"target":"b[0-9a-f]{24}","address":"10\./);
  });

  test("comes again and grants nothing if its CSRF token is invalid", async () => {
    const browser = await openLoggedIn(await gatepost.createUser());
    const page = await gatepost.authorize(browser, app);
    const response = await browser.submit(page, { csrf: "stale" }, "allow");
    assert.equal(response.status, 400);
    assert.match(response.text, /open for too long/);
    const values = response.forms()[0]?.buttons.map(({ value }) => value) ?? [];
    assert.ok(values.includes("allow"), response.text);
    assertCode(gatepost, await browser.submit(response, {}, "allow"), app);
  });

  test("grants nothing to a user who was disabled while it was open", async () => {
    const leaver = await gatepost.createUser();
    const browser = await openLoggedIn(leaver);
    const page = await gatepost.authorize(browser, app);
    await gatepost.change(leaver, { status: "disabled" });
    const response = await browser.submit(page, {}, "allow");
    assert.doesNotMatch(response.location ?? "", /[?&]code=/);
  });

  test("grants no scope that the user lost while it was open", async () => {
    const demoted = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const browser = await openLoggedIn(demoted);
    const page = await gatepost.authorize(browser, app, { scope: "orders" });
    await gatepost.change(demoted, { scopes: ["consumer"] });
    const response = await browser.submit(page, {}, "allow");
    assert.doesNotMatch(response.location ?? "", /[?&]code=/);
  });

  test("grants nothing to an app that was disabled while it was open", async () => {
    const short = await gatepost.createApp();
    const browser = await openLoggedIn();
    const page = await gatepost.authorize(browser, short);
    await gatepost.change(short, { status: "disabled" });
    assertErrorPage(await browser.submit(page, {}, "allow"));
  });
});

describe("a consent is remembered", () => {
  let someone: TestUser;
  let at: TestApp;
  before(async () => {
    someone = await gatepost.createUser({ scopes: ["consumer", "orders", "stock"] });
    at = await gatepost.createApp({ scopes: ["consumer", "orders", "stock"] });
    const scope = "consumer orders";
    await gatepost.allow(gatepost.openBrowser(), at, someone, { scope });
  });
  const visit = async (parameters: Fields, by = someone, to = at) =>
    gatepost.authorize(await openLoggedIn(by), to, parameters);

  test("for the same scopes", async () => {
    const response = await visit({ scope: "orders consumer" });
    assertCode(gatepost, response, at);
  });

  test("for fewer scopes", async () => {
    assertCode(gatepost, await visit({ scope: "orders" }), at);
  });

  test("but not for more scopes", async () => {
    assertConsentPage(await visit({ scope: "orders stock" }));
    assertConsentPage(await visit({}));
  });

  test("after a later consent to other scopes", async () => {
    const later = await gatepost.createUser({ scopes: ["consumer", "orders", "stock"] });
    for (const scope of ["consumer orders", "stock"]) {
      await gatepost.allow(gatepost.openBrowser(), at, later, { scope });
    }
    for (const scope of ["stock", "orders", "consumer orders stock"]) {
      assertCode(gatepost, await visit({ scope }, later), at);
    }
  });

  test("but not for another user", async () => {
    assertConsentPage(await visit({ scope: "orders" }, user));
  });

  test("but not for another app", async () => {
    assertConsentPage(await visit({ scope: "orders" }, someone, app));
  });

  for (const party of ["app", "user"] as const) {
    test(`until the ${party} loses a scope, even if the scope is given back`, async () => {
      const owner = await gatepost.createUser({ scopes: ["consumer", "orders"] });
      const own = await gatepost.createApp({ scopes: ["consumer", "orders"] });
      const browser = await openLoggedIn(owner);
      const scope = "consumer orders";
      await gatepost.allow(browser, own, owner, { scope });
      const record = party === "app" ? `app/${own.id}` : `user/${owner.id}`;
      for (const scopes of [["consumer"], ["consumer", "orders"]]) {
        const body = { scopes };
        const headers = bearer(gatepost.adminToken);
        const response = await gatepost.api.sendJson("PATCH", `/backend/${record}`, body, headers);
        assert.equal(response.status, 200, response.text);
      }
      assertConsentPage(await gatepost.authorize(browser, own, { scope }));
      assertCode(gatepost, await gatepost.authorize(browser, own, { scope: "consumer" }), own);
    });
  }

  test("but a denial is not", async () => {
    const careful = await gatepost.createUser();
    const browser = await openLoggedIn(careful);
    await browser.submit(await gatepost.authorize(browser, at), {}, "deny");
    assertConsentPage(await gatepost.authorize(browser, at));
    const path = `/backend/audit?actor=${careful.id}&action=grant.deny`;
    const { items } = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
    assert.partialDeepStrictEqual(items, [{ app: at.id, target: at.id }]);
  });
});

describe("how often a user is asked for consent:", () => {
  /** Allows an app, visits again in the same browser, and returns whether that asked again. */
  async function asksAgain(fields: Readonly<Record<string, unknown>>, scope = "consumer") {
    const someone = await gatepost.createUser({ scopes: ["consumer", "backend"] });
    const at = await gatepost.createApp({ scopes: ["consumer", "backend"], ...fields });
    const browser = await openLoggedIn(someone);
    const parameters = { scope, ...newPkce().challenge };
    await gatepost.allow(browser, at, someone, parameters);
    return (await gatepost.authorize(browser, at, parameters)).status === 200;
  }
  const table: [what: string, fields: Readonly<Record<string, unknown>>, scope: string,
    asks: boolean][] = [
    ["once for a confidential app", {}, "consumer", false],
    ["once for a public app on the web", { type: "public" }, "consumer", false],
    ["once for a confidential app on localhost", { url: "http://localhost:3000" }, "consumer",
      false],
    ["always for a public app on 127.0.0.1", { type: "public", url: "http://127.0.0.1" },
      "consumer", true],
    ["always for a public app on [::1]", { type: "public", url: "http://[::1]:9" },
      "consumer", true],
    ["always for a public app on localhost", { type: "public", url: "http://localhost" },
      "consumer", true],
    ["always for a public app on https://localhost", { type: "public", url: "https://localhost:1" },
      "consumer", true],
    ["always for a trusted public app on localhost",
      { type: "public", url: "http://localhost", trusted: true }, "consumer", true],
    ["always for scope backend", {}, "backend", true],
    ["always for scope backend and a trusted app", { trusted: true }, "consumer backend", true],
  ];
  for (const [what, fields, scope, asks] of table) {
    test(what, async () => assert.equal(await asksAgain(fields, scope), asks));
  }

  test("never for a trusted app", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, trustedApp);
    const response = await passLogin(browser, page, user);
    assertCode(gatepost, response, trustedApp);
  });

  test("a trusted app gets scope backend only from a user who has it", async () => {
    const at = await gatepost.createApp({ scopes: ["consumer", "backend"], trusted: true });
    const callback = await gatepost.allow(gatepost.openBrowser(), at, user, {
      scope: "consumer backend",
    });
    const code = callback.searchParams.get("code") ?? "";
    const fields = { grant_type: "authorization_code", code };
    assert.equal(readTokens(await gatepost.token(at, fields)).scope, "consumer");
  });
});

test("the code flow works with only the required parameters", async () => {
  const plain = await gatepost.createApp();
  const query = new URLSearchParams({ client_id: plain.id, redirect_uri: plain.redirectUri });
  const browser = gatepost.openBrowser();
  const page = await browser.get(`/authorization/authorize?${query}`);
  const consent = await passLogin(browser, page, user);
  const response = await browser.submit(consent, {}, "allow");
  const code = new URL(response.location ?? "").searchParams.get("code") ?? "";
  const tokens = readTokens(
    await gatepost.api.postForm(
      "/authorization/token",
      { grant_type: "authorization_code", code },
      basicAuth(plain),
    ),
  );
  assert.equal(await gatepost.isAlive(tokens.access_token), true);
});
