import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDocumentUrl, parseClientDocument } from "../../src/oauth/client_metadata.ts";
import { isListedRedirectUri } from "../../src/oauth/redirect_uri.ts";
import {
  DOCUMENT_URL,
  DOCUMENT_URLS,
  LISTED,
  REFUSED_DOCUMENTS,
  REFUSED_REDIRECTS,
  REFUSED_URLS,
  TAKEN_DOCUMENTS,
  TAKEN_REDIRECTS,
  UNREADABLE_REDIRECTS,
} from "../corpus/client_metadata.ts";

/** Parses a document as it comes from a response. */
const parse = (document: unknown) =>
  parseClientDocument(DOCUMENT_URL, JSON.parse(JSON.stringify(document)));

describe("a client_id is the URL of a document", () => {
  for (const url of DOCUMENT_URLS) {
    test(url, () => assert.equal(isDocumentUrl(url, "on"), true));
  }

  test("only at the configured hosts", () => {
    assert.equal(isDocumentUrl(DOCUMENT_URL, "off"), false);
    assert.equal(isDocumentUrl(DOCUMENT_URL, []), false);
    assert.equal(isDocumentUrl(DOCUMENT_URL, ["other.example", "example"]), false);
    assert.equal(isDocumentUrl(DOCUMENT_URL, ["other.example", "app.example"]), true);
    assert.equal(isDocumentUrl("https://[2001:db8::1]/client", ["2001:db8::1"]), true);
    assert.equal(isDocumentUrl("https://[2001:db8::1]/client", ["2001:db8::2"]), false);
  });
});

describe("a client_id is no URL of a document with", () => {
  for (const [url, what] of REFUSED_URLS) {
    test(what, () => assert.equal(isDocumentUrl(url, "on"), false));
  }
});

describe("a document is accepted with", () => {
  for (const [document, what] of TAKEN_DOCUMENTS) {
    test(what, () => {
      const accepted = parse(document);
      assert.ok(!("reason" in accepted), JSON.stringify(accepted));
      assert.ok(accepted.redirectUris.length > 0 && accepted.name.length > 0);
    });
  }

  test("redirect URIs, without those that are never accepted", () => {
    const redirect_uris = ["javascript:alert(1)", "https://app.example/cb", "http://a.example/"];
    const accepted = parse({ client_id: DOCUMENT_URL, redirect_uris });
    assert.deepEqual(accepted, { name: "app.example", redirectUris: ["https://app.example/cb"] });
  });
});

describe("a document is refused with", () => {
  for (const [document, what] of REFUSED_DOCUMENTS) {
    test(what, () => {
      const refused = parse(document);
      assert.ok("reason" in refused);
      assert.doesNotMatch(refused.reason, /secret"|evil|alert/); // nothing of its content
    });
  }
});

describe("isListedRedirectUri()", () => {
  for (const uri of TAKEN_REDIRECTS) {
    test(`accepts ${uri}`, () => assert.equal(isListedRedirectUri(uri, LISTED), true));
  }
  for (const uri of REFUSED_REDIRECTS) {
    test(`refuses ${uri}`, () => assert.equal(isListedRedirectUri(uri, LISTED), false));
  }
  for (const uri of UNREADABLE_REDIRECTS) {
    test(`refuses ${uri}, although it is listed`, () => {
      assert.equal(isListedRedirectUri(uri, [uri]), false);
    });
  }
});
