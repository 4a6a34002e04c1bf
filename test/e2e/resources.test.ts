import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertConsentPage, assertErrorRedirect, passLogin } from "../helpers/authorize_pages.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";
import {
  assertOAuthError,
  assertProblem,
  decodeJwt,
  readObject,
  readTokens,
} from "../helpers/responses.ts";

const MCP = "https://mcp.example/mcp";
const env = { GATEPOST_BASE_URL: "http://gatepost.test/base" };

let gatepost: Gatepost;
let second: Gatepost;
let app: TestApp;
let user: TestUser;
before(async () => {
  gatepost = await startGatepost({ env });
  second = await startGatepost({ env, folder: gatepost.server.folder });
  app = await gatepost.createApp({
    scopes: ["consumer", "files", "other"],
    grants: ["authorization_code", "refresh_token", "client_credentials", "password"],
    resource_server: true,
  });
  user = await gatepost.createUser({ scopes: ["consumer", "files", "other"] });
  await addResource(MCP, ["files", "files:write"]);
});
after(async () => {
  await second.stop();
  await gatepost.stop();
});

const asAdmin = () => bearer(gatepost.adminToken);

const add = (url: unknown, scopes: readonly string[] = []) =>
  gatepost.api.postJson("/backend/resource", { url, scopes }, asAdmin());

async function addResource(url: string, scopes: readonly string[]): Promise<string> {
  const response = await add(url, scopes);
  assert.equal(response.status, 201, response.text);
  return String(readObject(response)["id"]);
}

const audienceOf = (token: string) => decodeJwt(token).claims["aud"];

async function introspect(token: string, at = second) {
  const response = await at.api.postForm("/authorization/introspect", { token }, basicAuth(app));
  return readObject(response);
}

describe("a token for a registered resource", () => {
  test("has only the resource as its aud, and only scopes of the resource", async () => {
    const tokens = await gatepost.codeTokens(app, user, { resource: MCP });
    assert.equal(audienceOf(tokens.access_token), MCP);
    assert.equal(tokens.scope, "files");
  });

  test("is refused by this service, with a challenge", async () => {
    const { access_token } = await gatepost.codeTokens(app, user, { resource: MCP });
    for (const at of [gatepost, second]) {
      for (const path of ["/authorization/whoami", "/consumer/grant", "/openapi.json"]) {
        const response = await at.api.get(path, bearer(access_token));
        assert.equal(response.status, 401, path);
        assert.match(response.headers.get("www-authenticate") ?? "", /error="invalid_token"/);
      }
    }
    const revoke = await gatepost.api.send("POST", "/authorization/revoke",
      { headers: bearer(access_token) });
    assert.equal(revoke.status, 401);
  });

  test("may not read metrics or users, even if it has a scope called backend", async () => {
    await addResource("https://backend.example", ["backend"]);
    const all = await gatepost.createApp({ scopes: ["backend"] });
    const fields = { grant_type: "client_credentials", resource: "https://backend.example/" };
    const response = await gatepost.token(all, { ...fields, scope: "backend" });
    const { access_token } = readTokens(response);
    assert.equal(audienceOf(access_token), "https://backend.example");
    for (const path of ["/system/metrics", "/backend/user"]) {
      assert.equal((await gatepost.api.get(path, bearer(access_token))).status, 401, path);
    }
    const ready = readObject(await gatepost.api.get("/system/ready", bearer(access_token)));
    assert.equal("database" in ready, false);
  });

  test("is described by introspection, like its refresh token, until it is revoked", async () => {
    const tokens = await gatepost.codeTokens(app, user, { resource: MCP });
    assert.equal((await introspect(tokens.access_token))["aud"], MCP);
    assert.equal((await introspect(tokens.refresh_token))["aud"], MCP);
    const own = await gatepost.codeTokens(app, user);
    assert.equal((await introspect(own.access_token))["aud"], gatepost.issuer);
    const revoke = await gatepost.api.postForm("/authorization/revoke",
      { token: tokens.access_token }, basicAuth(app));
    assert.equal(revoke.status, 200);
    assert.deepEqual(await introspect(tokens.access_token, gatepost), { active: false });
  });

  test("is issued for client credentials, passwords and refresh tokens too", async () => {
    const { username, password } = user;
    for (const fields of [
      { grant_type: "client_credentials" },
      { grant_type: "password", username, password },
    ]) {
      const tokens = readTokens(await gatepost.token(app, { ...fields, resource: MCP }));
      assert.deepEqual([audienceOf(tokens.access_token), tokens.scope], [MCP, "files"]);
      const renewed = readTokens(await second.refresh(app, tokens.refresh_token));
      assert.equal(audienceOf(renewed.access_token), MCP);
    }
  });

  test("is refused with a scope that the resource does not have", async () => {
    const fields = { grant_type: "client_credentials", resource: MCP, scope: "files other" };
    assertOAuthError(await gatepost.token(app, fields), 400, "invalid_scope");
    const page = await gatepost.authorize(gatepost.openBrowser(), app,
      { resource: MCP, scope: "consumer" });
    assertErrorRedirect(gatepost, page, app, { error: "invalid_scope" });
  });
});

