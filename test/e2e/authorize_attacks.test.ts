import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { queryDatabase } from "../helpers/engine.ts";
import {
  authorizePath,
  type Gatepost,
  newName,
  readTokens,
  sendRaw,
  sendSlowly,
  startGatepost,
  type TestApp,
  type TestUser,
} from "../helpers/gatepost.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";
import { exchangeRaw } from "../helpers/raw_http.ts";

type Fields = Readonly<Record<string, string>>;

let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
let otherApp: TestApp;
let trustedApp: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const scopes = ["consumer", "orders"];
  app = await gatepost.createApp({ scopes });
  otherApp = await gatepost.createApp({ scopes, url: "https://other.example" });
  trustedApp = await gatepost.createApp({ trusted: true });
});
after(() => gatepost.stop());

const OWN_PAGE = { "sec-fetch-site": "same-origin", origin: "null" };

/** What a page's form would send, without its buttons. */
const fieldsOf = (page: ClientResponse): Fields => page.forms()[0]?.fields ?? {};

const openLoggedIn = () => gatepost.openLoggedIn(trustedApp, user);

async function isLoggedIn(browser: Client): Promise<boolean> {
  return (await gatepost.authorize(browser, trustedApp)).status === 303;
}

/** How many rows each of these tables has. */
async function countRows(folder: string, tables: readonly string[]) {
  const count = tables.map((table) => `(SELECT count(*) FROM "${table}") AS "${table}"`);
  return (await queryDatabase(folder, `SELECT ${count.join()}`))[0];
}

/** Checks that the response is an error and that no code is sent to the app. */
function assertNoCode(response: ClientResponse): void {
  const location = response.headers.get("location") ?? "";
  assert.ok(!/[?&]code=/.test(location), location);
  assert.ok(response.status >= 400, String(response.status));
}

describe("a login form is refused", () => {
  const credentials = () => ({ username: user.username, password: user.password });
  const forgeries: [what: string, fields: (page: ClientResponse) => Promise<Fields>][] = [
    ["without its CSRF token", async () => credentials()],
    ["with an empty token", async () => ({ csrf: "", ...credentials() })],
    ["with the token of another browser", async () => {
      const foreign = await gatepost.authorize(gatepost.openBrowser(), app);
      return { ...fieldsOf(foreign), ...credentials() };
    }],
    ["with a changed token", async (page) => {
      const csrf = fieldsOf(page)["csrf"] ?? "";
      return { csrf: csrf.slice(0, -1) + (csrf.endsWith("A") ? "B" : "A"), ...credentials() };
    }],
    ["with the token of a consent page", async () => {
      const consent = await gatepost.authorize(await openLoggedIn(), app);
      return { ...fieldsOf(consent), ...credentials() };
    }],
  ];
  for (const [what, fields] of forgeries) {
    test(what, async () => {
      const browser = gatepost.openBrowser();
      const page = await gatepost.authorize(browser, app);
      assertNoCode(await browser.postForm(page.url, await fields(page), OWN_PAGE));
      assert.equal(await isLoggedIn(browser), false);
    });
  }

  test("without the cookie that belongs to it", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    browser.clearCookies();
    const fields = { ...fieldsOf(page), ...credentials() };
    assertNoCode(await browser.postForm(page.url, fields, OWN_PAGE));
    assert.equal(await isLoggedIn(browser), false);
  });

  test("for another authorization request", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app, { state: "1" });
    const path = authorizePath(otherApp, { state: "1" });
    const fields = { ...fieldsOf(page), ...credentials() };
    assertNoCode(await browser.postForm(path, fields, OWN_PAGE));
    assert.equal(await isLoggedIn(browser), false);
  });

  test("a second time", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    const fields = { ...fieldsOf(page), ...credentials() };
    assert.equal((await browser.postForm(page.url, fields, OWN_PAGE)).status, 303);
    assertNoCode(await browser.postForm(page.url, fields, OWN_PAGE));
  });
});

