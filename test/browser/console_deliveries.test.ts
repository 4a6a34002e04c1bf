import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { memberOf, openStage, type Stage } from "../helpers/sign_in_stage.ts";

const LONG = "y".repeat(100_000);
const HOSTILE = { html: "<img src=x onerror=alert(1)>", rtl: "\u202Egnp", long: LONG };

let stage: Stage;
let browser: Browser;
let secret: string;
let post: (path: string, body: object) => Promise<unknown>;

before(async () => {
  stage = await openStage({
    env: { GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8", GATEPOST_RESEND_DELAYS: "10ms" },
  });
  const client = createClient(stage.server.url);
  const password = await stage.addUser("olga", ["backend", "backend:read", "consumer"]);
  const login = await client.postJson("/consumer/login", { username: "olga", password });
  const authorization = `Bearer ${memberOf(login.json(), "token")}`;
  post = async (path, body) => (await client.postJson(path, body, { authorization })).json();
  const endpoint = `${stage.appSite.url}/hook`;
  const subscribed = await post("/consumer/subscription", { event: "order.created", endpoint });
  secret = memberOf(subscribed, "secret");
  browser = await openBrowser({ width: 1280, height: 900 });
  await browser.goto(`${stage.server.url}/console/deliveries`);
  await browser.type("#username", "olga");
  await browser.type("#password", password);
  await browser.click("form [type=submit]");
  await browser.find("main h1");
});
after(async () => {
  await browser?.close();
  await stage?.close();
});
// CSP violations and failed loads speak there.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

/** Waits until a text is seen there. */
async function seen(css: string, pattern: RegExp): Promise<string> {
  for (const untilMs = Date.now() + 10_000;; await pause(50)) {
    const text = await browser.count(css) > 0 ? await browser.text(css) : "";
    if (pattern.test(text)) return text;
    if (Date.now() > untilMs) throw new Error(`${css} does not say ${pattern} but: ${text}`);
  }
}

/** Dispatches events which all fail, at last. */
async function fail(...data: readonly unknown[]): Promise<void> {
  stage.appSite.answer("/hook", 503);
  for (const each of data) await post("/backend/event", { name: "order.created", data: each });
  const dryRun = { status: "failed", dry_run: true };
  const isStored = async () => JSON.stringify(await post("/backend/delivery/resend", dryRun)) ===
    `{"count":${data.length}}`;
  for (let tries = 200; !await isStored(); tries--) {
    assert.ok(tries > 0);
    await pause(50);
  }
}

const open = (path: string) => browser.goto(`${stage.server.url}/console/${path}`);
const PRIMARY = "dialog .df .primary";

test("a failed delivery is shown beside its list, and what others wrote is text", async () => {
  await fail(HOSTILE);
  await open("deliveries?status=failed&endpoint=http://127.0.0.1&answer=503");
  await browser.find("a.main");
  await browser.press("j\uE007"); // the first row, and Enter
  assert.match(await seen(".line", /Dispatched/), /Attempt 2 · 503[^]*Attempt 1 · 503[^]*backend/);
  assert.match(await browser.url(), /deliveries\/d\w+\?status=failed/);
  assert.equal(await browser.attribute("tr[data-id]", "aria-selected"), "true");
  assert.equal(await browser.execute("return document.activeElement.className"), "main");
  await browser.click("[role=tab]:nth-child(2)");
  const payload = await seen(".panel", /onerror/);
  assert.match(payload, /"rtl": "gnp"/); // without the mark that turns it
  assert.ok(payload.length < 70_000);
  await browser.click(".payload > .btn");
  assert.ok((await browser.text(".payload pre")).length > 100_000);
  assert.equal(await browser.count(".panel img"), 0);
});

test("one is sent again once that is confirmed, and its attempts come live", async () => {
  stage.appSite.answer("/hook", 200);
  await browser.click("[role=tab]");
  await browser.press("r");
  await browser.click(PRIMARY);
  assert.match(await seen(".line", /· 200/), /sent again by hand after/);
  assert.match(await seen(".insp", /Delivered/), /after 1 attempt/);
  const sent = stage.appSite.count("/hook");
  await browser.click("[data-key=r]");
  await browser.click(PRIMARY); // without the second confirmation
  assert.equal(await browser.count("dialog[open]"), 1);
  await browser.click("dialog [type=checkbox]");
  await browser.click(PRIMARY);
  await stage.appSite.waitFor(sent + 1, 5_000, "/hook");
});

test("a new one waits behind a button", async () => {
  await open("deliveries");
  await seen(".live", /Live/);
  await post("/backend/event", { name: "order.created", data: 1 });
  await seen(".fresh", /1 new/);
  const rows = await browser.count("tr[data-id]");
  await browser.click(".fresh");
  assert.equal(await browser.count("tr[data-id]"), rows + 1);
});

test("those of a list are counted, one is tried, and the rest follows if wanted", async () => {
  await fail(1, 2, 3);
  await open("deliveries?status=failed");
  await seen(".head .btn", /Send 3 again…/);
  stage.appSite.answer("/hook", 200);
  const sent = stage.appSite.count("/hook");
  await browser.click(".head .btn");
  await seen(PRIMARY, /^Try one, then send 3$/);
  await browser.click(PRIMARY);
  assert.match(await seen("dialog", /Send 2 again/), /The trial succeeded: 200/);
  assert.equal(stage.appSite.count("/hook"), sent + 1);
  await browser.click(PRIMARY);
  await seen("dialog", /Done\s+2 of 2/);
  await stage.appSite.waitFor(sent + 3, 5_000, "/hook");
  await browser.click(PRIMARY);
});

test("a signature is checked in the browser alone", async () => {
  stage.appSite.answer("/hook", 200);
  const { headers, body } = stage.appSite.requests("/hook").at(-1) ?? assert.fail();
  await open(`deliveries/${headers["webhook-id"]}`);
  await browser.click("[role=tab]:nth-child(4)");
  for (const name of ["webhook-timestamp", "webhook-signature"]) {
    await browser.type(`#check-${name}`, String(headers[name]));
  }
  await browser.type("#check-secret", secret);
  await browser.type("#check-body", String(body));
  await browser.click(".panel form .btn");
  await seen(".panel .msg", /^Right\.$/);
  await browser.type("#check-body", `${body} `);
  await browser.click(".panel form .btn");
  await seen(".panel .msg", /^Wrong/);
});

test("an event is dispatched by hand, and shown with what its request set off", async () => {
  await open("events");
  await browser.click(".head .btn");
  await browser.type("#field-name", "order.created");
  await browser.type("#field-data", '{"by":"hand"}');
  await browser.click(PRIMARY);
  assert.match(await seen(".insp", /200/), /127\.0\.0\.1[^]*\/hook/);
  await browser.click(".facts a[href*='request=']");
  assert.match(await seen("main", /What this request set off/), /order\.created/);
  await seen("tbody", /200/);
});

test("on a small screen one thing has the page for itself", async () => {
  await browser.devtools("Emulation.setDeviceMetricsOverride",
    { width: 320, height: 740, deviceScaleFactor: 1, mobile: true });
  await open("deliveries");
  await browser.click("a.main");
  await seen(".insp", /webhook-id/);
  assert.equal(await browser.execute("return document.querySelector('table').offsetParent"), null);
  assert.equal(await browser.execute("return document.activeElement.tagName"), "H2");
  assert.equal(await browser.execute("return document.documentElement.scrollWidth"), 320);
  await browser.click("[aria-label='Back']");
  await seen("main", /Deliveries/);
});
