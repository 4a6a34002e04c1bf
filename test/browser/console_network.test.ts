import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { until } from "../helpers/until.ts";
import { openStage, type Stage } from "./sign_in_stage.ts";

let stage: Stage;
let browser: Browser;

before(async () => {
  stage = await openStage();
  const password = await stage.addUser("nora", ["backend", "consumer"]);
  browser = await openBrowser({ width: 1280, height: 800 });
  await browser.goto(`${stage.server.url}/console/users`);
  await browser.logIn("nora", password);
  await browser.find("main .list-of");
});
after(() => Promise.all([browser?.close(), stage?.close()]));

/** Responds to calls of a path as a proxy does that cannot reach the server, or refuses. */
const proxy = (path: string, status: number) =>
  `{ const send = fetch; window.fetch = (to, init) => String(to).includes("${path}")
    ? Promise.resolve(new Response("<h1>nginx</h1>", { status: ${status},
      headers: { "content-type": "text/html" } })) : send(to, init); }`;
const shows = (pattern: RegExp) =>
  until(async () => pattern.test(await browser.text("main")), () => browser.text("main"));

/** Opens a page with a script that runs before its own. */
async function openWith(source: string, path: string): Promise<void> {
  const { identifier } = await browser.devtools("Page.addScriptToEvaluateOnNewDocument", {
    source,
  }) as { identifier: string };
  await browser.goto(`${stage.server.url}${path}`);
  await browser.devtools("Page.removeScriptToEvaluateOnNewDocument", { identifier });
}

test("a server that its proxy cannot reach is reported as not answering", async () => {
  await browser.execute(proxy("/backend/app", 502));
  await browser.click(".nav [data-page=apps]");
  await shows(/The server does not answer\.[^]*Load again$/);
});

test("a server that never responds is reported as not answering", async () => {
  await browser.goto(`${stage.server.url}/console/users`);
  await browser.find("main .list-of");
  await browser.execute(`const [send, wait] = [fetch, AbortSignal.timeout.bind(AbortSignal)];
    AbortSignal.timeout = (ms) => wait(ms / 100);
    window.fetch = (to, init) => !to.includes("/backend/app") ? send(to, init)
      : new Promise((_, reject) =>
        init.signal?.addEventListener("abort", () => reject(init.signal.reason)));`);
  await browser.click(".nav [data-page=apps]");
  await shows(/The server does not answer\.[^]*Load again$/);
});

test("an error of a proxy is shown with its status and without a request id", async () => {
  await browser.execute(proxy("/backend/grant", 413));
  await browser.click(".nav [data-page=grants]");
  await shows(/Status 413$/);
});

test("a sign-in while the server does not answer does not blame a missing scope", async () => {
  await openWith(proxy("/authorization/whoami", 504), "/console/users");
  await shows(/^This does not open\s+The server does not answer\.[^]*Load again$/);
  await browser.click("main button");
  await browser.find("main .list-of");
  assert.equal(await browser.text("h1"), "Users");
});

test("a page that a proxy returns does not count as the success of an action", async () => {
  await browser.goto(`${stage.server.url}/console/users`);
  await browser.click("tbody tr:first-child a.main");
  await browser.find(".actions .btn");
  await browser.execute(proxy("/backend/user/", 200));
  await browser.clickButton("Disable…", "main");
  await browser.clickButton("Disable");
  await browser.find("dialog .msg");
  assert.match(await browser.text("dialog .msg"), /^The server does not answer\./);
});

test("a dialog whose data comes late does not open on another page", async () => {
  await browser.goto(`${stage.server.url}/console/users`);
  await browser.click("tbody tr:first-child a.main");
  for (const label of ["Disable…", "Edit…"]) {
    await browser.find(".actions .btn");
    await browser.execute(`const send = fetch; window.go = [];
      window.fetch = (...all) => /grant|openapi/.test(all[0])
        ? new Promise((resolve) => go.push(() => resolve(send(...all)))) : send(...all);`);
    await browser.clickButton(label, "main");
    await browser.until("go.length > 0");
    await browser.click(".nav [data-page=keys]");
    await browser.until("document.querySelector('h1').textContent === 'Signing keys'");
    const { length } = await browser.execute("return go") as readonly unknown[];
    for (let at = 0; at < length; at++) await browser.execute("go.shift()()");
    await browser.execute("return fetch('/system/about').then((answer) => answer.text())");
    await browser.execute("return new Promise((resolve) => setTimeout(resolve, 300))");
    assert.equal(await browser.count("dialog"), 0, label);
    await browser.back();
  }
});