describe("a consent form is refused", () => {
  let browser: Client;
  before(async () => {
    browser = await openLoggedIn();
  });
  const consent = async (by = browser) => {
    const page = await gatepost.authorize(by, app, { scope: "consumer", state: "1" });
    assert.equal(page.status, 200);
    return page;
  };

  test("in a browser where nobody has logged in", async () => {
    const page = await consent();
    const fields = { ...fieldsOf(page), decision: "allow" };
    assertNoCode(await gatepost.openBrowser().postForm(page.url, fields, OWN_PAGE));
  });

  test("in a browser where another user has logged in", async () => {
    const page = await consent();
    const fields = { ...fieldsOf(page), decision: "allow" };
    const other = gatepost.openBrowser();
    await gatepost.allow(other, trustedApp, await gatepost.createUser());
    assertNoCode(await other.postForm(page.url, fields, OWN_PAGE));
  });

  const forgeries: [what: string, fields: (page: ClientResponse) => Promise<Fields>][] = [
    ["without its CSRF token", async () => ({})],
    ["with an empty token", async () => ({ csrf: "" })],
    ["with the token of another session of the same user", async () =>
      fieldsOf(await consent(await openLoggedIn()))],
    ["with the token of a login page", async () =>
      fieldsOf(await gatepost.authorize(gatepost.openBrowser(), app))],
  ];
  for (const [what, fields] of forgeries) {
    test(what, async () => {
      const page = await consent();
      const sent = { ...await fields(page), decision: "allow" };
      assertNoCode(await browser.postForm(page.url, sent, OWN_PAGE));
    });
  }

  const altered: [what: string, path: () => string][] = [
    ["another app", () => authorizePath(otherApp, { scope: "consumer", state: "1" })],
    ["more scopes", () => authorizePath(app, { scope: "consumer orders", state: "1" })],
    ["no scope, which means all scopes", () => authorizePath(app, { state: "1" })],
    ["another state", () => authorizePath(app, { scope: "consumer", state: "2" })],
    ["another redirect URI", () =>
      authorizePath(app, { scope: "consumer", state: "1", redirect_uri: `${app.url}/other` })],
    ["a code_challenge of the attacker", () =>
      authorizePath(app, {
        scope: "consumer",
        state: "1",
        code_challenge: "A".repeat(43),
        code_challenge_method: "S256",
      })],
    ["one more parameter", () => `${authorizePath(app, { scope: "consumer", state: "1" })}&x=1`],
  ];
  for (const [what, path] of altered) {
    test(`for a request that differs by ${what}`, async () => {
      const sent = { ...fieldsOf(await consent()), decision: "allow" };
      assertNoCode(await browser.postForm(path(), sent, OWN_PAGE));
    });
  }

  test("but not for a scope, client_id or redirect_uri of its own: it ignores these", async () => {
    const own = await gatepost.createApp({ scopes: ["consumer", "orders"] });
    const page = await gatepost.authorize(browser, own, { scope: "consumer" });
    const sent = {
      ...fieldsOf(page),
      decision: "allow",
      scope: "consumer orders",
      redirect_uri: "https://evil.example/",
      client_id: otherApp.id,
    };
    const response = await browser.postForm(page.url, sent, OWN_PAGE);
    const location = new URL(response.location ?? "");
    assert.equal(location.origin, "https://app.example");
    const code = location.searchParams.get("code") ?? "";
    const fields = { grant_type: "authorization_code", code };
    const tokens = readTokens(await gatepost.token(own, fields));
    assert.equal(tokens.scope, "consumer");
  });

  for (const decision of ["", "ALLOW", "yes", "allow deny"]) {
    test(`with the unknown decision "${decision}"`, async () => {
      const page = await gatepost.authorize(await openLoggedIn(), otherApp);
      const sent = { ...fieldsOf(page), decision };
      assertNoCode(await browser.postForm(page.url, sent, OWN_PAGE));
    });
  }

  test("with two decisions", async () => {
    const by = await openLoggedIn();
    const page = await gatepost.authorize(by, otherApp);
    const body = `${new URLSearchParams(fieldsOf(page))}&decision=deny&decision=allow`;
    const headers = { "content-type": "application/x-www-form-urlencoded", ...OWN_PAGE };
    assertNoCode(await by.send("POST", page.url, { headers, body }));
  });

  test("as a link: a decision in the query is ignored", async () => {
    const by = await openLoggedIn();
    const page = await gatepost.authorize(by, otherApp);
    const query = new URLSearchParams({ ...fieldsOf(page), decision: "allow" });
    const response = await by.get(`${authorizePath(otherApp)}&${query}`);
    assert.equal(response.status, 200);
  });
});

