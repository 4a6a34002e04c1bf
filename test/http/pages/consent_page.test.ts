import assert from "node:assert/strict";
import { test } from "node:test";

import {
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

test("consentPage() says its own scopes in words, and others by their names", () => {
  const text = textOf(sampleConsent({ scopes: ["consumer", "invoices.read", "<b>&"] }));
  assert.match(text, /Subscribe to events and manage your subscriptions on your behalf/);
  assert.match(text, / invoices\.read &lt;b&gt;&amp; /);
});

test("consentPage() warns of backend first, and makes neither answer the louder one", () => {
  const page = sampleConsent({ scopes: ["consumer", "backend"] });
  const text = textOf(page);
  assert.match(text, /Warning: administer this whole service/);
  assert.ok(text.indexOf("Warning") < text.indexOf("Subscribe"));
  assert.equal(count(markupOf(page), /class="primary"/g), 0);
  assert.equal(count(markupOf(sampleConsent()), /class="primary"/g), 1);
  assert.doesNotMatch(textOf(sampleConsent()), /Warning/);
});

test("consentPage() warns of an app on the user's own device (RFC 8252 §8.6)", () => {
  for (const [origin, warned] of [
    ["http://127.0.0.1", true],
    ["http://localhost:3000", true],
    ["http://[::1]:3000", true],
    ["https://localhost.example", false],
    ["https://orders.example", false],
  ] as const) {
    const page = sampleConsent({ app: { name: "x", origin }, formActionOrigin: origin });
    assert.equal(textOf(page).includes("This app runs on your own device"), warned, origin);
  }
});

test("consentPage() says in place and in the title that it had expired", () => {
  const page = sampleConsent({ error: "expired" });
  assert.equal(page.status, 400);
  assert.match(titleOf(page), /^This page was open for too long – /);
  assert.match(tagWithId(page, "error"), / role="alert"/);
  assert.equal(sampleConsent().status, 200);
});
