import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { until } from "../helpers/until.ts";
import { memberOf, openStage, type Stage } from "./sign_in_stage.ts";

const ESCAPE = "\uE00C";
/** A long host name that does not exist. */
const HOST = `${["a", "b", "c"].map((label) => label.repeat(60)).join(".")}.example`;
/** The longest names of an event and of a scope. */
const EVENT = "e".repeat(128);
const SCOPE = "s".repeat(64);

let folder: string;
let stage: Stage;
let browser: Browser;
let send: (method: string, path: string, body?: object) => Promise<unknown>;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "gatepost-extremes-"));
  const emits = { [EVENT]: "It has a long name." };
  const endpoint = { method: "GET", path: `/${"p".repeat(100)}`, scope: SCOPE, emits };
  await writeFile(join(folder, "long.js"),
    `export const long = { ...${JSON.stringify(endpoint)}, handle() {} };`);
  stage = await openStage({ env: { GATEPOST_RESEND_DELAYS: "10ms", GATEPOST_ENDPOINTS: folder } });
  const password = await stage.addUser("olga", ["backend", "consumer", SCOPE]);
  const client = createClient(stage.server.url);
  const login = await client.postJson("/consumer/login", { username: "olga", password });
  const authorization = `Bearer ${memberOf(login.json(), "token")}`;
  send = async (method, path, body) =>
    (await client.sendJson(method, path, body, { authorization })).json();
  const order = { event: "order.created", endpoint: `https://${HOST}/hook` };
  await send("POST", "/consumer/subscription", order);
  browser = await openBrowser({ width: 1280, height: 800 });
  await browser.goto(`${stage.server.url}/console`);
  await browser.logIn("olga", password);
});
after(async () => {
  await Promise.all([browser?.close(), stage?.close()]);
  await rm(folder, { recursive: true, force: true });
});
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

async function open(path: string): Promise<void> {
  await browser.goto(`${stage.server.url}/console/${path}`);
  await browser.find("main:not([aria-busy]) h1");
}

/** Fails if the content of an element is wider than the element, or than this width. */
async function fits(css: string, width = Infinity): Promise<void> {
  const [wide, room] = await browser.execute("const { scrollWidth, clientWidth } = " +
    `document.querySelector("${css}"); return [scrollWidth, clientWidth]`) as [number, number];
  assert.ok(wide <= Math.min(room, width), `${css}: ${wide} of ${room}`);
}

test("a problem with a long host name fits into the window", async () => {
  for (const at of [1, 2, 3]) {
    await send("POST", "/backend/event", { name: "order.created", data: at });
  }
  const problems = async () => JSON.stringify(await send("GET", "/backend/problem"));
  await until(async () => (await problems()).includes("failing"), () => "no problem");
  await open("");
  await browser.find(".msg b");
  for (const width of [320, 1280]) {
    await browser.resize(width, 800);
    await fits("html", width);
  }
});

test("long names of events and endpoints fit into each page and dialog", async () => {
  await open("start");
  await browser.clickButton("Use a built-in receiver", "main");
  await browser.find("#dispatch");
  for (const width of [320, 1280]) {
    await browser.resize(width, 800);
    await fits("html", width);
    await open("explorer");
    await browser.find(".trio .pill");
    await fits("html", width);
    await fits(".ops");
    await open(`subscriptions?event=${EVENT}`);
    await browser.click("a.main");
    await browser.clickButton("Delete…", "main");
    await browser.find("dialog[open]");
    await fits("dialog");
    await browser.press(ESCAPE);
    await browser.goto(`${stage.server.url}/account/webhooks`);
    await browser.find("main:not([aria-busy]) .list code b");
    await fits("html", width);
    await open("start");
    await browser.find("#dispatch");
  }
});

test("zoomed in to 400 % a dialog can be scrolled to its fields and its buttons", async () => {
  await browser.resize(320, 256);
  await open("subscriptions");
  await browser.click("a.main");
  for (const label of ["Pause…", "Delete…"]) {
    await browser.clickButton(label, "main");
    await browser.find("dialog[open]");
    for (const part of ["input", ".df .btn:last-child"]) {
      // As by a wheel: the keyboard would bring even what is cut off into view.
      const seen = await browser.execute(`const wanted = document.querySelector("dialog ${part}");
        const boxes = [];
        for (let box = wanted.parentElement; box; box = box.parentElement) {
          if (/auto|scroll/.test(getComputedStyle(box).overflow)) boxes.push(box);
          else box.scrollTop = 0;
        }
        for (const box of boxes) {
          const [own, its] = [wanted, box].map((each) => each.getBoundingClientRect());
          box.scrollTop += own.top - its.top;
        }
        const { left, top, bottom } = wanted.getBoundingClientRect();
        return bottom <= innerHeight + 1 &&
          document.elementFromPoint(left + 20, (top + bottom) / 2) === wanted;`);
      assert.ok(seen, `${label} ${part}`);
    }
    await browser.press(ESCAPE);
    await browser.until("!document.querySelector('dialog')");
  }
});

test("a long payload that is opened by the keyboard gets the focus", async () => {
  await browser.resize(1280, 800);
  const sent = { name: "order.created", data: ["é".repeat(70_000)] };
  await open(`events/${memberOf(await send("POST", "/backend/event", sent), "id")}`);
  await browser.click("[role=tab]:nth-child(2)");
  await browser.find(".payload > .btn");
  await browser.execute("document.querySelector('.payload > .btn').focus()");
  await browser.press("\uE007");
  await browser.until("document.activeElement.textContent.length > 70_000");
  assert.equal(await browser.execute("return document.activeElement.tagName"), "PRE");
});

test("in forced colours no border of the copy button crosses an id on a phone", async () => {
  await browser.resize(360, 740);
  await browser.prefer({ "forced-colors": "active" });
  const border = await browser.execute("return getComputedStyle(" +
    "document.querySelector('.facts [aria-label=\"Copy the id\"]')).borderTopWidth");
  assert.equal(border, "0px");
});

test("a long filter fits into the window, with the button that removes it", async () => {
  for (const width of [320, 1280]) {
    await browser.resize(width, 740);
    await open(`users?q=${"x".repeat(50)}`);
    await fits("html", width);
    const [w, h] = await browser.execute("const button = document.querySelector('.token button');" +
      "return [button.offsetWidth, button.offsetHeight]") as readonly number[];
    assert.ok(Number(w) >= 24 && Number(h) >= 24, `${w} × ${h}`);
  }
});

test("on a phone the palette shortens ids rather than the names before them", async () => {
  await send("POST", "/backend/app", { name: "harbours", url: "https://harbour.example/" });
  await browser.resize(320, 740);
  await open("users");
  await browser.click("[aria-label='Find or run']");
  await browser.find(".palette input");
  await browser.press("harb");
  await browser.find(".palette [href*='/apps/a']");
  assert.equal(await browser.execute("const name = document.querySelector(" +
    "\".palette [href*='/apps/a'] .cut\"); return name.scrollWidth - name.clientWidth"), 0);
});
