import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { until } from "../helpers/until.ts";
import { memberOf, openStage, type Stage } from "./sign_in_stage.ts";

const [ENTER, ESCAPE] = ["\uE007", "\uE00C"];
const READY = "main:not([aria-busy]) h1";
const DO_IT = "dialog .df .primary";

let stage: Stage;
let browser: Browser;
let post: (path: string, body: object) => Promise<unknown>;
/** The failed loads that a test expects. */
let expected: RegExp | undefined;

before(async () => {
  stage = await openStage({
    env: { GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8", GATEPOST_RESEND_DELAYS: "10ms" },
  });
  const password = await stage.addUser("olga", ["backend", "consumer"]);
  for (let at = 0; at < 26; at++) await stage.addUser(`user${at}`, ["consumer"]);
  const client = createClient(stage.server.url);
  const login = await client.postJson("/consumer/login", { username: "olga", password });
  const authorization = `Bearer ${memberOf(login.json(), "token")}`;
  post = async (path, body) => (await client.postJson(path, body, { authorization })).json();
  for (const path of ["/well", "/down"]) {
    await post("/consumer/subscription", { event: "sent", endpoint: stage.appSite.url + path });
  }
  stage.appSite.answer("/well", 200);
  stage.appSite.answer("/down", 503);
  await post("/backend/event", { name: "sent", data: 1 });
  browser = await openBrowser({ width: 1280, height: 800 });
  await browser.goto(`${stage.server.url}/console`);
  await browser.logIn("olga", password);
  await browser.find(READY);
});
after(() => Promise.all([browser?.close(), stage?.close()]));
afterEach(async () => {
  const errors = await browser.consoleErrors();
  assert.deepEqual(errors.filter((error) => !expected?.test(error)), []);
  expected = undefined;
});

async function open(path: string): Promise<void> {
  await browser.goto(`${stage.server.url}/console/${path}`);
  await browser.find(READY);
  await browser.until("!document.querySelector('[aria-busy]')");
}
/** Presses Enter on what a selector finds. */
async function enter(css: string): Promise<void> {
  await browser.find(css);
  await browser.execute("document.querySelector(arguments[0]).focus()", css);
  await browser.press(ENTER);
}
const read = (expression: string) => browser.execute(`return ${expression}`);
/** Waits until the focus is at what a selector finds. */
async function focusIsAt(css: string): Promise<void> {
  await until(() => read(`document.activeElement.matches(${JSON.stringify(css)})`), async () =>
    `the focus is at ${await read("document.activeElement.outerHTML.slice(0, 200)")}`);
}

test("a button that adds rows moves the focus to the first of them", async () => {
  await open("users");
  await enter(".foot .btn");
  await focusIsAt("tr:nth-child(26) a.main");
  await open("deliveries");
  await browser.until("/Live/.test(document.querySelector('.live').textContent)");
  await post("/backend/event", { name: "sent", data: 2 });
  await enter(".fresh:not([hidden])");
  await focusIsAt("tbody tr:first-child a.main");
});

test("after a dialog the focus is at its button again, even in a list made anew", async () => {
  await open("cronjobs");
  for (const key of [ESCAPE, ENTER]) {
    await enter("tr:nth-child(3) .btn");
    await browser.find(DO_IT);
    await browser.execute("document.querySelector('main tbody').replaceWith(" +
      "document.querySelector('main tbody').cloneNode(true))");
    if (key === ENTER) await enter(DO_IT);
    else await browser.press(key);
    await browser.until("!document.querySelector('dialog')");
    await focusIsAt("tr:nth-child(3) .btn");
    await open("cronjobs");
  }
});

test("sending a delivery again leaves the focus in its panel", async () => {
  await open("deliveries?status=delivered");
  await browser.click("a.main");
  await enter("[data-key=r]");
  await browser.click("dialog [type=checkbox]");
  await enter(DO_IT);
  await browser.until("/· 200[^]*· 200/.test(document.querySelector('.line').textContent)");
  await focusIsAt(".insp *");
});

test("sending a call and closing a notice leave the focus on the page", async () => {
  await open("explorer/getHealth");
  await enter(".acts .primary");
  await browser.until("document.querySelector('.trio .st')");
  await focusIsAt(".acts .primary");
  await open("settings");
  await enter(".head .btn");
  await enter(DO_IT);
  await enter(".toast button");
  await browser.until("!document.querySelector('.toast')");
  await focusIsAt("h1");
});

test("a dialog that is refused focuses the invalid field, and going back closes it", async () => {
  expected = /status of 400/;
  await open("apps");
  await browser.click(".nav [data-page=users]");
  await browser.until("document.querySelector('h1').textContent === 'Users'");
  await enter(".head .primary");
  await browser.type("#field-username", "olga");
  await browser.type("#field-password", "short");
  await enter(DO_IT);
  await focusIsAt("#field-password[aria-invalid=true]");
  await browser.execute("history.back()");
  await browser.until("/apps$/.test(location) && !document.querySelector('dialog')");
});

test("pressing Enter twice keeps a new secret open, and says whether it was copied", async () => {
  await stage.addApp("shop", { name: "\u200b\u00ad" });
  await open("apps");
  assert.equal(await browser.text("a.main"), "?"); // visible, so that it can be found
  await browser.click("a.main");
  await browser.until("document.querySelector('[data-key^=\"New secret\"]')");
  await enter("[data-key^='New secret']");
  await enter(DO_IT);
  await browser.find("dialog pre");
  await focusIsAt("dialog .code button");
  for (const [how, words] of [["reject", "Not copied: select it."], ["resolve", "Copied."]]) {
    await browser.execute(`navigator.clipboard.writeText = async () => Promise.${how}()`);
    await browser.press(ENTER);
    const last = "document.querySelector('dialog [aria-live]')?.lastChild?.firstChild?.textContent";
    await browser.until(`${last} === "${words}"`);
  }
  await browser.press(ESCAPE);
  await browser.until("!document.querySelector('dialog')");
  await browser.until("document.querySelector('.msg b')?.ariaLive === 'off'"); // not announced
});

test("a new page is shown from its top and is in the history once", async () => {
  await browser.resize(1280, 300);
  await open("subscriptions");
  await browser.execute("scrollTo(0, 999); document.querySelector('a.main').focus()");
  await browser.press(ENTER);
  await browser.waitForUrl(/subscriptions\/s/);
  await focusIsAt("h1");
  assert.equal(await read("scrollY"), 0);
  const before = await read("history.length");
  for (let times = 2; times > 0; times--) await browser.click(".nav [data-page=apps]");
  assert.equal(await read("history.length"), Number(before) + 1);
  await browser.resize(1280, 800);
});

test("a problem is announced once, and muting it leaves the focus on the page", async () => {
  await open("");
  await browser.find(".msg .quiet");
  await browser.execute("window.said = 0; new MutationObserver((all) => said += all.length)" +
    ".observe(document.querySelector('.msg').parentElement, { childList: true })");
  for (let at = 0; at < 3; at++) {
    await post("/backend/event", { name: "sent", data: at });
    await browser.until(
      `document.querySelectorAll('.overview > section tbody tr').length > ${at}`);
  }
  assert.equal(await read("said"), 0);
  await enter(".msg .quiet");
  await enter(DO_IT);
  await browser.until("!document.querySelector('.msg')");
  await focusIsAt("h1");
});

test("the outline of the focused element is not cut off", async () => {
  const [tab, right] = ["\uE004", "\uE014"];
  const places = [["", "a.kpi", tab], ["explorer", ".tabs button", right]] as const;
  for (const [page, css, key] of places) {
    await open(page);
    await browser.execute("document.querySelector(arguments[0]).focus()", css);
    await browser.press(key);
    const style = "getComputedStyle(document.activeElement)";
    assert.match(String(await read(`${style}.outline`)), /solid 2px/);
    assert.equal(await read(`${style}.outlineOffset`), "-2px");
  }
  const tabs = "[...document.querySelectorAll('.tabs button')]";
  assert.equal(await read(`${tabs}.filter(({ tabIndex }) => tabIndex === 0).length`), 1);
  assert.equal(await read("document.activeElement.ariaSelected"), "true");
  await open("explorer/addUser"); // upwards nothing is hidden by the search field
  await browser.execute("const all = [...document.querySelectorAll('.ops details[open] li a')];" +
    "document.querySelector('.ops').scrollTop = 9999; all.at(-1).focus({ preventScroll: true })");
  for (let times = 12; times > 0; times--) {
    await browser.devtools("Input.dispatchKeyEvent",
      { type: "keyDown", key: "Tab", code: "Tab", windowsVirtualKeyCode: 9, modifiers: 8 });
    assert.equal(await read("document.activeElement.getBoundingClientRect().top >= " +
      "document.querySelector('.ops .search').getBoundingClientRect().bottom - 1"), true);
  }
});

test("at 320 px lists show what no other page shows, and calls are not cut off", async () => {
  await browser.resize(320, 640);
  const wanted = { cronjobs: /Last run[^]*Next run/, keys: /Alg ES256[^]*Published until/,
    audit: /From 127\.0\.0\.1/ };
  const shown = "[...document.querySelectorAll('main tbody tr:first-child td')].map((cell) => " +
    "getComputedStyle(cell, '::before').content + (cell.checkVisibility() ? cell.innerText : ''))";
  for (const [page, words] of Object.entries(wanted)) {
    await open(page);
    const text = String(await read(`${shown}.join()`)).replaceAll('"', "").replaceAll(" ,", ",");
    assert.match(text.replace(/ {2,}/g, " "), words, page);
  }
  await open("subscriptions?sort=worst");
  await browser.click("a.main");
  await browser.find("main .days");
  const words = "document.querySelector('.list-of .st').textContent = 'unreachable, resend due'";
  await browser.execute(`${words}; document.querySelector(".list-of .fresh").hidden = false`);
  assert.equal(await read("document.querySelector('.list-of a.main').scrollWidth - " +
    "document.querySelector('.list-of a.main').clientWidth"), 0);
  const box = (css: string) => `document.querySelector(".list-of ${css}").getBoundingClientRect()`;
  assert.ok(Number(await read(`${box("time")}.top - ${box(".fresh")}.bottom`)) > -4);
  await open("explorer/addUser");
  assert.deepEqual(await read("[...document.querySelectorAll('.ops li a *')]" +
    ".filter((each) => getComputedStyle(each).textOverflow === 'ellipsis').length"), 0);
  await browser.resize(1280, 800);
});

test("on a phone controls are at least 44 px tall", async () => {
  await browser.resize(360, 740);
  const small = "[...document.querySelectorAll('main :is(.btn, .seg a, .seg button, [role=tab], " +
    "summary)')].filter((each) => each.checkVisibility() && each.offsetHeight < 44)" +
    ".map((each) => `${each.textContent} ${each.className} ${each.offsetHeight}`)";
  for (const page of ["", "cronjobs", "keys", "start", "explorer/addUser", "deliveries"]) {
    await open(page);
    assert.deepEqual(await read(small), [], page);
  }
  await browser.click("a.main");
  await browser.find(".insp h2");
  await browser.until("!document.querySelector('[aria-busy]')");
  assert.deepEqual(await read(small), []);
  await browser.execute("document.querySelector('.insp h2 code').textContent = 'order.created'");
  const tops = await read("[...document.querySelectorAll('.insp header .btn')]" +
    ".map((each) => each.offsetTop)");
  assert.ok(Array.isArray(tops) && tops.length === 2 && tops[0] === tops[1], String(tops));
  await browser.resize(1280, 800);
});

test("a long text takes three lines of a list, and words beside it are not broken", async () => {
  await open("deliveries");
  await browser.execute("document.querySelector('td a.main').textContent = 'x/'.repeat(900)");
  assert.ok(Number(await read("document.querySelector('td a.main').offsetHeight")) < 80);
  await open("events");
  await browser.click("a.main");
  await browser.find(".split .insp h2");
  assert.ok(Number(await read("document.querySelector('td.by').offsetWidth")) >= 90);
  await open("apps");
  await enter(".head .primary");
  await browser.find("dialog .pick");
  const top = (css: string) => read(`document.querySelector('${css}').getBoundingClientRect().top`);
  const [box, words] = [await top("dialog .pick input"), await top("dialog .pick b")];
  assert.ok(Math.abs(Number(box) - Number(words)) < 12, `${box} and ${words}`);
  await browser.press(ESCAPE);
});

test("nothing moves by itself for longer than five seconds (WCAG 2.2, 2.2.2)", async () => {
  await open("deliveries");
  await browser.find("main .live i");
  const seconds = await browser.execute(`
    const all = [...document.querySelectorAll("*")].map((each) => getComputedStyle(each))
      .filter(({ animationName }) => animationName !== "none");
    return all.map(({ animationDuration, animationIterationCount }) =>
      parseFloat(animationDuration) * animationIterationCount)`); // null for "infinite"
  assert.ok(Array.isArray(seconds) && seconds.length > 0);
  assert.ok(seconds.every((each) => each !== null && each <= 5), String(seconds));
});

test("in forced colours the legend of a chart keeps its marks", async () => {
  await open("");
  await browser.prefer({ "forced-colors": "active" });
  const mark = "getComputedStyle(document.querySelector('.key span'), '::before')";
  assert.equal(await read(`${mark}.forcedColorAdjust`), "none");
});

test("no element with a fixed position is printed over a page", async () => {
  await browser.resize(794, 1123);
  await open("users");
  await browser.devtools("Emulation.setEmulatedMedia", { media: "print" });
  assert.deepEqual(await read("[...document.querySelectorAll('body *')].filter((each) => " +
    "each.checkVisibility() && getComputedStyle(each).position === 'fixed')" +
    ".map((each) => each.className)"), []);
});
