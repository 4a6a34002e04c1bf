import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createClient } from "../helpers/http_client.ts";
import { until } from "../helpers/until.ts";
import { memberOf, openStage, type Stage } from "./sign_in_stage.ts";

const READY = "main:not([aria-busy]) h1";
const HOSTILE = "<b>Evil</b> \u202Eeman";

let stage: Stage;
let browser: Browser;
let token = "";

before(async () => {
  stage = await openStage();
  const password = await stage.addUser("operator", ["backend", "consumer"]);
  const login = { username: "operator", password };
  token = memberOf(await call("POST", "/consumer/login", login), "token");
  browser = await openBrowser({ width: 1280, height: 900 });
  await signIn("operator", password);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});
// CSP violations, failed loads and errors are all logged there.
afterEach(async () => assert.deepEqual(await browser.consoleErrors(), []));

async function call(method: string, path: string, body?: object) {
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
  const { sendJson } = createClient(stage.server.url);
  return JSON.parse((await sendJson(method, path, body, headers)).text);
}
async function signIn(username: string, password: string): Promise<void> {
  await browser.clearCookies();
  await browser.goto(`${stage.server.url}/console/users`);
  await browser.logIn(username, password);
  await browser.find(READY);
}
async function open(path: string): Promise<void> {
  await browser.goto(`${stage.server.url}/console/${path}`);
  await browser.find(READY);
}
const press = (label: string, root?: string) => browser.clickButton(label, root);
const waitFor = (what: string, holds: () => Promise<unknown>) => until(holds, () => what);
const sees = (text: string) =>
  waitFor(text, async () => (await browser.text("main")).includes(text));

test("a user is added, edited (changed fields alone are sent), disabled and deleted", async () => {
  await open("users");
  await press("Add user…", "main");
  await browser.type("#field-username", "anna");
  assert.equal(await browser.attribute("#field-password", "type"), "password");
  await browser.type("#field-password", "short");
  await press("Add user");
  assert.match(await browser.text("dialog .msg"), /^The body is not valid[^]*Request [0-9a-f]{24}/);
  assert.match(String(await browser.consoleErrors()), /status of 400/);
  const invalid = "[...document.querySelectorAll('[aria-invalid=true]')].map(({ id }) => id)";
  assert.deepEqual(await browser.execute(`return ${invalid}`), ["field-password"]);
  const colour = (name: string) => browser.execute(
    `return getComputedStyle(document.getElementById("field-${name}-help")).color`);
  assert.notEqual(await colour("password"), await colour("username"));
  await browser.type("#field-password", "long enough");
  await press("Add user");
  await sees("Created");
  await browser.execute("const send = fetch; sent = []; window.fetch = (to, init) => " +
    "{ if (init?.method === 'PATCH') sent.push(init.body); return send(to, init); }");
  for (const [scopes, rate] of [["consumer", "5/1m"], ["", ""]] as const) {
    await press("Edit…", "main");
    await browser.type("#field-scopes", scopes);
    await browser.type("#field-rate", rate);
    await press("Save");
    await waitFor("saved", async () => /Rate/.test(await browser.text("main")) === (rate !== ""));
  }
  assert.deepEqual(await browser.execute("return sent"),
    ['{"rate":"5/1m"}', '{"scopes":[],"rate":null}']);
  await press("Disable…", "main");
  await press("Disable");
  await sees("Disabled");
  await open("users?q=ann");
  assert.equal(await browser.count("main a.main"), 1);
  await browser.click("main a.main");
  await press("Delete…", "main");
  await browser.find("dialog .danger:disabled");
  await browser.type("[name=typed]", "anna");
  await press("Delete");
  await sees("Nothing has this id");
  assert.deepEqual((await call("GET", "/backend/user?q=anna")).items, []);
});

test("the labels of a form are words as people write them", async () => {
  await open("apps");
  await press("Add app…", "main");
  const label = (name: string) => browser.text(`label[for="field-${name}"]`);
  assert.match(await label("url"), /^URL/);
  assert.match(await label("redirect_uris"), /^Redirect URIs optional$/);
  assert.match(await label("jwks"), /^JWKS/);
});