describe("a form of another site is refused even with a valid CSRF token (RFC 9700 §4.9)", () => {
  const headers: [what: string, headers: () => Fields][] = [
    ["Origin of another site", () => ({ origin: "https://evil.example" })],
    ["Origin of the app", () => ({ origin: "https://app.example" })],
    ["Origin of this host on another port", () => ({ origin: "http://127.0.0.1:1" })],
    ["Sec-Fetch-Site cross-site", () => ({ "sec-fetch-site": "cross-site" })],
    ["Sec-Fetch-Site same-site", () => ({ "sec-fetch-site": "same-site" })],
    ["Sec-Fetch-Site none", () => ({ "sec-fetch-site": "none" })],
    ["Sec-Fetch-Site cross-site with our own Origin", () =>
      ({ origin: new URL(gatepost.issuer).origin, "sec-fetch-site": "cross-site" })],
    ["Origin null without Sec-Fetch-Site, from a sandboxed frame", () => ({ origin: "null" })],
  ];
  for (const [what, sent] of headers) {
    test(`${what}: no login`, async () => {
      const browser = gatepost.openBrowser();
      const page = await gatepost.authorize(browser, app);
      const fields = { ...fieldsOf(page), username: user.username, password: user.password };
      assert.equal((await browser.postForm(page.url, fields, sent())).status, 403);
      assert.equal(await isLoggedIn(browser), false);
    });
    test(`${what}: no consent`, async () => {
      const browser = await openLoggedIn();
      const page = await gatepost.authorize(browser, otherApp);
      const fields = { ...fieldsOf(page), decision: "allow" };
      assert.equal((await browser.postForm(page.url, fields, sent())).status, 403);
    });
  }

  const own: [what: string, headers: () => Fields][] = [
    ["our own Origin", () => ({ origin: new URL(gatepost.issuer).origin })],
    ["our own Origin and same-origin", () =>
      ({ origin: new URL(gatepost.issuer).origin, "sec-fetch-site": "same-origin" })],
    ["Origin null and same-origin, as no-referrer makes it", () => OWN_PAGE],
    ["neither header, as from an old browser", () => ({})],
  ];
  for (const [what, sent] of own) {
    test(`a form with ${what} is accepted`, async () => {
      const browser = gatepost.openBrowser();
      const page = await gatepost.authorize(browser, app);
      const fields = { ...fieldsOf(page), username: user.username, password: user.password };
      assert.equal((await browser.postForm(page.url, fields, sent())).status, 303);
    });
  }

  for (const type of ["text/plain", "application/json", "multipart/form-data; boundary=x"]) {
    test(`a form of type ${type} is refused`, async () => {
      const browser = await openLoggedIn();
      const page = await gatepost.authorize(browser, otherApp);
      const body = new URLSearchParams({ ...fieldsOf(page), decision: "allow" }).toString();
      const sent = { "content-type": type, ...OWN_PAGE };
      assertNoCode(await browser.send("POST", page.url, { headers: sent, body }));
    });
  }
});

describe("a request that is not a navigation of a window (Fetch Metadata)", () => {
  const others: Fields[] = [
    { "sec-fetch-dest": "empty" },
    { "sec-fetch-dest": "iframe" },
    { "sec-fetch-dest": "empty", "sec-fetch-mode": "cors", "sec-fetch-site": "same-origin" },
  ];
  for (const sent of others) {
    test(`gets no form: ${JSON.stringify(sent)}`, async () => {
      const browser = await openLoggedIn();
      const page = await browser.get(authorizePath(otherApp), sent);
      assert.equal(page.status, 403);
      assert.deepEqual(page.forms(), []);
      assertNoCode(await browser.get(authorizePath(trustedApp), sent));
    });
    test(`cannot submit a form: ${JSON.stringify(sent)}`, async () => {
      const browser = await openLoggedIn();
      const page = await gatepost.authorize(browser, otherApp);
      const fields = { ...fieldsOf(page), decision: "allow" };
      assertNoCode(await browser.postForm(page.url, fields, { ...OWN_PAGE, ...sent }));
    });
  }

  test("but a navigation gets the form and submits it", async () => {
    const browser = await openLoggedIn();
    const sent = { "sec-fetch-dest": "document" };
    const page = await browser.get(authorizePath(await gatepost.createApp()), sent);
    const fields = { ...fieldsOf(page), decision: "allow" };
    const response = await browser.postForm(page.url, fields, { ...OWN_PAGE, ...sent });
    assert.equal(response.status, 303);
  });
});

