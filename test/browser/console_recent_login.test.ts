import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { type Clock, createClock } from "../helpers/clock.ts";
import { createClient } from "../helpers/http_client.ts";
import { until } from "../helpers/until.ts";
import { memberOf, openStage, type Stage } from "./sign_in_stage.ts";

const READY = "main:not([aria-busy]) h1";

let clock: Clock;
let stage: Stage;
let browser: Browser;
let password = "";
let token = "";
/** The failed loads that a test expects. */
let expected: RegExp | undefined;

before(async () => {
  clock = await createClock();
  stage = await openStage({ env: clock.env });
  password = await stage.addUser("operator", ["backend", "consumer"]);
  const login = { username: "operator", password };
  token = memberOf(await call("POST", "/consumer/login", login), "token");
  browser = await openBrowser({ width: 1280, height: 900 });
});
after(async () => {
  await browser?.close();
  await stage?.close();
  await clock?.remove();
});
afterEach(async () => {
  const errors = await browser.consoleErrors();
  assert.deepEqual(errors.filter((error) => !expected?.test(error)), []);
  expected = undefined;
});

async function call(method: string, path: string, body?: object) {
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
  const { sendJson } = createClient(stage.server.url);
  return JSON.parse((await sendJson(method, path, body, headers)).text);
}
async function signIn(path: string): Promise<void> {
  await browser.clearCookies();
  await browser.goto(stage.server.url + path);
  await browser.logIn("operator", password);
  await browser.find(READY);
}
const press = (label: string, root?: string) => browser.clickButton(label, root);
const waitFor = (what: string, holds: () => Promise<unknown>) => until(holds, () => what);
/** How many active grants the console has: one for each window. */
async function countGrants(): Promise<number> {
  const { items } = await call("GET", "/backend/grant?app=console");
  return items.filter(({ status }: { status: string }) => status === "active").length;
}
const untilGrants = (count: number) =>
  waitFor(`${count} grants`, async () => await countGrants() === count);

test("each window has one grant, and revokes it when it leaves the console", async () => {
  await signIn("/console/users");
  await untilGrants(1);
  await browser.goto(`${stage.server.url}/console/keys`);
  await browser.find(READY);
  await untilGrants(1);
  const url = `${stage.server.url}/console/cronjobs`;
  const close = await browser.openWindow(url, /Cronjobs/);
  await untilGrants(2);
  await close();
  await untilGrants(1);
  await browser.click(".nav a[data-page=apps]");
  await waitFor("the page of apps", async () => await browser.text("main h1") === "Apps");
  await browser.goto(`${stage.server.url}/account`);
  await untilGrants(0);
});

test("a window that comes back signs in again without asking", async () => {
  await browser.goto(`${stage.server.url}/console/users`);
  await browser.find(READY);
  for (let times = 0; times < 2; times++) {
    await browser.goto(`${stage.server.url}/account`);
    await untilGrants(0);
    await browser.back();
    await browser.waitForUrl(/\/console\/users$/);
    await untilGrants(1);
    await browser.find(READY);
  }
  // As the back/forward cache does it, which an automated browser may not have.
  await browser.execute(`
    dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));`);
  await untilGrants(1);
  await browser.find(READY);
  await browser.waitForUrl(/\/console\/users$/);
  await press("Add user…", "main");
  await browser.find("dialog #field-username");
});

test("a delete asks for the password after 16 minutes, and then to confirm again", async () => {
  expected = /status of 401/;
  await stage.addUser("anna", ["consumer"]);
  const [{ id }] = (await call("GET", "/backend/user?q=anna")).items;
  await browser.goto(`${stage.server.url}/console/users/${id}`);
  await browser.find(READY);
  await clock.set(16 * 60_000);
  await press("Delete…", "main");
  await browser.type("[name=typed]", "anna");
  await press("Delete");
  await waitFor("the reason", async () =>
    (await browser.text("dialog .msg")).startsWith("Type your password again to "));
  assert.equal((await call("GET", `/backend/user/${id}`)).id, id);
  await press("Sign in again");
  await browser.find("#password");
  assert.equal(await browser.text("h1"), "Sign in again");
  assert.equal(await browser.attribute("#username", "value"), "operator");
  await browser.type("#password", password);
  await browser.click("form [type=submit]");
  await browser.waitForUrl(new RegExp(`/console/users/${id}$`));
  await waitFor("the question", async () => await browser.text("dialog h2") === "Delete anna?");
  assert.equal((await call("GET", `/backend/user/${id}`)).id, id, "nothing is deleted by itself");
  await browser.type("[name=typed]", "anna");
  await press("Delete");
  const isGone = async () => (await browser.text("main")).includes("Nothing has this id");
  await waitFor("the end of its page", isGone);
  await clock.set(0);
});

