import assert from "node:assert/strict";
import { test } from "node:test";
import { statusText } from "../../src/base/status_text.ts";

test("statusText() is the name in RFC 9110, and Error for a status without a name", () => {
  assert.equal(statusText(404), "Not Found");
  assert.equal(statusText(500), "Internal Server Error");
  assert.equal(statusText(799), "Error");
});
