import assert from "node:assert/strict";
import { test } from "node:test";
import { openBrowser } from "./browser.ts";

test("close() works though the browser's session no longer responds", async () => {
  const browser = await openBrowser({ width: 360, height: 640 });
  await browser.goto("about:blank");
  await browser.close();
  await assert.rejects(browser.url());
  await browser.close();
});
