import assert from "node:assert/strict";
import { test } from "node:test";

import { errorPage } from "../../../src/http/pages/error_page.ts";
import { bodyOf, count, textOf, titleOf } from "../../helpers/pages.ts";

const failure = {
  status: 400,
  title: "This link does not work",
  detail: "redirect_uri is missing.",
  requestId: "r1",
};

test("errorPage() speaks to the user first and gives the developer detail and request id", () => {
  const page = errorPage(failure);
  assert.equal(page.status, 400);
  assert.match(titleOf(page), /^This link does not work · /);
  const text = textOf(page);
  assert.ok(text.indexOf("You did nothing wrong") < text.indexOf("redirect_uri is missing."));
  assert.match(text, /Go back to the app and start again/);
  assert.match(text, /Status 400 Request r1$/);
});

test("errorPage() blames the app for 4xx alone", () => {
  for (const [status, words] of [
    [400, /nothing was shared with the app/],
    [404, /nothing was shared with the app/],
    [429, /too many requests from you/],
    [500, /Something failed on our side/],
    [503, /Something failed on our side/],
  ] as const) {
    const text = textOf(errorPage({ ...failure, status }));
    assert.match(text, words);
    const reader = status < 429 ? "the app" : "this service";
    assert.ok(text.includes(`Details for the people who run ${reader}`), text);
  }
});

test("errorPage() escapes all that it is given", () => {
  const evil = `<img src=x onerror="a('b')">`;
  const body = bodyOf(errorPage({ status: 400, title: evil, detail: evil, requestId: evil }));
  assert.doesNotMatch(body, /<img/);
  assert.equal(count(body, /&lt;img src=x onerror=&quot;a\(&#39;b&#39;\)&quot;&gt;/g), 4);
});
