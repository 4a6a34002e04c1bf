import assert from "node:assert/strict";
import { test } from "node:test";
import { prefersHtml, takesCoding } from "../../src/http/accept.ts";

test("prefersHtml() distinguishes browsers from programs (RFC 9110 §12.5.1)", () => {
  const browsers = [
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
    "text/html",
    "TEXT/HTML ; Q=0.5, */*;q=0.1",
    "application/json;q=0.8, text/html;level=1;q=0.9",
    "text/html, */*",
    "text/html, application/*, */*;q=0.1",
    "text/html;q=0.5, application/*;q=0.1, */*",
  ];
  const programs = [
    undefined,
    "",
    "*/*",
    "text/*",
    "application/json, text/plain, */*",
    "application/json, text/html",
    "application/problem+json, text/html;q=0.9",
    "text/html;q=0",
    "text/html;q=0.5, */*",
    "text/html;q=0.5, application/*, */*;q=0.1",
    "text/htmlx, ,;;=",
  ];
  for (const accept of browsers) assert.equal(prefersHtml(accept), true, accept);
  for (const accept of programs) assert.equal(prefersHtml(accept), false, String(accept));
});

test("takesCoding() accepts a coding that is named and not refused (RFC 9110 §12.5.3)", () => {
  for (const accepted of ["br", "gzip, deflate, br", "GZIP;q=0.1,BR ; q=0.5", "br;q=1.0"]) {
    assert.equal(takesCoding(accepted, "br"), true, accepted);
  }
  for (const accepted of ["", "gzip", "br;q=0", "gzip, br; q=0.0", "x-br", "br-x", "*"]) {
    assert.equal(takesCoding(accepted, "br"), false, accepted);
  }
});
