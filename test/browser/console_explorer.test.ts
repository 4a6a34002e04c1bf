import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { memberOf, openStage, type Stage, type StageApp } from "./sign_in_stage.ts";

const MODULE = `
export const order = {
  method: "POST", path: "/orders/:id", scope: "orders", summary: "Place an order",
  emits: { "order.created": "An order was placed" },
  handle({ params, body, dispatch }) {
    dispatch("order.created", { id: params.id });
    return { status: 201, body: { id: params.id, item: body.item, rtl: "\\u202eabc" } };
  },
};
export const big = { method: "GET", path: "/files/big", public: true,
  handle: () => ({ status: 200, headers: { "Content-Type": "application/json" },
    body: '{"id": 12345678901234567890' }) };
export const picture = { method: "GET", path: "/files/picture", public: true,
  handle: () =>
    ({ status: 200, headers: { "Content-Type": "image/png" }, body: Buffer.alloc(1234) }) };
export const item = { method: "GET", path: "/customers/:customer/orders/:order/items/:item",
  public: true, handle: () => null };
export const page = { method: "GET", path: "/files/page", public: true, handle: () =>
  ({ status: 200, headers: { "Content-Type": "text/html" },
    body: "<img src=x onerror=alert(1)>" + "x".repeat(300_000) }) };
`;

let folder: string;
let stage: Stage;
let browser: Browser;
let app: StageApp;
let token: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "gatepost-endpoints-"));
  await writeFile(join(folder, "orders.js"), MODULE);
  stage = await openStage({
    env: {
      GATEPOST_ENDPOINTS: folder,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      GATEPOST_RESEND_DELAYS: "2s,2s,2s",
    },
  });
  const password = await stage.addUser("olga", ["backend", "consumer"]);
  app = await stage.addApp("shop", { grants: ["client_credentials"], scopes: ["orders"] });
  const client = createClient(stage.server.url);
  const login = await client.postJson("/consumer/login", { username: "olga", password });
  token = memberOf(login.json(), "token");
  for (const path of ["/good", "/bad"]) {
    stage.appSite.answer(path, path === "/good" ? 200 : 503);
    const subscription = { event: "order.created", endpoint: stage.appSite.url + path };
    await client.postJson("/consumer/subscription", subscription, {
      authorization: `Bearer ${token}`,
    });
  }
  browser = await openBrowser({ width: 1280, height: 900 });
  await browser.goto(`${stage.server.url}/console/explorer`);
  await browser.logIn("olga", password);
  await browser.waitForUrl(/explorer$/);
});
after(async () => {
  await browser?.close();
  await stage?.close();
  await rm(folder, { recursive: true, force: true });
});
// Refused calls and CSP violations are logged there.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

/** Opens a page and waits for it: it redirects to the sign-in first, and is loaded anew. */
async function open(path: string): Promise<void> {
  await browser.goto(`${stage.server.url}/console/explorer/${path}`);
  await browser.find("main:not([aria-busy]) h1");
}

/** Waits until the card of the response matches, and returns its text. */
async function responseShows(pattern: RegExp): Promise<string> {
  for (let left = 200; left > 0; left--) {
    const text = await browser.text(".trio > .card:last-child");
    if (pattern.test(text)) return text;
    await pause(50);
  }
  assert.match(await browser.text(".trio > .card:last-child"), pattern);
  return "";
}

test("no two fields of a call have the same id", async () => {
  for (const call of ["getApp", "revokeToken", "submitVerifyForm"]) {
    await open(call);
    assert.deepEqual(await browser.execute("return [...document.querySelectorAll('[id]')]" +
      ".map(({ id }) => id).filter((id, at, all) => all.indexOf(id) < at)"), [], call);
  }
});

test("a long path fits into its card", async () => {
  await open("get_customers_by_customer_orders_by_order_items_by_item");
  await browser.find(".trio > section h2");
  const right = (css: string) => `document.querySelector("${css}").getBoundingClientRect().right`;
  const inside = `return ${right(".trio > section h2")} < ${right(".trio > section")}`;
  assert.equal(await browser.execute(inside), true);
});

