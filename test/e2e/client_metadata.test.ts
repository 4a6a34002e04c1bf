import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  assertConsentPage,
  assertErrorPage,
  assertErrorRedirect,
  passLogin,
  readCallback,
} from "../helpers/authorize_pages.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { authorizePath, bearer, newAddress, newPkce } from "../helpers/requests.ts";
import { assertOAuthError, decodeJwt, readObject, readTokens } from "../helpers/responses.ts";
import { REFUSED_ADDRESSES, REFUSED_URLS } from "../corpus/client_metadata.ts";

const CALLBACK = "http://127.0.0.1:4711/callback";
const env = {
  GATEPOST_BASE_URL: "http://gatepost.test",
  GATEPOST_CLIENT_METADATA: "on",
  GATEPOST_CALLBACK_ALLOW: "127.0.0.1",
};

let site: Receiver;
let gatepost: Gatepost;
let second: Gatepost;
let user: TestUser;
before(async () => {
  site = await startReceiver();
  gatepost = await startGatepost({ env });
  second = await startGatepost({ env, folder: gatepost.server.folder });
  user = await gatepost.createUser({ scopes: ["consumer", "backend"] });
});
after(async () => {
  await second.stop();
  await gatepost.stop();
  await site.close();
});

let names = 0;

/** A client with a document at a path of its own, with these members changed. */
function newClient(more: Readonly<Record<string, unknown>> = {}) {
  const path = `/client-${++names}.json`;
  const id = site.url + path;
  const app: TestApp = { id, secret: "", url: site.url, redirectUri: CALLBACK };
  const publish = (members: Readonly<Record<string, unknown>>, headers = {}) => {
    const document = {
      client_id: id,
      client_name: "Harbour Orders",
      redirect_uris: ["http://127.0.0.1/callback"],
      token_endpoint_auth_method: "none",
      ...members,
    };
    const body = JSON.stringify(document);
    site.react(path, { kind: "answer", status: 200, headers, body });
  };
  publish(more);
  return { app, path, publish };
}

/** Opens the authorize page for a client, with PKCE, in a new browser. */
function ask(app: TestApp, more = {}, at = gatepost) {
  return at.authorize(at.openBrowser(), app, { ...newPkce().challenge, ...more });
}

interface AppRecord {
  readonly client_id: string;
  readonly name: string;
  readonly metadata_url: string | null;
}

async function findRecord(app: TestApp): Promise<AppRecord | undefined> {
  const path = "/backend/app?limit=200";
  const { items } = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
  assert.ok(Array.isArray(items));
  return items.find((item: AppRecord) => item.metadata_url === app.id);
}

test("the server's metadata says that it supports client metadata documents", async () => {
  const metadata = await gatepost.api.get("/.well-known/oauth-authorization-server");
  assert.equal(readObject(metadata)["client_id_metadata_document_supported"], true);
});

