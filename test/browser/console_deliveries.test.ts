import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { until } from "../helpers/until.ts";
import { memberOf, openStage, type Stage } from "./sign_in_stage.ts";

const HOSTILE = ["<img src=x onerror=alert(1)>", "\u202Egnp", "y".repeat(100_000)];

let stage: Stage;
let browser: Browser;
let secret: string;
let subscription: string;
let send: (method: string, path: string, body?: object) => Promise<unknown>;

before(async () => {
  const env = { GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8", GATEPOST_RESEND_DELAYS: "10ms" };
  stage = await openStage({ env });
  const client = createClient(stage.server.url);
  const password = await stage.addUser("olga", ["backend", "backend:read", "consumer"]);
  const login = await client.postJson("/consumer/login", { username: "olga", password });
  const authorization = `Bearer ${memberOf(login.json(), "token")}`;
  send = async (method, path, body) => {
    const response = await client.sendJson(method, path, body, { authorization });
    return response.text && response.json();
  };
  const wanted = { event: "order.created", endpoint: `${stage.appSite.url}/hook` };
  const made = await post("/consumer/subscription", wanted);
  [subscription, secret] = [memberOf(made, "id"), memberOf(made, "secret")];
  browser = await openBrowser({ width: 1280, height: 900 });
  await browser.goto(`${stage.server.url}/console/deliveries`);
  await browser.logIn("olga", password);
});
after(() => Promise.all([browser?.close(), stage?.close()]));
// CSP violations and failed loads are logged there.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

const post = (path: string, body: object) => send("POST", path, body);

/** The text of an element, once it matches. */
const seen = (css: string, pattern: RegExp): Promise<string> =>
  read(async () => await browser.count(css) ? browser.text(css) : "", pattern);

async function read(look: () => Promise<string>, pattern: RegExp): Promise<string> {
  let text = "";
  await until(async () => pattern.test(text = await look()), () => `not ${pattern} but ${text}`);
  return text;
}

/** Dispatches events, and waits until their deliveries have all failed. */
async function fail(...all: readonly unknown[]): Promise<void> {
  stage.appSite.answer("/hook", 503);
  const failed = { status: "failed", dry_run: true };
  const counted = async () =>
    Number(/\d+/.exec(JSON.stringify(await post("/backend/delivery/resend", failed))));
  const already = await counted();
  for (const data of all) await post("/backend/event", { name: "order.created", data });
  await until(async () => await counted() === already + all.length, () => "fewer have failed");
}
/** Opens a page and waits for it: it redirects to the sign-in first, and is loaded anew. */
async function open(path: string): Promise<void> {
  await browser.goto(`${stage.server.url}/console/${path}`);
  await browser.find("main:not([aria-busy]) h1");
}
const PRIMARY = "dialog .df .primary";

test("a failed delivery is shown beside its list, with its payload as plain text", async () => {
  await fail(HOSTILE);
  await open("deliveries?status=failed&endpoint=http://127.0.0.1&answer=503");
  await browser.find("a.main");
  await browser.press("j\uE007"); // the first row, and Enter
  assert.match(await seen(".line", /Dispatched/),
    /Attempt 2 · 503[^]*resent after[^]*Attempt 1 · 503[^]*backend/);
  assert.doesNotMatch(await browser.text(".list-of tbody tr"), /after/); // no attempt follows
  assert.match(await browser.text(".insp [role=status]"), /^Failed\s+after 2 attempts in /);
  assert.equal(await browser.execute("return document.activeElement.className"), "main");
  await browser.click("[role=tab]:nth-child(2)");
  // Cut, and without the character that reverses the text.
  assert.ok((await seen(".panel", /onerror[^]*"gnp"/)).length < 70_000);
  await browser.click(".payload > .btn");
  assert.ok((await browser.text(".payload pre")).length > 100_000);
  assert.equal(await browser.count(".panel img"), 0);
});

test("a delivery is sent again after a confirmation, and its attempts appear live", async () => {
  stage.appSite.answer("/hook", 200);
  await browser.click("[role=tab]");
  await browser.press("r");
  await browser.click(PRIMARY);
  assert.match(await seen(".line", /· 200/), /sent again by hand after/);
  await browser.click("[data-key=r]");
  await browser.click(PRIMARY); // without the second confirmation
  assert.equal(await browser.count("dialog[open]"), 1);
  await browser.click("dialog [type=checkbox]");
  await browser.click(PRIMARY);
  await seen(".line", /· 200[^]*· 200/);
});

test("the focus is at a delivery's row again after its Back button", async () => {
  await browser.execute("document.querySelector('.insp [aria-label=Back]').focus()");
  await browser.press("\uE007");
  await browser.waitForUrl(/deliveries(\?[^/]*)?$/);
  await read(async () => String(await browser.execute("return document.activeElement.className")),
    /^main$/);
  await open("deliveries?status="); // from an address that somebody has shortened
  await browser.until("document.querySelector('.head [data-key=many]').hidden"); // none to send
});

test("a list reports a wrong filter, finds an id, and adds new rows by a button", async () => {
  await open("deliveries?answer=-");
  await seen(".card .msg", /\/answer/);
  await browser.consoleErrors(); // of the refused request
  await open("deliveries?since=999999999999d"); // longer than a Date can hold
  await browser.find(".list-of a.main");
  assert.match(await browser.text(".token"), /^since:\s9{12}d/);
  const { headers } = stage.appSite.requests("/hook")[0] ?? assert.fail();
  await browser.type("[type=search]", `${headers["webhook-id"]}\uE007`);
  await seen(".insp", /webhook-id/);
  await open("deliveries");
  await seen(".live", /Live/);
  await post("/backend/event", { name: "order.created", data: 1 });
  await seen(".fresh", /1 new/);
  await browser.click(".fresh");
  assert.equal(await browser.count("tr[data-id]"), 2);
  await open("deliveries?status=cancelled&event=order.created");
  await seen(".live", /Live/);
  const sent = stage.appSite.requests("/hook").length + 1;
  await post("/backend/event", { name: "order.created", data: 2 });
  await until(async () => stage.appSite.requests("/hook").length >= sent);
  await pause(500); // a list with another status would show it by now
  assert.equal(await browser.count("tr[data-id]"), 0);
});

test("a list of deliveries without an attempt has no row and no chart of others", async () => {
  await open("deliveries?attempt=0");
  await seen(".live", /Live/);
  await post("/backend/event", { name: "order.created", data: 3 });
  await browser.until("performance.getEntriesByType('resource').some(({ name, responseEnd }) => " +
    "/attempt=0&event=/.test(name) && responseEnd)"); // asked whether the delivery belongs here
  assert.equal(await browser.count("tr[data-id], .plot"), 0);
});

test("failed deliveries are counted, one is tried, and then the rest is sent", async () => {
  await fail(1, 2, 3);
  await open("deliveries?status=failed");
  await seen(".head .btn", /Send 3 again…/);
  // A browser clock that is an hour slow excludes none.
  await browser.execute("const Right = Date; window.Date = class extends Right {" +
    "constructor(at = Date.now()) { super(at); } static now() { return Right.now() - 3600e3; } }");
  // The network fails once while the page waits for the outcome.
  await browser.execute("const send = fetch; let failed = 1; window.fetch = (to, init) => " +
    "/delivery.d/.test(to) && failed-- > 0 ? Promise.reject(new TypeError()) : send(to, init)");
  stage.appSite.answer("/hook", 200);
  const sent = stage.appSite.count("/hook");
  await browser.click(".head .btn");
  await seen(PRIMARY, /^Try one, then send 3$/);
  await browser.click(PRIMARY);
  assert.match(await seen("dialog", /Send 2 again/), /The trial succeeded: 200/);
  assert.equal(stage.appSite.count("/hook"), sent + 1);
  await browser.click(PRIMARY);
  await seen("dialog", /Done\s+2 of 2/);
});

test("a dialog whose script comes late does not open on another page", async () => {
  const network = (latency: number) => browser.devtools("Network.emulateNetworkConditions", {
    offline: false, latency, downloadThroughput: -1, uploadThroughput: -1,
  });
  await fail("late");
  await open("deliveries?status=failed");
  await seen(".head .btn", /Send \d again…/);
  await browser.devtools("Network.enable", {});
  await browser.devtools("Network.setCacheDisabled", { cacheDisabled: true });
  await network(700);
  await browser.click(".head .btn"); // the dialog's script is loaded first
  await browser.click(".nav [data-page=keys]");
  await seen("h1", /Signing keys/);
  await pause(2_500);
  assert.equal(await browser.count("dialog"), 0);
  await network(0);
  await browser.devtools("Network.disable", {});
  stage.appSite.answer("/hook", 200);
  const failed = { status: "failed" };
  await post("/backend/delivery/resend", failed);
  const left = () => post("/backend/delivery/resend", { ...failed, dry_run: true });
  await read(async () => JSON.stringify(await left()), /:0}/);
});

