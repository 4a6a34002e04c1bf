import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import {
  authorizeAddress,
  memberOf,
  openStage,
  type Stage,
  type StageApp,
} from "./sign_in_stage.ts";

// Everything here runs without script: the pages must not need any.
const TAB = "\uE004";
const ENTER = "\uE007";
const SPACE = "\uE00D";
const LANDED = /\/callback\?/;
/** RFC 7636, appendix B. */
const CHALLENGE = {
  code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  code_challenge_method: "S256",
};

let stage: Stage;
let browser: Browser;
let passwords: Record<"marta" | "nils", string>;
let desk: StageApp;

before(async () => {
  stage = await openStage();
  browser = await openBrowser({ width: 1280, height: 800, javascript: false });
  passwords = {
    marta: await stage.addUser("marta", ["consumer", "orders"]),
    nils: await stage.addUser("nils", ["consumer"]),
  };
  desk = await stage.addApp("desk", { name: "Order Desk", scopes: ["consumer", "orders"] });
});
after(async () => {
  await browser?.close();
  await stage?.close();
});
beforeEach(async () => {
  await browser.clearCookies();
  await browser.consoleErrors();
});

const visit = (app: StageApp, more?: Readonly<Record<string, string>>) =>
  browser.goto(authorizeAddress(stage.server.url, app, more));

async function logIn(name: "marta" | "nils"): Promise<void> {
  await browser.logIn(name, passwords[name]);
}

const landing = async () => new URL(await browser.waitForUrl(LANDED)).searchParams;

/** An app of a test's own: consents that are remembered stay out of the other tests. */
let apps = 0;
const newApp = (fields?: Readonly<Record<string, unknown>>) => stage.addApp(`app${++apps}`, fields);

async function redeem(app: StageApp, code: string | null): Promise<unknown> {
  const client = createClient(stage.server.url);
  const response = await client.postForm("/authorization/token", {
    grant_type: "authorization_code",
    code: code ?? "",
    redirect_uri: app.redirectUri,
    client_id: app.clientId,
    client_secret: app.clientSecret ?? "",
  });
  assert.equal(response.status, 200, response.text);
  return response.json();
}

test("after a wrong password a user logs in and allows the app, which gets a code", async () => {
  await visit(desk, { state: "a b&c=é", scope: "orders" });
  assert.equal(await browser.title(), `Sign in · ${new URL(stage.server.url).host}`);
  await browser.logIn("marta", "not this one");

  assert.match(await browser.text("[role=alert]"), /do not match/);
  assert.equal(await browser.attribute("#username", "value"), "marta");
  assert.equal(await browser.attribute("#password", "value"), undefined);
  await browser.type("#password", passwords.marta);
  await browser.click("form [type=submit]");

  await browser.find("button[value=allow]");
  const page = await browser.text("main");
  for (const words of ["Order Desk", stage.appOrigin, "marta", "orders"]) {
    assert.ok(page.includes(words), words);
  }
  assert.ok(!page.includes("events"), "a scope that was not asked for");
  await browser.click("button[value=allow]");

  const query = await landing();
  assert.deepEqual([...query.keys()].sort(), ["code", "iss", "state"]);
  assert.equal(query.get("state"), "a b&c=é");
  assert.equal(query.get("iss"), stage.server.url);
  assert.equal(memberOf(await redeem(desk, query.get("code")), "scope"), "orders");
});

test("a user who denies is sent back with access_denied, and the app gets no code", async () => {
  const app = await newApp();
  await visit(app, { state: "s1" });
  await logIn("marta");
  await browser.click("button[value=deny]");
  const query = await landing();
  assert.equal(query.get("error"), "access_denied");
  assert.equal(query.get("state"), "s1");
  assert.equal(query.get("iss"), stage.server.url);
  assert.equal(query.get("code"), null);
});

test("a consent is remembered for the same scopes, and asked again for more", async () => {
  const app = await newApp({ scopes: ["consumer", "orders"] });
  await visit(app, { scope: "consumer" });
  await logIn("marta");
  await browser.click("button[value=allow]");
  const first = (await landing()).get("code");

  await visit(app, { scope: "consumer", state: "again" });
  const again = await landing();
  assert.equal(again.get("state"), "again");
  assert.notEqual(again.get("code"), first);

  await visit(app, { scope: "consumer orders" });
  await browser.find("button[value=allow]");
});

test("a user who has denied an app is asked again", async () => {
  const app = await newApp();
  await visit(app);
  await logIn("marta");
  await browser.click("button[value=deny]");
  await landing();
  await visit(app);
  await browser.find("button[value=allow]");
});

test("a user with a session needs no login for another app, but a consent", async () => {
  const [one, other] = [await newApp(), await newApp({ name: "Other Desk" })];
  await visit(one);
  await logIn("nils");
  await browser.click("button[value=allow]");
  await landing();
  await visit(other);
  await browser.find("button[value=allow]");
  assert.match(await browser.text("main"), /Other Desk[^]*nils/);
});

