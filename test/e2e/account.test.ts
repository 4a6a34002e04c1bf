import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertLoginPage, passLogin } from "../helpers/authorize_pages.ts";
import { type Gatepost, PASSWORD, startGatepost, type TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";
import { bearer, newAddress, newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";

type Fields = Readonly<Record<string, string>>;

const ACCOUNT = "/account";
const NEW_PASSWORD = "a password that is new";
const OWN_PAGE = { "sec-fetch-site": "same-origin", origin: "null" };

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost();
});
after(() => gatepost.stop());

/** A browser in which a user has logged in to the account, and the page. */
async function openAccount(as?: TestUser, query = "") {
  const user = as ?? await gatepost.createUser();
  const browser = gatepost.openBrowser();
  const page = await passLogin(browser, await browser.get(ACCOUNT + query), user);
  assert.equal(page.status, 200, page.text);
  return { user, browser, page };
}

/** Presses a button of the page's form; the first one only signs out. */
const press = (browser: Client, page: ClientResponse, act: string, fields: Fields = {}) =>
  browser.submit(page, fields, act, page.forms()[1]);

const actsOf = (page: ClientResponse) => page.forms()[1]?.buttons.map(({ value }) => value) ?? [];
const actOf = (page: ClientResponse, kind: string) => {
  const act = actsOf(page).find((each) => each.startsWith(`${kind} `));
  assert.ok(act !== undefined, actsOf(page).join());
  return act;
};

/** The text that people see on a page. */
const wordsOf = ({ text }: ClientResponse) =>
  text.replace(/^.*?<main/s, "<main").replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

/** The actions of a user in the audit, newest first. */
async function auditOf(user: TestUser): Promise<unknown[]> {
  const path = `/backend/audit?actor=${user.id}`;
  const { items } = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
  return (items as Readonly<Record<string, unknown>>[]).map(({ action }) => action);
}

async function assertDone(
  browser: Client,
  response: ClientResponse,
  words: RegExp,
): Promise<ClientResponse> {
  assert.equal(response.status, 303, response.text);
  const page = await browser.follow(response);
  assert.match(wordsOf(page), words);
  return page;
}

describe("the account page", () => {
  test("asks for a login first, then shows what was requested", async () => {
    const browser = gatepost.openBrowser();
    const login = await browser.get(`${ACCOUNT}?do=password`);
    assertLoginPage(login);
    assert.equal(login.headers.get("cross-origin-opener-policy"), "same-origin");
    assert.match(login.text, /to see your account/);
    const page = await passLogin(browser, login, await gatepost.createUser());
    assert.match(page.text, /<h1>Change your password<\/h1>/);
  });

  test("has no script and is kept out of frames, caches and other windows", async () => {
    const { page } = await openAccount();
    assert.doesNotMatch(page.text, /<script|\sstyle=|\son[a-z]+=/i);
    const policy = page.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/);
    const { origin } = new URL(gatepost.issuer);
    const [, href = ""] = /<link rel="stylesheet" href="([^"]*)"/.exec(page.text) ?? [];
    assert.match(href, /^\/console\/assets\/.*console\.css$/);
    assert.ok(policy.includes(`style-src ${origin}${href};`), policy);
    assert.equal(page.headers.get("cache-control"), "no-store");
    assert.equal(page.headers.get("cross-origin-opener-policy"), "same-origin");
    assert.equal(page.headers.get("access-control-allow-origin"), null);
  });

  test("shows the apps and browsers of its user alone", async () => {
    const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const stranger = await openAccount();
    const scopes = ["consumer", "orders"];
    const app = await gatepost.createApp({ name: "<b>Shop</b>", scopes });
    await gatepost.codeTokens(app, user);
    const { page } = await openAccount(user);
    const words = wordsOf(page);
    for (const shown of ["&lt;b&gt;Shop&lt;/b&gt;", "https://app.example", "Subscribe to events",
      "orders", "not used yet", "this browser", "Sign out everywhere else"]) {
      assert.ok(words.includes(shown), `${shown}: ${words}`);
    }
    const other = await stranger.browser.get(ACCOUNT);
    assert.ok(!other.text.includes("Shop") && !other.text.includes("everywhere else"));
    assert.match(wordsOf(other), /No app may\..*None\. With one, a script of yours can act/);
  });

  test("opens for a user who has no scope", async () => {
    await openAccount(await gatepost.createUser({ scopes: [] }));
  });

  test("responds 400 to an unknown action, 404 to an unknown page or app", async () => {
    const { browser, page } = await openAccount();
    const fields = { csrf: page.forms()[1]?.fields["csrf"] ?? "", do: "nonsense" };
    const response = await browser.postForm(ACCOUNT, fields, OWN_PAGE);
    assert.equal(response.status, 400);
    assert.match(response.text, /role="alert"/);
    const app = await gatepost.createApp();
    assert.equal((await browser.get(`${ACCOUNT}?app=${app.id}`)).status, 404);
    assert.equal((await browser.get(`${ACCOUNT}/nothing`)).status, 404);
  });
});