test("a filter accepts an address, an id and a space; a refused one can be removed", async () => {
  const filter = async (page: string, text: string, address: RegExp) => {
    await open(page);
    await browser.type("[name=filter]", text);
    await browser.press("\uE007");
    await browser.waitForUrl(address);
  };
  const [{ id }] = (await call("GET", "/backend/user?q=operator")).items;
  await filter("subscriptions", "https://a.example", /\?q=https%3A%2F%2Fa\.example$/);
  await filter("apps", "status: active", /\?status=active$/);
  await filter("users", id, /\/users\/u\w+$/);
  await filter("users", "status:bogus", /\?status=bogus$/);
  await browser.click(".token button");
  await sees("operator");
  assert.match(String(await browser.consoleErrors()), /status=bogus.*400/);
});

test("a page with an invalid id says that nothing has this id", async () => {
  await open("users/anna");
  assert.match(await browser.text("main"), /^Nothing has this id\n/);
  assert.match(String(await browser.consoleErrors()), /400/);
});

test("the status of a user is shown even if the user's name is active", async () => {
  const user = { username: "active", password: "long enough" };
  await open(`users/${(await call("POST", "/backend/user", user)).id}`);
  assert.match(await browser.text(".facts"), /^Status$/m);
});

test("an app's name is plain text; a new secret is shown, the old one counts down", async () => {
  const app = await call("POST", "/backend/app", { name: HOSTILE, url: "https://evil.example" });
  await open(`apps/${app.client_id}`);
  assert.equal(await browser.text("main h1"), "<b>Evil</b> eman");
  assert.equal(await browser.count("main h1 b"), 0);
  assert.match(await browser.text("main pre"), /oauth4webapi[^]*clientCredentialsGrantRequest/);
  await press("New secret…", "main");
  await press("New secret");
  assert.match(await browser.text("dialog pre"), /^[\w-]{43}$/);
  await press("I have saved it");
  await sees("The old secret is good for 23 h 59 min more.");
  // It is shown even if the dialog was left before it arrived.
  await browser.execute("const send = fetch; window.fetch = async (to, init) => " +
    "{ if (!/secret/.test(to)) return send(to, init); await send(to, init); " +
    "await new Promise((next) => window.next = next); return send(to, init); }");
  await press("New secret…", "main");
  await press("New secret");
  await browser.until("window.next");
  await browser.press("\uE00C");
  await browser.execute("window.next()");
  assert.match(await browser.text("dialog pre"), /^[\w-]{43}$/);
});

test("to delete an app one types its name as it polls, however it is encoded", async () => {
  const app = { name: "Cafe\u0301\u2003One", url: "https://cafe.example" };
  await open(`apps/${(await call("POST", "/backend/app", app)).client_id}`);
  await press("Delete…", "main");
  await browser.type("[name=typed]", "Cafe One");
  await browser.find("dialog .danger:disabled");
  await browser.type("[name=typed]", "Caf\u00e9 One");
  await press("Delete");
  await sees("Nothing has this id");
});

test("the dialog that deletes an app shows all of a long name", async () => {
  const app = { name: "W".repeat(100), url: "https://long.example" };
  await open(`apps/${(await call("POST", "/backend/app", app)).client_id}`);
  await press("Delete…", "main");
  await browser.find("dialog code");
  const cut = "const right = (one) => one.getBoundingClientRect().right; " +
    "const [dialog, ...all] = document.querySelectorAll('dialog, dialog h2, dialog code'); " +
    "return all.filter((each) => right(each) > right(dialog)).length";
  assert.equal(await browser.execute(cut), 0);
});

