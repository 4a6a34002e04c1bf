import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { until } from "../helpers/event_stage.ts";
import { createClient } from "../helpers/http_client.ts";
import { memberOf, openStage, type Stage } from "../helpers/sign_in_stage.ts";

const ENDPOINTS = fileURLToPath(new URL("../../scripts/demo/endpoints", import.meta.url));
const ROW = ".list-of tbody tr:first-child";

let stage: Stage;
let browser: Browser;
const passwords = new Map<string, string>();

before(async () => {
  stage = await openStage({
    env: {
      GATEPOST_ENDPOINTS: ENDPOINTS,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      GATEPOST_RESEND_DELAYS: "300ms",
      GATEPOST_DISTRIBUTE_INTERVAL: "100ms",
    },
  });
  browser = await openBrowser({ width: 1280, height: 900 });
  for (const [name, ...scopes] of [
    ["marta", "consumer"],
    ["owen", "backend", "consumer"],
    ["rita", "backend:read"],
  ] as const) passwords.set(name, await stage.addUser(name, scopes));
});
after(async () => {
  await browser?.close();
  await stage?.close();
});
beforeEach(async () => {
  await browser.devtools("Network.clearBrowserCookies", {});
});
// CSP violations and failed loads speak there; a refusal that a page shows does too.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

async function signIn(username: string, path: string): Promise<void> {
  await browser.goto(stage.server.url + path);
  await browser.type("#username", username);
  await browser.type("#password", passwords.get(username) ?? "");
  await browser.click("form [type=submit]");
  await browser.find("main h1");
}

/** Calls as somebody and returns the response's body. */
async function call(username: string, method: string, path: string, body?: object) {
  const client = createClient(stage.server.url);
  const given = { username, password: passwords.get(username) };
  const token = memberOf((await client.postJson("/consumer/login", given)).json(), "token");
  const headers = { authorization: `Bearer ${token}` };
  const answer = await client.sendJson(method, path, body, headers);
  assert.ok(answer.status < 300, answer.text);
  return answer.status === 204 ? {} : answer.json();
}

const dispatch = (name: string) => call("owen", "POST", "/backend/event", { name, data: {} });

async function subscribe(username: string, event: string, status: number): Promise<string> {
  stage.appSite.answer(`/${event}`, status);
  const endpoint = `${stage.appSite.url}/${event}`;
  return memberOf(await call(username, "POST", "/consumer/subscription", { event, endpoint }), "id");
}

const shows = (css: string, pattern: RegExp) =>
  until(async () => pattern.test(await browser.text(css)), () => `${css} shows no ${pattern}`);

/** Presses a button by what it says; in a window where one is open. */
async function press(words: string): Promise<void> {
  const script = `const inside = [...document.querySelectorAll("main, dialog")].at(-1);
    const found = [...inside.querySelectorAll("button:enabled")]
      .find((each) => each.innerText.trim() === arguments[0]);
    found?.click(); return found !== undefined;`;
  await until(async () => await browser.execute(script, words) === true, () => `no ${words}`);
}

test("a person subscribes, and the code shown verifies a test that is seen to arrive", async () => {
  await signIn("marta", "/account/webhooks");
  await press("Subscribe");
  assert.equal(await browser.execute("return document.querySelector('#event').value"), "order.created");
  await browser.type("#field", "http://nowhere.invalid:99999");
  await browser.type("#field", `${stage.appSite.url}/hook`);
  await browser.click("dialog .primary");
  await shows("#dialog-title", /signing secret/);
  const [secret, source] = await Promise.all(["dialog .code pre", "h3 + .code pre"].map(browser.text));
  assert.match(secret ?? "", /^whsec_/);
  await press("I have kept it");
  await shows("main h1", /^127\.0\.0\.1:\d+\/hook$/);

  await press("Send test…");
  await press("Send test");
  await shows("ol.line", /^204 attempt 1/);
  assert.match(await browser.url(), /\?delivery=d0\w+$/);
  const [callback] = await stage.appSite.waitFor(1, 5_000, "/hook");
  const { isGenuine } = await import(`data:text/javascript,${encodeURIComponent(source ?? "")}`);
  assert.equal(isGenuine(callback?.headers, callback?.body, secret), true);
  assert.equal(isGenuine(callback?.headers, "{}", secret), false);

  await press("Replace secret…");
  await press("Replace secret");
  await shows("dialog .code pre", /^whsec_/);
  assert.notEqual(await browser.text("dialog .code pre"), secret);
});

