import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";
import { assertOAuthError, decodeJwt, readObject, readTokens } from "../helpers/responses.ts";

type Fields = Readonly<Record<string, string>>;

let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
let otherApp: TestApp;
let publicApp: TestApp;
let resourceServer: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser();
  app = await gatepost.createApp({ trusted: true });
  otherApp = await gatepost.createApp();
  publicApp = await gatepost.createApp({ type: "public", trusted: true });
  resourceServer = await gatepost.createApp({ resource_server: true });
});
after(() => gatepost.stop());

const introspect = (token: string, headers: Fields = basicAuth(app)): Promise<ClientResponse> =>
  gatepost.api.postForm("/authorization/introspect", { token }, headers);

async function assertInactive(token: string, headers?: Fields): Promise<void> {
  const response = await introspect(token, headers);
  assert.equal(response.status, 200, response.text);
  assert.deepEqual(readObject(response), { active: false });
}

async function assertActive(token: string, headers?: Fields): Promise<void> {
  const response = await introspect(token, headers);
  assert.equal(response.status, 200, response.text);
  assert.equal(readObject(response)["active"], true, response.text);
}

describe("POST /authorization/introspect returns (RFC 7662 §2.2)", () => {
  test("the claims of an access token", async () => {
    const { access_token, scope } = await gatepost.codeTokens(app, user);
    const { claims } = decodeJwt(access_token);
    const response = await introspect(access_token);
    assert.equal(response.headers.get("cache-control"), "no-store");
    const { exp, iat, jti } = claims;
    assert.deepEqual(readObject(response), {
      active: true,
      scope,
      client_id: app.id,
      username: user.username,
      token_type: "bearer",
      exp,
      iat,
      sub: user.id,
      aud: gatepost.issuer,
      iss: gatepost.issuer,
      jti,
    });
  });

  test("the scope, app, user and expiry of a refresh token", async () => {
    const { refresh_token, scope } = await gatepost.codeTokens(app, user);
    const { exp, ...rest } = readObject(await introspect(refresh_token));
    assert.deepEqual(rest, {
      active: true,
      scope,
      client_id: app.id,
      username: user.username,
      sub: user.id,
      aud: gatepost.issuer,
      iss: gatepost.issuer,
    });
    assert.ok(Math.abs(Number(exp) - Date.now() / 1000 - 30 * 86_400) < 60);
  });

  test("no user name for an app that acts for itself", async () => {
    const response = await gatepost.token(app, { grant_type: "client_credentials" });
    const body = readObject(await introspect(readTokens(response).access_token));
    assert.deepEqual([body["active"], body["sub"]], [true, app.id]);
    assert.equal("username" in body, false);
  });
});

describe("POST /authorization/introspect says that", () => {
  const tokens: [kind: string, get: () => Promise<string>][] = [
    ["the app's access token", async () => (await gatepost.codeTokens(app, user)).access_token],
    ["the app's refresh token", async () => (await gatepost.codeTokens(app, user)).refresh_token],
    ["a public app's token", async () =>
      (await gatepost.codeTokens(publicApp, user)).access_token],
    ["a login token", () => gatepost.login(user)],
  ];
  for (const [index, [kind, get]] of tokens.entries()) {
    test(`${kind} is ${index < 2 ? "active" : "inactive"} for the app`, async () => {
      await (index < 2 ? assertActive : assertInactive)(await get());
    });
    test(`${kind} is inactive for another app`, async () => {
      await assertInactive(await get(), basicAuth(otherApp));
    });
    test(`${kind} is active for a resource server`, async () => {
      await assertActive(await get(), basicAuth(resourceServer));
    });
    test(`${kind} is active for a caller with scope backend`, async () => {
      await assertActive(await get(), bearer(gatepost.adminToken));
    });
    test(`a caller without scope backend may not ask about ${kind}`, async () => {
      const response = await introspect(await get(), bearer(await gatepost.login(user)));
      assertOAuthError(response, 403, "insufficient_scope");
    });
    test(`a public app may not ask about ${kind} (§2.1)`, async () => {
      const fields = { token: await get(), client_id: publicApp.id };
      const response = await gatepost.api.postForm("/authorization/introspect", fields);
      assertOAuthError(response, 401, "invalid_client");
    });
  }
});

