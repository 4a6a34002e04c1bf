import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { type RunningServer, startServer } from "../helpers/process.ts";

const OWN = "a sentence is best";
const ATTEMPTS = "[...document.querySelectorAll('.line li')].map((each) => each.className)";

let server: RunningServer;
let browser: Browser;
let [clicks, fields] = [0, 0];

before(async () => {
  server = await startServer({ entry: SOURCE_ENTRY, env: { GATEPOST_RESEND_DELAYS: "5s" } });
  browser = await openBrowser({ width: 1280, height: 800 });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const printed = () => /with password (\S+)/.exec(server.stderr())?.[1] ?? "";

/** Clicks the control with these words, as a person finds it. */
async function click(words: string): Promise<void> {
  clicks++;
  await browser.click("button, a.btn", words);
}

async function fill(css: string, text: string): Promise<void> {
  fields++;
  await browser.type(css, text);
}

const attemptsAre = (...wanted: readonly string[]) =>
  browser.until(`${ATTEMPTS}.join() === ${JSON.stringify(wanted.join())}`);

test("nine clicks and two fields lead from the first start to a resent delivery", async () => {
  await browser.goto(`${server.url}/console`);
  await fill("#password", printed());
  await click("Sign in");
  await fill("#new_password", OWN);
  await click("Set password and continue");

  await browser.until("document.querySelector('main')?.textContent.includes('Nothing has been')");
  assert.equal(await browser.text("main h1"), "Overview");
  assert.match(await browser.text("main"), /Each delivery is shown here when it happens/);
  await click("Get started");
  await click("Use a built-in receiver");
  await click("Dispatch hello.sent");
  await attemptsAre("ok");
  await browser.until("document.querySelector('.check.done:nth-child(3)')"); // ticked by itself

  await click("503");
  await browser.find("#answer-503[aria-pressed=true]");
  assert.match(await browser.text("main"), /Choose 200, and the next resend/);
  await click("Dispatch hello.sent");
  await attemptsAre("bad", "", "ok"); // the resend is due
  await click("200");
  await attemptsAre("bad", "ok", "ok"); // it came while the page was open
  await click("Send again");
  await attemptsAre("bad", "ok", "ok", "ok");
  assert.deepEqual({ clicks, fields }, { clicks: 9, fields: 2 });
  assert.deepEqual(await browser.consoleErrors(), []);
});

test("the new password is valid from now on, and the printed one is not", async () => {
  const login = (password: string) => fetch(`${server.url}/consumer/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password }),
  });
  assert.equal((await login(OWN)).status, 200);
  assert.notEqual((await login(printed())).status, 200);
});