/** Makes timers run 20 times as fast. */
const FASTER = `for (const timer of ["setTimeout", "setInterval"]) {
  const begin = window[timer];
  window[timer] = (act, ms) => begin(act, ms / 20);
}`;

test("a list that polls for changes goes on after a failed poll", async () => {
  await openWith(FASTER, "/console/audit");
  await browser.find("main .list-of");
  await browser.execute(`const send = fetch;
    window.failed = 0;
    window.fetch = (...all) => /audit/.test(all[0])
      ? (failed++, Promise.reject(new TypeError("Failed to fetch"))) : send(...all);`);
  await browser.until("failed > 2");
});

test("on a slow network a page polls again only after a response", async () => {
  await openWith(FASTER, "/console/start");
  await browser.find("main:not([aria-busy]) .check");
  await browser.execute(`const send = fetch;
    window.held = [];
    window.fetch = (...all) => !/audit/.test(all[0]) ? send(...all)
      : new Promise((resolve) => held.push(() => resolve(send(...all))));`);
  await browser.until("held.length === 1");
  await browser.execute("return new Promise((resolve) => setTimeout(resolve, 20_000))"); // 1 s
  assert.equal(await browser.execute("return held.length"), 1);
  await browser.execute("held[0]()");
  await browser.until("held.length === 2");
});

test("a page in a browser that blocks its cookies asks the user to allow them", async () => {
  const denied = "{ get() { throw new DOMException('Access is denied.', 'SecurityError'); } }";
  await openWith(`Object.defineProperty(window, "sessionStorage", ${denied})`, "/console/users");
  await shows(/^This does not open\s+This page needs cookies: allow them for this site\.$/);
});

/** Presses Ctrl+K. */
const openPalette = () =>
  browser.devtools("Input.dispatchKeyEvent", { type: "keyDown", key: "k", modifiers: 2 });
const found = () => browser.text("#found");

test("the palette says that nothing was found only after a response that says so", async () => {
  await browser.goto(`${stage.server.url}/console/keys`);
  await browser.find("main .list-of");
  await browser.execute(`const send = fetch;
    window.fail = window.go = undefined;
    window.fetch = (...all) => !/q=/.test(all[0]) ? send(...all) : new Promise((resolve, reject) =>
      [window.go, window.fail] = [() => resolve(send(...all)), () => reject(new TypeError())]);`);
  await openPalette();
  await browser.find(".palette");
  await browser.press("nobody");
  await browser.until("window.fail");
  assert.equal(await found(), "…");
  await browser.execute("fail()");
  await until(async () => await found() === "The server does not answer.", found);
  await browser.press("\uE00C");
});

test("a part of a page that is gone, as after an upgrade, is reported", async () => {
  await browser.devtools("Network.enable", {});
  await browser.devtools("Network.setBlockedURLs", { urls: ["*/palette.js", "*/dialog.js"] });
  await browser.goto(`${stage.server.url}/console/keys`);
  await browser.find("main .list-of");
  for (const open of [openPalette, () => browser.press("?")]) {
    await open();
    assert.match(await browser.text(".notes .msg"), /^A part of this page cannot be loaded\./);
    await browser.click(".notes [aria-label=Close]");
    await browser.until("!document.querySelector('.notes .toast')");
  }
  await browser.goto(`${stage.server.url}/console/explorer/endOtherTokens`);
  await browser.clickButton("Send Ctrl ↵", "main");
  await shows(/A part of this page cannot be loaded\./);
  await browser.devtools("Network.setBlockedURLs", { urls: [] });
  await openPalette();
  await browser.find(".palette");
});

test("a sign-out that the server refuses is reported in its words", async () => {
  await browser.goto(`${stage.server.url}/account/webhooks`);
  await browser.find(".bar button");
  await browser.execute(`const send = fetch;
    window.fetch = (...all) => /session/.test(all[0])
      ? Promise.resolve(Response.json({ detail: "Too busy.", request_id: "r1" }, { status: 503 }))
      : send(...all);`);
  await browser.click(".bar button");
  await until(async () => /^Too busy\.\s+Request r1/.test(await browser.text(".notes")),
    () => browser.text(".notes"));
});