test("a trusted app needs no consent", async () => {
  await visit(await newApp({ trusted: true }));
  await logIn("nils");
  assert.notEqual((await landing()).get("code"), null);
});

test("a public app on a loopback URL needs a consent every time", async () => {
  const app = await newApp({ type: "public", trusted: true });
  await visit(app, CHALLENGE);
  await logIn("marta");
  await browser.click("button[value=allow]");
  await landing();
  await visit(app, CHALLENGE);
  await browser.find("button[value=allow]");
});

test("a user signs out and another signs in, and the first session has ended", async () => {
  const app = await newApp();
  await visit(app);
  await logIn("marta");
  assert.match(await browser.text("main"), /Signed in as marta/);
  const [former] = await browser.cookies();
  await browser.click("button[value=switch]");
  const status = await browser.text("[role=status]");
  assert.match(status, /^You are signed out here\..* keep their access/);
  await logIn("nils");
  await browser.find("button[value=allow]");
  assert.match(await browser.text("main"), /Signed in as nils/);

  const client = createClient(stage.server.url);
  const response = await client.get(
    authorizeAddress("", app),
    { cookie: `${former?.name}=${former?.value}` },
  );
  assert.match(response.text, /name="password"/);
});

test("the session's cookie is HttpOnly and Lax, and its id changes at the login", async () => {
  await visit(await newApp());
  const [anonymous] = await browser.cookies();
  await logIn("marta");
  await browser.find("button[value=allow]");
  const cookies = await browser.cookies();
  const name = anonymous?.name ?? "";
  assert.match(name, /^gatepost-[\w-]{8}$/);
  assert.deepEqual(cookies.map((each) => each.name).sort(), [name, `${name}-device`]);
  assert.ok(cookies.every(({ httpOnly, sameSite }) => httpOnly && sameSite === "Lax"));
  const session = cookies.find((each) => each.name === name);
  assert.equal(anonymous?.httpOnly, true);
  assert.notEqual(session?.value, anonymous?.value);
});

test("login and consent work with the keyboard alone", async () => {
  await visit(await newApp());
  await browser.find("#username:focus");
  await browser.press(`marta${TAB}${passwords.marta}${ENTER}`);
  await browser.find("button[value=allow]");
  // Nothing has the focus, so that a key pressed too early allows nothing.
  assert.equal(await browser.count("button:focus"), 0);
  await browser.press(ENTER);
  assert.doesNotMatch(await browser.url(), LANDED);
  await browser.press(TAB);
  await browser.find("button[value=switch]:focus-visible");
  await browser.press(TAB);
  await browser.find("button[value=allow]:focus-visible");
  await browser.press(TAB);
  await browser.find("button[value=deny]:focus-visible");
  await browser.press(SPACE);
  assert.equal((await landing()).get("error"), "access_denied");
});

test("a login form whose cookies are gone is shown once more", async () => {
  const app = await newApp();
  await visit(app);
  await browser.type("#username", "marta");
  await browser.clearCookies();
  await browser.type("#password", passwords.marta);
  await browser.click("form [type=submit]");
  assert.match(await browser.text("[role=alert]"), /open for too long/);
  assert.equal(await browser.attribute("#username", "value"), "marta");
  await logIn("marta");
  await browser.click("button[value=allow]");
  assert.notEqual((await landing()).get("code"), null);
});

test("Back from the app leads to a page that still works", async () => {
  const app = await newApp({ type: "public" }); // needs a consent every time
  await visit(app, CHALLENGE);
  await logIn("marta");
  await browser.click("button[value=allow]");
  const first = (await landing()).get("code");
  await browser.back();
  await browser.click("button[value=allow]");
  const second = (await landing()).get("code");
  assert.notEqual(second, null);
  assert.notEqual(second, first);
});

test("a foreign redirect_uri gets an error page, and no redirect", async () => {
  const evil = { ...desk, redirectUri: "https://evil.example/callback" };
  await visit(evil, { state: "s3" });
  assert.equal(await browser.text("h1"), "This sign-in link does not work");
  assert.equal(new URL(await browser.url()).origin, stage.server.url);
  assert.match(await browser.text("dl"), /Order Desk[^]*https:\/\/evil\.example\/callback/);
  assert.equal(await browser.count("a, form"), 0);
});

test("login, switch and consent log no CSP violation and no failed load", async () => {
  await visit(await newApp({ scopes: ["consumer"] }));
  await logIn("marta");
  await browser.click("button[value=switch]");
  await logIn("nils");
  await browser.click("button[value=allow]");
  await landing();
  assert.deepEqual(await browser.consoleErrors(), []);
});