test("a HEAD request to the page makes no code, stores nothing and opens no session", async () => {
  const browser = await openLoggedIn();
  const tables = ["codes", "grants", "consents", "sessions", "audit"];
  const before = await countRows(gatepost.server.folder, tables);
  const response = await browser.send("HEAD", authorizePath(trustedApp));
  assert.equal(response.status, 200);
  assert.equal(response.location, undefined);
  assert.deepEqual(await countRows(gatepost.server.folder, tables), before);
  const anonymous = await gatepost.openBrowser().send("HEAD", authorizePath(app));
  assert.equal(anonymous.status, 200);
  assert.equal(anonymous.headers.get("set-cookie"), null);
  const refused = await browser.send("HEAD", "/authorization/authorize?client_id=nobody");
  assert.equal(refused.status, 400);
});

describe("the session cookie", () => {
  const readSetCookie = (response: ClientResponse): string[] => response.headers.getSetCookie();

  async function logIn(browser: Client): Promise<ClientResponse> {
    const page = await gatepost.authorize(browser, app);
    const { username, password } = user;
    return browser.submit(page, { username, password });
  }

  test("is HttpOnly, SameSite=Lax, for the whole host and for 12 hours under http", async () => {
    const browser = gatepost.openBrowser();
    const [line = ""] = readSetCookie(await logIn(browser));
    const attributes = line.split("; ").slice(1).sort();
    assert.deepEqual(attributes, ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Lax"]);
  });

  test("is also __Host- and Secure under https, before and after the login", async () => {
    const secure = await startGatepost({ env: { GATEPOST_BASE_URL: "https://gate.example" } });
    try {
      const at = await secure.createApp();
      const path = authorizePath(at);
      const page = await fetch(secure.url + path);
      const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? "";
      const [anonymous = ""] = page.headers.getSetCookie();
      const someone = await secure.createUser();
      const { username, password } = someone;
      const loggedIn = await fetch(secure.url + path, {
        method: "POST",
        redirect: "manual",
        headers: {
          cookie: anonymous.slice(0, anonymous.indexOf(";")),
          origin: "https://gate.example",
        },
        body: new URLSearchParams({ csrf, username, password }),
      });
      assert.equal(loggedIn.status, 303);
      for (const line of [anonymous, ...loggedIn.headers.getSetCookie()]) {
        assert.match(line, /^__Host-[\w-]+=[\w.-]{20,}; /);
        for (const attribute of ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"]) {
          assert.ok(line.split("; ").includes(attribute), line);
        }
        assert.doesNotMatch(line, /domain/i);
      }
    } finally {
      await secure.stop();
    }
  });

  test("changes at login (no fixation, RFC 6819 §4.4.1.14)", async () => {
    const browser = gatepost.openBrowser();
    await gatepost.authorize(browser, app);
    const [planted] = browser.cookies();
    await logIn(browser);
    const [own] = browser.cookies();
    assert.notEqual(own?.value, planted?.value);
    assert.equal(await isLoggedIn(browser), true);
    const cookie = `${planted?.name}=${planted?.value}`;
    const response = await gatepost.api.get(authorizePath(trustedApp), { cookie });
    assert.equal(response.status, 200, "the planted cookie does not log anybody in");
  });

  test("changes when the user signs out and in again, and the old one is worthless", async () => {
    const browser = gatepost.openBrowser();
    await logIn(browser);
    const [first] = browser.cookies();
    const page = await gatepost.authorize(browser, app);
    await browser.submit(page, {}, "switch");
    await logIn(browser);
    const [second] = browser.cookies();
    assert.notEqual(second?.value, first?.value);
    const cookie = `${first?.name}=${first?.value}`;
    assert.equal((await gatepost.api.get(authorizePath(trustedApp), { cookie })).status, 200);
  });

  const junk = ["", "x", "x".repeat(43), "x".repeat(5000), "../..", "%00", '"quoted"', "ü"];
  for (const value of junk) {
    test(`logs nobody in as ${JSON.stringify(value.slice(0, 12))} (${value.length})`, async () => {
      const browser = gatepost.openBrowser();
      await gatepost.authorize(browser, app);
      const [{ name } = { name: "" }] = browser.cookies();
      const head = `Cookie: ${name}=${Buffer.from(value).toString("latin1")}\r\n`;
      const response = await sendRaw(gatepost.url, "GET", authorizePath(trustedApp), { head });
      assert.equal(response.status, 200);
      assert.match(response.body, /name="password"/);
    });
  }

  test("does not log in the attacker if it comes twice, own and planted", async () => {
    const victim = await openLoggedIn();
    const [own] = victim.cookies();
    const attacker = gatepost.openBrowser();
    const other = await gatepost.createUser();
    await gatepost.allow(attacker, trustedApp, other);
    const [planted] = attacker.cookies();
    const pair = `${own?.name}=${planted?.value}; ${own?.name}=${own?.value}`;
    const page = await gatepost.api.get(authorizePath(otherApp), { cookie: pair });
    assert.ok(!page.text.includes(other.username));
  });

  test("is not read from a cookie whose name begins with a Unicode space", async () => {
    const [own] = (await openLoggedIn()).cookies();
    const pair = `${own?.name}=${own?.value}`;
    // Each character of a header is one byte, as in Set-Cookie.
    const sendPlanted = (first: string) =>
      gatepost.api.get(authorizePath(trustedApp), { cookie: `${first}\xa0${pair}` });
    assert.equal((await sendPlanted("")).status, 200, "the planted cookie does not log anybody in");
    const beside = await sendPlanted(`${pair}; `);
    assert.equal(beside.status, 303, "and it does not hide the real one");
  });
});

describe("a consent form gives no code if its session ends while it is being sent, by", () => {
  const ENDINGS: [what: string, end: (of: TestUser, browser: Client) => Promise<unknown>][] = [
    ["a new password", (of) => gatepost.change(of, { password: "another long password" })],
    ["disabling and enabling the user", async (of) => {
      await gatepost.change(of, { status: "disabled" });
      await gatepost.change(of, { status: "active" });
    }],
    ["a sign-out in another tab", async (_, browser) =>
      browser.submit(await gatepost.authorize(browser, otherApp), {}, "switch")],
  ];
  for (const [what, end] of ENDINGS) {
    test(what, async () => {
      const victim = await gatepost.createUser();
      const browser = gatepost.openBrowser();
      await gatepost.allow(browser, trustedApp, victim);
      const page = await gatepost.authorize(browser, app);
      const [cookie] = browser.cookies();
      const finish = await sendSlowly(gatepost.url, "POST", authorizePath(app), {
        head: {
          "Content-Type": "application/x-www-form-urlencoded",
          Cookie: `${cookie?.name}=${cookie?.value}`,
        },
        body: new URLSearchParams({ ...fieldsOf(page), decision: "allow" }).toString(),
      });
      await end(victim, browser);
      const response = await finish();
      assert.equal(response.headers["location"], undefined);
      assert.match(response.body, /name="password"/);
      const { folder } = gatepost.server;
      for (const table of ["consents", "codes"]) {
        const theirs = `SELECT * FROM ${table} WHERE user = ? AND app = ?`;
        assert.deepEqual(await queryDatabase(folder, theirs, victim.id, app.id), [], table);
      }
    });
  }
});

describe("every page", () => {
  const pages: [what: string, open: () => Promise<ClientResponse>][] = [
    ["login", () => gatepost.authorize(gatepost.openBrowser(), app)],
    ["consent", async () => gatepost.authorize(await openLoggedIn(), otherApp)],
    ["error", () => gatepost.api.get("/authorization/authorize")],
    ["refused form", async () => {
      const page = await gatepost.authorize(gatepost.openBrowser(), app);
      return gatepost.api.postForm(page.url, {}, { origin: "https://evil.example" });
    }],
  ];
  for (const [what, open] of pages) {
    test(`(${what}) is not cached, framed, sniffed or sent as a referrer`, async () => {
      const { headers } = await open();
      assert.match(headers.get("content-type") ?? "", /^text\/html; *charset=utf-8$/i);
      assert.equal(headers.get("cache-control"), "no-store");
      assert.equal(headers.get("referrer-policy"), "no-referrer");
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.equal(headers.get("x-frame-options"), "DENY");
    });

    test(`(${what}) has a CSP that allows no script and no foreign content`, async () => {
      const response = await open();
      const policy = response.headers.get("content-security-policy") ?? "";
      const directives = new Map(policy.split(";").map((text) => {
        const [name = "", ...values] = text.trim().split(" ");
        return [name, values.join(" ")] as const;
      }));
      assert.equal(directives.get("default-src"), "'none'");
      assert.equal(directives.get("frame-ancestors"), "'none'");
      assert.equal(directives.get("base-uri"), "'none'");
      assert.ok(directives.has("form-action"));
      assert.doesNotMatch(policy, /unsafe|script-src|\*|data:|https:(?!\/\/)/);
      assert.doesNotMatch(response.text, /<script|javascript:|\son\w+=/i);
    });
  }

  test("lets its form lead only to this origin and to the app's", async () => {
    const response = await gatepost.authorize(gatepost.openBrowser(), app);
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /form-action 'self' https:\/\/app\.example(?:;|$)/);
  });
});