describe("POST /authorization/introspect returns exactly {active: false} for", () => {
  for (const token of ["x", "a.b.c", "A".repeat(66), "ü"]) {
    test(`a token that was never issued: ${token.slice(0, 9)}`, async () => {
      await assertInactive(token);
      await assertInactive(token, basicAuth(resourceServer));
      await assertInactive(token, bearer(gatepost.adminToken));
    });
  }

  test("a revoked access token", async () => {
    const { access_token } = await gatepost.codeTokens(app, user);
    const fields = { token: access_token };
    await gatepost.api.postForm("/authorization/revoke", fields, basicAuth(app));
    await assertInactive(access_token);
  });

  test("a refresh token that was used", async () => {
    const { refresh_token } = await gatepost.codeTokens(app, user);
    readTokens(await gatepost.token(app, { grant_type: "refresh_token", refresh_token }));
    await assertInactive(refresh_token);
  });

  test("the tokens of a revoked grant", async () => {
    const { access_token, refresh_token } = await gatepost.codeTokens(app, user);
    const fields = { token: refresh_token };
    await gatepost.api.postForm("/authorization/revoke", fields, basicAuth(app));
    await assertInactive(refresh_token);
    await assertInactive(access_token);
  });

  test("the tokens of a disabled user", async () => {
    const leaver = await gatepost.createUser();
    const { access_token, refresh_token } = await gatepost.codeTokens(app, leaver);
    await gatepost.change(leaver, { status: "disabled" });
    await assertInactive(access_token);
    await assertInactive(refresh_token);
  });

  test("a refresh token of an app that lost the refresh_token grant", async () => {
    const short = await gatepost.createApp({ trusted: true });
    const { access_token, refresh_token } = await gatepost.codeTokens(short, user);
    await gatepost.change(short, { grants: ["authorization_code"] });
    await assertInactive(refresh_token, basicAuth(short));
    await assertActive(access_token, basicAuth(short));
  });

  test("the tokens of a disabled app", async () => {
    const short = await gatepost.createApp({ trusted: true });
    const { access_token, refresh_token } = await gatepost.codeTokens(short, user);
    await gatepost.change(short, { status: "disabled" });
    await assertInactive(access_token, basicAuth(resourceServer));
    await assertInactive(refresh_token, basicAuth(resourceServer));
  });

  test("an authorization code", async () => {
    await assertInactive(await gatepost.code(app, user));
  });
});

describe("POST /authorization/introspect refuses", () => {
  const path = "/authorization/introspect";

  test("a request without a token: invalid_request", async () => {
    const response = await gatepost.api.postForm(path, {}, basicAuth(app));
    assertOAuthError(response, 400, "invalid_request");
  });

  test("a request without credentials: invalid_client", async () => {
    assertOAuthError(await introspect("x", {}), 401, "invalid_client");
  });

  test("a request with a wrong secret: invalid_client", async () => {
    const wrong = basicAuth({ ...resourceServer, secret: "wrong" });
    assertOAuthError(await introspect("x", wrong), 401, "invalid_client");
  });

  test("a request with an invalid Bearer token: 401", async () => {
    assert.equal((await introspect("x", bearer("a.b.c"))).status, 401);
  });

  test("a token in the query: invalid_request", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded", ...basicAuth(app) };
    const response = await gatepost.api.send(
      "POST",
      `${path}?token=x`,
      { headers, body: "token=x" },
    );
    assertOAuthError(response, 400, "invalid_request");
  });

  test("access to pages of other origins: no CORS", async () => {
    const headers = { ...basicAuth(app), origin: "https://app.example" };
    const response = await introspect("x", headers);
    assert.equal(response.headers.get("access-control-allow-origin"), null);
  });
});