describe("a client that is not registered", () => {
  test("logs a user in, refreshes, and becomes an app with the consent", async () => {
    const { app, path } = newClient();
    const browser = gatepost.openBrowser();
    const pair = newPkce();
    const login = await gatepost.authorize(browser, app, { ...pair.challenge, state: "s" });
    const consent = await passLogin(browser, login, user);
    assertConsentPage(consent);
    assert.match(consent.text, /Harbour Orders/);
    assert.ok(consent.text.includes(new URL(site.url).host), "the host of the document");
    assert.doesNotMatch(consent.text, /<code[^>]*>backend/);
    assert.equal(await findRecord(app), undefined, "a fetch alone stores nothing");

    const callback = readCallback(gatepost, await browser.submit(consent, {}, "allow"), app);
    assert.equal(callback.get("state"), "s");
    const code = callback.get("code") ?? "";
    const fields = { grant_type: "authorization_code", code, redirect_uri: CALLBACK };
    const tokens = readTokens(await second.token(app, { ...fields, ...pair.verifier }));
    assert.equal(tokens.scope, "consumer");
    const { claims } = decodeJwt(tokens.access_token);
    assert.deepEqual([claims["client_id"], claims["aud"]], [app.id, gatepost.issuer]);
    const whoami = await gatepost.api.get("/authorization/whoami", bearer(tokens.access_token));
    assert.equal(readObject(whoami)["client_id"], app.id);

    const renewed = readTokens(await gatepost.refresh(app, tokens.refresh_token));
    assert.equal(await second.isAlive(renewed.access_token), true);
    const record = await findRecord(app);
    assert.match(record?.client_id ?? "", /^a[0-9a-z]+$/);
    assert.equal(site.count(path), 1, "the document is cached");
  });

  test("needs a consent each time, with a loopback and with a web redirect URI", async () => {
    const redirectUri = "https://a.example/cb";
    const web = { ...newClient({ redirect_uris: [redirectUri] }).app, redirectUri };
    for (const app of [newClient().app, web]) {
      await gatepost.codeTokens(app, user);
      const browser = gatepost.openBrowser();
      const login = await gatepost.authorize(browser, app, newPkce().challenge);
      assertConsentPage(await passLogin(browser, login, user));
      assert.ok((await gatepost.codeTokens(app, user)).access_token);
    }
  });

  test("has no id in the audit if it is denied before its first consent",
    async () => {
      const { app } = newClient();
      const careful = await gatepost.createUser();
      const browser = gatepost.openBrowser();
      const login = await gatepost.authorize(browser, app, newPkce().challenge);
      await browser.submit(await passLogin(browser, login, careful), {}, "deny");
      const path = `/backend/audit?actor=${careful.id}&action=grant.deny`;
      const { items } = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
      assert.partialDeepStrictEqual(items, [{ app: null, target: "unknown" }]);
    });

  test("gets an error for a backend scope, no PKCE or a foreign resource", async () => {
    const { app } = newClient();
    const browser = gatepost.openBrowser();
    await passLogin(browser, await gatepost.authorize(browser, app, newPkce().challenge), user);
    for (const scope of ["backend", "backend:read"]) {
      const asked = await gatepost.authorize(browser, app, { ...newPkce().challenge, scope });
      assertErrorRedirect(gatepost, asked, app, { error: "invalid_scope" });
    }
    const plain = await gatepost.authorize(browser, app);
    assertErrorRedirect(gatepost, plain, app, { error: "invalid_request" });
    const resource = "https://other.example";
    const foreign = await gatepost.authorize(browser, app, { ...newPkce().challenge, resource });
    assertErrorRedirect(gatepost, foreign, app, { error: "invalid_target" });
  });

  test("gets no redirect before the user has logged in (RFC 9700 §4.11.2)", async () => {
    const { app } = newClient();
    for (const parameters of [{}, { ...newPkce().challenge, scope: "backend" }]) {
      const browser = gatepost.openBrowser();
      const head = await browser.send("HEAD", authorizePath(app, parameters));
      assert.deepEqual([head.status, head.location], [200, undefined]);
      const login = await gatepost.authorize(browser, app, parameters);
      assert.equal(login.status, 200, login.text);
      const { username } = user;
      const wrong = await browser.submit(login, { username, password: "something else" });
      assert.equal(wrong.status, 403, wrong.text);
      const error = "scope" in parameters ? "invalid_scope" : "invalid_request";
      assertErrorRedirect(gatepost, await passLogin(browser, wrong, user), app, { error });
    }
  });

  test("gets the scopes of a resource that it names, and keeps them", async () => {
    const { app } = newClient();
    const owner = await gatepost.createUser({ scopes: ["consumer", "stock"] });
    const url = "https://stock.example";
    const resource = { url, scopes: ["stock"] };
    const headers = bearer(gatepost.adminToken);
    const made = await gatepost.api.postJson("/backend/resource", resource, headers);
    assert.equal(made.status, 201, made.text);
    const there = await gatepost.codeTokens(app, owner, { resource: url });
    assert.equal(there.scope, "stock");
    await gatepost.codeTokens(app, owner); // which names no resource
    const renewed = await gatepost.refresh(app, there.refresh_token, { resource: url });
    assert.equal(readTokens(renewed).scope, "stock");
  });

  test("cannot use client credentials or the device grant", async () => {
    const { app } = newClient();
    await gatepost.codeTokens(app, user);
    const fields = { grant_type: "client_credentials" };
    assertOAuthError(await gatepost.token(app, fields), 400, "unauthorized_client");
    const device = await gatepost.api.postForm("/authorization/device", { client_id: app.id });
    assertOAuthError(device, 400, "unauthorized_client");
    assert.match(device.text, /an administrator can register it/);
  });

  test("becomes one app if four users allow it at once", async () => {
    const { app } = newClient();
    const users = await Promise.all([1, 2, 3, 4].map(() => gatepost.createUser()));
    const tokens = await Promise.all(
      users.map((each, at) => (at % 2 ? gatepost : second).codeTokens(app, each)),
    );
    const apps = tokens.map(({ access_token }) => decodeJwt(access_token).claims["app"]);
    assert.equal(new Set(apps).size, 1);
  });

  test("can be disabled and deleted like an app", async () => {
    const { app } = newClient();
    const tokens = await gatepost.codeTokens(app, user);
    const path = `/backend/app/${(await findRecord(app))?.client_id}`;
    const asAdmin = bearer(gatepost.adminToken);
    const renamed = await gatepost.api.sendJson("PATCH", path, { name: "Mine" }, asAdmin);
    assert.equal(renamed.status, 400, "its name comes from its document");
    const fromMs = performance.now();
    const disabled = await gatepost.api.sendJson("PATCH", path, { status: "disabled" }, asAdmin);
    assert.equal(disabled.status, 200, disabled.text);
    await second.assertDies(tokens.access_token, fromMs);
    assertErrorPage(await ask(app));
    const refresh = await gatepost.refresh(app, tokens.refresh_token);
    assertOAuthError(refresh, 401, "invalid_client");
    assert.equal((await gatepost.api.send("DELETE", path, { headers: asAdmin })).status, 204);
    assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 401, "invalid_client");
    const again = await gatepost.codeTokens(app, user);
    assert.equal(await gatepost.isAlive(again.access_token), true);
    assertOAuthError(await gatepost.refresh(app, tokens.refresh_token), 400, "invalid_grant");
  });

  test("cannot use the id of its app record as client_id", async () => {
    const { app } = newClient();
    const tokens = await gatepost.codeTokens(app, user);
    const listed = { ...app, id: (await findRecord(app))?.client_id ?? "" };
    assertErrorPage(await ask(listed));
    assertOAuthError(await gatepost.refresh(listed, tokens.refresh_token), 401, "invalid_client");
  });
});

