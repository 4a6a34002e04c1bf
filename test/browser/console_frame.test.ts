import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { type RunningServer, startServer } from "../helpers/process.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { until } from "../helpers/until.ts";
import { memberOf } from "./sign_in_stage.ts";

const PASSWORD = "the-keeper-of-the-stage";

let folder: string;
let receiver: Receiver;
let server: RunningServer;
let browser: Browser;
let token: string;
/** The failed loads that a test expects. */
let expected: RegExp | undefined;

const start = (port: string) =>
  startServer({
    entry: fileURLToPath(new URL("../../src/server.ts", import.meta.url)),
    folder,
    env: {
      GATEPOST_PORT: port,
      GATEPOST_NAME: "unbroken".repeat(8),
      GATEPOST_ADMIN_PASSWORD: PASSWORD,
      GATEPOST_ACCESS_TOKEN_TTL: "2s",
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    },
  });
const client = () => createClient(server.url);
const post = async (path: string, body: object) => {
  const given = { username: "admin", password: PASSWORD };
  const login = await client().postJson("/consumer/login", given);
  token = memberOf(login.json(), "token");
  return client().postJson(path, body, { authorization: `Bearer ${token}` });
};

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "gatepost-frame-"));
  receiver = await startReceiver();
  server = await start("0");
  await post("/consumer/subscription", { event: "order.created", endpoint: `${receiver.url}/a` });
  browser = await openBrowser({ width: 1280, height: 800 });
  await browser.goto(`${server.url}/console/explorer`);
  await signIn();
  await heading("API explorer");
});
after(async () => {
  await browser?.close();
  await server?.stop();
  await receiver?.close();
  await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  const errors = await browser.consoleErrors();
  assert.deepEqual(errors.filter((error) => !expected?.test(error)), []);
  expected = undefined;
});

async function signIn(): Promise<void> {
  await browser.logIn("admin", PASSWORD);
}

/** Waits until an expression of the page has this value. */
async function becomes(script: string, wanted: unknown): Promise<void> {
  let found: unknown;
  await until(async () => {
    found = await browser.execute(`return ${script}`).catch(() => undefined);
    return JSON.stringify(found) === JSON.stringify(wanted);
  }, () => `${script} is ${JSON.stringify(found)}`);
}

const heading = (text: string) => becomes("document.querySelector('main h1')?.textContent", text);
const hasFocus = (css: string) =>
  becomes(`document.activeElement.matches(${JSON.stringify(css)})`, true);
const key = (name: string, modifiers = 0) =>
  browser.devtools("Input.dispatchKeyEvent", { type: "keyDown", key: name, modifiers });
const openPalette = () => key("k", 2).then(() => hasFocus(".palette input"));

test("a new page's heading gets the focus, and a link within a page keeps it", async () => {
  await browser.click(".nav a[data-page=apps]");
  await browser.waitForUrl(/\/console\/apps$/);
  await hasFocus("main h1");
  await browser.click(".nav a[data-page=explorer]");
  await heading("API explorer");
  await hasFocus("main h1");
  assert.match(await browser.title(), /^API explorer · /);
  await becomes("document.querySelector('[role=status].sr').textContent", "API explorer");
  await browser.click(".ops details:last-of-type summary");
  await browser.click('.ops a[href$="/getHealth"]');
  await browser.waitForUrl(/getHealth$/);
  await hasFocus('.ops a[href$="/getHealth"][aria-current]');
  assert.match(await browser.title(), /^getHealth · API explorer · /);
  await browser.execute("document.querySelector('.skip').click()");
  await hasFocus("main");
});