test("waiting deliveries are counted, and one of them is sent now", async () => {
  const later = { kind: "answer", status: 503, headers: { "retry-after": "3600" } } as const;
  stage.appSite.react("/hook", later, later, { kind: "answer", status: 200 });
  await post("/backend/event", { name: "order.created", data: "waits" });
  await post("/backend/event", { name: "order.created", data: "waits" });
  const waiting = { status: "pending", dry_run: true };
  await read(async () => JSON.stringify(await post("/backend/delivery/resend", waiting)), /:2}/);
  await open("deliveries?status=pending");
  await seen(".head .btn", /Send 2 now…/);
  await seen("tbody tr", /Waiting\s+after 503/);
  await browser.click("a.main");
  await seen("[data-key=r]", /Send now…/);
  await browser.press("r");
  await browser.click(PRIMARY);
  assert.match(await seen(".line", /Attempt 1 · 200/), /sent again by hand after/);
  assert.equal(await browser.count("[data-key=r]"), 1); // it can be sent again
  await open("deliveries?status=cancelled");
  await seen(".foot", /No delivery matches these/);
  await browser.until("!document.querySelector('.head .btn').checkVisibility()"); // none to send
  // Without a number: what can be sent may be less than what is listed.
  assert.equal(await browser.text(".seg [aria-current]"), "Cancelled");
});