describe("redirect URIs of a document", () => {
  test("on localhost match any port, but no other path or host", async () => {
    const { app } = newClient({ redirect_uris: ["http://localhost/cb", "https://a.example/cb"] });
    for (const uri of ["http://localhost:51234/cb", "https://a.example/cb"]) {
      assert.equal((await ask({ ...app, redirectUri: uri })).status, 200, uri);
    }
    for (const uri of ["http://127.0.0.1/cb", "http://localhost/", "https://a.example:1/cb"]) {
      assertErrorPage(await ask({ ...app, redirectUri: uri }));
    }
  });

  test("may have a private-use scheme, which the CSP of the page allows", async () => {
    const redirectUri = "com.example.app:/cb";
    const { app } = newClient({ redirect_uris: [redirectUri] });
    const browser = gatepost.openBrowser();
    const at = { ...app, redirectUri };
    const login = await gatepost.authorize(browser, at, newPkce().challenge);
    const consent = await passLogin(browser, login, user);
    assert.match(consent.headers.get("content-security-policy") ?? "",
      /form-action 'self' com\.example\.app:;/);
    const { location } = await browser.submit(consent, {}, "allow");
    assert.match(location ?? "", /^com\.example\.app:\/cb\?code=/);
  });
});

describe("a document", () => {
  test("is used as it is now: a redirect URI that it dropped is refused", async () => {
    const { app, publish } = newClient();
    await gatepost.codeTokens(app, user);
    // The other processes have not cached it.
    publish({ client_name: "Quay Orders", redirect_uris: ["http://127.0.0.1/elsewhere"] });
    assertErrorPage(await ask(app, {}, second));
    await second.codeTokens({ ...app, redirectUri: "http://127.0.0.1/elsewhere" }, user);
    assert.equal((await findRecord(app))?.name, "Quay Orders");
    publish({ client_id: "https://evil.example/client.json" });
    const other = await startGatepost({ env, folder: gatepost.server.folder });
    try {
      assertErrorPage(await ask(app, {}, other));
    } finally {
      await other.stop();
    }
  });

  test("is fetched again after a fetch that failed", async () => {
    const { app, path, publish } = newClient();
    site.react(path, { kind: "answer", status: 500 });
    const page = await ask(app);
    assertErrorPage(page);
    assert.match(page.text, /is not accepted\. It cannot be read: status 500\./);
    publish({});
    assert.equal((await ask(app)).status, 200);
    assert.equal(site.count(path), 2);
  });

  test("is fetched once for 20 simultaneous requests", async () => {
    const { app, path } = newClient();
    const pages = await Promise.all(Array.from({ length: 20 }, () => ask(app)));
    assert.deepEqual(new Set(pages.map(({ status }) => status)), new Set([200]));
    assert.equal(site.count(path), 1);
  });

  test("is accepted only as whole JSON of at most 5 KiB with status 200",
    async () => {
      const { app, path } = newClient();
      const body = JSON.stringify({ client_id: app.id, redirect_uris: [CALLBACK] });
      const elsewhere = { location: `${site.url}/other.json` };
      site.react("/other.json", { kind: "answer", status: 200, body });
      for (const reaction of [
        { kind: "answer", status: 201, body },
        { kind: "answer", status: 203, body },
        { kind: "answer", status: 204 },
        { kind: "answer", status: 301, headers: elsewhere },
        { kind: "answer", status: 302, headers: elsewhere, body },
        { kind: "answer", status: 307, headers: elsewhere },
        { kind: "answer", status: 404, body },
        { kind: "answer", status: 200, body: `${body}${" ".repeat(5 * 1024)}` },
        { kind: "answer", status: 200, body: body.slice(0, -1) },
        { kind: "answer", status: 200, body: `${body}{}` },
        { kind: "answer", status: 200, body: "<!doctype html>" },
        { kind: "answer", status: 200, body: "" },
        { kind: "answer", status: 200, body, headers: { "content-encoding": "gzip" } },
        { kind: "answer", status: 200, body, headers: { "content-type": "text/plain" } },
        { kind: "endless" },
        { kind: "close" },
        { kind: "reset" },
        { kind: "raw", bytes: `HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${body}` },
      ] as const) {
        site.react(path, reaction);
        assertErrorPage(await ask(app));
      }
      assert.equal(site.count("/other.json"), 0);
      assert.equal(await findRecord(app), undefined);
    });

  test("is refused if it comes too slowly", async () => {
    const clients = [newClient(), newClient()];
    site.react(clients[0]?.path ?? "", { kind: "hang" });
    site.react(clients[1]?.path ?? "", { kind: "drip", everyMs: 100 });
    await Promise.all(clients.map(async ({ app }) => assertErrorPage(await ask(app))));
  });
});