test("a call as an app gets a response, and its event is followed until delivered", async () => {
  await open("post_orders_id");
  await browser.click(".acts .seg button");
  await browser.find(".acts [disabled]");
  assert.match(await browser.text(".trio section form"), /This page's token lacks the scope/);
  await browser.click(".acts .seg button:last-child");
  await browser.type("#app-client_id", app.clientId);
  await browser.type("#app-client_secret", "wrong");
  await browser.type("#parameter-id", "a 7");
  await browser.type("textarea", '{"item": "tea"}');
  await browser.click(".acts .primary");
  await responseShows(/There is no answer/);
  await browser.consoleErrors(); // of the refused request
  await browser.type("#app-client_secret", app.clientSecret ?? "");
  const isCtrl = { modifiers: 2 };
  await browser.devtools("Input.dispatchKeyEvent", { type: "keyDown", key: "Enter", ...isCtrl });
  await responseShows(/503 · next attempt at/);
  const text = await responseShows(/\/good\s+\+\d+ ms\s+200 · delivered/);
  assert.match(text, /201 Created/);
  assert.match(text, /"id": "a 7"/);
  assert.match(text, /"rtl": "abc"/, "a character that reverses the text is not shown");
  assert.match(text, /order\.created\s+\+0 ms\s+stored with the answer, for 2 subscriptions/);
  assert.deepEqual(
    [await browser.text("pre .s"), await browser.text("pre .n")],
    ['"id"', '"a 7"'],
    "names and values differ",
  );
  stage.appSite.answer("/bad", 204);
  await responseShows(/\/bad\s+\+\d[^\n]*\s+204 · delivered/);
  assert.equal(await browser.count(`.trio a[href*="/console/deliveries/d"]`), 2);
  assert.equal(await browser.count(".trio .line .ok"), 3); // the event and its two deliveries
});

test("the event of a call is followed while the user searches for other calls", async () => {
  stage.appSite.answer("/bad", 503);
  await open("post_orders_id");
  await browser.click(".acts .seg button:last-child");
  await browser.type("#app-client_id", app.clientId);
  await browser.type("#app-client_secret", app.clientSecret ?? "");
  await browser.type("#parameter-id", "8");
  await browser.click(".acts .primary");
  await responseShows(/503 · next attempt at/);
  await browser.type(".ops input", "user\uE007");
  await browser.waitForUrl(/\?q=user/);
  stage.appSite.answer("/bad", 204);
  await responseShows(/\/bad\s+\+\d[^\n]*\s+204 · delivered/);
});

test("the curl and fetch code of a call makes the same call", async () => {
  await open("dispatchEvent");
  await browser.type("#field-name", "order.paid");
  await browser.type("#field-data", '{"text": "it\'s \\"a\\" $HOME \\\\n"}');
  const run = promisify(execFile);
  const commands = [["curl", "bash", "-c"], ["fetch", process.execPath, "-e"]] as const;
  for (const [name, program, flag] of commands) {
    const at = name === "curl" ? 1 : 2;
    await browser.click(`[role=tab]:nth-child(${at})`);
    const code = await browser.execute("return document.querySelector('.code pre').textContent");
    const script = name === "fetch" ? `(async () => {${code}})()` : `${code}`;
    const { stdout } = await run(program, [flag, script], {
      env: { ...process.env, TOKEN: token },
    });
    const id = /"id":"(e\w+)"/.exec(stdout)?.[1];
    const { json } = await createClient(stage.server.url).get(`/backend/event/${id}`, {
      authorization: `Bearer ${token}`,
    });
    assert.equal(JSON.stringify(Object(json())["data"]), '{"text":"it\'s \\"a\\" $HOME \\\\n"}');
  }
});

test("a response is shown unchanged; a long one is cut, a binary one has its size", async () => {
  await open("get_files_big");
  await browser.click(".acts .primary");
  await responseShows(/\{"id": 12345678901234567890/);
  await open("get_files_picture");
  await browser.click(".acts .primary");
  await responseShows(/1,234 bytes of image\/png/);
  await browser.click('a[href$="get_files_page"]');
  await browser.waitForUrl(/get_files_page$/);
  await responseShows(/Send the call/);
  await browser.click(".acts .primary");
  await responseShows(/Show all 300,028 characters/);
  const length = () =>
    browser.execute("return document.querySelector('.trio pre[role]').textContent.length");
  assert.equal(await length(), 200_000);
  await browser.click(".trio .card:last-child .btn");
  assert.equal(await length(), 300_028);
  assert.equal(await browser.count("main img"), 0);
});

test("calls are found by text, and a call that deletes asks for the name first", async () => {
  await browser.type(".ops input", "delete /backend/user");
  await browser.press("\uE007");
  await browser.waitForUrl(/\?q=delete/);
  await browser.until("document.querySelectorAll('.ops li').length === 1");
  await browser.click(".ops li a");
  await browser.type("#parameter-id", "u123");
  await browser.click(".acts .primary");
  assert.match(await browser.text("dialog"), /DELETE \/backend\/user\/u123/);
  assert.equal(await browser.count("dialog .danger[disabled]"), 1);
  await browser.press("\uE00C"); // Escape
  await responseShows(/Send the call/);
  await browser.type(".ops input", "user\uE007");
  await browser.waitForUrl(/deleteUser\?q=user/);
  await browser.until("document.querySelectorAll('.ops li').length > 1");
  const typed = "return document.querySelector('#parameter-id').value";
  assert.equal(await browser.execute(typed), "u123");
});