test("a list has a chart of its deliveries by time, if its filters have counts", async () => {
  const at = new Date(Date.now() - 65 * 60_000).toISOString(); // in a bar of 10 minutes
  const counted = { bounds_ms: [], items: [{ at, ok: 3, bad: 5, failed: 2, buckets: [8] }] };
  await open("deliveries?answer=503");
  await browser.execute("const [counted] = arguments; const send = fetch; window.fetch = " +
    "(to, init) => to.includes('/backend/series') " +
    "? Promise.resolve(Response.json(counted)) : send(to, init)", counted);
  await browser.click(".seg a[href*='status=failed']");
  await browser.waitForUrl(/status=failed/);
  assert.equal(await browser.count(".ended"), 0);
  await browser.click(".token button");
  await browser.click(".ended summary");
  const bars = /^failed\n(\d\d:\d\d 0\n){29}\d\d:\d\d 2\n(\d\d:\d\d 0\s*){6}$/;
  await seen(".ended .figures table", bars);
  assert.equal(await browser.label(".ended .plot"), "Deliveries by time: failed");
});

test("a list that arrives after its tab was left does not change the page", async () => {
  stage.appSite.answer("/hook", 200);
  await open("deliveries?status=");
  await browser.execute("const send = fetch; window.streams = []; " +
    "window.fetch = async (to, init) => { if (/stream/.test(to)) streams.push(init.signal); " +
    "if (/delivery\\?.*status=cancelled/.test(to)) await new Promise((go) => window.letGo = go); " +
    "return send(to, init); }");
  await browser.click(".seg a[href*='status=cancelled']");
  await browser.until("window.letGo");
  await browser.click(".seg a[href*='status=delivered']");
  await seen(".seg [aria-current]", /Delivered/);
  await browser.execute("letGo()");
  await pause(300);
  await seen(".live", /Live/);
  await post("/backend/event", { name: "order.created", data: "new" });
  await seen(".fresh", /1 new/);
  await browser.type("[type=search]", "event:order.created since:1w\uE007");
  await browser.waitForUrl(/event=order.created&since=1w/);
  await browser.click(".list-of a.main");
  await seen(".insp", /webhook-id/);
  const openStreams = "streams.filter(({ aborted }) => !aborted).length";
  await browser.until(`${openStreams} === 1`); // that of the list that is shown
  await browser.execute("window.letGo = undefined");
  await browser.click(".seg a[href*='status=cancelled']");
  await browser.until("window.letGo");
  await browser.execute("history.back()");
  await browser.until(`${openStreams} === 1`); // that of the list, which listens again
  await browser.execute("letGo()");
  await browser.click(".nav [data-page=apps]");
  await browser.until(`${openStreams} === 0`);
});

