import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { memberOf, openStage, type Stage } from "./sign_in_stage.ts";

const ENDPOINTS = fileURLToPath(new URL("../../scripts/demo/endpoints", import.meta.url));

let stage: Stage;
let browser: Browser;
let token: string;
let passwords: Readonly<Record<string, string>>;

before(async () => {
  stage = await openStage({
    env: {
      GATEPOST_ENDPOINTS: ENDPOINTS,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      // Long enough to look at a page and choose another response before a resend.
      GATEPOST_RESEND_DELAYS: "4s,30s",
    },
  });
  passwords = {
    ines: await stage.addUser("ines", ["backend", "consumer"]),
    rolf: await stage.addUser("rolf", ["backend:read"]),
  };
  const login = await createClient(stage.server.url)
    .postJson("/consumer/login", { username: "ines", password: passwords["ines"] });
  token = memberOf(login.json(), "token");
  browser = await openBrowser({ width: 1280, height: 800 });
});
after(async () => {
  await browser?.close();
  await stage?.close();
});
// CSP violations, exceptions and failed loads are all logged there.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

async function signIn(username: string, width = 1280): Promise<void> {
  await browser.clearCookies();
  await browser.resize(width, 800);
  await browser.goto(`${stage.server.url}/console`);
  await browser.logIn(username, passwords[username] ?? "");
  await browser.find("main h1");
}

async function post(path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const { status, text } = await createClient(stage.server.url).postJson(path, body, headers);
  assert.ok(status < 300, text);
}

const says = (css: string, words: string) =>
  browser.until(`document.querySelector(${JSON.stringify(css)})?.textContent
    .includes(${JSON.stringify(words)})`);

test("seven clicks after sign-in a callback has come, failed and been sent again", async () => {
  let clicks = 0;
  const click = (css: string) => {
    clicks++;
    return browser.click(css);
  };
  await signIn("ines");
  await says("main", "Nothing has been delivered yet");
  await click("main a.primary");
  await click("#use");
  await click("#dispatch");
  await says(".line li.ok", "200");
  await says(".body pre", "{");
  await says(".check.done:nth-child(3)", "Receive your first callback");
  await click("#answer-503");
  await browser.find("#answer-503[aria-pressed=true]");
  await click("#dispatch");
  await says(".line li.bad", "503");
  await says(".line li.bad + li:last-child", "once more at");
  await click("#answer-200");
  await browser.until("document.querySelectorAll('.line li.ok').length === 2"); // the resend
  await says(".line li.bad + li.ok", "200");
  await click(".spread button");
  await browser.until("document.querySelectorAll('.line li.ok').length === 3"); // the replay
  assert.equal(clicks, 7);
  const bodies = await browser.execute(
    "return [...document.querySelectorAll('.body pre')].map((each) => each.textContent)");
  assert.deepEqual(bodies, Array(4).fill('{"hello":"world"}'));
});

test("the overview has problems first, then counts, and what happens now", async () => {
  stage.appSite.answer("/down", 503);
  const endpoint = `${stage.appSite.url}/down`;
  await post("/consumer/subscription", { event: "stock.low", endpoint });
  await signIn("ines");
  await browser.find(".kpis");
  const ofNothing = await browser.execute(`
    return import(document.body.dataset.assets + "figures.js")
      .then(({ addUp, percentile }) => percentile(addUp(), 0.95))`);
  assert.deepEqual(ofNothing, [null, 0]);
  await post("/backend/event", { name: "stock.low", data: {} });
  const host = new URL(endpoint).host;
  await says(".msg.bad", `Callbacks to ${host} fail`);
  await says(".overview > section tbody tr", "stock.low");
  assert.match(await browser.text(".overview > section tbody tr"), /Resend due/);
  assert.match(await browser.text(".msg.bad"), /fail since \d\d:\d\d:\d\d\. /);

  await browser.click(".msg .quiet");
  await browser.click("dialog .primary");
  await browser.until("!document.querySelector('.msg')");

  await browser.click("a[href$='range=1h']");
  await browser.find("a[href$='range=1h'][aria-current]");
  assert.match(await browser.url(), /\/console\?range=1h$/);
  await browser.until("document.activeElement.textContent === '1 h'");
  await says(".grid tbody tr", "Failing"); // the worst first
  await says(".grid tbody tr", "/down");
  await browser.click(".figures summary");
  await browser.until("document.querySelectorAll('.figures tbody tr').length === 60");
  const ends = await browser.execute(`
    return [...document.querySelectorAll("path.ln")].map((line) => {
      const { x, width } = line.getBBox();
      return Math.round(x + width) === line.ownerSVGElement.viewBox.baseVal.width;
    })`);
  assert.ok(Array.isArray(ends) && ends.length > 0 && ends.every(Boolean));
  await browser.click(".grid tbody a.main");
  await browser.waitForUrl(/\/console\/subscriptions\/s\w+$/);
  await browser.goto(`${stage.server.url}/console/start`);
  await browser.find("#dispatch"); // for the receiver, though there is a later subscription
});

