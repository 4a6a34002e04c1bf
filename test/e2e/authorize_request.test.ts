import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { goodRedirects, redirectAttacks } from "../corpus/redirect_uris.ts";
import {
  assertCode,
  assertErrorPage,
  assertErrorRedirect,
  assertLoginPage,
  passLogin,
  readCallback,
} from "../helpers/authorize_pages.ts";
import type { Client } from "../helpers/http_client.ts";
import { authorizePath, bearer, newPkce } from "../helpers/requests.ts";
import { readTokens } from "../helpers/responses.ts";
import { startAuthorizeStage } from "./authorize_stage.ts";

type Fields = Readonly<Record<string, string>>;

const PAGE = "/authorization/authorize";

const { gatepost, user, app, trustedApp } = await startAuthorizeStage();
after(() => gatepost.stop());

const openLoggedIn = () => gatepost.openLoggedIn(trustedApp, user);

describe("an authorization request whose redirect URI cannot be trusted gets an error page " +
  "(RFC 6749 §4.1.2.1)", () => {
  const cases: [what: string, query: () => string][] = [
    ["no parameters", () => ""],
    ["no client_id", () => `redirect_uri=${app.redirectUri}`],
    ["an empty client_id", () => `client_id=&redirect_uri=${app.redirectUri}`],
    ["an unknown client_id", () => `client_id=aunknown&redirect_uri=${app.redirectUri}`],
    ["the built-in app login", () => `client_id=login&redirect_uri=${app.redirectUri}`],
    ["client_id twice", () =>
      `client_id=${app.id}&client_id=${app.id}&redirect_uri=${app.redirectUri}`],
    ["client_id in another case", () =>
      `client_id=${app.id.toUpperCase()}&redirect_uri=${app.redirectUri}`],
    ["no redirect_uri", () => `client_id=${app.id}`],
    ["an empty redirect_uri", () => `client_id=${app.id}&redirect_uri=`],
    ["redirect_uri twice", () =>
      `client_id=${app.id}&redirect_uri=${app.redirectUri}&redirect_uri=${app.redirectUri}`],
    ["redirect_uri twice, the second one foreign", () =>
      `client_id=${app.id}&redirect_uri=${app.redirectUri}&redirect_uri=https://evil.example/`],
    ["redirect_uri twice, once with its name escaped", () =>
      `client_id=${app.id}&redirect_uri=${app.redirectUri}&redirect%5furi=https://evil.example/`],
    ["a foreign redirect_uri", () => `client_id=${app.id}&redirect_uri=https://evil.example/cb`],
    ["an invalid percent-encoding anywhere", () =>
      `client_id=${app.id}&redirect_uri=${app.redirectUri}&state=%zz`],
  ];
  for (const [what, query] of cases) {
    test(what, async () => {
      const browser = await openLoggedIn();
      assertErrorPage(await browser.get(`${PAGE}?${query()}`));
      const headers = { "sec-fetch-site": "same-origin" };
      const posted = await browser.postForm(`${PAGE}?${query()}`, { decision: "allow" }, headers);
      assertErrorPage(posted);
    });
  }

  test("a disabled app", async () => {
    const disabled = await gatepost.createApp();
    await gatepost.change(disabled, { status: "disabled" });
    assertErrorPage(await gatepost.authorize(gatepost.openBrowser(), disabled));
  });

  test("that names the app and the value, and says which rule the value breaks", async () => {
    const name = "Harbour & Orders";
    const listed = await gatepost.createApp({ name, redirect_uris: ["https://app.example/cb"] });
    const open = await gatepost.createApp({ name, url: "https://app.example/shop" });
    for (const [at, sent, rule] of [
      [listed, "https://app.example/other", "is not one of the app&#39;s redirect_uris."],
      [open, "https://app.example/other", "is not at or below https://app.example/shop, in"],
      [open, "https://app.example/<b>", "is not at or below"],
    ] as const) {
      const response = await gatepost.authorize(gatepost.api, at, { redirect_uri: sent });
      assertErrorPage(response);
      assert.ok(response.text.includes(`redirect_uri ${rule}`), response.text);
      assert.ok(response.text.includes("Harbour &amp; Orders"));
      assert.ok(response.text.includes(sent.replace("<b>", "&lt;b&gt;")));
      assert.ok(!response.text.includes(`"${sent}`), "as text, not as a link");
    }
  });

  for (const { app: rule, cases: uris } of redirectAttacks) {
    test(`every bad redirect URI of an app at "${rule.url}"`, async () => {
      const fields = { name: "x", url: rule.url, redirect_uris: listed(rule) };
      const headers = bearer(gatepost.adminToken);
      const made = await gatepost.api.postJson("/backend/app", fields, headers);
      if (made.status !== 201) return assert.equal(made.status, 400, "no such app can be made");
      const { client_id }: { client_id: string } = JSON.parse(made.text);
      for (const [raw, what] of uris) {
        const query = new URLSearchParams({ client_id, redirect_uri: raw });
        const response = await gatepost.api.get(`${PAGE}?${query}`);
        const isTooLong = raw.length > 16_000; // longer than any request line may be
        assert.equal(response.status, isTooLong ? 431 : 400, `${what}: ${raw.slice(0, 200)}`);
        assert.equal(response.headers.get("location"), null, what);
      }
    });
  }

  for (const { app: rule, cases: uris } of goodRedirects) {
    test(`but not for good URIs of an app at "${rule.url}" with ${rule.redirectUris.length} listed`,
      async () => {
        const at = await gatepost.createApp({ url: rule.url, redirect_uris: listed(rule) });
        for (const [raw, what] of uris) {
          const browser = gatepost.openBrowser();
          const response = await gatepost.authorize(browser, at, { redirect_uri: raw });
          assert.equal(response.status, 200, `${what}: ${raw.slice(0, 200)}`);
        }
      });
  }
});

