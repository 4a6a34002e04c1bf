import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  checkRedirectUri,
  isImpersonable,
  originOf,
  parseAppUrl,
  redirectWith,
} from "../../src/oauth/redirect_uri.ts";
import {
  badAppUrls,
  goodAppUrls,
  goodRedirects,
  redirectAttacks,
  type RedirectTable,
} from "../corpus/redirect_uris.ts";

const CALLBACK = "https://app.example/cb";

describe("checkRedirectUri() accepts (RFC 6749 §3.1.2, RFC 8252 §7.3)", () => {
  for (const { app, raw, what } of rows(goodRedirects)) {
    test(`${what}, for ${app.url}`, () => assert.equal(checkRedirectUri(raw, app), true, raw));
  }
});

describe("checkRedirectUri() refuses (RFC 6749 §3.1.2, RFC 9700 §2.1 and §4.1)", () => {
  for (const { app, raw, what } of rows(redirectAttacks)) {
    test(`${what}, for ${app.url}`, () => assert.equal(checkRedirectUri(raw, app), false, raw));
  }
});

const IMPERSONABLE = ["http://localhost:8123/cb", "http://app.localhost/cb", "http://127.0.0.1/cb",
  "http://127.8.9.10/cb", "http://[::1]:80/cb", "https://localhost/cb", "com.example.app:/cb"];
const OWN = [CALLBACK, "https://localhost.example/cb", "https://notlocalhost/cb",
  "https://127.0.0.1.example/cb", "https://app.example/localhost"];

test("isImpersonable() is true for public apps whose code others may get (RFC 8252 §8.6)", () => {
  for (const uri of IMPERSONABLE) assert.ok(isImpersonable({ type: "public" }, uri), uri);
  for (const uri of OWN) assert.ok(!isImpersonable({ type: "public" }, uri), uri);
  for (const uri of IMPERSONABLE) assert.ok(!isImpersonable({ type: "confidential" }, uri), uri);
});

test("originOf() returns the origin, or the scheme if there is no origin", () => {
  assert.equal(originOf("com.example.app:/cb"), "com.example.app:");
  assert.equal(originOf(`${CALLBACK}?a=b`), "https://app.example");
});

test("the corpus holds at least 150 different attacks", () => {
  const attacks = new Set(rows(redirectAttacks).map(({ app, raw }) => JSON.stringify([app, raw])));
  assert.equal(attacks.size, rows(redirectAttacks).length);
  assert.ok(attacks.size >= 150, `${attacks.size}`);
});

test("checkRedirectUri() decides on a hostile megabyte in milliseconds", () => {
  const app = { url: "https://app.example", redirectUris: [] };
  const startMs = performance.now();
  assert.equal(checkRedirectUri(`https://app.example/${"%2e/".repeat(250_000)}`, app), false);
  assert.ok(performance.now() - startMs < 100);
});

describe("parseAppUrl() accepts (RFC 9700 §2.6, RFC 8252 §7.3)", () => {
  for (const url of goodAppUrls) {
    test(url, () => assert.equal(parseAppUrl(url)?.origin, new URL(url).origin));
  }
});

describe("parseAppUrl() refuses (RFC 9700 §2.6, RFC 8252 §7.3)", () => {
  for (const [url, what] of badAppUrls) {
    test(what, () => assert.equal(parseAppUrl(url), undefined, url));
  }
});

