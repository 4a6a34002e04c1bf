import assert from "node:assert/strict";
import { test } from "node:test";

import { bodyOf, count, sampleError, site, textOf, titleOf } from "../../helpers/pages.ts";

test("errorPage() addresses the user first, then gives developers detail and request id", () => {
  const page = sampleError();
  assert.equal(page.status, 400);
  assert.match(titleOf(page), /^This link does not work · /);
  const text = textOf(page);
  assert.ok(text.indexOf("You did nothing wrong") < text.indexOf("redirect_uri is missing."));
  assert.match(text, /Go back to the app and start again/);
  assert.match(text, /Status 400 Request r1$/);
});

test("errorPage() refers to the app's developers only for 400, 403 and 405", () => {
  for (const [status, words, people] of [
    [400, /nothing was shared with the app/, "the app"],
    [403, /Nothing was signed in or allowed/, "the app"],
    [404, /may be mistyped/, "Northwind"],
    [405, /nothing was shared with the app/, "the app"],
    [429, /too many requests from you/, "Northwind"],
    [500, /Something failed on our side/, "Northwind"],
    [503, /Something failed on our side/, "Northwind"],
  ] as const) {
    const text = textOf(sampleError({ status }));
    assert.match(text, words);
    assert.ok(text.includes(`Details for the people who run ${people} What was wrong`), text);
  }
});

test("errorPage() says in plain words that a form came from elsewhere, and blames no app", () => {
  const page = sampleError({ status: 403, title: "Forbidden" });
  assert.match(titleOf(page), /^This page was sent from somewhere else/);
  assert.match(textOf(page), /cookies switched off for this site/);
  assert.doesNotMatch(textOf(page), /Forbidden|sent you here/);
});

test("errorPage() of an unknown address links to the front door, below a base path too", () => {
  const page = sampleError({ status: 404, site: { ...site, basePath: "/gate" } });
  assert.match(titleOf(page), /^There is nothing here/);
  assert.ok(bodyOf(page).includes('<a href="/gate/">'));
  assert.equal(count(bodyOf(sampleError()), /<a /g), 0);
});

test("errorPage() escapes all of its input", () => {
  const evil = `<img src=x onerror="a('b')">`;
  const page = sampleError({ title: evil, detail: evil, requestId: evil, facts: [[evil, evil]] });
  const body = bodyOf(page);
  assert.doesNotMatch(body, /<img/);
  assert.equal(count(body, /&lt;img src=x onerror=&quot;a\(&#39;b&#39;\)&quot;&gt;/g), 6);
});