describe("other errors of an authorization request go to the app (RFC 6749 §4.1.2.1):", () => {
  const { challenge } = newPkce();
  const { code_challenge } = challenge;
  const cases: [what: string, query: Fields | string, error: string][] = [
    ["response_type token", { response_type: "token" }, "unsupported_response_type"],
    ["response_type id_token", { response_type: "id_token" }, "unsupported_response_type"],
    ["response_type code token", { response_type: "code token" }, "unsupported_response_type"],
    ["response_type CODE", { response_type: "CODE" }, "unsupported_response_type"],
    ["response_mode fragment", { response_mode: "fragment" }, "invalid_request"],
    ["response_mode form_post", { response_mode: "form_post" }, "invalid_request"],
    ["a scope that the app may not have", { scope: "other" }, "invalid_scope"],
    ["such a scope beside allowed ones", { scope: "consumer,other" }, "invalid_scope"],
    ["scope backend, which the app may not have", { scope: "backend" }, "invalid_scope"],
    ["an invalid scope name", { scope: 'con"sumer' }, "invalid_scope"],
    ["a code_challenge without a method (RFC 7636 §4.3: plain)", { code_challenge },
      "invalid_request"],
    ["a method without a code_challenge", { code_challenge_method: "S256" }, "invalid_request"],
    ["code_challenge_method plain", { code_challenge, code_challenge_method: "plain" },
      "invalid_request"],
    ["code_challenge_method s256", { code_challenge, code_challenge_method: "s256" },
      "invalid_request"],
    ["a challenge that is too short", { ...challenge, code_challenge: "short" }, "invalid_request"],
    ["a challenge with padding", { ...challenge, code_challenge: `${code_challenge}=` },
      "invalid_request"],
    ["a challenge in hexadecimal", { ...challenge, code_challenge: "ab".repeat(32) },
      "invalid_request"],
    ["another resource (RFC 8707 §2)", { resource: "https://other.example" }, "invalid_target"],
    ["scope twice", "scope=consumer&scope=consumer", "invalid_request"],
    ["response_type twice", "response_type=code&response_type=code", "invalid_request"],
    ["code_challenge twice",
      `code_challenge=${code_challenge}&code_challenge=x&code_challenge_method=S256`,
      "invalid_request"],
  ];
  for (const [what, query, error] of cases) {
    test(`${what}: ${error}, before a login`, async () => {
      const more = typeof query === "string" ? query : new URLSearchParams(query).toString();
      const path = `${authorizePath(app, { state: "s 1" })}&${more}`;
      const response = await gatepost.api.get(path);
      assertErrorRedirect(gatepost, response, app, { error, state: "s 1" });
    });
  }

  test("state twice: invalid_request, without a state", async () => {
    const response = await gatepost.api.get(`${authorizePath(app, { state: "1" })}&state=2`);
    assertErrorRedirect(gatepost, response, app, { error: "invalid_request" });
  });

  test("a public app without PKCE: invalid_request (RFC 9700 §2.1.1)", async () => {
    const publicApp = await gatepost.createApp({ type: "public", trusted: true });
    const response = await gatepost.authorize(gatepost.api, publicApp);
    assertErrorRedirect(gatepost, response, publicApp, { error: "invalid_request" });
  });

  test("an app that may not use the grant: unauthorized_client, with advice", async () => {
    const other = await gatepost.createApp({ grants: ["client_credentials"] });
    const response = await gatepost.authorize(gatepost.api, other);
    assertErrorRedirect(gatepost, response, other, { error: "unauthorized_client" });
    const description = readCallback(gatepost, response, other).get("error_description") ?? "";
    assert.match(description, /add authorization_code to the grants of the app/);
  });

  test("no scope that the user has: invalid_scope, after the login", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app, { scope: "stock", state: "x" });
    assertLoginPage(page);
    const response = await passLogin(browser, page, user);
    assertErrorRedirect(gatepost, response, app, { error: "invalid_scope", state: "x" });
  });

  test("the user denies: access_denied", async () => {
    const browser = await openLoggedIn();
    const page = await gatepost.authorize(browser, app, { state: "x" });
    const response = await browser.submit(page, {}, "deny");
    assertErrorRedirect(gatepost, response, app, { error: "access_denied", state: "x" });
  });
});