describe("the resource of a grant (RFC 8707 §2.2)", () => {
  test("is the one of the code, and a token request may name no other", async () => {
    const tries: [authorized: Record<string, string>, asked: string, isRight: boolean][] = [
      [{ resource: MCP }, MCP, true],
      [{ resource: MCP }, gatepost.issuer, false],
      [{ resource: MCP }, "https://unknown.example", false],
      [{}, MCP, false],
      [{}, gatepost.issuer, true],
      [{ resource: `${gatepost.issuer}/orders` }, `${gatepost.issuer}/orders`, true],
      [{ resource: `${gatepost.issuer}/orders` }, MCP, false],
    ];
    for (const [authorized, resource, isRight] of tries) {
      const code = await gatepost.code(app, user, authorized);
      const fields = { grant_type: "authorization_code", code };
      const response = await gatepost.token(app, { ...fields, resource });
      if (isRight) readTokens(response);
      else {
        assertOAuthError(response, 400, "invalid_target");
        readTokens(await gatepost.token(app, fields)); // the code is still valid
      }
    }
  });

  test("stays the same after a refresh, which may name no other", async () => {
    const { refresh_token } = await gatepost.codeTokens(app, user, { resource: MCP });
    const other = await second.refresh(app, refresh_token, { resource: gatepost.issuer });
    assertOAuthError(other, 400, "invalid_target");
    const next = readTokens(await second.refresh(app, refresh_token, { resource: `${MCP}/` }));
    const last = readTokens(await gatepost.refresh(app, next.refresh_token));
    assert.equal(audienceOf(last.access_token), MCP);
  });

  test("ends the grant when it is deleted, even if its URL is registered again", async () => {
    const url = "https://short.example/api";
    const id = await addResource(url, ["files"]);
    const code = await gatepost.code(app, user, { resource: url });
    const tokens = await gatepost.codeTokens(app, user, { resource: url });
    const path = `/backend/resource/${id}`;
    assert.equal((await gatepost.api.send("DELETE", path, { headers: asAdmin() })).status, 204);
    const fields = { grant_type: "authorization_code", code };
    const assertEnded = async (more = {}) => {
      for (const token of [tokens.access_token, tokens.refresh_token]) {
        assert.deepEqual(await introspect(token), { active: false });
      }
      const response = await second.refresh(app, tokens.refresh_token, more);
      assertOAuthError(response, 400, "invalid_grant");
      assertOAuthError(await second.token(app, { ...fields, ...more }), 400, "invalid_grant");
    };
    await assertEnded({ resource: url }); // MCP clients name it each time
    await addResource(`${url}/`, ["files"]);
    await assertEnded();
    await assertEnded({ resource: url });
  });

  test("ends the grant in every list when it is deleted", async () => {
    const url = "https://listed.example";
    const id = await addResource(url, ["files"]);
    const owner = await gatepost.createUser({ scopes: ["consumer", "files"] });
    await gatepost.codeTokens(app, owner, { resource: url });
    const own = bearer(await gatepost.login(owner));
    const list = async (path: string, headers = own) => {
      const { items } = readObject(await gatepost.api.get(path, headers));
      assert.ok(Array.isArray(items));
      return items;
    };
    const grants = `/backend/grant?user=${owner.id}&app=${app.id}`;
    assert.equal((await list("/consumer/token")).length, 2);
    assert.equal((await list("/consumer/grant")).length, 1);
    assert.equal((await list(grants, asAdmin()))[0].status, "active");
    await gatepost.api.send("DELETE", `/backend/resource/${id}`, { headers: asAdmin() });
    assert.deepEqual((await list("/consumer/token")).map(({ kind }) => kind), ["login"]);
    assert.deepEqual(await list("/consumer/grant"), []);
    assert.equal((await list(grants, asAdmin()))[0].status, "revoked");
  });

  test("takes from the grant the scopes that it loses", async () => {
    const url = "https://less.example";
    const id = await addResource(url, ["files", "other"]);
    const tokens = await gatepost.codeTokens(app, user, { resource: url });
    assert.equal(tokens.scope, "files other");
    const path = `/backend/resource/${id}`;
    const change = { scopes: ["other"] };
    assert.equal((await gatepost.api.sendJson("PATCH", path, change, asAdmin())).status, 200);
    for (const token of [tokens.access_token, tokens.refresh_token]) {
      assert.equal((await introspect(token))["scope"], "other");
    }
    assert.equal(readTokens(await second.refresh(app, tokens.refresh_token)).scope, "other");
  });
});

