import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { authorizeAddress, openStage, type Stage } from "./sign_in_stage.ts";

// Everything here runs without script: the page must not need any.
const ENTER = "\uE007";
const TAB = "\uE004";
const IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 " +
  "(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";

let stage: Stage;
let browser: Browser;
let password: string;
const account = (query = "") => browser.goto(`${stage.server.url}/account${query}`);

before(async () => {
  stage = await openStage();
  browser = await openBrowser({ width: 360, height: 740, javascript: false });
  password = await stage.addUser("marta", ["consumer", "orders"]);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

test("a user withdraws an app after a confirmation, and signs out another browser", async () => {
  const phone = createClient(stage.server.url, { headers: () => ({ "user-agent": IPHONE }) });
  const login = await phone.get("/account");
  assert.equal((await phone.submit(login, { username: "marta", password })).status, 303);
  const app = await stage.addApp("shop", { name: "Northwind Shop" });
  await browser.goto(authorizeAddress(stage.server.url, app));
  await browser.logIn("marta", password);
  await browser.find("button[value=allow]");
  await browser.click("button[value=allow]");
  await browser.waitForUrl(/[?&]code=/);
  await account();
  assert.equal(await browser.label(".list a"), "Withdraw… Northwind Shop");
  await browser.click(".list a");
  await browser.click("button[value^=withdraw]");
  await browser.waitForUrl(/[?&]done=withdraw$/);
  assert.match(await browser.text("[role=status]"), /may no longer act for you/);
  assert.match(await browser.text("main"), /Safari on iPhone/);
  assert.equal(await browser.label(".list button"), "Sign out Safari on iPhone");
  await browser.click(".list button");
  await browser.waitForUrl(/[?&]done=session$/); // the page before has a status too
  assert.match(await browser.text("[role=status]"), /signed out in that browser/);
  assert.doesNotMatch(await browser.text("main"), /iPhone/);
});

test("by keyboard alone a user makes a token and changes the password", async () => {
  await account("?do=make");
  await browser.click("#name");
  await browser.press(`my script${TAB} `);
  await browser.click("#name");
  await browser.press(ENTER);
  assert.match(await browser.text("code"), /^gpat_[\w-]{80,}$/);
  await account("?do=password");
  assert.equal(await browser.label("#new"), "New password");
  await browser.click("#current");
  await browser.press(`not this one${TAB}a password that is new${ENTER}`);
  assert.match(await browser.text("[role=alert]"), /current password is wrong/);
  await browser.click("#current");
  await browser.press(`${password}${TAB}a password that is new${ENTER}`);
  assert.match(await browser.text("[role=status]"), /Your password is changed/);
  assert.match(await browser.text("main"), /this browser/);
  await browser.click("header button");
  await browser.waitForUrl(/[?&]done=session$/); // the page before has a status too
  assert.match(await browser.text("[role=status]"), /You are signed out/);
});

test("after sign-out the Back button shows no page of the account", async () => {
  await browser.logIn("marta", "a password that is new");
  await browser.find("header button");
  await account("?do=password");
  await account();
  await browser.click("header button");
  await browser.waitForUrl(/[?&]done=session$/);
  for (const query of ["", "?do=password"]) {
    await browser.back();
    assert.equal(await browser.url(), `${stage.server.url}/account${query}`);
    assert.match(await browser.text("main"), /^Sign in\s+to see your account/);
  }
});
