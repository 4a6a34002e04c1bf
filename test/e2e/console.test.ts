import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { signIn, tokensOf } from "../helpers/console.ts";
import { writeFolder } from "../helpers/folder.ts";
import { type Gatepost, PASSWORD, startGatepost } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import { readMetric } from "../helpers/metrics_text.ts";
import { bearer } from "../helpers/requests.ts";
import { until } from "../helpers/until.ts";

const admin = { username: "admin", password: PASSWORD };

describe("the console", () => {
  let gatepost: Gatepost;
  before(async () => {
    gatepost = await startGatepost();
  });
  after(() => gatepost.stop());

  test("is one page at all of its paths, and may load only its own files", async () => {
    for (const path of ["/console", "/console/", "/console/deliveries", "/console/users/u1"]) {
      const page = await gatepost.api.get(path);
      assert.equal(page.status, 200, path);
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
      const policy = page.headers.get("content-security-policy") ?? "";
      const own = `${gatepost.issuer}/console/assets/`;
      for (const part of [
        "default-src 'none'", `script-src ${own}`, `style-src ${own}`, "connect-src 'self'",
        "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
      ]) assert.ok(policy.split("; ").includes(part), `${part} in ${policy}`);
      assert.equal(page.headers.get("cache-control"), "no-store");
      assert.ok(page.text.length <= 3072 + 30 * 80, "a small page, and its preloads");
    }
    assert.equal((await gatepost.api.get("/console/a/b/c")).status, 404);
  });

  test("has compressed files that are cached for ever, at versioned URLs", async () => {
    const { text } = await gatepost.api.get("/console");
    const [, main = ""] = /<script type="module" src="([^"]*)"/.exec(text) ?? [];
    const plain = await gatepost.api.get(main, { "accept-encoding": "identity" });
    assert.match(plain.headers.get("content-type") ?? "", /^text\/javascript/);
    assert.match(plain.headers.get("cache-control") ?? "", /immutable/);
    for (const encoding of ["br", "gzip"]) { // fetch decompresses it
      const packed = await gatepost.api.get(main, { "accept-encoding": encoding });
      assert.equal(packed.headers.get("content-encoding"), encoding);
      assert.equal(packed.text, plain.text);
    }
    const refused = await gatepost.api.get(main, { "accept-encoding": "br;q=0, gzip" });
    assert.equal(refused.headers.get("content-encoding"), "gzip");
    assert.equal((await gatepost.api.get(main.replace(/assets\/\w+/, "assets/0"))).status, 404);
    assert.equal((await gatepost.api.get(main.replace("main.js", "..%2fserver.js"))).status, 400);
    assert.equal((await gatepost.api.get(main.replace("main.js", "nothing.js"))).status, 404);
  });

  test("needs no consent, and gets tokens for ten minutes and a refresh token", async () => {
    const { tokens, browser, location } = await tokensOf(gatepost, admin);
    assert.equal(`${location.origin}${location.pathname}`, `${gatepost.issuer}/console`);
    assert.equal(tokens.scope, "backend consumer");
    assert.equal(tokens.expires_in, 600);
    const [, claims = ""] = tokens.access_token.split(".");
    assert.match(Buffer.from(claims, "base64url").toString(), /"client_id":"console"/);
    const authorization = `Bearer ${tokens.access_token}`;
    assert.equal((await gatepost.api.get("/backend/user", { authorization })).status, 200);
    assert.equal((await gatepost.api.get("/consumer/session", { authorization })).status, 200);
    const { text } = await gatepost.api.get("/backend/audit?limit=1", { authorization });
    assert.match(text, /"action":"user.login"/, "loading the console adds no entry");
    const again = await browser.postForm("/authorization/token", {
      grant_type: "refresh_token",
      client_id: "console",
      refresh_token: tokens.refresh_token,
    });
    assert.equal(again.status, 200, again.text);
  });

  test("has no redirect URI except its own page", async () => {
    const own = ["/console/x", "/orders", "/console?x", "/CONSOLE"]
      .map((each) => gatepost.issuer + each);
    for (const redirect_uri of ["https://evil.example/console", ...own]) {
      const query = new URLSearchParams({ client_id: "console", redirect_uri, scope: "backend" });
      const response = await gatepost.api.get(`/authorization/authorize?${query}`);
      assert.equal(response.status, 400, redirect_uri);
      assert.equal(response.location, undefined);
    }
  });

  test("gets only the backend scope that its user has, and needs one of them", async () => {
    const reader = await gatepost.createUser({ scopes: ["backend:read", "consumer"] });
    const { tokens } = await tokensOf(gatepost, reader);
    assert.equal(tokens.scope, "backend:read consumer");
    const authorization = `Bearer ${tokens.access_token}`;
    assert.equal((await gatepost.api.get("/backend/app", { authorization })).status, 200);
    const app = { name: "x", url: "https://x.example" };
    const refused = await gatepost.api.postJson("/backend/app", app, { authorization });
    assert.equal(refused.status, 403);
    const plain = await gatepost.createUser({ scopes: ["orders"] });
    const { location } = await signIn(gatepost, plain, "backend backend:read consumer");
    assert.equal(location.searchParams.get("error"), "invalid_scope");
    assert.equal(location.pathname, "/console");
  });

  test("is an app that cannot be listed, changed or deleted", async () => {
    const authorization = `Bearer ${gatepost.adminToken}`;
    const { text } = await gatepost.api.get("/backend/app", { authorization });
    assert.ok(!text.includes('"console"'));
    for (const [method, body] of [["PATCH", {}], ["DELETE", undefined]] as const) {
      const path = "/backend/app/console";
      const response = await gatepost.api.sendJson(method, path, body, { authorization });
      assert.equal(response.status, 404, method);
    }
  });

  test("the end of a session ends a code that was not yet exchanged", async () => {
    const user = await gatepost.createUser({ scopes: ["backend", "consumer"] });
    const visit = await signIn(gatepost, user, "backend");
    const headers = { authorization: `Bearer ${await gatepost.login(user)}` };
    const ended = await gatepost.api.send("DELETE", "/consumer/session", { headers });
    assert.equal(ended.status, 204, ended.text);
    const late = await visit.tryExchange(visit.location.searchParams.get("code") ?? "");
    assert.equal(late.status, 400, late.text);
  });

  test("ending a session that does not exist is 404 and ends no token", async () => {
    const user = await gatepost.createUser({ scopes: ["backend", "consumer"] });
    const { tokens } = await tokensOf(gatepost, user);
    const headers = { authorization: `Bearer ${await gatepost.login(user)}` };
    const path = `/consumer/session/b${"0".repeat(24)}`;
    const response = await gatepost.api.send("DELETE", path, { headers });
    assert.equal(response.status, 404, response.text);
    assert.equal(await gatepost.isAlive(tokens.access_token), true);
  });

  test("a sign-out on a consent page ends the console's tokens at once", async () => {
    const { browser, tokens } = await tokensOf(gatepost, admin);
    const consent = await gatepost.authorize(browser, await gatepost.createApp());
    await browser.submit(consent, {}, "switch");
    assert.equal(await gatepost.isAlive(tokens.access_token), false);
  });

  test("a second login of its user in the same browser does not end its tokens", async () => {
    const { browser, tokens } = await tokensOf(gatepost, admin);
    const page = await gatepost.authorize(browser, await gatepost.createApp(), { max_age: "0" });
    const { username, password } = admin;
    const response = await browser.submit(page, { username, password });
    assert.equal(response.status, 303, response.text);
    assert.equal(await gatepost.isAlive(tokens.access_token), true);
  });

  test("another user's login in the same browser ends the tokens of the first", async () => {
    const { browser, tokens } = await tokensOf(gatepost, admin);
    const other = await gatepost.createUser({ scopes: ["consumer"] });
    const fields = { csrf: "of a page", username: "x", password: "y" }; // an old page's
    const at = `/authorization/authorize?${new URLSearchParams({
      client_id: "console", redirect_uri: `${gatepost.issuer}/console`, scope: "consumer",
      code_challenge: "a".repeat(43), code_challenge_method: "S256",
    })}`;
    const page = await browser.postForm(at, fields);
    const { username, password } = other;
    const response = await browser.submit(page, { username, password });
    assert.equal(response.status, 303, response.text);
    const refreshed = await browser.postForm("/authorization/token", {
      grant_type: "refresh_token",
      client_id: "console",
      refresh_token: tokens.refresh_token,
    });
    assert.equal(refreshed.status, 400, refreshed.text);
  });

  test("a subscription made in it stays active after its grant is revoked", async () => {
    const user = await gatepost.createUser({ scopes: ["backend", "consumer"] });
    const { browser, tokens } = await tokensOf(gatepost, user);
    const body = { event: "order.created", endpoint: "https://hooks.example/x" };
    const path = "/consumer/subscription";
    const made = await gatepost.api.postJson(path, body, bearer(tokens.access_token));
    assert.equal(made.status, 201, made.text);
    const proof = { client_id: "console", token: tokens.refresh_token };
    const revoked = await browser.postForm("/authorization/revoke", proof);
    assert.equal(revoked.status, 200, revoked.text);
    assert.equal(await gatepost.isAlive(tokens.access_token), false);
    const { text } = await gatepost.api.get(path, bearer(await gatepost.login(user)));
    const { items } = JSON.parse(text);
    assert.deepEqual(items.map(({ status }: { status: string }) => status), ["active"]);
    // Closing a window is not audited.
    const audit = "/backend/audit?action=grant.revoke&actor=console";
    const { text: entries } = await gatepost.api.get(audit, bearer(gatepost.adminToken));
    assert.deepEqual(JSON.parse(entries).items, []);
  });

  test("a subscription made on the webhooks page stays active after the session", async () => {
    const user = await gatepost.createUser({ scopes: ["consumer"] });
    const visit = await signIn(gatepost, user, "consumer", `${gatepost.issuer}/account/webhooks`);
    const tokens = await visit.exchange(visit.location.searchParams.get("code") ?? "");
    const authorization = `Bearer ${tokens.access_token}`;
    const body = { event: "order.created", endpoint: "https://hooks.example/x" };
    const made = await gatepost.api.postJson("/consumer/subscription", body, { authorization });
    assert.equal(made.status, 201, made.text);
    const headers = { authorization };
    const ended = await gatepost.api.send("DELETE", "/consumer/session", { headers });
    assert.equal(ended.status, 204, ended.text);
    const late = await gatepost.api.get("/consumer/subscription", { authorization });
    assert.equal(late.status, 401, "the end of the session ends its tokens");
    const own = { authorization: `Bearer ${await gatepost.login(user)}` };
    const { text } = await gatepost.api.get("/consumer/subscription", own);
    const { items } = JSON.parse(text);
    assert.deepEqual(items.map(({ status }: { status: string }) => status), ["active"]);
  });
});