describe("text from outside is shown as text", () => {
  const markup = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>&lt;`;

  test("in an app's name", async () => {
    const at = await gatepost.createApp({ name: markup });
    const page = await gatepost.authorize(gatepost.openBrowser(), at);
    assert.doesNotMatch(page.text, /<script|<img/);
  });

  test("in state or any other parameter", async () => {
    const parameters = { state: markup, scope: "consumer", [markup]: markup };
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, await gatepost.createApp(), parameters);
    assert.equal(page.status, 200);
    assert.doesNotMatch(page.text, /<script|<img/);
    const { username, password } = user;
    const next = await browser.follow(await browser.submit(page, { username, password }));
    assert.doesNotMatch(next.text, /<script|<img/);
    const done = await browser.submit(next, {}, "allow");
    assert.equal(new URL(done.location ?? "").searchParams.get("state"), markup);
  });

  test("in the user name of a failed login", async () => {
    const browser = gatepost.openBrowser();
    const page = await gatepost.authorize(browser, app);
    const again = await browser.submit(page, { username: markup, password: "x" });
    assert.doesNotMatch(again.text, /<script|<img/);
    assert.equal(again.forms()[0]?.fields["username"], markup);
  });

  test("in an error page", async () => {
    const query = new URLSearchParams({ client_id: markup, redirect_uri: markup });
    const page = await gatepost.api.get(`/authorization/authorize?${query}`);
    assert.equal(page.status, 400);
    assert.doesNotMatch(page.text, /<script|<img|alert/);
  });
});

test("10,000 anonymous visits store no row", async () => {
  const quiet = await startGatepost({ env: { GATEPOST_CRON: "off" } });
  try {
    const at = await quiet.createApp();
    // The service itself writes settings and counts sign-ins; a cluster has a row for each write.
    const rows = await queryDatabase(quiet.server.folder, `SELECT name FROM sqlite_schema
      WHERE type = 'table' AND name NOT LIKE 'sqlite_%' 
        AND name NOT IN ('settings', 'figures', 'write_groups')`);
    const tables = rows.map(({ name }) => String(name));
    assert.ok(tables.includes("sessions"), tables.join());
    const before = await countRows(quiet.server.folder, tables);

    const port = Number(new URL(quiet.url).port);
    const request = `GET ${authorizePath(at, { state: newName("s") })} HTTP/1.1\r\nHost: x\r\n`;
    const browser = quiet.openBrowser();
    await quiet.authorize(browser, at);
    const visit = `${request}Cookie: ${browser.cookies()[0]?.name}=${"A".repeat(43)}\r\n\r\n`;
    const last = `${request}Connection: close\r\n\r\n`;
    const bytes = `${request}\r\n`.repeat(5) + visit.repeat(4) + last;
    const visitTen = async () => {
      const { text } = await exchangeRaw(port, bytes, { waitMs: 5000 });
      assert.equal(text.split("HTTP/1.1 200 ").length - 1, 10);
    };
    for (let round = 0; round < 250; round++) {
      await Promise.all(Array.from({ length: 4 }, visitTen));
    }
    assert.deepEqual(await countRows(quiet.server.folder, tables), before);
  } finally {
    await quiet.stop();
  }
});

test("no log line has a password, code, token, secret, cookie, state or CSRF token", async () => {
  const browser = gatepost.openBrowser();
  const state = newName("state");
  const page = await gatepost.authorize(browser, app, { state });
  const csrf = fieldsOf(page)["csrf"] ?? "";
  const callback = await gatepost.allow(browser, app, user, { state });
  const code = callback.searchParams.get("code") ?? "";
  const tokens = readTokens(await gatepost.token(app, { grant_type: "authorization_code", code }));
  await gatepost.isAlive(tokens.access_token);
  await gatepost.token({ ...app, secret: "leaked-secret" }, { grant_type: "client_credentials" });
  await gatepost.api.get(`/authorization/whoami?access_token=${tokens.access_token}`);
  const logged = [...gatepost.server.lines, gatepost.server.stderr()].join("\n");
  const [cookie] = browser.cookies();
  const secrets = {
    state,
    csrf,
    code,
    password: user.password,
    access: tokens.access_token,
    refresh: tokens.refresh_token,
    client: app.secret,
    wrong: "leaked-secret",
    cookie: cookie?.value ?? "",
  };
  assert.ok(gatepost.server.lines.length > 100, "there is a log");
  for (const [name, secret] of Object.entries(secrets)) {
    assert.ok(secret.length > 8, name);
    assert.ok(!logged.includes(secret), name);
  }
});
