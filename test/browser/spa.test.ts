import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type SpaServer, startSpaServer } from "../../scripts/demo/spa_server.ts";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { memberOf, openStage, type Stage } from "./sign_in_stage.ts";

const ENDPOINTS = fileURLToPath(new URL("../../scripts/demo/endpoints", import.meta.url));

let stage: Stage;
let spa: SpaServer;
let browser: Browser;
let password: string;

before(async () => {
  stage = await openStage({
    env: { GATEPOST_ENDPOINTS: ENDPOINTS, GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8" },
  });
  spa = await startSpaServer();
  browser = await openBrowser({ width: 360, height: 740 });
  password = await stage.addUser("marta", ["consumer", "orders"]);
  const { clientId } = await stage.addApp("", {
    name: "Harbour Orders",
    url: spa.url,
    type: "public",
    scopes: ["consumer", "orders"],
  });
  spa.configure({ issuer: stage.server.url, clientId, scope: "consumer orders" });
});
after(async () => {
  await browser?.close();
  await spa?.close();
  await stage?.close();
});
beforeEach(async () => {
  await browser.clearCookies();
  await browser.goto(spa.url);
});
// CSP violations, refused CORS and failed loads are all logged there.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

async function signIn(): Promise<void> {
  await browser.click("#signed-out:not([hidden]) button");
  await browser.logIn("marta", password);
  await browser.click("button[value=allow]");
  await browser.find("#signed-in:not([hidden])");
}

const message = (kind: string) => browser.text(`#message${kind}:not(:empty)`);

test("an app on another origin signs in with PKCE, and the code leaves no trace", async () => {
  await signIn();
  assert.equal(await browser.text("#user"), "marta");
  assert.equal(await browser.text("#scope"), "consumer orders");
  assert.equal(await browser.url(), spa.url);
  assert.equal(await browser.execute("return sessionStorage.length + localStorage.length"), 0);
  assert.deepEqual(
    await browser.execute("return performance.getEntriesByType('resource').map((e) => e.name)"),
    [
      `${spa.url}style.css`,
      `${spa.url}app.js`,
      `${spa.url}oauth.js`,
      `${spa.url}config.json`,
      `${stage.server.url}/.well-known/oauth-authorization-server`,
      `${stage.server.url}/authorization/token`,
      `${stage.server.url}/authorization/whoami`,
    ],
  );
});

test("the event of an order that the app places reaches a subscriber", async () => {
  const client = createClient(stage.server.url);
  const login = await client.postJson("/consumer/login", { username: "marta", password });
  const subscribed = await client.postJson(
    "/consumer/subscription",
    { event: "order.created", endpoint: `${stage.appSite.url}/orders` },
    { authorization: `Bearer ${memberOf(login.json(), "token")}` },
  );
  assert.equal(subscribed.status, 201, subscribed.text);

  await signIn();
  await browser.type("#item", "tea");
  await browser.type("#quantity", "3");
  await browser.click("#order [type=submit]");
  assert.match(await message(""), /3 × tea/);
  const [callback] = await stage.appSite.waitFor(1, 5_000, "/orders");
  const order: unknown = JSON.parse(String(callback?.body));
  assert.equal(memberOf(order, "item"), "tea");
});

test("the app refreshes its tokens, and a sign-out revokes all of them", async () => {
  const calls = await recordTokens();
  await signIn();
  await browser.click("#refresh");
  assert.match(await message(""), /Both tokens are new/);
  await browser.click("#sign-out");
  await browser.find("#signed-out:not([hidden])"); // waits for it
  assert.match(await message(""), /signed out/);

  const [first, second] = await calls();
  assert.notEqual(first, undefined);
  assert.notEqual(second, undefined);
  assert.notEqual(first, second);
  const client = createClient(stage.server.url);
  for (const token of [first, second]) {
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await client.get("/authorization/whoami", headers)).status, 401);
  }
});

test("a user who denies is sent back to the app, which says so", async () => {
  await browser.click("#signed-out:not([hidden]) button");
  await browser.logIn("marta", password);
  await browser.click("button[value=deny]");
  assert.match(await message(".error"), /did not allow/);
  assert.equal(await browser.url(), spa.url);
});

for (const [what, change, complaint] of [
  ["state", (query: URLSearchParams) => query.set("state", "forged"), /\(state\)/],
  ["iss", (query: URLSearchParams) => query.set("iss", "https://evil.example"), /\(iss\)/],
] as const) {
  test(`the app refuses a response with another ${what} before it uses the code`, async () => {
    await browser.click("#signed-out:not([hidden]) button");
    const request = new URL(await browser.waitForUrl(/\/authorize\?/)).searchParams;
    const response = new URLSearchParams({
      code: "planted",
      state: request.get("state") ?? "",
      iss: stage.server.url,
    });
    change(response);
    await browser.goto(`${spa.url}?${response}`);
    assert.match(await message(".error"), complaint);
    assert.doesNotMatch(await browser.text("#log"), /POST/);
  });
}

test("the app fits a phone", async () => {
  await signIn();
  const width = await browser.execute("return document.documentElement.scrollWidth");
  assert.ok(Number(width) <= 360, `${width} px`);
});

/** Watches the responses of the token endpoint from outside the page. */
async function recordTokens(): Promise<() => Promise<(string | undefined)[]>> {
  const source = `
    const real = window.fetch;
    window.fetch = async (...args) => {
      const response = await real(...args);
      if (String(args[0]).endsWith("/authorization/token")) {
        const { access_token } = await response.clone().json();
        window.name += access_token + " ";
      }
      return response;
    };`;
  const added = await browser.devtools("Page.addScriptToEvaluateOnNewDocument", { source });
  return async () => {
    const names = String(await browser.execute("return window.name"));
    const identifier = memberOf(added, "identifier");
    await browser.devtools("Page.removeScriptToEvaluateOnNewDocument", { identifier });
    return names.trim().split(" ");
  };
}