test("the grants of a user are revoked all at once, after a dialog with their number", async () => {
  const password = await stage.addUser("berta", ["consumer"]);
  await call("POST", "/consumer/login", { username: "berta", password });
  const [{ id }] = (await call("GET", "/backend/user?q=berta")).items;
  await open(`users/${id}`);
  await waitFor("the app of the grant", async () =>
    /Grants\s[^]*\bApp\s[^]*\blogin\b/.test(await browser.text("main")));
  await waitFor("what the user did, and what was done to the user", async () =>
    /Own actions\s(?:(?!created)[^])*signed in[^]*Actions upon it\s[^]*created/
      .test(await browser.text("main")));
  assert.equal(await browser.execute(`return [...document.querySelectorAll(".card")]
    .find((card) => /^Grants/.test(card.textContent)).querySelectorAll("tbody tr").length`), 1);
  assert.equal(await browser.count("main .down"), 0, "nothing is shown as an error");
  await press("Revoke all…", "main");
  assert.match(await browser.text("dialog .dh"), /berta\?[^]*1 grant\./);
  await press("Revoke all");
  await waitFor("revoked", async () =>
    (await call("GET", `/backend/grant?user=${id}`)).items[0].status === "revoked");
  await browser.click("main a[href*='/grants/']");
  await waitFor("its page", async () => await browser.text("main h1") === "Grant");
});

test("the personal tokens of a user are listed with their names", async () => {
  const password = await stage.addUser("petra", ["consumer"]);
  const login = memberOf(await call("POST", "/consumer/login", { username: "petra", password }),
    "token");
  const { postJson } = createClient(stage.server.url);
  for (const name of ["nightly backup", "<i>at</i> home"]) {
    const given = { name, scopes: ["consumer"], expires_in: 3600 };
    await postJson("/consumer/token", given, { authorization: `Bearer ${login}` });
  }
  const [{ id }] = (await call("GET", "/backend/user?q=petra")).items;
  for (const page of [`users/${id}`, `grants?user=${id}`]) {
    await open(page);
    await sees("personal\n<i>at</i> home");
    await sees("personal\nnightly backup");
  }
});

test("the audit log is filtered by actor and by excluded actions, and exported", async () => {
  await open("audit");
  await browser.type("[name=filter]", "actor:operator");
  await browser.press("\uE007");
  await browser.find("main:not([aria-busy]) .token");
  await browser.type("[name=filter]", "-action:grant.");
  await browser.press("\uE007");
  await browser.waitForUrl(/actor=operator&-action=grant\./);
  await waitFor("the filtered list", async () =>
    /^(?!.*(?:grant\.|admin)).*User signed in/s.test(await browser.text("main table")));
  const apps = await browser.execute(
    "return [...document.querySelectorAll('td .sub')].map((each) => each.textContent)");
  assert.match(String(apps), /^by \w+(,by \w+)*$/);
  await browser.execute("URL.createObjectURL = (file) => " +
    "{ file.text().then((text) => document.title = text); return '#'; }");
  await press("Export CSV", "main");
  await waitFor("CSV", async () => /^id,time.*"user\.login"/.test(await browser.title()));
});

test("an operator rotates and withdraws a key, runs a cronjob and makes a backup", async () => {
  await open("keys");
  await press("Rotate at once…", "main");
  await press("Rotate at once");
  await waitFor("a second key", async () => await browser.count("main tbody tr") === 2);
  const [{ kid }] = (await call("GET", "/backend/key")).items;
  await press("Withdraw at once…", "main tbody tr:first-child");
  await browser.type("[name=typed]", kid.slice(0, 8));
  await press("Withdraw at once");
  await waitFor("the withdrawal", async () => !(await browser.text("main")).includes(kid));
  await open("cronjobs");
  await press("Run now…", "main tbody tr:nth-child(6)");
  assert.match(await browser.text("dialog .dh"), /Its next scheduled run does not change\.$/);
  await press("Run now");
  const entry = "/backend/audit?action=cronjob.run";
  await waitFor("its audit entry", async () => (await call("GET", entry)).items.length === 1);
  await open("settings");
  await sees("GATEPOST_SECRET_KEY: not set");
  await press("Back up now…", "main");
  await press("Back up now");
  assert.match(await browser.text(".toast"), /^Backed up: gatepost-[\da-f-]+\.db, [\d,]+ bytes/);
});

