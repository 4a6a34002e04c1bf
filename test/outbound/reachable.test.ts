import assert from "node:assert/strict";
import { test } from "node:test";
import { isReachableUrl } from "../../src/outbound/reachable.ts";
import { HOSTS } from "../corpus/addresses.ts";
import { ALLOWED, PUBLIC } from "./egress_stage.ts";

for (const scheme of ["http", "https"]) {
  for (const { text, verdict, why } of HOSTS) {
    test(`isReachableUrl() finds ${scheme}://${text} ${verdict}: ${why}`, () => {
      const url = new URL(`${scheme}://${text}:8443/path`);
      assert.equal(isReachableUrl(url, []), verdict === "public");
    });
  }
}

for (const url of ["ftp://8.8.8.8/", "file:///etc/hosts", "data:,x", "ws://8.8.8.8/"]) {
  test(`isReachableUrl() refuses ${url}, which is neither http nor https`, () => {
    assert.equal(isReachableUrl(new URL(url), [ALLOWED]), false);
  });
}

test("isReachableUrl() accepts names, which are checked when they are dialled", () => {
  for (const url of ["http://example.com/", "http://localhost/", "http://metadata.internal/"]) {
    assert.equal(isReachableUrl(new URL(url), []), true);
  }
});

for (const host of [PUBLIC, "127.2", "0x7f000002", "[::ffff:127.0.0.2]"]) {
  test(`an allowed block permits its addresses, also written as ${host}`, () => {
    assert.equal(isReachableUrl(new URL(`http://${host}/`), [ALLOWED]), true);
  });
}