test("a form that is opened again has what was typed, for the same app alone", async () => {
  await signIn("/console/users");
  const add = (name: string) => call("POST", "/backend/app", {
    name: "Shop", url: `https://${name}.example`,
  });
  const [one, other] = [await add("one"), await add("other")];
  const edit = async (id: string) => {
    await browser.goto(`${stage.server.url}/console/apps/${id}`);
    await browser.find(READY);
    await press("Edit…", "main");
    await browser.find("dialog #field-name");
  };
  const read = () => browser.execute("return ['name', 'url']" +
    ".map((name) => document.querySelector(`#field-${name}`).value)");
  await edit(one.client_id);
  await browser.type("#field-name", "Shop 2");
  await call("PATCH", `/backend/app/${one.client_id}`, { url: "https://changed.example" });
  await edit(one.client_id);
  assert.deepEqual(await read(), ["Shop 2", "https://changed.example"]);
  await edit(other.client_id);
  assert.deepEqual(await read(), ["Shop", "https://other.example"]);
});

test("after a sign-in that interrupts a form it has what was typed, but no password", async () => {
  await signIn("/console/users");
  // In Firefox what a page stores as it leaves is lost if the next one has another process.
  await browser.execute(
    "addEventListener('pagehide', (event) => event.stopImmediatePropagation())");
  await press("Add user…", "main");
  await browser.type("#field-username", "berta");
  await browser.type("#field-password", "a long password");
  await browser.type("#field-scopes", "consumer orders");
  // Another window revokes the grant of this one.
  const { sendJson } = createClient(stage.server.url);
  const headers = { authorization: `Bearer ${token}` };
  assert.equal((await sendJson("DELETE", "/consumer/token", undefined, headers)).status, 204);
  expected = /status of 40[01]/;
  await press("Add user");
  await browser.find("#username");
  await browser.logIn("operator", password);
  await waitFor("the question", async () => await browser.text("dialog h2") === "Add user");
  const values = await browser.execute("return ['username', 'password', 'scopes']" +
    ".map((name) => document.querySelector(`#field-${name}`).value)");
  assert.deepEqual(values, ["berta", "", "consumer orders"]);
  await browser.type("#field-password", "a long password");
  await press("Add user");
  await waitFor("its page", async () => await browser.text("main h1") === "berta");
  await browser.goto(`${stage.server.url}/console/users`);
  await browser.find(READY);
  await press("Add user…", "main");
  await browser.find("dialog #field-username");
  assert.equal(await browser.execute("return document.activeElement.value"), "");
});

test("the bar of the webhooks page leads to the console, and signs out", async () => {
  await signIn("/account/webhooks");
  await waitFor("the link to the console", async () =>
    (await browser.text(".bar nav")).includes("Console"));
  const places = "return [...document.querySelectorAll('.bar a')].map((each) => each.offsetLeft)";
  const before = await browser.execute(places);
  await browser.click(".bar nav a");
  await browser.find(".bar form");
  assert.deepEqual(await browser.execute(places), before); // nothing moves from one to the other
  await browser.click(".bar nav a:nth-child(2)");
  await browser.find(".bar nav a[aria-current]:nth-child(2)");
  await press("Sign out", ".bar");
  await waitFor("the sign-in page", async () => await browser.count("#password") === 1);
  assert.match(await browser.text("[role=status]"), /You are signed out/);
  await untilGrants(0);
  await browser.goto(`${stage.server.url}/account/webhooks`);
  await browser.find("#password");
});

test("a user who may not open the console sees no link to it", async () => {
  const login = { username: "reader", password: await stage.addUser("reader", ["consumer"]) };
  await browser.logIn(login.username, login.password);
  await browser.find(READY);
  await waitFor("the bar", async () => (await browser.text(".bar")).includes("Sign out"));
  await waitFor("the whole page", async () => await browser.count("[aria-busy]") === 0);
  assert.doesNotMatch(await browser.text(".bar"), /Console/);
});