test("a list that has been left is freed from memory", async () => {
  await browser.goto(`${stage.server.url}/console/deliveries`);
  await browser.until("document.querySelector('.list-of')"); // find() would hold the element
  await browser.execute("window.left = new WeakRef(document.querySelector('.list-of'))");
  await browser.click(".nav [data-page=keys]");
  await browser.until("document.title.startsWith('Signing keys')");
  await until(async () => {
    await browser.devtools("HeapProfiler.collectGarbage", {});
    return browser.execute("return !window.left.deref()");
  });
});

test("the resend dialog sends what its button says, by the latest choice", async () => {
  await fail(1, 2, 3);
  await open("deliveries?status=failed&do=many");
  await seen(PRIMARY, /send 3$/);
  const ask = (from: string) => browser.execute("const input = arguments[0] && " +
    "document.querySelector('dialog .pair input'); input.value = arguments[0]; " +
    "input.dispatchEvent(new Event('input'))", from);
  await browser.execute("const send = fetch; let [held, failed] = [0, 2]; " +
    "window.fetch = async (to, init) => { " +
    "if (/resend\\//.test(to) && failed-- > 0) throw new TypeError(); " +
    "const answer = await send(to, init); " +
    "if (/resend$/.test(to) && !held++) await new Promise((go) => window.letGo = go); " +
    "return answer; }");
  await ask("2000-01-01T00:00");
  await browser.until("window.letGo");
  await ask("2999-01-01T00:00");
  await seen(PRIMARY, /^Nothing to send$/);
  await browser.execute("letGo()");
  await pause(300);
  assert.match(await browser.text(PRIMARY), /^Nothing to send$/);
  await browser.execute("document.querySelectorAll('dialog .pair input')[1].focus()");
  await browser.press("010120250101AM"); // the year field takes four digits
  await browser.until("document.querySelectorAll('dialog .pair input')[1].value === " +
    "'2025-01-01T01:01'");
  await browser.click("dialog [type=radio]");
  await seen(PRIMARY, /send 3$/);
  await fail(4);
  stage.appSite.answer("/hook", 200);
  await browser.click("dialog [type=checkbox]");
  await browser.click(PRIMARY);
  await seen("dialog", /Not live; it tries again/);
  await seen("dialog", /Done\s+3 of 3/);
  await browser.click("dialog .primary");
  await browser.click("a.main");
  await seen(".insp", /webhook-id/);
  assert.equal(await browser.count("dialog"), 0); // `do=many` opens it once
});