describe("nothing is fetched from", () => {
  test("a client_id that cannot be the URL of a document", async () => {
    const before = site.count();
    for (const [id] of REFUSED_URLS) {
      assertErrorPage(await ask({ id, secret: "", url: id, redirectUri: CALLBACK }));
    }
    assert.equal(site.count(), before);
  });

  test("addresses that are not public, as literals or through a name", async () => {
    const strict = await startGatepost({ env: { ...env, GATEPOST_CALLBACK_ALLOW: "" } });
    const own = await startReceiver();
    const { port } = new URL(own.url);
    try {
      const ids = REFUSED_ADDRESSES.map((host) => `https://${host}:${port}/client.json`);
      const pages = await Promise.all([...ids, `${own.url}/c.json`].map((id) =>
        ask({ id, secret: "", url: id, redirectUri: CALLBACK }, {}, strict)));
      pages.forEach(assertErrorPage);
      assert.deepEqual([own.count(), own.connections()], [0, 0]);
    } finally {
      await own.close();
      await strict.stop();
    }
  });

  test("hosts that are not listed, and their clients get no more tokens", async () => {
    const redirectUri = `${site.url}/callback`; // which a registered app may list too
    const client = newClient({ redirect_uris: [redirectUri] });
    const [app, path] = [{ ...client.app, redirectUri }, client.path];
    const tokens = await gatepost.codeTokens(app, user);
    for (const hosts of ["off", "other.example,localhost"]) {
      const { folder } = gatepost.server;
      const at = await startGatepost({ env: { ...env, GATEPOST_CLIENT_METADATA: hosts }, folder });
      try {
        assertErrorPage(await ask(app, {}, at));
        assertOAuthError(await at.refresh(app, tokens.refresh_token), 401, "invalid_client");
      } finally {
        await at.stop();
      }
    }
    assert.equal(site.count(path), 1);
    assert.ok(readTokens(await gatepost.refresh(app, tokens.refresh_token)));
  });

  test("more than 30 URLs for one client address", async () => {
    const browser = gatepost.openBrowser();
    const headers = { "x-forwarded-for": newAddress() };
    const statuses: number[] = [];
    for (let at = 0; at < 32; at++) {
      const { app } = newClient();
      const query = new URLSearchParams({ client_id: app.id, redirect_uri: CALLBACK });
      const page = await browser.get(`/authorization/authorize?${query}`, headers);
      statuses.push(page.status);
      if (page.status === 429) assert.ok(Number(page.headers.get("retry-after")) > 0);
    }
    assert.equal(statuses.filter((status) => status === 429).length, 2, statuses.join());
  });
});
