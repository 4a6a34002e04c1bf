import assert from "node:assert/strict";
import { test } from "node:test";

import type { ConsentScope } from "../../../src/api/pages/consent_page.ts";
import {
  asked,
  askedAs,
  bodyOf,
  count,
  markupOf,
  sampleConsent,
  tagWithId,
  textOf,
  titleOf,
} from "../../helpers/pages.ts";

test("consentPage() sends allow, deny or switch with the CSRF token", () => {
  const body = bodyOf(sampleConsent());
  const action = "/authorization/authorize?client_id=a1&amp;state=x";
  assert.ok(body.includes(`<form method="post" action="${action}">`));
  assert.match(body, /<input type="hidden" name="csrf" value="csrf-token" autocomplete="off">/);
  const button = /<button [^>]*type="submit" name="decision" value="([a-z]+)"[^>]*>\s*([^<]*)</g;
  assert.deepEqual([...body.matchAll(button)].map((match) => [match[1], match[2]]), [
    ["switch", "Sign out or use another account"],
    ["allow", "Allow"],
    ["deny", "Deny"],
  ]);
});

test("consentPage() focuses nothing, so that a key pressed too early allows nothing", () => {
  assert.doesNotMatch(bodyOf(sampleConsent()), / autofocus/);
});

test("consentPage() says who is logged in, which app asks and where the user will be sent", () => {
  const text = textOf(sampleConsent());
  assert.match(text, /Harbour Orders https:\/\/orders\.example Signed in as marta /);
  assert.match(text, /Either way you go back to https:\/\/orders\.example/);
});

test("consentPage() shows scopes in words with their names, those without words by name", () => {
  const scopes = [
    ...asked("consumer", "invoices.read", "<b>&"),
    askedAs("orders:write", "Place & change orders"),
  ];
  const text = textOf(sampleConsent({ scopes }));
  assert.match(text, /Subscribe to events and manage your subscriptions on your behalf consumer /);
  assert.match(text, / invoices\.read &lt;b&gt;&amp; Place &amp; change orders orders:write /);
});

test("consentPage() warns of a grave scope as it does of backend", () => {
  const grave = askedAs("refunds", "Pay money back", { grave: true });
  const page = sampleConsent({ scopes: [...asked("consumer"), grave] });
  const text = textOf(page);
  assert.match(text, /Warning: Pay money back refunds Allow this only to an app that you trust/);
  assert.ok(text.indexOf("Warning") < text.indexOf("Subscribe"));
  assert.equal(count(markupOf(page), /class="primary"/g), 0);
});

test("consentPage() separates new scopes from those that were allowed before", () => {
  const before = { ...askedAs("orders", "Read orders"), isNew: false };
  const fresh = askedAs("invoices", "Send invoices");
  const mixed = textOf(sampleConsent({ scopes: [before, fresh] }));
  assert.match(mixed, /New: if you allow it, this app can also: Send invoices invoices You/);
  assert.match(mixed, / You allowed before that it can: Read orders orders /);
  for (const scopes of [[before], [fresh]]) {
    const text = textOf(sampleConsent({ scopes }));
    assert.match(text, /If you allow it, this app can: (?:Read|Send)/);
    assert.doesNotMatch(text, /New:|before/);
  }
});

test("consentPage() folds away the scopes after the sixth, but never a grave one", () => {
  const names = Array.from({ length: 14 }, (_, index) => `scope${index}`);
  const folded = (scopes: readonly ConsentScope[]) =>
    /<details>[^]*<\/details>/.exec(markupOf(sampleConsent({ scopes })))?.[0] ?? "";
  assert.match(folded(asked(...names)), /<summary>and 8 more<\/summary>/);
  for (const name of names) {
    assert.ok(textOf(sampleConsent({ scopes: asked(...names) })).includes(`${name} `), name);
  }
  assert.equal(folded(asked(...names.slice(0, 6))), "");
  const grave = names.map((name) => askedAs(name, name, { grave: true }));
  assert.equal(folded(grave), "");
  assert.doesNotMatch(folded([...asked(...names), ...asked("backend")]), /Administer/);
});

test("consentPage() warns of backend first, and emphasises neither button", () => {
  const page = sampleConsent({ scopes: asked("consumer", "backend") });
  const text = textOf(page);
  assert.match(text, /Warning: Administer this whole service/);
  assert.ok(text.indexOf("Warning") < text.indexOf("Subscribe"));
  assert.equal(count(markupOf(page), /class="primary"/g), 0);
  assert.equal(count(markupOf(sampleConsent()), /class="primary"/g), 1);
  assert.doesNotMatch(textOf(sampleConsent()), /Warning/);
});

test("consentPage() warns where any program can pose as the app (RFC 8252 §8.6)", () => {
  const app = { name: "x", url: "http://127.0.0.1" };
  const page = sampleConsent({ app, isImpersonable: true });
  assert.match(textOf(page), /where any program could pose as it/);
  assert.equal(count(markupOf(page), /class="primary"/g), 0);
  assert.doesNotMatch(textOf(page), /Development address/);
});

test("consentPage() shows a note, not a warning, for another app on loopback", () => {
  for (const [origin, isRemarked] of [
    ["http://127.0.0.1", true],
    ["http://localhost:3000", true],
    ["http://[::1]:3000", true],
    ["https://localhost.example", false],
    ["https://orders.example", false],
  ] as const) {
    const page = sampleConsent({ app: { name: "x", url: origin }, formActionOrigin: origin });
    assert.equal(textOf(page).includes("Development address"), isRemarked, origin);
    assert.doesNotMatch(markupOf(page), /warning/);
    assert.equal(count(markupOf(page), /class="primary"/g), 1);
  }
});

test("consentPage() says where the user can withdraw the consent", () => {
  assert.match(textOf(sampleConsent()), /You can withdraw this at any time in your account \./);
  assert.match(markupOf(sampleConsent()), /<a href="\/account" target="_blank">/);
});

test("consentPage() says in place and in the title that the page has expired", () => {
  const page = sampleConsent({ error: "expired" });
  assert.equal(page.status, 400);
  assert.match(titleOf(page), /^This page was open for too long – /);
  assert.match(tagWithId(page, "error"), / role="alert"/);
  assert.equal(sampleConsent().status, 200);
});

test("consentPage() for a device names the code that it must show, and no way back", () => {
  const page = sampleConsent({ userCode: "BCDF-GHJK", isImpersonable: true });
  assert.match(textOf(page), /only if your own device shows BCDF-GHJK now/);
  assert.doesNotMatch(textOf(page), /go back to|pose as it/);
  assert.doesNotMatch(bodyOf(page), /class="primary"/);
});
