import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalHost, isWildcardHost, listeningUrl } from "../../src/base/base_url.ts";

test("canonicalHost() writes a host as a URL does, without brackets", () => {
  const cases: [text: string, host: string | undefined][] = [
    ["127.0.0.1", "127.0.0.1"],
    ["127.1", "127.0.0.1"],
    ["0x7f.1", "127.0.0.1"],
    ["LOCALHOST", "localhost"],
    ["0:0:0:0:0:0:0:1", "::1"],
    ["2001:DB8::1", "2001:db8::1"],
    ["my_host.example", "my_host.example"],
    ["", undefined],
    [".", undefined],
    ["a..b", undefined],
    ["256.0.0.1", undefined],
    ["[::1]", undefined],
    ["fe80::1%eth0", undefined],
    ["a/b", undefined],
    ["a@b", undefined],
    ["a".repeat(254), undefined],
  ];
  for (const [text, host] of cases) assert.equal(canonicalHost(text), host, text);
});

test("isWildcardHost() is true for the canonical wildcard addresses and no other host", () => {
  for (const host of ["0.0.0.0", "::", "::ffff:0:0"]) assert.equal(isWildcardHost(host), true);
  for (const host of ["127.0.0.1", "::1", "localhost", "0.0.0.1"]) {
    assert.equal(isWildcardHost(host), false, host);
  }
});

test("listeningUrl() puts IPv6 in brackets and leaves out the default port", () => {
  assert.equal(listeningUrl("127.0.0.1", 8080), "http://127.0.0.1:8080");
  assert.equal(listeningUrl("::1", 8080), "http://[::1]:8080");
  assert.equal(listeningUrl("localhost", 80), "http://localhost");
});