describe("consent", () => {
  test("for a registered resource is asked for each time, and the page names it", async () => {
    const browser = gatepost.openBrowser();
    const login = await gatepost.authorize(browser, app, { resource: MCP });
    const consent = await passLogin(browser, login, user);
    assertConsentPage(consent);
    assert.ok(consent.text.includes(MCP));
    assert.equal((await browser.submit(consent, {}, "allow")).status, 303);
    assertConsentPage(await gatepost.authorize(browser, app, { resource: MCP }));
    // A consent for the resource is not one for this service.
    const someone = await gatepost.createUser({ scopes: ["files"] });
    const other = gatepost.openBrowser();
    await gatepost.allow(other, app, someone, { resource: MCP, scope: "files" });
    assertConsentPage(await gatepost.authorize(other, app, { scope: "files" }));
  });
});

describe("invalid_target (RFC 8707 §2) is the error for", () => {
  const issuer = env.GATEPOST_BASE_URL;
  const refused = [
    "https://unknown.example", `${MCP}/x`, "https://mcp.example", "http://mcp.example/mcp",
    `${MCP}?x=1`, `${MCP}#x`, "https://MCP.example/mcp", "https://mcp.example:443/mcp",
    "mcp", "/mcp", "urn:mcp", "http://gatepost.test", `${issuer}x`, `${issuer}/../x`,
    `${issuer}/a/./b`, `${issuer}/%2e%2e/x`, `${issuer}//x`, `${issuer}/a#x`, `${issuer}/a?x=1`,
    `${issuer}\\x`, "http://gatepost.test@evil.example/base", "http://gatepost.test:80/base/x",
    "HTTP://gatepost.test/base",
  ];
  for (const resource of refused) {
    test(resource, async () => {
      const fields = { grant_type: "client_credentials", resource };
      assertOAuthError(await gatepost.token(app, fields), 400, "invalid_target");
      const page = await gatepost.authorize(gatepost.openBrowser(), app, { resource });
      assertErrorRedirect(gatepost, page, app, { error: "invalid_target" });
    });
  }

  test("several resources, unless all are this service", async () => {
    const send = (...resources: string[]) => {
      const named = resources.map((resource) => ["resource", resource]);
      const query = [["grant_type", "client_credentials"], ...named];
      return gatepost.api.send("POST", "/authorization/token", {
        headers: { ...basicAuth(app), "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(query).toString(),
      });
    };
    assertOAuthError(await send(MCP, issuer), 400, "invalid_target");
    assertOAuthError(await send(MCP, "https://backend.example"), 400, "invalid_target");
    const tokens = readTokens(await send(issuer, `${issuer}/orders`, `${issuer}/`));
    assert.equal(audienceOf(tokens.access_token), issuer);
    assert.equal(await gatepost.isAlive(tokens.access_token), true);
  });
});

describe("/backend/resource", () => {
  test("refuses this service, an invalid URL, and a URL that is registered", async () => {
    for (const url of [
      gatepost.issuer, `${gatepost.issuer}/x`, "http://mcp.example", "https://mcp.example/#x",
      "https://mcp.example/?x", "https://a@mcp.example/", "mcp", 7,
    ]) {
      const response = await add(url, ["a b"]);
      assert.deepEqual(assertProblem(response, 400), ["/scopes/0", "/url"], String(url));
    }
    for (const url of [MCP, `${MCP}/`]) {
      assert.equal((await add(url)).status, 409);
    }
  });

  test("needs scope backend, and its changes are in the audit", async () => {
    const token = await gatepost.login(await gatepost.createUser());
    assert.equal((await gatepost.api.get("/backend/resource", bearer(token))).status, 403);
    const id = await addResource("https://audited.example", []);
    const path = `/backend/resource/${id}`;
    await gatepost.api.sendJson("PATCH", path, { scopes: ["x"] }, asAdmin());
    await gatepost.api.send("DELETE", path, { headers: asAdmin() });
    for (const method of ["PATCH", "DELETE", "GET"]) {
      const body = method === "PATCH" ? { scopes: ["x"] } : undefined;
      assert.equal((await gatepost.api.sendJson(method, path, body, asAdmin())).status, 404);
    }
    const audit = await gatepost.api.get(`/backend/audit?target=${id}`, asAdmin());
    const { items } = readObject(audit);
    assert.ok(Array.isArray(items));
    assert.deepEqual(items.map(({ action }) => action),
      ["resource.delete", "resource.change", "resource.create"]);
  });
});