test("a button adds the new rows at the top of a list", async () => {
  const rows = () => browser.count("main tbody tr");
  const add = (name: string) => call("POST", "/backend/event", { name, data: {} });
  const { identifier } = Object(await browser.devtools("Page.addScriptToEvaluateOnNewDocument", {
    source: `const begin = setTimeout; // a list that polls every 10 s does so every 200 ms
      window.setTimeout = (act, ms) => begin(act, ms === 10_000 ? 200 : ms);`,
  }));
  await open("events");
  await sees("No event yet");
  await add("first.sent");
  await waitFor("the row, since the list was empty", async () => await rows() === 1);
  await add("second.sent");
  await add("third.sent");
  await sees("2 new");
  assert.equal(await rows(), 1); // nothing moves by itself
  await browser.click("main .fresh");
  assert.match(await browser.text("main tbody"), /third\.sent[^]*second\.sent[^]*first\.sent/);
  await open("audit?action=user.create");
  const shown = await rows();
  await call("POST", "/backend/user", { username: "late", password: "a long password" });
  await sees("1 new");
  await browser.click("main .fresh");
  assert.equal(await rows(), shown + 1);
  await open("keys");
  const keys = await rows();
  await call("POST", "/backend/key", {});
  await waitFor("the new key", async () => await rows() === keys + 1);
  await browser.devtools("Page.removeScriptToEvaluateOnNewDocument", { identifier });
});

test("a page that is left before it has loaded does not poll for changes", async () => {
  await open("users");
  await browser.execute(`
    const begin = setTimeout;
    window.polls = 0;
    window.setTimeout = (act, ms) => (polls += ms === 10_000, begin(act, ms));
  `);
  for (const [page, path] of [["audit", "/backend/audit"], ["keys", "/backend/key"]] as const) {
    await browser.execute(`for (const page of arguments) {
      document.querySelector(".side [data-page=" + page + "]").click();
    }`, page, "users");
    await browser.until(`performance.getEntriesByType("resource")
      .some(({ name, responseEnd }) => name.includes("${path}?") && responseEnd > 0)`);
    await browser.execute("return new Promise((resolve) => setTimeout(resolve, 200))");
    assert.equal(await browser.execute("return polls"), 0, page);
  }
  await browser.click(".side [data-page=keys]");
  await browser.until("polls === 1"); // by the page that is shown
});

test("a long scope and a long event name are broken to fit into their lists", async () => {
  const scopes = ["s".repeat(64), "consumer"];
  const user = { username: "long", password: "long enough", scopes };
  const id = memberOf(await call("POST", "/backend/user", user), "id");
  await call("POST", "/backend/app", { name: "long", url: "https://long.example/", scopes });
  const login = await call("POST", "/consumer/login", user);
  const subscription = { event: "e".repeat(128), endpoint: "https://long.example/" };
  const headers = { authorization: `Bearer ${memberOf(login, "token")}` };
  await createClient(stage.server.url).postJson("/consumer/subscription", subscription, headers);
  await browser.resize(1100, 900);
  for (const page of ["apps", `users/${id}`, "grants"]) {
    await open(page);
    await browser.until("!document.querySelector('[aria-busy]')");
    assert.equal(await browser.execute("return document.documentElement.scrollWidth - " +
      "document.documentElement.clientWidth"), 0, page);
  }
  await browser.resize(1280, 900);
});

test("a user with scope backend:read is shown no button that changes anything", async () => {
  const [{ id }] = (await call("GET", "/backend/user?q=operator")).items;
  await signIn("reviewer", await stage.addUser("reviewer", ["backend:read", "consumer"]));
  for (const path of ["users", `users/${id}`, "keys", "cronjobs", "settings", "audit"]) {
    await open(path);
    await waitFor("the whole page", async () => await browser.count("[aria-busy]") === 0);
    assert.doesNotMatch(await browser.text("main"), /\w…$/m, path); // names still to come are "…"
  }
});