test("the palette finds pages, subscriptions and commands by keyboard", async () => {
  await openPalette();
  await browser.press("add us");
  const chosen = "document.querySelector('.palette [aria-selected=true]')?.textContent";
  await becomes(chosen, "Add user…");
  await browser.execute("document.activeElement.dispatchEvent(" + // it ends a composed word
    "new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true }))");
  await hasFocus(".palette input");
  await browser.press("\uE007");
  await browser.waitForUrl(/\/console\/users$/);
  await hasFocus("dialog [name=username]");
  await key("k", 2);
  await pause(200);
  await hasFocus("dialog [name=username]");
  await browser.press("\uE00C");
  await hasFocus("main h1");
  await openPalette();
  await browser.press("127.0");
  await becomes(
    "[...document.querySelectorAll('.palette .nav-h')].map((group) => group.textContent)",
    ["Subscriptions", "Do"],
  );
  await browser.press("\uE015");
  assert.match(await browser.text(".palette [aria-selected=true]"), /^Send failed to .* again…$/);
  await browser.press("\uE015\uE007");
  await browser.waitForUrl(/\/console\/subscriptions\/s\w+$/);
  assert.match(await browser.text("dialog h2"), /^Pause/);
  await browser.press("\uE00C");
  await becomes("document.querySelector('dialog')", null);
  for (const [words, question] of [["dispatch", /^Dispatch/], ["back up", /^Back up/]] as const) {
    await openPalette();
    await browser.press(`${words}\uE007`);
    await browser.find("dialog h2");
    assert.match(await browser.text("dialog h2"), question);
    await browser.press("\uE00C");
    await becomes("document.querySelector('dialog')", null);
  }
  await openPalette();
  await browser.press("nobody");
  await becomes("document.querySelector('#found').textContent", "Nothing found.");
  await browser.type(".palette input", "keys");
  await becomes("document.querySelector('#found .empty')", null);
  await browser.click("#found a");
  await heading("Signing keys");
  await becomes("document.querySelector('dialog')", null);
});

test("shortcut keys do nothing while the user types or has switched them off", async () => {
  await browser.press("gx");
  await heading("API explorer");
  await browser.press("/");
  await hasFocus("main [type=search]");
  await browser.press("ga");
  assert.equal(await browser.execute("return document.activeElement.value"), "ga");
  await browser.execute("document.activeElement.blur()");
  await browser.press("?");
  await browser.click("dialog [type=checkbox]");
  await browser.click("dialog .primary");
  await browser.press("ga");
  await pause(200);
  assert.match(await browser.url(), /explorer/);
  await browser.execute("localStorage.clear()");
});

test("the table of keys fits into its card in windows of 800 to 1122 px", async () => {
  await browser.execute("document.querySelector('.side [data-page=keys]').click()");
  await heading("Signing keys");
  for (const width of [800, 1026, 1122]) {
    await browser.resize(width, 800);
    await becomes("[...document.querySelectorAll('main table')].map((table) => " +
      "table.getBoundingClientRect().right <= 1 + " +
      "table.closest('.card').getBoundingClientRect().right)", [true]);
  }
  await browser.resize(1280, 800);
  await browser.execute("document.querySelector('.side [data-page=explorer]').click()");
  await heading("API explorer");
});

test("at 320 px a page fits the window, and the menu opens over it", async () => {
  await browser.resize(320, 640);
  const overflow = "document.documentElement.scrollWidth - innerWidth";
  await becomes(`Math.max(0, ${overflow})`, 0);
  await browser.click(".tabs-bottom button");
  await becomes("document.querySelector('.side').matches(':popover-open')", true);
  assert.equal(await browser.text(".side [data-page=settings]"), "Settings");
  await hasFocus(".side a");
  const isSeen = "document.querySelector('main').checkVisibility({ visibilityProperty: true })";
  await becomes(isSeen, false); // what it covers cannot get the focus
  await browser.press("\uE00C");
  await hasFocus(".tabs-bottom button");
  await becomes(isSeen, true);
  await browser.click(".tabs-bottom button");
  await browser.click(".side [data-page=settings]");
  await heading("Settings");
  await becomes(isSeen, true);
  await browser.click(".tabs-bottom button");
  await browser.resize(1280, 800);
  await becomes(isSeen, true);
  assert.equal(await browser.text(".side [data-page=settings]"), "Settings");
  await browser.execute("history.back()");
  await heading("API explorer");
  await browser.resize(320, 256, false); // 1280 × 1024 at 400 %
  await becomes("getComputedStyle(document.querySelector('.tabs-bottom')).position", "static");
  await browser.resize(1280, 800);
});