test("the page checks a callback's signature, and finds a changed body wrong", async () => {
  const { headers, body } = stage.appSite.requests("/hook").at(-1) ?? assert.fail();
  await open(`deliveries/${headers["webhook-id"]}`);
  await browser.click("[role=tab]:nth-child(4)");
  for (const name of ["webhook-timestamp", "webhook-signature"]) {
    await browser.type(`#check-${name}`, String(headers[name]));
  }
  await browser.type("#check-secret", secret);
  for (const [text, said] of [[String(body), /^Right\.$/], [`${body} `, /^Wrong/]] as const) {
    await browser.type("#check-body", text);
    await browser.click(".panel form .btn");
    await seen(".panel .msg", said);
  }
});

test("an event is dispatched by hand, and shown with all that its request caused", async () => {
  await open("events");
  await browser.click(".head .btn");
  await browser.type("#field-name", "order.created");
  await browser.type("#field-data", '{"by":"hand"}');
  await browser.click(PRIMARY);
  await seen(".insp", /127\.0\.0\.1[^]*\/hook[^]*200/);
  await browser.click(".facts a[href*='request=']");
  assert.match(await seen("main", /What this request set off/), /order\.created/);
});

test("rows that new ones push out of a long list can be loaded again", async () => {
  stage.appSite.answer("/hook", 200);
  const dispatch = (data: unknown) => post("/backend/event", { name: "order.created", data });
  await Promise.all(Array.from({ length: 230 }, (_, data) => dispatch(data)));
  const all = () =>
    new Set(stage.appSite.requests("/hook").map(({ headers }) => headers["webhook-id"])).size;
  await until(() => all() > 230, () => `${all()}`);
  const rows = () => browser.count("tr[data-id]");
  const showMore = async () => {
    const shown = await rows();
    await browser.click(".foot .btn");
    await until(async () => await rows() > shown, () => `${shown} are shown`);
  };
  await open("deliveries");
  await seen(".foot", /25 shown/);
  while (await rows() < 225) await showMore();
  await dispatch("new");
  await seen(".fresh", /1 new/);
  await browser.click(".fresh");
  await seen(".foot", /200 shown/);
  while (await browser.count(".foot .btn")) await showMore();
  assert.equal(await rows(), all());
});

test("a list shows the changed endpoint of a subscription", async () => {
  const path = `/backend/subscription/${subscription}`;
  for (const place of ["moved", "hook"]) {
    await send("PATCH", path, { endpoint: `${stage.appSite.url}/${place}` });
    await browser.click(".nav [data-page=events]");
    await browser.waitForUrl(/events$/);
    await browser.click(".nav [data-page=deliveries]");
    await seen(".list-of a.main", RegExp(`/${place}$`));
  }
});

test("a delivery of a deleted subscription is listed by the subscription's id", async () => {
  stage.appSite.answer("/gone", 200);
  const wanted = { event: "cake.baked", endpoint: `${stage.appSite.url}/gone` };
  const id = memberOf(await post("/consumer/subscription", wanted), "id");
  await post("/backend/event", { name: "cake.baked", data: 1 });
  await until(() => stage.appSite.count("/gone") === 1);
  await send("DELETE", `/backend/subscription/${id}`);
  await open("deliveries?event=cake.baked");
  await seen(".list-of a.main", RegExp(`^${id}$`));
});

test("on a small screen a delivery has the page for itself", async () => {
  await browser.resize(320, 740);
  await open("deliveries");
  await browser.click("a.main");
  await seen(".insp", /webhook-id/);
  const seenNow = "return [document.querySelector('table').offsetParent, " +
    "document.activeElement.tagName, document.documentElement.scrollWidth]";
  assert.deepEqual(await browser.execute(seenNow), [null, "H2", 320]);
});
