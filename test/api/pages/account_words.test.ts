import assert from "node:assert/strict";
import { test } from "node:test";
import { browserInWords, spanInWords } from "../../../src/api/pages/account_words.ts";

const KHTML = "AppleWebKit/537.36 (KHTML, like Gecko)";

const AGENTS: readonly (readonly [words: string, agent: string | null])[] = [
  ["Chrome on Linux", `Mozilla/5.0 (X11; Linux x86_64) ${KHTML} Chrome/140.0.0.0 Safari/537.36`],
  ["Edge on Windows", `Mozilla/5.0 (Windows NT 10.0) ${KHTML} Chrome/1 Safari/537.36 Edg/140.0`],
  ["Opera on macOS", `Mozilla/5.0 (Macintosh; Intel Mac OS X 10) ${KHTML} Chrome/1 Safari/1 OPR/1`],
  ["Firefox on Android", "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0"],
  ["Safari on iPhone", `Mozilla/5.0 (iPhone; CPU iPhone OS 18 like Mac OS X) ${KHTML} Safari/604`],
  ["Chrome on iPad", `Mozilla/5.0 (iPad; CPU OS 18 like Mac OS X) ${KHTML} CriOS/140 Safari/604`],
  ["Chrome on ChromeOS", `Mozilla/5.0 (X11; CrOS x86_64 1) ${KHTML} Chrome/140 Safari/537.36`],
  ["Firefox", "Firefox/1"],
  ["Unknown browser", "curl/8.0 on Linux"],
  ["Unknown browser", null],
];
for (const [words, agent] of AGENTS) {
  test(`browserInWords() returns ${words} for ${agent}`, () => {
    assert.equal(browserInWords(agent), words);
  });
}

test("spanInWords() uses minutes below an hour, hours below two days, then days", () => {
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
  const spans = [-1, 0, minute, hour - 1, hour, 2 * day - 1, 2 * day, 64 * day].map(spanInWords);
  assert.deepEqual(spans, [
    "1 min", "1 min", "1 min", "59 min", "1 h", "47 h", "2 days", "64 days",
  ]);
});
