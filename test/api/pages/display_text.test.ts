import assert from "node:assert/strict";
import { test } from "node:test";

import { displayText } from "../../../src/api/pages/display_text.ts";

test("displayText() returns one line without direction controls, or the fallback", () => {
  for (const [raw, shown] of [
    ["Harbour", "Harbour"],
    ["  a \t\n b  ", "a b"],
    ["a\u202eb\u2069c\u2066d\u202a", "abcd"],
    ["a\u0000b\u2029c", "a b c"],
    ["👩‍🚀 ship", "👩‍🚀 ship"],
    ["می‌خواهم", "می‌خواهم"],
    ["lone \ud800", "lone \ufffd"],
    ["", "fallback"],
    [" \u200b\u2060\ufeff", "fallback"],
    ["\u3164\u2800\u00ad", "fallback"],
    ["\u202e\u2069", "fallback"],
  ] as const) {
    assert.equal(displayText(raw, "fallback"), shown);
  }
});