test("the page says what withdrawing an app ends, and then ends the app's token", async () => {
  const { user, browser } = await openAccount();
  const app = await gatepost.createApp({ name: "Northwind Shop" });
  const { access_token: token } = await gatepost.codeTokens(app, user);
  for (const event of ["order.created", "order.paid"]) {
    const body = { event, endpoint: "https://hooks.example/in" };
    const made = await gatepost.api.postJson("/consumer/subscription", body, bearer(token));
    assert.equal(made.status, 201, made.text);
  }
  assert.ok((await browser.get(ACCOUNT)).text.includes(`href="?app=${app.id}"`));
  const ask = await browser.get(`${ACCOUNT}?app=${app.id}`);
  assert.match(wordsOf(ask), /Northwind Shop .*Its tokens end and its 2 subscriptions stop\./);
  assert.equal(await gatepost.isAlive(token), true);
  const page = await assertDone(browser, await press(browser, ask, `withdraw ${app.id}`),
    /may no longer act for you/);
  assert.ok(!page.text.includes("Northwind Shop"));
  assert.equal(await gatepost.isAlive(token), false);
  assert.equal((await auditOf(user))[0], "grant.withdraw");
});

describe("browsers", () => {
  test("the user signs out one other browser, then all others", async () => {
    const { user, browser } = await openAccount();
    const [second, third] = [await openAccount(user), await openAccount(user)];
    const page = await browser.get(ACCOUNT);
    assert.equal(actsOf(page).filter((act) => act.startsWith("session ")).length, 2);
    assert.match(wordsOf(page), / 10\.0\.0\.\d+ · signed in 1 min ago/);
    // The list begins with the newest session, so this ends the third.
    const fewer = await assertDone(browser, await press(browser, page, actOf(page, "session")),
      /signed out in that browser/);
    assertLoginPage(await third.browser.get(ACCOUNT));
    assert.equal((await second.browser.get(ACCOUNT)).text.includes("Your account</h1>"), true);
    const last = await assertDone(browser, await press(browser, fewer, actOf(fewer, "sessions")),
      /every other browser/);
    assertLoginPage(await second.browser.get(ACCOUNT));
    assert.deepEqual(actsOf(last), []);
    assert.deepEqual((await auditOf(user)).slice(0, 2), ["session.end", "session.end"]);
  });

  test("the user signs out this browser and logs in again", async () => {
    const { user, browser, page } = await openAccount();
    const [form] = page.forms();
    const login = await browser.follow(await browser.submit(page, {}, form?.buttons[0]?.value));
    assertLoginPage(login);
    assert.match(login.text, /You are signed out/);
    assertLoginPage(await browser.get(ACCOUNT));
    assert.equal((await auditOf(user))[0], "session.end");
    assert.match((await passLogin(browser, login, user)).text, /<h1>Your account<\/h1>/);
  });
});

