import assert from "node:assert/strict";
import { test } from "node:test";

import type { LoginError } from "../../../src/api/pages/login_page.ts";
import {
  bodyOf,
  count,
  markupOf,
  sampleLogin,
  tagWithId,
  textOf,
  titleOf,
} from "../../helpers/pages.ts";

test("loginPage() has a form that password managers and screen readers understand", () => {
  const page = sampleLogin();
  const body = bodyOf(page);
  const action = "/authorization/authorize?client_id=a1&amp;state=x";
  assert.ok(body.includes(`<form method="post" action="${action}">`));
  assert.match(body, /<input type="hidden" name="csrf" value="csrf-token" autocomplete="off">/);
  const username = tagWithId(page, "username");
  for (const part of ["name", "autocomplete"]) assert.ok(username.includes(` ${part}="username"`));
  assert.match(username, / type="text".* autocapitalize="none"\s.* spellcheck="false"/s);
  const password = tagWithId(page, "password");
  assert.match(password, / name="password" type="password" autocomplete="current-password"/);
  for (const id of ["username", "password"]) assert.ok(body.includes(`<label for="${id}">`));
  assert.equal(count(body, /<button /g), 1);
});

test("loginPage() says which app asks and where its user will be sent", () => {
  const asks = "Sign in to continue to this app Harbour Orders https://orders.example ";
  assert.ok(textOf(sampleLogin()).includes(asks));
});

test("loginPage() focuses the first field that is still to be filled in", () => {
  for (const [username, focused] of [
    ["", "username"],
    ["marta", "password"],
  ] as const) {
    const page = sampleLogin({ error: "wrong", username });
    assert.match(tagWithId(page, focused), / autofocus[ >]/);
    assert.equal(count(bodyOf(page), / autofocus[ >]/g), 1);
  }
  assert.match(tagWithId(sampleLogin(), "username"), / autofocus[ >]/);
});

test("loginPage() fills in the given username, escaped, and never a password", () => {
  const page = sampleLogin({ error: "wrong", username: `"><b>'` });
  assert.ok(tagWithId(page, "username").includes(' value="&quot;&gt;&lt;b&gt;&#39;"'));
  assert.doesNotMatch(tagWithId(page, "password"), / value=/);
});

test("loginPage() states each error first in the title, in place, and to both fields", () => {
  const cases: readonly (readonly [LoginError, number, RegExp, RegExp])[] = [
    ["wrong", 403, /^Wrong username or password – Sign in/, /do not match/],
    ["throttled", 429, /^Too many attempts – Sign in/, /Wait 5 minutes/],
    ["busy", 503, /^Very busy right now – Sign in/, /Try again in a moment/],
    ["expired", 400, /^This page was open for too long – Sign in/, /again\. .*allow cookies/],
  ];
  for (const [error, status, title, text] of cases) {
    const page = sampleLogin({ error, retryAfterSeconds: 300 });
    assert.equal(page.status, status);
    assert.match(titleOf(page), title);
    assert.match(textOf(page), text);
    assert.match(tagWithId(page, "error"), / role="alert"/);
    for (const id of ["username", "password"]) {
      const field = tagWithId(page, id);
      assert.match(field, / aria-describedby="error"/);
      assert.equal(field.includes(' aria-invalid="true"'), error === "wrong");
    }
  }
});

test("loginPage() without an error has no alert and nothing marked invalid", () => {
  assert.doesNotMatch(markupOf(sampleLogin()), /role="alert"|aria-invalid|aria-describedby/);
  assert.equal(sampleLogin().status, 200);
});

test("loginPage() says how long to wait, and sends Retry-After with 429 and 503", () => {
  for (const [seconds, words, header] of [
    [1, "a second", "1"],
    [30, "30 seconds", "30"],
    [60, "a minute", "60"],
    [61, "2 minutes", "61"],
    [840, "14 minutes", "840"],
  ] as const) {
    const page = sampleLogin({ error: "throttled", retryAfterSeconds: seconds });
    assert.ok(textOf(page).includes(`Wait ${words}, then`), words);
    assert.equal(page.headers?.["Retry-After"], header);
  }
  const busy = sampleLogin({ error: "busy", retryAfterSeconds: 2 });
  assert.equal(busy.headers?.["Retry-After"], "2");
  assert.equal(sampleLogin({ error: "wrong" }).headers?.["Retry-After"], undefined);
});

test("loginPage() confirms a sign-out, unless an error has more to say", () => {
  const text = textOf(sampleLogin({ signedOut: true }));
  assert.match(text, /You are signed out here\. Apps that you have allowed keep their access/);
  assert.doesNotMatch(textOf(sampleLogin({ signedOut: true, error: "wrong" })), /signed out/);
  assert.doesNotMatch(textOf(sampleLogin()), /signed out/);
});