test("a console with its own listener is not served by the public one", async () => {
  const gatepost = await startGatepost({ env: { GATEPOST_CONSOLE: "127.0.0.1:0" } });
  try {
    const line = gatepost.server.lines.find((each) => each.includes('"listening"')) ?? "{}";
    const own = String(JSON.parse(line).console).replace(/\/console$/, "");
    assert.notEqual(own, gatepost.url);
    assert.equal((await gatepost.api.get("/console")).status, 404);
    const page = await createClient(own).get("/console");
    assert.equal(page.status, 200);
    const policy = page.headers.get("content-security-policy");
    assert.ok(policy?.includes(`script-src ${own}/console/assets/`));
    const frontDoorOf = async (at: string) => {
      const client = createClient(at);
      const { text } = await client.get("/", { accept: "text/html" });
      const { links } = JSON.parse((await client.get("/")).text);
      return [text.includes('href="/console"'), links.console];
    };
    assert.deepEqual(await frontDoorOf(own), [true, `${own}/console`]);
    assert.deepEqual(await frontDoorOf(gatepost.url), [false, undefined]);
    const visit = await signIn(gatepost, admin, "backend", `${own}/console`);
    const tokens = await visit.exchange(visit.location.searchParams.get("code") ?? "");
    const headers = { authorization: `Bearer ${tokens.access_token}` };
    assert.equal((await createClient(own).get("/backend/user", headers)).status, 200);
    const elsewhere = await signIn(gatepost, admin, "backend", `${gatepost.issuer}/console`);
    assert.equal(elsewhere.answer.location, undefined);
  } finally {
    await gatepost.stop();
  }
});

