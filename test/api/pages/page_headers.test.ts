import assert from "node:assert/strict";
import { test } from "node:test";

import { pageHeaders } from "../../../src/api/pages/page_headers.ts";

test("pageHeaders() of a page with a form lets it lead to this service and the app", () => {
  const headers = pageHeaders("https://orders.example:8443");
  const { "Content-Security-Policy": policy, "Permissions-Policy": permissions, ...rest } = headers;
  assert.equal(
    policy?.replace(/'sha256-[A-Za-z0-9+/]{43}='/, "'sha256-…'"),
    "default-src 'none'; style-src 'sha256-…'; img-src 'self'; " +
      "form-action 'self' https://orders.example:8443; frame-ancestors 'none'; base-uri 'none'",
  );
  assert.match(permissions ?? "", /^(?:[a-z-]+=\(\)(?:, |$))+$/);
  // No COOP here: it would cut a popup login off from the app that opened it.
  assert.deepEqual(rest, {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
  });
});

test("pageHeaders() of a page without a form refuses every form and isolates the window", () => {
  const headers = pageHeaders();
  assert.match(headers["Content-Security-Policy"] ?? "", /; form-action 'none'; /);
  assert.equal(headers["Cross-Origin-Opener-Policy"], "same-origin");
});

test("pageHeaders() allows an app by its scheme where CSP cannot name its host", () => {
  for (const [origin, source] of [
    ["http://[::1]:3000", "http:"],
    ["https://[2001:db8::1]", "https:"],
    ["https://*.example", "https:"],
    ["https://a'b.example", "https:"],
    ["http://127.0.0.1:3000", "http://127.0.0.1:3000"],
    ["http://localhost", "http://localhost"],
    ["https://xn--mnchen-3ya.example", "https://xn--mnchen-3ya.example"],
  ] as const) {
    const policy = pageHeaders(origin)["Content-Security-Policy"] ?? "";
    assert.ok(policy.includes(`; form-action 'self' ${source}; `), origin);
  }
});

test("pageHeaders() allows a style sheet by its URL, or 'self' where CSP cannot name it", () => {
  const sourceAt = (origin: string) => {
    const policy = pageHeaders(origin, "/a/b.css")["Content-Security-Policy"] ?? "";
    return /style-src ([^;]*);/.exec(policy)?.[1];
  };
  assert.equal(sourceAt("https://api.example:8443"), "https://api.example:8443/a/b.css");
  assert.equal(sourceAt("http://[::1]:3000"), "'self'");
});

test("pageHeaders() refuses an origin that could add a source or directive to the CSP", () => {
  for (const origin of [
    "",
    "*",
    "null",
    "https:",
    "https://a.example/",
    "https://a.example/path",
    "https://a.example https://b.example",
    "https://a.example; script-src *",
    "https://a.example,https://b.example",
    "https://A.example",
    "https://a.example:443",
    "https://user@a.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://a.example\r\nset-cookie: x=1",
  ]) {
    assert.throws(() => pageHeaders(origin), TypeError, origin);
  }
});
