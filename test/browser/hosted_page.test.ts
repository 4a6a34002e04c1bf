import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { authorizeAddress, openStage, type Stage, type StageApp } from "./sign_in_stage.ts";

// A hosted page may hold what a user wrote; this is what such a script would do.
const ATTACK = `
async function allow(address) {
  const page = await (await fetch(address, { credentials: "include" })).text();
  const csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1];
  if (csrf === undefined) return "no form";
  const body = new URLSearchParams({ csrf, decision: "allow" });
  const sent = await fetch(address, { method: "POST", body, redirect: "manual" });
  return "sent " + sent.type + sent.status;
}
const target = new URLSearchParams(location.search).get("target");
window.outcome = allow(target).catch((error) => error.name);
window.onclick = () => {
  const popup = open(target);
  window.clicked = new Promise((resolve) => setInterval(() => {
    try {
      const button = popup.document.querySelector("button[value=allow]");
      if (button) resolve("clicked");
      button?.click();
    } catch (error) {
      resolve(error.name);
    }
  }, 50));
};`;
const HTML = `<!doctype html><title>x</title><body>hosted<script>${ATTACK}</script>`;
const XML = `<script xmlns="http://www.w3.org/1999/xhtml"><![CDATA[${ATTACK}]]></script>`;
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="99" height="99">${XML}</svg>`;
const XHTML = `<html xmlns="http://www.w3.org/1999/xhtml"><body>hosted${XML}</body></html>`;

/** The responses that hold the script, by path, as a module's author writes them. */
const RESPONSES: Readonly<Record<string, string>> = {
  plain: `{ status: 200, headers: { "Content-Type": "text/HTML; charset=utf-8" }, body: HTML }`,
  response: `new Response(HTML, { headers: { "content-type": "text/html" } })`,
  svg: `new Response(SVG, { headers: { "content-type": "image/svg+xml" } })`,
  xhtml: `{ status: 200, headers: { "content-type": "application/xhtml+xml" }, body: XHTML }`,
  xml: `{ status: 200, headers: { "content-type": "Text/XML" }, body: XHTML }`,
  own: `{ status: 200, headers: { "content-type": "text/html",
    "content-security-policy": "script-src 'unsafe-inline'" }, body: HTML }`,
};

let folder: string;
let stage: Stage;
let browser: Browser;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "gatepost-hosted-"));
  const texts = Object.entries({ HTML, SVG, XHTML })
    .map(([name, text]) => `const ${name} = ${JSON.stringify(text)};`);
  const endpoints = Object.entries(RESPONSES).map(([name, response]) =>
    `export const ${name} = { method: "GET", path: "/${name}", public: true,
      handle: () => (${response}) };`
  );
  await writeFile(join(folder, "pages.mjs"), [...texts, ...endpoints].join("\n"));
  stage = await openStage({ env: { GATEPOST_ENDPOINTS: folder } });
  browser = await openBrowser({ width: 1280, height: 800 });
  const password = await stage.addUser("marta", ["consumer"]);
  await browser.goto(authorizeAddress(stage.server.url, await stage.addApp("desk")));
  await browser.logIn("marta", password);
  await browser.find("button[value=allow]");
});
after(async () => {
  await browser?.close();
  await stage?.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => browser.goto("about:blank"));

const openHosted = (path: string, app: StageApp) => openOn(path, authorizeAddress("", app));

const openOn = (path: string, target: string) =>
  browser.goto(`${stage.server.url}/${path}?${new URLSearchParams({ target })}`);

/** Nobody has consented as long as the user is still asked. */
async function assertStillAsked(app: StageApp): Promise<void> {
  await browser.goto(authorizeAddress(stage.server.url, app));
  await browser.find("button[value=allow]");
}

for (const path of ["plain", "response", "svg", "xhtml", "xml"]) {
  test(`a script of a hosted page (${path}) cannot read the authorize page`, async () => {
    const app = await stage.addApp(path);
    await openHosted(path, app);
    assert.equal(await browser.execute("return window.outcome"), "TypeError");
    await assertStillAsked(app);
  });
}

test("a script of a page with its own policy gets no form to send", async () => {
  const app = await stage.addApp("own");
  await openHosted("own", app);
  assert.equal(await browser.execute("return window.outcome"), "no form");
  await assertStillAsked(app);
});

test("a script of a hosted page cannot click in a popup with the consent page", async () => {
  const app = await stage.addApp("popup");
  await openHosted("plain", app);
  await browser.click("body");
  assert.equal(await browser.execute("return window.clicked"), "SecurityError");
  await assertStillAsked(app);
});

test("a script of a page with its own policy cannot control the account page", async () => {
  await openOn("own", "/account");
  assert.equal(await browser.execute("return window.outcome"), "no form");
  await browser.click("body");
  assert.match(String(await browser.execute("return window.clicked")), /Error$/);
});