test("the console's own listener is part of the service for callbacks and metrics", async () => {
  const token = "metrics-token-of-a-test";
  const gatepost = await startGatepost({
    env: {
      GATEPOST_CONSOLE: "127.0.0.1:0",
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      GATEPOST_METRICS_TOKEN: token,
    },
  });
  try {
    const line = gatepost.server.lines.find((each) => each.includes('"listening"')) ?? "{}";
    const { origin, port, hostname } = new URL(String(JSON.parse(line).console));
    const body = { event: "order.placed", endpoint: `${origin}/hook` };
    const refused = await gatepost.api
      .postJson("/consumer/subscription", body, bearer(gatepost.adminToken));
    assert.equal(refused.status, 400, refused.text);
    assert.match(refused.text, /Must not be an address of this service/);
    const count = () => readMetric(gatepost, token, "gatepost_http_connections");
    const before = await count();
    const sockets = Array.from({ length: 20 }, () => connect(Number(port), hostname));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    await until(async () => await count() >= before + 20);
    for (const socket of sockets) socket.destroy();
  } finally {
    await gatepost.stop();
  }
});

test("the console's own listener has the path of the base URL too", async () => {
  const env = { GATEPOST_BASE_URL: "http://gatepost.test/gate", GATEPOST_CONSOLE: "127.0.0.1:0" };
  const gatepost = await startGatepost({ env });
  try {
    const line = gatepost.server.lines.find((each) => each.includes('"listening"')) ?? "{}";
    const at = String(JSON.parse(line).console);
    assert.match(at, /\/gate\/console$/);
    assert.equal((await gatepost.api.get(at)).status, 200);
    const { location } = await signIn(gatepost, admin, "backend", at);
    assert.equal(location.origin + location.pathname, at);
  } finally {
    await gatepost.stop();
  }
});

