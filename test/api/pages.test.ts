import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import type { HttpResponse } from "../../src/base/http_message.ts";
import { frontDoor } from "../../src/api/pages/front_door.ts";
import { verifiedPage } from "../../src/api/pages/verify_page.ts";
import { malformed } from "../../src/base/problem.ts";
import {
  allowed,
  asked,
  bodyOf,
  count,
  sampleConsent,
  sampleError,
  sampleLogin,
  sampleVerify,
  site,
  titleOf,
} from "../helpers/pages.ts";

function openFrontDoor(username?: string, doors = { hasConsole: true, hasAccount: true }) {
  return frontDoor(site, "https://api.northwind.example", username, doors);
}

const pages: Readonly<Record<string, HttpResponse>> = {
  login: sampleLogin(),
  wrong: sampleLogin({ error: "wrong", username: "marta" }),
  throttled: sampleLogin({ error: "throttled", username: "marta", retryAfterSeconds: 60 }),
  busy: sampleLogin({ error: "busy" }),
  expired: sampleLogin({ error: "expired" }),
  signedOut: sampleLogin({ signedOut: true }),
  consent: sampleConsent(),
  consentBackend: sampleConsent({ scopes: asked("x", "backend") }),
  consentExpired: sampleConsent({ error: "expired" }),
  consentLoopback: sampleConsent({ app: { name: "Dev", url: "http://127.0.0.1:5173" } }),
  consentImpersonable: sampleConsent({ isImpersonable: true }),
  consentMany: sampleConsent({ scopes: asked(..."abcdefghi") }),
  consentMore: sampleConsent({ scopes: [...asked("x"), ...allowed("y")] }),
  consentDevice: sampleConsent({ userCode: "BCDF-GHJK", isImpersonable: true }),
  loginDevice: sampleLogin({ app: undefined }),
  verify: sampleVerify(),
  verifyFilled: sampleVerify({ userCode: '"<BCDF' }),
  verifyWrong: sampleVerify({ userCode: "BCDF-GHJK", error: malformed("No device waits.") }),
  verified: verifiedPage(site, true),
  verifiedDenied: verifiedPage(site, false),
  error: sampleError(),
  error403: sampleError({ status: 403 }),
  error404: sampleError({ status: 404 }),
  error500: sampleError({ status: 500 }),
  frontDoor: openFrontDoor(),
  frontDoorSignedIn: openFrontDoor("marta"),
};

for (const [name, response] of Object.entries(pages)) {
  test(`the ${name} page holds no script, no outside resource and no style attribute`, () => {
    const icon = '<link rel="icon" type="image/svg+xml" href="/favicon.ico">';
    const link = /<a href="\/[a-z./-]*"( target="_blank")?>/g;
    const body = bodyOf(response).replace(icon, "").replaceAll(link, "<a>");
    assert.doesNotMatch(body, /<script|<iframe|<img|<link|<object|<embed|javascript:/i);
    assert.doesNotMatch(body, /\s(?:src|href|style|on[a-z]+)\s*=/i);
    assert.doesNotMatch(body, /url\(|@import/i);
  });

  test(`the ${name} page has language, title, heading, landmarks and a viewport that zooms`, () => {
    const body = bodyOf(response);
    assert.match(body, /^<!doctype html>\n<html lang="en" dir="ltr">/);
    assert.match(titleOf(response), / · Northwind$/);
    for (const pattern of [/<h1>/g, /<main>/g, /<header>/g]) assert.equal(count(body, pattern), 1);
    assert.match(body, /<meta name="viewport" content="width=device-width, initial-scale=1">/);
    assert.ok(body.indexOf("<meta charset") < 100);
  });

  test(`the ${name} page has unique ids, and each reference to one has its target`, () => {
    const body = bodyOf(response);
    const ids = [...body.matchAll(/ id="([^"]*)"/g)].map((match) => match[1]);
    assert.equal(new Set(ids).size, ids.length);
    for (const match of body.matchAll(/ (?:for|aria-labelledby|aria-describedby)="([^"]*)"/g)) {
      assert.ok(ids.includes(match[1]), match[0]);
    }
    assert.equal(count(body, /<svg /g), count(body, /<svg [^>]*aria-hidden="true"/g));
  });

  test(`the ${name} page's CSP lets its one style sheet apply`, () => {
    const styles = [...bodyOf(response).matchAll(/<style>([^<]*)<\/style>/g)];
    assert.equal(styles.length, 1);
    const hash = createHash("sha256").update(styles[0]?.[1] ?? "").digest("base64");
    const policy = String(response.headers?.["Content-Security-Policy"]);
    assert.ok(policy.includes(`; style-src 'sha256-${hash}'; `));
  });
}

test("pages show the name of the service, and its host where that differs", () => {
  for (const page of Object.values(pages)) {
    assert.match(bodyOf(page), /<p>Northwind<span>api\.northwind\.example<\/span><\/p><\/header>/);
  }
  const plain = { ...site, name: site.host };
  assert.match(bodyOf(sampleLogin({ site: plain })), /<p>api\.northwind\.example<\/p><\/header>/);
  const marked = { ...site, name: "A & <b>" };
  assert.match(bodyOf(sampleLogin({ site: marked })), /<p>A &amp; &lt;b&gt;</);
});

test("the address of the icon includes the base path", () => {
  const below = { ...site, basePath: "/gate" };
  assert.ok(bodyOf(sampleLogin({ site: below })).includes('href="/gate/favicon.ico"'));
});

const hostileNames: Readonly<Record<string, string>> = {
  markup: "</bdi></p><script>alert(1)</script>",
  attribute: `" autofocus onfocus="alert(1)`,
  entity: "&lt;b&gt; &#0;",
  longWord: "W".repeat(100),
  rightToLeft: "متجر الميناء",
  override: "\u202e\u202dtxet",
  closedIsolate: "\u2069\u2069\u202eevil\u2066",
  lines: "one\r\ntwo\u2028three\u0000",
  template: "${name} {{name}} <%= name %>",
};

// The rest of the page must not depend on the name.
function withoutName(page: HttpResponse): string {
  const name = /<span class="name"><bdi>[^<>"\u202a-\u202e\u2066-\u2069\p{Cc}]+<\/bdi>/u;
  assert.match(bodyOf(page), name);
  return bodyOf(page).replace(name, "");
}

for (const [kind, name] of Object.entries(hostileNames)) {
  test(`pages show an untrusted app name in one place, isolated: ${kind}`, () => {
    const app = { name, url: "https://orders.example" };
    assert.equal(withoutName(sampleLogin({ app })), withoutName(sampleLogin()));
    assert.equal(withoutName(sampleConsent({ app })), withoutName(sampleConsent()));
  });
}

test("the front door links to the console and the account only where they exist", () => {
  const doorsOf = (page: HttpResponse) =>
    [...bodyOf(page).matchAll(/<li><a href="([^"]*)"/g)].map(([, path]) => path);
  assert.deepEqual(doorsOf(openFrontDoor()), ["/console", "/account", "/openapi.json"]);
  const none = { hasConsole: false, hasAccount: false };
  assert.deepEqual(doorsOf(openFrontDoor(undefined, none)), ["/openapi.json"]);
});
