import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertErrorPage, assertLoginPage } from "../helpers/authorize_pages.ts";
import { createClock } from "../helpers/clock.ts";
import { type CommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { assertCodePage, VERIFY } from "../helpers/device.ts";
import { PASSWORD, type TestApp } from "../helpers/gatepost.ts";
import { type FirstStart, startFirst } from "../helpers/first_start.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";
import { authorizePath } from "../helpers/requests.ts";
import { assertOAuthError } from "../helpers/responses.ts";

const NEW_PASSWORD = "a sentence of my own";
const NOTE = /Nobody has signed in yet\. User\s+<bdi>admin<\/bdi>'s password was printed/;
const LATE = /open for too long/;

/** Asserts that a page asks for a new password, and whether it has a button to keep the old. */
function assertChoice(response: ClientResponse, { keep = false, status = 200 } = {}): void {
  assert.equal(response.status, status, response.text);
  assert.match(response.text, /Choose your own password/);
  const [form] = response.forms();
  const names = form?.inputs.map(({ name, attributes }) => attributes["autocomplete"] ?? name);
  assert.deepEqual(names, ["off", "username", "new-password"]);
  assert.equal(form?.inputs[1]?.value, "admin");
  assert.equal(form?.buttons.some(({ value }) => value === "keep"), keep);
  assert.doesNotMatch(response.text, /<script/);
}

/** Sends the form of a page with changed fields. */
const forge = (browser: Client, page: ClientResponse, more: Readonly<Record<string, string>>) =>
  browser.postForm(page.url, { ...page.forms()[0]?.fields, ...more }, {
    origin: "null",
    "sec-fetch-site": "same-origin",
  });

const listActions = async (cli: CommandLine, action: string) =>
  readItems(await cli.run("audit", "list", "--json", "--action", action));

describe("the login page of a server on which nobody has signed in", () => {
  test("says where admin's password was printed, until somebody signs in", async (t) => {
    const { server, password, openBrowser, tryLogin, path } = await startFirst(t);
    const again = await startFirst(t, { folder: server.folder });
    assert.equal(again.password, "", "the password is printed once");
    const pages = () =>
      Promise.all([path, VERIFY].map((each) => openBrowser().get(each)));
    for (const page of await pages()) {
      assertLoginPage(page);
      assert.match(page.text, NOTE);
      assert.equal(page.forms()[0]?.fields["username"], "admin");
    }
    assert.equal(await tryLogin("wrong password"), 401);
    assert.match((await pages())[0]?.text ?? "", NOTE);
    assert.deepEqual([await tryLogin(password), await tryLogin(password)], [200, 200]);
    for (const page of await pages()) assert.doesNotMatch(page.text, NOTE);
    assert.doesNotMatch((await again.openBrowser().get(VERIFY)).text, NOTE);
  });

  test("has no such note with a second user, a configured password or one of setup", async (t) => {
    const [withUser, withSetup, given] = await Promise.all([
      startFirst(t),
      startFirst(t),
      startFirst(t, { env: { GATEPOST_ADMIN_PASSWORD: PASSWORD } }),
    ]);
    await withUser.cli.runWith({ stdin: PASSWORD }, "user", "add", "ann", "--password-stdin");
    await withSetup.cli.run("setup");
    for (const { openBrowser, path } of [withUser, withSetup, given]) {
      const page = await openBrowser().get(path);
      assertLoginPage(page);
      assert.doesNotMatch(page.text, NOTE);
      assert.equal(page.forms()[0]?.fields["username"], "");
    }
    const { openBrowser, signIn, path } = given;
    const browser = openBrowser();
    assert.equal((await signIn(browser, path, PASSWORD)).status, 303, "redirects to the app");
  });
});

describe("a user who signs in with the printed password", () => {
  test("may keep it, and is not asked again", async (t) => {
    const { password, openBrowser, signIn, tryLogin, path, cli } = await startFirst(t);
    const browser = openBrowser();
    const page = await signIn(browser, path, password);
    assertChoice(page, { keep: true });
    assertChoice(await browser.get(path), { keep: true });
    const kept = await browser.submit(page, {}, "keep");
    assert.equal(kept.status, 303);
    assert.match((await browser.follow(kept)).location ?? "", /[?&]code=/);
    assert.match((await signIn(openBrowser(), path, password)).location ?? "", /[?&]code=/);
    assert.equal(await tryLogin(password), 200);
    assert.equal((await listActions(cli, "user.keep_password")).length, 1);
  });

  test("must keep or change it within 15 minutes, or sign in again", async (t) => {
    const clock = await createClock();
    const { password, openBrowser, signIn, tryLogin, path } = await startFirst(t, clock);
    t.after(clock.remove);
    const browser = openBrowser();
    const page = await signIn(browser, path, password);
    await clock.set(16 * 60_000);
    for (const [fields, button] of [[{ new_password: NEW_PASSWORD }], [{}, "keep"]] as const) {
      assertLoginPage(await browser.submit(page, fields, button), 400);
      assertLoginPage(await browser.get(path));
    }
    assert.equal(await tryLogin(NEW_PASSWORD), 401);
    const again = await signIn(browser, path, password);
    assertChoice(again, { keep: true });
    assert.equal((await browser.submit(again, { new_password: NEW_PASSWORD })).status, 303);
    assert.equal(await tryLogin(NEW_PASSWORD), 200);
  });

  test("changes it, which ends all other sessions and tokens in every process", async (t) => {
    const first = await startFirst(t);
    const { server, password, openBrowser, signIn, tryLogin, path, cli } = first;
    const second = await startFirst(t, { folder: server.folder });
    const [browser, other] = [openBrowser(), openBrowser()];
    const token = await first.login(password);
    await signIn(other, path, password);
    assertChoice(await signIn(browser, path, password), { keep: true });

    const page = await browser.get(second.address(path));
    assertChoice(page, { keep: true });
    const chosen = await browser.submit(page, { new_password: NEW_PASSWORD });
    assert.deepEqual([chosen.status, chosen.location], [303, second.address(path)]);
    for (const at of [second, first]) {
      assert.match((await browser.get(at.address(path))).location ?? "", /[?&]code=/);
      assertLoginPage(await other.get(at.address(path)));
    }
    const endMs = performance.now() + 2_000;
    while (await first.isAlive(token)) assert.ok(performance.now() < endMs);
    assert.deepEqual([await tryLogin(password), await tryLogin(NEW_PASSWORD)], [401, 200]);
    const [change, ...more] = await listActions(cli, "user.change_password");
    assert.deepEqual(more, []);
    assert.equal(change?.["actor"], change?.["target"]);
    assert.match(String(change?.["address"]), /^10\./);
  });
});

describe("a user who signs in with a one-time password of setup", () => {
  let stage: FirstStart;
  let app: TestApp;
  const releases: (() => Promise<void>)[] = [];
  before(async () => {
    const test = { after: (release: () => Promise<void>) => void releases.push(release) };
    stage = await startFirst(test, { env: { GATEPOST_ADMIN_PASSWORD: PASSWORD } });
    ({ app } = stage);
  });
  after(() => Promise.all(releases.map((release) => release())));

  /** A browser that has just signed in with such a password, and the page that it shows. */
  async function openUsed(path = stage.path) {
    const { password } = readJson(await stage.cli.run("setup", "--json"));
    const browser = stage.openBrowser();
    const page = await stage.signIn(browser, path, String(password));
    assertChoice(page);
    return { browser, page, path, password: String(password) };
  }

  test("cannot avoid a new password by a button, another page or a second sign-in", async () => {
    const { browser, page, path, password } = await openUsed();
    assert.match(page.text, /works only once/);
    for (const decision of ["keep", "allow", "deny", "switch", "other"]) {
      assertErrorPage(await forge(browser, page, { decision }));
    }
    assertChoice(await browser.get(authorizePath(app, { state: "other" })));
    assertChoice(await browser.get(VERIFY));
    const second = await stage.signIn(stage.openBrowser(), path, password);
    assertLoginPage(second, 403);
    const chosen = await browser.submit(page, { new_password: NEW_PASSWORD });
    assert.match((await browser.follow(chosen)).location ?? "", /[?&]code=/);
    assert.equal(await stage.tryLogin(NEW_PASSWORD), 200);
    assert.equal(await stage.tryLogin(NEW_PASSWORD), 200);
  });

  /** Adds an app of the password grant, and returns a function that requests its tokens. */
  async function addPasswordApp() {
    const url = "https://shell.example";
    const added = await stage.cli.run("app", "add", "Shell", "--url", url, "--json",
      "--scope", "consumer", "--grant", "password");
    const { client_id, client_secret } = readJson(added);
    return (password: string, scope = "consumer") => {
      const fields = { username: "admin", password, scope, grant_type: "password" };
      const proof = { client_id: String(client_id), client_secret: String(client_secret) };
      return stage.openBrowser().postForm("/authorization/token", { ...fields, ...proof });
    };
  }

  test("can use it again if the token request was refused because of its scope", async () => {
    const getToken = await addPasswordApp();
    const password = String(readJson(await stage.cli.run("setup", "--json"))["password"]);
    assertOAuthError(await getToken(password, "orders"), 400, "invalid_scope");
    assert.equal((await getToken(password)).status, 200);
    assertOAuthError(await getToken(password), 400, "invalid_grant");
  });

  test("can sign in only once with it, even if several ways are tried at once", async () => {
    const getToken = await addPasswordApp();
    const password = String(readJson(await stage.cli.run("setup", "--json"))["password"]);
    const logins = await Promise.all([1, 2, 3].flatMap(() => [
      getToken(password).then(({ status }) => status),
      stage.tryLogin(password),
      stage.signIn(stage.openBrowser(), stage.path, password).then(({ status }) => status),
    ]));
    assert.equal(logins.filter((status) => status === 200).length, 1, logins.join());
    assert.ok(logins.every((status) => [200, 400, 401, 403].includes(status)), logins.join());
  });

  test("sees what is wrong with a new password, and nothing changes", async () => {
    const { browser, page } = await openUsed();
    const changes = () => listActions(stage.cli, "user.change_password");
    const before = await changes();
    for (const wrong of ["", "short", "x".repeat(1_025)]) {
      const response = await browser.submit(page, { new_password: wrong });
      assertChoice(response, { status: 400 });
      assert.match(response.text, /role="alert"[^]*Must be 8 to 1024 bytes long\./);
      assert.equal(await stage.tryLogin(wrong), 401);
    }
    assertChoice(await browser.get(stage.path));
    assert.deepEqual(await changes(), before);
  });

  test("cannot choose the one-time password as the new one", async () => {
    const { browser, page, password } = await openUsed();
    const response = await browser.submit(page, { new_password: password });
    assertChoice(response, { status: 400 });
    assert.match(response.text, /role="alert"[^]*It is the password that was made for you\./);
    assert.equal(await stage.tryLogin(password), 401);
  });

  test("returns to the page for a device's code after choosing a new one", async () => {
    const { browser, page } = await openUsed(`${VERIFY}?user_code=BCDF-GHJK`);
    assert.equal((await forge(browser, page, { decision: "keep" })).status, 400);
    const chosen = await browser.submit(page, { new_password: NEW_PASSWORD });
    assertCodePage(await browser.follow(chosen));
    assert.equal(chosen.location, page.url);
  });

  test("cannot use the account page before choosing a new one", async () => {
    const { browser, page } = await openUsed("/account");
    assertChoice(await forge(browser, page, { do: "make", name: "x", days: "1" }), { status: 400 });
    assertChoice(await browser.get("/account?do=make"));
    const chosen = await browser.submit(page, { new_password: NEW_PASSWORD });
    assert.match((await browser.follow(chosen)).text, /<h1[^>]*>Your account</);
  });

  test("is safe from forms of other sites, sessions and pages, and from old forms", async () => {
    const { browser, page } = await openUsed();
    const csrf = page.forms()[0]?.fields["csrf"] ?? "";
    const stranger = await stage.openBrowser().get(stage.path);
    const strange = stranger.forms()[0]?.fields["csrf"] ?? "";
    const ofOtherPage = (await browser.get(VERIFY)).forms()[0]?.fields["csrf"] ?? "";
    for (const forged of ["", "x", strange, ofOtherPage, `${csrf}x`]) {
      const response = await forge(browser, page, { csrf: forged, new_password: NEW_PASSWORD });
      assertChoice(response, { status: 400 });
      assert.match(response.text, LATE);
    }
    const fields = { ...page.forms()[0]?.fields, new_password: NEW_PASSWORD };
    for (const site of ["cross-site", "same-site"]) {
      const response = await browser.postForm(page.url, fields, { "sec-fetch-site": site });
      assert.equal(response.status, 403);
    }
    const { password } = readJson(await stage.cli.run("setup", "--json"));
    const late = await browser.submit(page, { new_password: NEW_PASSWORD });
    assertLoginPage(late, 400);
    assert.equal(await stage.tryLogin(String(password)), 200, "the newer password is valid");
  });

  test("gets one of two new passwords that are sent at the same time", async () => {
    const { browser, page } = await openUsed();
    const wanted = ["new password 1", "new password 2"];
    const responses = await Promise.all(
      wanted.map((each) => browser.submit(page, { new_password: each })),
    );
    assert.deepEqual(responses.map(({ status }) => status).sort(), [303, 400]);
    const logins = await Promise.all(wanted.map(stage.tryLogin));
    assert.deepEqual(logins.sort(), [200, 401]);
  });
});
