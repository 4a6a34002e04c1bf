import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { DEVICE_GRANT } from "../helpers/device.ts";
import { createClient } from "../helpers/http_client.ts";
import { memberOf, openStage, type Stage, type StageApp } from "./sign_in_stage.ts";

// Everything here runs without script: the pages must not need any.
const ENTER = "\uE007";
const TAB = "\uE004";

let stage: Stage;
let browser: Browser;
let password: string;
let tv: StageApp;

before(async () => {
  stage = await openStage();
  browser = await openBrowser({ width: 1280, height: 800, javascript: false });
  password = await stage.addUser("marta", ["consumer", "orders"]);
  tv = await stage.addApp("tv", {
    name: "Living Room TV",
    type: "public",
    scopes: ["consumer", "orders"],
    grants: [DEVICE_GRANT],
  });
});
after(async () => {
  await browser?.close();
  await stage?.close();
});
beforeEach(async () => {
  await browser.clearCookies();
  await browser.consoleErrors();
});

const send = async (endpoint: string, fields: Readonly<Record<string, string>>) => {
  const client = createClient(stage.server.url);
  const form = { client_id: tv.clientId, ...fields };
  return (await client.postForm(`/authorization/${endpoint}`, form)).json();
};

/** A device that has got its codes, and a function that polls for it. */
async function newDevice() {
  const device = await send("device", {});
  const poll = async () => {
    const fields = { grant_type: DEVICE_GRANT, device_code: memberOf(device, "device_code") };
    const response = await send("token", fields);
    return memberOf(response, "error") || memberOf(response, "scope");
  };
  const [code, address] = ["user_code", "verification_uri_complete"]
    .map((name) => memberOf(device, name));
  return { code: code ?? "", address: address ?? "", poll };
}

async function logIn(): Promise<void> {
  await browser.logIn("marta", password);
  await browser.find("#user_code");
}

test("a user types a device's code and allows it, and the device gets its token", async () => {
  const { code, poll } = await newDevice();
  await browser.goto(`${stage.server.url}/authorization/verify`);
  assert.match(await browser.text("main"), /to connect a device/);
  await logIn();
  assert.equal(await browser.label("#user_code"), "Code");
  await browser.type("#user_code", "bcdf ghjk");
  await browser.click("button.primary");
  assert.match(await browser.text("[role=alert]"), /No device is waiting/);
  await browser.type("#user_code", code.toLowerCase().replace("-", ""));
  await browser.click("button.primary");
  await browser.find("button[value=allow]");
  const page = await browser.text("main");
  for (const words of ["Living Room TV", "marta", "orders", code]) {
    assert.ok(page.includes(words), words);
  }
  assert.equal(await poll(), "authorization_pending");
  await browser.click("button[value=allow]");
  assert.match(await browser.text("[role=status]"), /Continue on your device/);
  assert.equal(await poll(), "consumer orders");
});

test("by keyboard alone a user opens the complete address and denies the device", async () => {
  const { address, code, poll } = await newDevice();
  await browser.goto(address);
  await browser.find("#username:focus");
  await browser.press(`marta${TAB}${password}${ENTER}`);
  await browser.find("#user_code:focus");
  assert.equal(await browser.attribute("#user_code", "value"), code);
  await browser.press(ENTER);
  await browser.find("button[value=allow]");
  assert.equal(await browser.count("button:focus"), 0);
  await browser.press(`${TAB}${TAB}${TAB}`);
  await browser.find("button[value=deny]:focus-visible");
  await browser.press(ENTER);
  await browser.find("[role=status]");
  assert.match(await browser.text("main"), /gets no access/);
  assert.equal(await poll(), "access_denied");
  assert.deepEqual(await browser.consoleErrors(), []);
});

test("the page says that a code has been used", async () => {
  const { address } = await newDevice();
  await browser.goto(address);
  await logIn();
  await browser.click("button.primary");
  await browser.click("button[value=allow]");
  await browser.find("[role=status]");
  await browser.goto(address);
  await browser.click("button.primary");
  assert.match(await browser.text("[role=alert]"), /has been used/);
});

test("another user who signs in from the code page finds the code filled in", async () => {
  const { address, code } = await newDevice();
  await browser.goto(address);
  await logIn();
  await browser.execute("document.querySelector('#user_code').value = ''");
  await browser.click("button[value=switch]");
  assert.match(await browser.text("[role=status]"), /You are signed out/);
  await logIn();
  assert.equal(await browser.attribute("#user_code", "value"), code);
});