test("a module with a parameter as its first segment gets no request for the console or the " +
  "account page", async (t) => {
  const any = `public: true, handle: ({ params }) => params`;
  const paths = ["/:one", "/:one/:two"].flatMap((path) =>
    ["GET", "POST"].map((method) => ({ method, path })));
  const folder = await writeFolder(t, {
    "any.mjs": paths.map(({ method, path }, at) =>
      `export const any${at} = { method: "${method}", path: "${path}", ${any} };`).join("\n"),
  });
  const gatepost = await startGatepost({ env: { GATEPOST_ENDPOINTS: folder } });
  try {
    for (const path of ["/console", "/console/users", "/account", "/account/webhooks"]) {
      const page = await gatepost.api.get(path);
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/, path);
    }
    const sent = await gatepost.api.postForm("/account", { username: "x", password: "y" });
    assert.match(sent.headers.get("content-type") ?? "", /^text\/html/);
    assert.equal((await gatepost.api.get("/console/receiver")).status, 200);
    assert.equal((await gatepost.api.get("/authorization/sw.js")).status, 404);
    assert.equal((await gatepost.api.get("/anything")).status, 200);
    const worker = await gatepost.api.get("/sw.js", { "service-worker": "script" });
    const scope = worker.headers.get("service-worker-allowed");
    assert.equal(scope, "/sw.js/", "a module's service worker cannot control these pages");
  } finally {
    await gatepost.stop();
  }
});

test("a console that is off is not served, but the webhooks page is", async () => {
  const gatepost = await startGatepost({ env: { GATEPOST_CONSOLE: "off" } });
  try {
    assert.equal((await gatepost.api.get("/console")).status, 404);
    const { text } = await gatepost.api.get("/account/webhooks");
    assert.match(text, /<title>Your webhooks/);
    assert.ok(text.includes(`>${gatepost.issuer}/account/webhooks</a>`), "shows its own URL");
    const at = { client_id: "console", redirect_uri: `${gatepost.issuer}/console` };
    const address = `/authorization/authorize?${new URLSearchParams(at)}`;
    assert.equal((await gatepost.api.get(address)).status, 400);
    const own = new URLSearchParams({
      ...at, redirect_uri: `${gatepost.issuer}/account/webhooks`, state: "here",
      code_challenge: "x".repeat(43), code_challenge_method: "S256",
    });
    const login = await gatepost.openBrowser().get(`/authorization/authorize?${own}`);
    assert.match(login.text, /to see your webhooks/);
    assert.doesNotMatch(login.text, /Console/);
    const headers = { authorization: `Bearer ${gatepost.adminToken}` };
    const receiver = await gatepost.api.postJson("/backend/receiver", undefined, headers);
    assert.equal(receiver.status, 404, "the built-in receiver is part of the console");
  } finally {
    await gatepost.stop();
  }
});