describe("personal tokens", () => {
  const make = async (browser: Client, fields: Fields) =>
    press(browser, await browser.get(`${ACCOUNT}?do=make`), "make", fields);

  test("a token has the chosen scopes, is shown once, listed, used and ended", async () => {
    const scopes = ["consumer", "orders", "backend"];
    const { user, browser } = await openAccount(await gatepost.createUser({ scopes }));
    const made = await make(browser, { name: "my script", "scope orders": "on", days: "7" });
    assert.equal(made.status, 200, made.text);
    const [token = ""] = /gpat_[\w-]+/.exec(made.text) ?? [];
    const who = readObject(await gatepost.api.get("/authorization/whoami", bearer(token)));
    assert.deepEqual([who["sub"], who["scope"]], [user.id, "orders"]);
    const leftMs = Date.parse(String(who["expires_at"])) - Date.now();
    assert.ok(Math.abs(leftMs - 7 * 86_400_000) < 60_000, String(leftMs));
    const page = await browser.get(ACCOUNT);
    assert.ok(page.text.includes("my script") && !page.text.includes(token));
    await assertDone(browser, await press(browser, page, actOf(page, "token")), /token has ended/);
    assert.equal(await gatepost.isAlive(token), false);
    const acts = ["grant.revoke", "grant.create"];
    assert.deepEqual((await auditOf(user)).slice(0, 2), acts);
  });

  test("a form without a scope or a name is refused and keeps the user's input", async () => {
    const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const { browser } = await openAccount(user);
    const bare = await make(browser, { name: '"my" script', days: "90" });
    assert.equal(bare.status, 400);
    assert.match(wordsOf(bare), /Choose what the token may do/);
    const { name, days } = bare.forms()[1]?.fields ?? {};
    assert.deepEqual([name, days], ['"my" script', "90"]);
    const again = await make(browser, { name: " ", "scope orders": "on" });
    const ticked = Object.keys(again.forms()[1]?.fields ?? {});
    assert.deepEqual(ticked.filter((each) => each.startsWith("scope ")), ["scope orders"]);
    assert.deepEqual((await auditOf(user))[0], "user.login");
  });

  test("a token needs a name, a lifetime of at most 366 days and a live session", async () => {
    const { user, browser } = await openAccount();
    for (const fields of [{ name: " " }, { name: "x", days: "367" }, { name: "x", days: "" }]) {
      const again = await make(browser, fields);
      assert.equal(again.status, 400);
      assert.match(again.text, /Must be 1 to .*<h2 id="may">/s);
    }
    const page = await browser.get(`${ACCOUNT}?do=make`);
    await gatepost.api.send("DELETE", "/consumer/session", {
      headers: bearer(await gatepost.login(user)),
    });
    assertLoginPage(await press(browser, page, "make", { name: "x" }), 400);
    assert.ok(!(await openAccount(user)).page.text.includes("End<"));
  });
});

describe("the password", () => {
  const change = async (browser: Client, current: string, wanted = NEW_PASSWORD) =>
    press(browser, await browser.get(`${ACCOUNT}?do=password`), "password", {
      current,
      new: wanted,
    });

  test("when changed, ends a login token and other sessions, and renews this session", async () => {
    const { user, browser } = await openAccount();
    const other = await openAccount(user);
    const login = await gatepost.login(user);
    const id = () => browser.cookies().find(({ name }) => !name.endsWith("-device"))?.value;
    const before = id();
    const response = await change(browser, PASSWORD);
    await assertDone(browser, response, /password is changed/);
    assert.notEqual(id(), before);
    assertLoginPage(await other.browser.get(ACCOUNT));
    assert.equal(await gatepost.isAlive(login), false);
    assert.equal((await gatepost.tryLogin(user)).status, 401);
    assert.equal((await gatepost.tryLogin({ ...user, password: NEW_PASSWORD })).status, 200);
    assert.deepEqual((await auditOf(user)).slice(1, 3), ["user.login", "user.change_password"]);
  });

  test("is not changed if the new one is too short or the current one is wrong", async () => {
    const { user, browser } = await openAccount();
    const short = await change(browser, PASSWORD, "short");
    assert.equal(short.status, 400);
    assert.match(short.text, /Must be 8 to 1024 bytes long/);
    const wrong = await change(browser, "not this one");
    assert.equal(wrong.status, 400);
    assert.match(wrong.text, /The current password is wrong/);
    assert.ok(!wrong.text.includes("not this one"));
    assert.equal((await gatepost.tryLogin(user)).status, 200);
  });

  test("has no length limit in the form, because browsers do not count bytes", async () => {
    const { user, browser } = await openAccount();
    const page = await browser.get(`${ACCOUNT}?do=password`);
    assert.doesNotMatch(page.text, /minlength|maxlength/);
    const short = "ä".repeat(6);
    await assertDone(browser, await change(browser, PASSWORD, short), /password is changed/);
    assert.equal((await gatepost.tryLogin({ ...user, password: short })).status, 200);
  });

  test("is throttled after 10 wrong guesses from one address", async () => {
    const { user, browser, page } = await openAccount();
    const csrf = page.forms()[1]?.fields["csrf"] ?? "";
    const headers = { ...OWN_PAGE, "x-forwarded-for": newAddress() };
    const fields = { csrf, do: "password", current: "not this one", new: NEW_PASSWORD };
    const guess = () => browser.postForm(ACCOUNT, fields, headers);
    for (let count = 0; count < 10; count++) assert.equal((await guess()).status, 400);
    const throttled = await guess();
    assert.equal(throttled.status, 429);
    assert.ok(Number(throttled.headers.get("retry-after")) > 0);
    assert.equal((await gatepost.tryLogin(user)).status, 200, "from another address");
  });
});