describe("an authorization request may", () => {
  const cases: [what: string, parameters: Fields][] = [
    ["leave response_type out", {}],
    ["send response_type=code", { response_type: "code" }],
    ["send an empty response_type", { response_type: "" }],
    ["send response_mode=query, the default", { response_mode: "query" }],
    ["send empty values", { scope: "", state: "", code_challenge: "", resource: "" }],
    ["have unknown parameters", { prompt: "none", x: "1", "": "y" }],
    ["use PKCE", newPkce().challenge],
    ["separate scopes by commas", { scope: "consumer,orders" }],
  ];
  for (const [what, parameters] of cases) {
    test(what, async () => {
      const response = await gatepost.authorize(await openLoggedIn(), trustedApp, parameters);
      assertCode(gatepost, response, trustedApp);
    });
  }

  test("name this service as its resource (RFC 8707 §2)", async () => {
    const parameters = { resource: gatepost.issuer };
    const response = await gatepost.authorize(await openLoggedIn(), trustedApp, parameters);
    assertCode(gatepost, response, trustedApp);
  });
});

describe("the redirect back to the app", () => {
  let browser: Client;
  before(async () => {
    browser = await openLoggedIn();
  });

  test("is a 303 that is not cached and sends no referrer (RFC 9700 §4.12)", async () => {
    const response = await gatepost.authorize(browser, trustedApp);
    assert.equal(response.status, 303);
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.equal(response.headers.get("referrer-policy"), "no-referrer");
    assert.equal(response.text, "");
  });

  test("carries only code and iss if the request had no state", async () => {
    const response = await gatepost.authorize(browser, trustedApp);
    const parameters = readCallback(gatepost, response, trustedApp);
    assert.deepEqual([...parameters.keys()].sort(), ["code", "iss"]);
  });

  const states = [
    "xyz",
    " ",
    "a b",
    "a+b",
    "100%",
    "%20",
    "&code=evil",
    "a=b&c=d#e?f/g",
    "\"'<>",
    "{}[]|\\^`",
    "\r\nSet-Cookie: x=y",
    "\t",
    "\0",
    "ü€😀",
    "\u202e",
    "é vs é",
    "../..",
    "x".repeat(4000),
  ];
  for (const state of states) {
    test(`carries state ${JSON.stringify(state.slice(0, 24))} exactly as given`, async () => {
      const response = await gatepost.authorize(browser, trustedApp, { state });
      const parameters = readCallback(gatepost, response, trustedApp);
      assert.equal(parameters.get("state"), state);
      assert.deepEqual([...parameters.keys()].sort(), ["code", "iss", "state"]);
      // A decoder that does not know "+" must read the same.
      const [, raw = ""] = /[?&]state=([^&]*)/.exec(response.headers.get("location") ?? "") ?? [];
      assert.equal(decodeURIComponent(raw), state);
    });

    test(`carries state ${JSON.stringify(state.slice(0, 24))} exactly with an error`, async () => {
      const response = await gatepost.authorize(browser, app, { state, scope: "other" });
      assertErrorRedirect(gatepost, response, app, { error: "invalid_scope", state });
    });
  }

  test("keeps the redirect URI's own query", async () => {
    const redirect_uri = `${trustedApp.redirectUri}?tenant=7&x=%2F%20`;
    const response = await gatepost.authorize(browser, trustedApp, { redirect_uri });
    assert.ok(response.headers.get("location")?.startsWith(`${redirect_uri}&code=`));
  });

  test("replaces code, state, iss and error in that query", async () => {
    const query = "code=evil&iss=evil&state=evil&error=evil&error_description=evil&%63ode=evil&a=1";
    const redirect_uri = `${trustedApp.redirectUri}?${query}`;
    const response = await gatepost.authorize(browser, trustedApp, { redirect_uri });
    const location = response.headers.get("location") ?? "";
    assert.ok(!location.includes("evil"), location);
    const parameters = readCallback(gatepost, response, trustedApp);
    assert.deepEqual([...parameters.keys()].sort(), ["a", "code", "iss"]);
  });

  test("carries a new code each time", async () => {
    const codes = new Set<string | null>();
    for (let count = 0; count < 5; count++) {
      const response = await gatepost.authorize(browser, trustedApp);
      codes.add(readCallback(gatepost, response, trustedApp).get("code"));
    }
    assert.equal(codes.size, 5);
  });

  test("goes to the port that a loopback app named (RFC 8252 §7.3)", async () => {
    const native = await gatepost.createApp({ type: "public", url: "http://127.0.0.1" });
    const redirect_uri = "http://127.0.0.1:51004/cb";
    const pair = newPkce();
    const parameters = { ...pair.challenge, redirect_uri };
    const callback = await gatepost.allow(gatepost.openBrowser(), native, user, parameters);
    assert.equal(callback.origin + callback.pathname, redirect_uri);
    const code = callback.searchParams.get("code") ?? "";
    const fields = { grant_type: "authorization_code", code, redirect_uri, ...pair.verifier };
    readTokens(await gatepost.token(native, fields));
  });
});

function listed({ redirectUris }: { readonly redirectUris: readonly string[] }) {
  return redirectUris.length > 0 ? redirectUris : null;
}