test("two windows have their own tokens, which are replaced before they expire", async () => {
  const url = `${server.url}/console/explorer/getHealth`;
  const close = await browser.openWindow(url, /API explorer/);
  await pause(2_500);
  await browser.click('.ops a[href*="/post_"], .ops details:last-of-type summary');
  await browser.goto(`${server.url}/console/explorer/listSessions`);
  await heading("API explorer");
  await pause(2_500); // longer than a token's lifetime
  await browser.click(".acts .primary");
  await becomes("document.querySelector('.trio .st')?.textContent", "200 OK");
  await close();
});

test("an open page survives a restart of its server, and its stream misses nothing", async () => {
  expected = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/;
  await browser.execute(`
    window.received = new Set();
    window.isLive = false;
    return import(document.body.dataset.assets + "stream.js").then(({ listen }) => void listen(
      { topics: "delivery" },
      (topic, delivery) => topic === "delivery" && received.add(delivery.event),
      new AbortController().signal,
      (isLive) => window.isLive = isLive,
    ));`);
  await becomes("isLive", true);
  const event = { name: "order.created", data: {} };
  const ids = [memberOf((await post("/backend/event", event)).json(), "id")];
  await becomes(`received.has("${ids[0]}")`, true);
  const { port } = new URL(server.url);
  await server.stop("SIGKILL");
  await becomes("isLive", false);
  await browser.click(".nav a[data-page=keys]");
  await browser.waitForUrl(/\/console\/keys$/);
  await heading("Signing keys");
  assert.match(await browser.text("main .msg"), /^The server does not answer/);
  server = await start(port);
  ids.push(memberOf((await post("/backend/event", event)).json(), "id"));
  await becomes("isLive", true);
  ids.push(memberOf((await post("/backend/event", event)).json(), "id"));
  await becomes(`${JSON.stringify(ids)}.filter((id) => !received.has(id))`, []);
  await browser.click(".nav a[data-page=apps]");
  await browser.waitForUrl(/\/console\/apps$/);
});

test("a stream that falls silent is opened again", async () => {
  await browser.execute(`
    window.times = 0;
    const [wait, every40s] = [setTimeout, 40_000];
    window.setTimeout = (act, ms) => wait(act, ms === every40s ? 50 : ms);
    import(document.body.dataset.assets + "stream.js").then(({ listen }) => listen(
      { topics: "audit" }, () => {}, new AbortController().signal, (isLive) => times += isLive));`);
  await browser.until("times > 1");
  await browser.goto(`${server.url}/console/apps`);
  await heading("Apps");
});

test("a path that is the name of a JavaScript property is no page", async () => {
  for (const page of ["constructor", "toString", "__proto__"]) {
    await browser.goto(`${server.url}/console/${page}`);
    await heading("Nothing here");
  }
});

test("a page outside a secure context says that it needs https", async () => {
  const { identifier } = await browser.devtools("Page.addScriptToEvaluateOnNewDocument", {
    source: "Object.defineProperty(window, 'isSecureContext', { value: false })",
  }) as { identifier: string };
  await browser.goto(`${server.url}/console`);
  await heading("This does not open");
  assert.match(await browser.text("main"), /https/);
  await browser.devtools("Page.removeScriptToEvaluateOnNewDocument", { identifier });
});

test("a response to a sign-in that this window did not begin is ignored", async () => {
  const kept = { state: "its own", verifier: "v", address: "/console/keys" };
  const text = JSON.stringify(JSON.stringify(kept));
  await browser.execute(`sessionStorage.setItem("console", ${text})`);
  const response = "error=access_denied&error_description=Made+up&state=another";
  await browser.goto(`${server.url}/console/apps?${response}`);
  await heading("Apps");
});

test("a user who was signed out signs in again and returns to the same page", async () => {
  expected = /401|400/;
  await browser.goto(`${server.url}/console/explorer/listUsers?q=list`);
  await heading("API explorer");
  await browser.clearCookies();
  const { sub } = JSON.parse(atob(token.split(".")[1] ?? ""));
  await post("/backend/grant/revoke", { user: sub });
  await pause(2_500);
  await browser.click(".acts .primary");
  await browser.find("#username");
  await signIn();
  await browser.waitForUrl(/\/console\/explorer\/listUsers\?q=list$/);
  await heading("API explorer");
});