describe("only the user's own click changes the account", () => {
  /** A user with an app, a second session and a token, and the fields of each action. */
  async function openAll() {
    const { user, browser } = await openAccount();
    await openAccount(user);
    const app = await gatepost.createApp();
    const { access_token: ofApp } = await gatepost.codeTokens(app, user);
    const form = await browser.get(`${ACCOUNT}?do=make`);
    const fields = { name: newName("t"), "scope consumer": "on" };
    const made = await press(browser, form, "make", fields);
    const page = await browser.get(ACCOUNT);
    const acts: Fields[] = [
      { do: `withdraw ${app.id}` },
      { do: actOf(page, "session") },
      { do: actOf(page, "sessions") },
      { do: actOf(page, "token") },
      { do: "make", name: "x", days: "7", "scope consumer": "on" },
      { do: "password", current: PASSWORD, new: NEW_PASSWORD },
    ];
    const token = /gpat_[\w-]+/.exec(made.text)?.[0] ?? "";
    const actions = await auditOf(user);
    return {
      acts, browser, page,
      csrf: page.forms()[1]?.fields["csrf"] ?? "",
      async assertUntouched() {
        assert.deepEqual([await gatepost.isAlive(ofApp), await gatepost.isAlive(token)],
          [true, true]);
        assert.deepEqual(actsOf(await browser.get(ACCOUNT)), actsOf(page));
        assert.deepEqual(await auditOf(user), actions);
      },
    };
  }

  test("a form needs the CSRF token of its own page and browser", async () => {
    const { acts, browser, assertUntouched } = await openAll();
    const other = (await openAccount()).page.forms()[1]?.fields["csrf"] ?? "";
    const page = await browser.get(`${ACCOUNT}?do=password`);
    const ofPage = page.forms()[1]?.fields["csrf"] ?? "";
    for (const fields of acts) {
      for (const csrf of ["", "x", other, ofPage]) {
        const response = await browser.postForm(ACCOUNT, { ...fields, csrf }, OWN_PAGE);
        assert.equal(response.status, 400, JSON.stringify(fields));
      }
      const { status } = await browser.postForm(ACCOUNT, fields, OWN_PAGE);
      assert.equal(status, 400, JSON.stringify(fields));
    }
    await assertUntouched();
  });

  for (const headers of [
    { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
    { "sec-fetch-site": "same-site", origin: "null" },
    { origin: "https://evil.example" },
    { ...OWN_PAGE, "sec-fetch-dest": "empty" },
    { ...OWN_PAGE, "sec-fetch-dest": "iframe" },
  ]) {
    test(`a form sent with ${JSON.stringify(headers)} is refused`, async () => {
      const { acts, browser, csrf, assertUntouched } = await openAll();
      for (const fields of acts) {
        const response = await browser.postForm(ACCOUNT, { ...fields, csrf }, headers);
        assert.equal(response.status, 403, JSON.stringify(fields));
      }
      await assertUntouched();
    });
  }

  test("scripts, frames and objects cannot read the page, even from this origin", async () => {
    const { browser } = await openAll();
    for (const query of ["", "?do=make", "?do=password"]) {
      for (const dest of ["empty", "iframe", "object"]) {
        const headers = { "sec-fetch-dest": dest, "sec-fetch-site": "same-origin" };
        const response = await browser.get(ACCOUNT + query, headers);
        assert.equal(response.status, 403);
        assert.doesNotMatch(response.text, /csrf/);
      }
    }
  });

  test("without a session, a form leads to the login page", async () => {
    const { acts, csrf, assertUntouched } = await openAll();
    const browser = gatepost.openBrowser();
    for (const fields of acts) {
      assertLoginPage(await browser.postForm(ACCOUNT, { ...fields, csrf }, OWN_PAGE), 400);
    }
    await assertUntouched();
  });

  test("a form cannot change what belongs to another user", async () => {
    const { acts, assertUntouched } = await openAll();
    const { browser, page } = await openAccount();
    const csrf = page.forms()[1]?.fields["csrf"] ?? "";
    const ofIds = acts.filter(({ do: act = "" }) => /^(?:withdraw|session|token) /.test(act));
    for (const fields of ofIds) {
      const response = await browser.postForm(ACCOUNT, { ...fields, csrf }, OWN_PAGE);
      assert.equal(response.status, 404, response.text);
      assert.match(response.text, /role="alert"/);
    }
    await assertUntouched();
  });
});