test("the dispatch dialog fills in the example of a declared event, and of no other", async () => {
  await signIn("ines");
  await browser.goto(`${stage.server.url}/console/events`);
  await browser.clickButton("Dispatch…", "main");
  const choose = (name: string) => browser.execute(`
    const [name, data] = ["name", "data"].map((each) =>
      document.querySelector("#field-" + each));
    data.value = "5";
    name.value = arguments[0];
    name.dispatchEvent(new Event("input"));
    return data.value`, name);
  await browser.find("#field-data");
  assert.equal(await choose("order.created"), "{}");
  assert.equal(await choose("never.declared"), "5");
});

test("a figure shows how it has changed, and nothing if it has not", async () => {
  const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  const counted = {
    bounds_ms: [10, 100],
    items: [
      { at: at(90), ok: 5, bad: 5, failed: 5, buckets: [10, 0, 0] },
      { at: at(30), ok: 9, bad: 1, failed: 1, mean_ms: 4e9, buckets: [10, 0, 0] },
    ],
  };
  await signIn("ines");
  await browser.find(".overview");
  const parts = await browser.execute(`const send = fetch; window.fetch = (to, init) => {
      const { pathname, searchParams } = new URL(to, location);
      if (!pathname.endsWith("/backend/series")) return send(to, init);
      const fromMs = Date.parse(searchParams.get("from"));
      const items = Array.from({ length: fromMs === 0 ? 1000 : 1 }, (_, at) =>
        ({ at: new Date(fromMs + at * 60_000).toISOString() }));
      return Promise.resolve(Response.json({ bounds_ms: [], items }));
    };
    return import(document.body.dataset.assets + "figures.js")
      .then(({ listSteps }) => listSteps({}, 0, 9e7))
      .then((steps) => [steps.length, steps[1000].at]).finally(() => window.fetch = send)`);
  // The second page begins after the first.
  assert.deepEqual(parts, [1001, new Date(999 * 60_000 + 1).toISOString()]);
  await browser.execute("const [counted] = arguments; const send = fetch; window.fetch = " +
    "(to, init) => to.includes('/backend/series') " +
    "? Promise.resolve(Response.json(counted)) : send(to, init)", counted);
  await browser.click("a[href$='range=1h']");
  await says(".kpis a:nth-child(2)", "90");
  assert.match(await browser.text(".kpis a:nth-child(2)"), /▲ 40 vs\. .*before$/);
  assert.doesNotMatch(await browser.text(".kpis a:nth-child(3)"), /[▲▼]/);
  await says(".w4 .card:last-child header", "Oldest delivery duemean up to 46 d 7 h");
  const lefts = await browser.execute(`return [".p", ".x"].map((part) => document
    .querySelector(".w4 .card:last-child " + part).getBoundingClientRect().left)`) as number[];
  assert.equal(lefts[0], lefts[1], "an axis begins where its shapes begin");
  const tops = await browser.execute(`
    return [...document.querySelectorAll(".plot path")].map((shape) => shape.getBBox().y)`);
  assert.ok(Array.isArray(tops) && tops.every((y) => y >= 0), "no shape is above its axis");
});

test("the number of waiting deliveries is shown even if the server is not ready", async () => {
  await signIn("ines");
  await browser.find(".kpis");
  await browser.execute(`{ const send = fetch; window.fetch = async (to, init) =>
    new Response(await (await send(to, init)).blob(),
      { status: String(to).includes("/system/ready") ? 503 : 200 }); }`);
  await browser.click("a[href$='range=24h']");
  await browser.find("a[href$='range=24h'][aria-current]");
  const waiting = "document.querySelector('.kpi:nth-child(4)').textContent";
  await browser.until(`/^Waiting\\d/.test(${waiting})`);
});

test("on a phone the mark of a chart stays inside the window", async () => {
  await signIn("rolf", 360);
  await browser.execute(`
    const { fetch } = window;
    const since = new Date(Date.now() - 2.3 * 86_400_000).toISOString();
    const failing = { id: "failing:x", kind: "failing", title: "x", detail: "", since };
    window.fetch = (url, init) => /backend.(problem|stream)/.test(url)
      ? Promise.resolve(Response.json({ items: [failing], next_cursor: null }))
      : fetch(url, init)`);
  await browser.click("a[href$='range=7d']");
  await browser.until("document.querySelector('.mark')?.textContent.startsWith('failing since')");
  assert.equal(await browser.execute("return document.documentElement.scrollWidth"), 360);
});

