import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { PASSWORD, type TestUser } from "../helpers/gatepost.ts";
import { readItems } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const ORDERS = `const schema = { type: "object", properties: { item: { type: "string" } } };
export const order = {
  method: "POST", path: "/orders", scope: [], handle() {},
  emits: { "order.created": { description: "An order was placed", schema } },
};`;
const ROW = ".list-of tbody tr:first-child";

let stage: EventStage;
let browser: Browser;
let marta: TestUser;
let token: string;

before(async () => {
  stage = await startEventStage({ GATEPOST_RESEND_DELAYS: "300ms" }, { "orders.mjs": ORDERS });
  marta = await stage.gatepost.createUser({ scopes: ["consumer"] });
  token = await stage.gatepost.login(marta);
  browser = await openBrowser({ width: 1280, height: 900 });
});
after(async () => {
  await browser?.close();
  await stage?.stop();
});
beforeEach(() => browser.clearCookies());
// CSP violations and failed loads are logged there.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

async function signIn(username: string, path: string): Promise<void> {
  await browser.goto(stage.gatepost.url + path);
  await browser.logIn(username, PASSWORD);
  await browser.find("main[tabindex='-1']"); // the frame, which a login page does not have
}

const shows = (css: string, pattern: RegExp) =>
  until(async () => pattern.test(await browser.text(css)), () => `${css} shows no ${pattern}`);

/** Presses the button with these words, in a dialog if one is open. */
async function press(words: string): Promise<void> {
  const script = `const inside = [...document.querySelectorAll("main, dialog")].at(-1);
    const found = [...inside.querySelectorAll("button:enabled")]
      .find((each) => each.innerText.trim() === arguments[0]);
    found?.click(); return found !== undefined;`;
  await until(async () => await browser.execute(script, words) === true, () => `no ${words}`);
}

test("a user subscribes, and the code that is shown verifies a test callback", async () => {
  await signIn(marta.username, "/account/webhooks?q=placed");
  await shows(".list", /order\.created\s+An order was placed\s+\{ item \}/);
  await press("Subscribe");
  await browser.type("#field", "https://user:password@crm.example/");
  await press("Subscribe");
  await shows("dialog", /Must not contain credentials\.\s+Request \w{24}/);
  assert.match(String(await browser.consoleErrors()), /^[^,]* status of 400 [^,]*$/);
  await browser.type("#field", `${stage.receiver.url}/hook`);
  await press("Subscribe");
  await shows("dialog h2", /signing secret/);
  const isCovered = await browser.execute(`
    const text = document.createRange();
    text.selectNodeContents(document.querySelector("dialog .code pre"));
    const button = document.querySelector("dialog .code .btn");
    return button.getBoundingClientRect().bottom > text.getBoundingClientRect().top + 4`);
  assert.equal(isCovered, false); // by its copy button
  const secret = await browser.text("dialog .code pre");
  const source = await browser.text("h3 + .code pre");
  await press("I have saved it");
  await shows("main h1", /^127\.0\.0\.1:\d+\/hook$/);
  await shows(".answers", /No attempt yet\./);
  await press("Send test…");
  await press("Send test");
  await shows("ol.line", /^Attempt 1 · 204/);
  assert.match(await browser.url(), /\?delivery=d0\w+$/);
  const [callback] = await stage.receiver.waitFor(1, 5_000, "/hook");
  const { isGenuine } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  assert.equal(isGenuine(callback?.headers, callback?.body, secret), true);
  assert.equal(isGenuine(callback?.headers, "{}", secret), false);

  await press("Replace secret…");
  await press("Replace secret");
  await shows("dialog .code pre", /^whsec_/);
  assert.notEqual(await browser.text("dialog .code pre"), secret);
});

test("an owner sends a failed delivery again, pauses, resumes and deletes a webhook", async () => {
  const { id, path } = await stage.subscribe(token, "tea.cold", 503);
  await stage.dispatch("tea.cold", {});
  await signIn(marta.username, `/account/webhooks/${id}?delivery=d0gone`);
  await shows(".later .msg", /Request \w{24}/); // the rest of the page is shown all the same
  assert.match(String(await browser.consoleErrors()), /^[^,]* status of 404 [^,]*$/);
  await shows(ROW, /503, failed/);
  await browser.click(`${ROW} a`);
  await shows("ol.line", /Attempt 2 · 503[^]*Attempt 1 · 503/);
  stage.receiver.answer(path, 204);
  await press("Send again…");
  await press("Send 1 again");
  await shows("ol.line", /Attempt 1 · 204/);
  await until(async () => /Delivered/.test(await browser.text(ROW)));

  await press("Pause…");
  await browser.find("#field");
  await browser.execute("document.querySelector('#field').focus()");
  await browser.press("013120991200PM"); // the year field takes four digits
  await press("Pause");
  await shows(".head", /Paused until 31 Jan 2099, 12:00/);
  await stage.dispatch("tea.cold", {});
  await shows(".list-of .fresh", /1 new/);
  await press("Resume…");
  await shows("dialog", /1 delivery that waits/);
  await press("Resume");
  await shows(".head", /Active/);
  await stage.receiver.waitFor(4, 5_000, path);

  await press("Delete…");
  assert.equal(await browser.attribute("dialog .danger", "disabled"), "true");
  await browser.type("dialog [name=typed]", new URL(stage.receiver.url).host);
  await press("Delete");
  await browser.waitForUrl(/webhooks$/);
  const left = await stage.call("GET", "/consumer/subscription?event=tea.cold", token);
  assert.deepEqual(readItems(left), []);
});