describe("redirectWith() puts the response into the query (RFC 6749 §4.1.2, RFC 9207 §2)", () => {
  type Params = Record<string, string | undefined>;
  const table: [what: string, uri: string, params: Params, to: string][] = [
    ["adds a query", CALLBACK, { code: "c", state: "s" }, `${CALLBACK}?code=c&state=s`],
    ["leaves out undefined", CALLBACK, { code: "c", state: undefined }, `${CALLBACK}?code=c`],
    ["keeps an empty value", CALLBACK, { state: "" }, `${CALLBACK}?state=`],
    ["adds nothing without parameters", CALLBACK, {}, CALLBACK],
    ["fills an empty query", `${CALLBACK}?`, { code: "c" }, `${CALLBACK}?code=c`],
    ["extends a query", `${CALLBACK}?a=b`, { code: "c" }, `${CALLBACK}?a=b&code=c`],
    ["keeps odd bytes", `${CALLBACK}?a=+%2f&&b;c=d?`, { code: "c" },
      `${CALLBACK}?a=+%2f&&b;c=d?&code=c`],
    ["extends a bare origin", "https://app.example", { code: "c" }, "https://app.example?code=c"],
    ["replaces a code", `${CALLBACK}?code=evil&a=b`, { code: "c" }, `${CALLBACK}?a=b&code=c`],
    ["replaces each code", `${CALLBACK}?code=1&code=2`, { code: "c" }, `${CALLBACK}?code=c`],
    ["replaces a code without a value", `${CALLBACK}?code`, { code: "c" }, `${CALLBACK}?code=c`],
    ["replaces an encoded code", `${CALLBACK}?%63od%65=x`, { code: "c" }, `${CALLBACK}?code=c`],
    ["replaces a state", `${CALLBACK}?state=evil`, { state: "s" }, `${CALLBACK}?state=s`],
    ["removes a state that was not given", `${CALLBACK}?state=evil`, { code: "c" },
      `${CALLBACK}?code=c`],
    ["removes an issuer", `${CALLBACK}?iss=evil`, { code: "c" }, `${CALLBACK}?code=c`],
    ["removes errors from a success",
      `${CALLBACK}?error=x&error_description=y&error_uri=z&a=b`, { code: "c" },
      `${CALLBACK}?a=b&code=c`],
    ["removes a code from an error", `${CALLBACK}?code=x`, { error: "access_denied" },
      `${CALLBACK}?error=access_denied`],
    ["replaces what only some parsers read as a code",
      `${CALLBACK}?code[]=1&%20code=2&+code=3&[code]=4&code[a]=5&%5Bstate%5D=6&a[code]=b&a=b`,
      { code: "c" }, `${CALLBACK}?a[code]=b&a=b&code=c`],
    ["replaces a code in any case, since ASP.NET ignores case",
      `${CALLBACK}?CODE=1&State=2&ISS=3&Error_Description=4&a=b`, { code: "c" },
      `${CALLBACK}?a=b&code=c`],
    ["replaces a code after a semicolon, which older parsers read as an ampersand",
      `${CALLBACK}?a=b;code=1&c=d`, { code: "c" }, `${CALLBACK}?c=d&code=c`],
    ["keeps names that only begin like a code", `${CALLBACK}?codes=1&?code=2`, { code: "c" },
      `${CALLBACK}?codes=1&?code=2&code=c`],
    ["replaces what it adds itself", `${CALLBACK}?a=1&b=2`, { a: "3" }, `${CALLBACK}?b=2&a=3`],
    ["replaces a lone surrogate", CALLBACK, { state: "\ud800" }, `${CALLBACK}?state=%EF%BF%BD`],
    ["encodes the value", CALLBACK, { iss: "https://as.example/a" },
      `${CALLBACK}?iss=https%3A%2F%2Fas.example%2Fa`],
  ];
  for (const [what, uri, params, to] of table) {
    test(what, () => assert.equal(redirectWith(uri, params), to));
  }
});

describe("redirectWith() carries state exactly (RFC 6749 §4.1.2)", () => {
  const states = [
    "a b", "a+b", "a%20b", "%", "%zz", "a&b=c", "a#b?c", "\"<'>\\^`{|}", "\u00fc\u20ac\u{1f600}",
    "\u0000\r\n\t", "https://evil.example/?code=x", "!'()*~-._", "x".repeat(2000), "=", " ",
  ];
  for (const state of states) {
    test(JSON.stringify(state.slice(0, 30)), () => {
      const to = redirectWith(`${CALLBACK}?a=b`, { code: "c", state });
      const query = new URL(to).searchParams;
      assert.equal(query.get("state"), state);
      assert.equal(query.get("code"), "c");
      assert.equal(query.get("a"), "b");
      assert.match(to, /^[\x21-\x7e]+$/);
      assert.equal(new URL(to).href, to);
      const raw = /[?&]state=([^&]*)/.exec(to)?.[1] ?? "";
      assert.equal(decodeURIComponent(raw), state, "for decoders that do not know the plus sign");
    });
  }
});

function rows(tables: readonly RedirectTable[]) {
  return tables.flatMap(({ app, cases }) => cases.map(([raw, what]) => ({ app, raw, what })));
}