test("with text of twice the size each page fits a phone's width", async () => {
  const setSize = (standard: number) =>
    browser.devtools("Page.setFontSizes", { fontSizes: { standard } });
  await setSize(32);
  await signIn("ines", 360);
  const isTwice = await browser.execute("return matchMedia('(max-width: 11.25rem)').matches");
  assert.equal(isTwice, true, "360 px are 11.25 rem of 32 px");
  const pages = ["console", "console/start", "console/apps?do=first", "console/explorer/addUser",
    "console/keys", "console/deliveries", "console/subscriptions", "account", "account/webhooks"];
  for (const page of pages) {
    await browser.goto(`${stage.server.url}/${page}`);
    await browser.find("main:not([aria-busy]) h1");
    await browser.until("!document.querySelector('[aria-busy]')");
    const width = await browser.execute("return document.documentElement.scrollWidth");
    assert.equal(width, 360, page);
  }
  await browser.goto(`${stage.server.url}/console`);
  await browser.click(".tabs-bottom button"); // it is scrolled to
  await browser.find(".side:popover-open a");
  await setSize(16);
});

test("with reduced motion the latest deliveries stand still until they are resumed", async () => {
  await browser.prefer({ "prefers-reduced-motion": "reduce" });
  await signIn("ines", 320);
  await browser.find(".overview");
  const rows = "document.querySelectorAll('.overview > section tbody tr').length";
  const before = Number(await browser.execute(`return ${rows}`));
  await post("/backend/event", { name: "stock.low", data: {} });
  await says(".overview > section button", "Resume: 1 new");
  assert.equal(await browser.execute(`return ${rows}`), before);
  const width = "return document.documentElement.scrollWidth";
  assert.equal(await browser.execute(width), 320);
  await browser.execute("document.querySelector('.overview > section button').focus()");
  await browser.press("\uE007");
  await browser.until(`${rows} === ${before + 1}`);
  await browser.prefer({});
});

test("a user with scope backend:read has no button that changes anything", async () => {
  await signIn("rolf", 320);
  await browser.find(".kpis");
  assert.equal(await browser.count(".msg .quiet"), 0);
  await browser.goto(`${stage.server.url}/console/start`);
  await says(".check.done:nth-child(3)", "Receive your first callback");
  assert.match(await browser.text(".check:nth-child(2)"), /loaded\s+None that you can call\.$/);
  assert.equal(await browser.count("main button, main [href*='do=first']"), 0);
  assert.equal(await browser.execute("return document.documentElement.scrollWidth"), 320);
});

test("on a machine whose clock is wrong all times are those of the server", async () => {
  const endpoint = `${stage.appSite.url}/late`;
  stage.appSite.answer("/late", 503);
  await signIn("ines");
  for (const hours of [-3, 3]) {
    const { identifier } = await browser.devtools("Page.addScriptToEvaluateOnNewDocument", {
      source: `const Right = Date; window.Date = class extends Right {
        constructor(...all) { super(...all.length > 0 ? all : [Date.now()]); }
        static now() { return Right.now() + ${hours} * 3600e3; }
      }; const send = fetch; window.asked = []; window.fetch = (to, init) =>
        (asked.push(new URL(to, location)), send(to, init));`,
    }) as { identifier: string };
    await post("/consumer/subscription", { event: `late.${hours + 3}`, endpoint });
    await post("/backend/event", { name: `late.${hours + 3}`, data: {} });
    await browser.goto(`${stage.server.url}/console/deliveries?since=1h`);
    await says("tbody code", `late.${hours + 3}`);
    assert.match(String(await browser.attribute("tbody time", "title")), /^(just now|\d+ s ago)$/);
    await browser.goto(`${stage.server.url}/console`);
    await browser.find(".kpis");
    const until = await browser.execute("return asked.filter(({ pathname }) => " +
      "pathname === '/backend/series').map(({ searchParams }) => searchParams.get('to'))[0]");
    assert.ok(Math.abs(Date.parse(String(until)) - Date.now()) < 130_000, String(until));
    await browser.click(".msg .quiet");
    await browser.click("dialog .primary");
    await browser.until("!document.querySelector('dialog')");
    await browser.goto(`${stage.server.url}/console/start`);
    await browser.click("#use");
    await browser.find("#dispatch");
    await browser.devtools("Page.removeScriptToEvaluateOnNewDocument", { identifier });
  }
});