test("an operator sees failures live and changes the endpoint; a reader cannot", async () => {
  const { id } = await stage.subscribe(token, "milk.sour", 500);
  await stage.dispatch("milk.sour", {});
  await signIn("admin", "/console/subscriptions?sort=worst");
  await browser.find(".hooks a.main");
  await browser.press("j\uE007");
  await browser.waitForUrl(new RegExp(`/console/subscriptions/${id}$`));
  await shows(".msg.bad", /has failed, at last by 500\..*If none does by \d+ \w+, \d\d:\d\d, /);
  await shows(".head", new RegExp(`Failing since [^]*of ${marta.username} through login`));
  assert.equal(await browser.execute("return document.activeElement.tagName"), "H1");
  await shows(".live", /Live/);
  await shows(ROW, /500, failed/);
  await browser.execute("document.querySelector('.head a[href*=users]').click()");
  await shows("main", /^\S+\s+Users[^]*\sFailing\s+milk\.sour\s/); // its owner's
  await browser.back();
  await shows(".live", /Live/);
  await stage.dispatch("milk.sour", {});
  await press("1 new");
  await shows(ROW, /500, failed/); // it was waiting, and changes in place
  await shows(ROW, /●●(?!○)/); // both attempts that a delivery has here
  await browser.press("p");
  await press("Pause");
  await shows(".head", /Paused/);
  await press("Change endpoint…");
  await browser.type("#field", `${stage.receiver.url}/moved`);
  await press("Change endpoint");
  await shows("main h1", /\/moved$/);

  const reader = await stage.gatepost.createUser({ scopes: ["backend:read"] });
  await browser.clearCookies();
  await signIn(reader.username, `/console/subscriptions/${id}`);
  await shows(".head", /Paused/);
  assert.equal(await browser.count(".head button, .acts button"), 0);
  await browser.goto(`${stage.gatepost.url}/console/subscriptions?status=paused&event=milk.sour`);
  await browser.find(`.hooks a.main[href$="${id}"]`);
  await browser.click(".token button");
  await browser.waitForUrl(/\?status=paused$/);
});

test("an old delivery that is sent again is not counted as new", async () => {
  const { id, path } = await stage.subscribe(token, "jam.made", 200);
  for (let count = 0; count < 11; count++) await stage.dispatch("jam.made", { count });
  await stage.receiver.waitFor(11, 5_000, path);
  const list = `/backend/delivery?subscription=${id}`;
  const idsNow = async () =>
    readItems(await stage.call("GET", list, stage.admin)).map(({ id }) => String(id));
  await signIn("admin", `/console/subscriptions/${id}`);
  await shows(".live", /Live/);
  const resend = `/backend/delivery/${(await idsNow()).at(-1)}/resend`;
  await stage.call("POST", resend, stage.admin, { status: "delivered" });
  await stage.receiver.waitFor(12, 5_000, path);
  await stage.dispatch("jam.made", {});
  await press("1 new");
  assert.equal(await browser.attribute(ROW, "data-id"), (await idsNow())[0]);
});

test("the page of a subscription says so when the subscription is deleted", async () => {
  const { id } = await stage.subscribe(token, "bread.old", 200);
  await signIn("admin", "/console/subscriptions?event=bread.old");
  await browser.execute("const begin = setTimeout; " +
    "window.setTimeout = (act, ms) => begin(act, ms / 20);");
  await browser.click("a.main");
  await shows(".head", /Active/);
  await stage.call("DELETE", `/consumer/subscription/${id}`, token);
  await shows("main", /There is no such subscription\./);
  assert.match(String(await browser.consoleErrors()), /status of 404/);
});

test("a search field says what it finds, and an empty list that it is filtered", async () => {
  await signIn("admin", "/console/subscriptions?event=no.such");
  await shows(".hooks .empty", /^No subscription matches these filters\. Remove one/);
  assert.match(await browser.label("[type=search]"), /^Endpoint begins with/);
  await browser.goto(`${stage.gatepost.url}/console/apps?q=none`);
  await shows(".empty", /^No app matches these filters\. Remove one/);
  await browser.click(".token button");
  await shows(".empty", /^No app yet: one that is added may ask for tokens\.$/);
  await browser.click(".nav [data-page=explorer]");
  await shows("h1", /API explorer/);
  assert.equal(await browser.label("[type=search]"), "Filter calls");
});