test("what failed is seen, sent again one by one, paused and deleted by its owner", async () => {
  const id = await subscribe("marta", "tea.cold", 503);
  await dispatch("tea.cold");
  await signIn("marta", `/account/webhooks/${id}`);
  await shows(ROW, /503, failed/);
  await browser.click(`${ROW} a`);
  await shows("ol.line", /503 attempt 1[^]*503 attempt 2/);
  stage.appSite.answer("/tea.cold", 204);
  await press("Send again…");
  await press("Send 1 again");
  await shows("ol.line", /204 attempt 1/);
  await until(async () => /Delivered/.test(await browser.text(ROW)));

  await press("Pause…");
  await browser.find("#field");
  await browser.execute("document.querySelector('#field').value = '2099-01-31T12:00'");
  await press("Pause");
  await shows(".head", /Paused until 31 Jan 2099, 12:00/);
  await dispatch("tea.cold");
  await shows(".list-of .fresh", /1 new/);
  await press("Resume…");
  await shows("dialog", /1 delivery that wait/);
  await press("Resume");
  await shows(".head", /Active/);
  await stage.appSite.waitFor(4, 5_000, "/tea.cold");

  await press("Delete…");
  assert.equal(await browser.attribute("dialog .danger", "disabled"), "true");
  await browser.type("dialog [name=typed]", new URL(stage.appSite.url).host);
  await browser.click("dialog .danger");
  await browser.waitForUrl(/webhooks$/);
  assert.deepEqual(await call("marta", "GET", "/consumer/subscription?event=tea.cold"), {
    items: [],
    next_cursor: null,
  });
});

test("an operator finds what fails, sees it live, and moves it; a reader changes nothing", async () => {
  const id = await subscribe("marta", "milk.sour", 500);
  await dispatch("milk.sour");
  await signIn("owen", "/console/subscriptions?sort=worst");
  await browser.find(".hooks a.main");
  await browser.press("j\uE007");
  await browser.waitForUrl(new RegExp(`/console/subscriptions/${id}$`));
  await shows(".msg.bad", /has failed, at last by 500\..*If none does by \d+ \w+, \d\d:\d\d, /);
  await shows(".head", /Failing since [^]* receives milk\.sour\s+of marta through login/);
  assert.equal(await browser.execute("return document.activeElement.tagName"), "H1");
  await shows(".live", /Live/);
  await shows(ROW, /500, failed/);
  await dispatch("milk.sour");
  await shows(".list-of .fresh", /1 new/);
  await press("1 new");
  await shows(ROW, /500, failed/); // it was waiting, and changes in its place
  await browser.press("p");
  await press("Pause");
  await shows(".head", /Paused/);
  await press("Change endpoint…");
  await browser.type("#field", `${stage.appSite.url}/moved`);
  await press("Change endpoint");
  await shows("main h1", /\/moved$/);

  await browser.devtools("Network.clearBrowserCookies", {});
  await signIn("rita", `/console/subscriptions/${id}`);
  await shows(".head", /Paused/);
  assert.equal(await browser.count(".head button, .acts button"), 0);
  await browser.goto(`${stage.server.url}/console/subscriptions?status=paused&event=milk.sour`);
  await browser.find(`.hooks a.main[href$="${id}"]`);
  await browser.click(".token button");
  await browser.waitForUrl(/\?status=paused$/);
});
