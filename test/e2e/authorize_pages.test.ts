import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { fieldsOf } from "../helpers/authorize_pages.ts";
import { queryDatabase } from "../helpers/engine.ts";
import { startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse, Client } from "../helpers/http_client.ts";
import { exchangeRaw, sendRaw } from "../helpers/raw_http.ts";
import { authorizePath, newName } from "../helpers/requests.ts";
import { readTokens } from "../helpers/responses.ts";
import { startAuthorizeStage } from "./authorize_stage.ts";

const stage = await startAuthorizeStage({ GATEPOST_CRON: "off" });
const { gatepost, user, app, otherApp, trustedApp, isLoggedIn } = stage;
after(() => gatepost.stop());

const openLoggedIn = () => gatepost.openLoggedIn(trustedApp, user);

/** How many rows each of these tables has. */
async function countRows(folder: string, tables: readonly string[]) {
  const count = tables.map((table) => `(SELECT count(*) FROM "${table}") AS "${table}"`);
  return (await queryDatabase(folder, `SELECT ${count.join()}`))[0];
}

// The first test: no other one has left anything that the server stores a little later.
test("10,000 anonymous visits store no row", async () => {
  const { folder } = gatepost.server;
  // The service itself writes settings and counts sign-ins; a cluster has a row for each write.
  const rows = await queryDatabase(folder, `SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
      AND name NOT IN ('settings', 'figures', 'write_groups')`);
  const tables = rows.map(({ name }) => String(name));
  assert.ok(tables.includes("sessions"), tables.join());
  const before = await countRows(folder, tables);

  const port = Number(new URL(gatepost.url).port);
  const request = `GET ${authorizePath(app, { state: newName("s") })} HTTP/1.1\r\nHost: x\r\n`;
  const browser = gatepost.openBrowser();
  await gatepost.authorize(browser, app);
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
  assert.deepEqual(await countRows(folder, tables), before);
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
