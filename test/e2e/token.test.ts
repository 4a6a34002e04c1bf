import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  type Gatepost,
  startGatepost,
  type TestApp,
  type TestUser,
  type TokenResponse,
} from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth, bearer, newAddress, newName, newPkce } from "../helpers/requests.ts";
import { assertOAuthError, decodeJwt, readObject, readTokens } from "../helpers/responses.ts";

const ALL_GRANTS = ["authorization_code", "refresh_token", "client_credentials", "password"];

let gatepost: Gatepost;
let user: TestUser;
/** Is allowed every grant, and scopes that the user does not have. */
let app: TestApp;
/** Has the default grants. */
let plainApp: TestApp;
let publicApp: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser({ scopes: ["consumer", "orders", "private"] });
  app = await gatepost.createApp({
    scopes: ["consumer", "orders", "extra", "backend"],
    grants: ALL_GRANTS,
    trusted: true,
  });
  plainApp = await gatepost.createApp();
  publicApp = await gatepost.createApp({ type: "public" });
});
after(() => gatepost.stop());

const passwordFields = () => ({
  grant_type: "password",
  username: user.username,
  password: user.password,
});

describe("the token response (RFC 6749 §5.1, RFC 9068 §2)", () => {
  const grants: [type: string, get: () => Promise<ClientResponse>, subject: () => string][] = [
    ["client_credentials", () => gatepost.token(app, { grant_type: "client_credentials" }),
      () => app.id],
    ["password", () => gatepost.token(app, passwordFields()), () => user.id],
    ["authorization_code", async () => {
      const code = await gatepost.code(app, user);
      return gatepost.token(app, { grant_type: "authorization_code", code });
    }, () => user.id],
    ["refresh_token", async () => {
      const first = readTokens(await gatepost.token(app, passwordFields()));
      const fields = { grant_type: "refresh_token", refresh_token: first.refresh_token };
      return gatepost.token(app, fields);
    }, () => user.id],
  ];

  for (const [type, get, subject] of grants) {
    describe(`for ${type}`, () => {
      let response: ClientResponse;
      let tokens: TokenResponse;
      before(async () => {
        response = await get();
        tokens = readTokens(response);
      });

      test("has exactly these members", () => {
        const names = ["access_token", "expires_in", "refresh_token", "scope", "token_type"];
        assert.deepEqual(Object.keys(readObject(response)).sort(), names);
      });

      test("has token_type bearer, expires_in in seconds, and scopes separated by spaces", () => {
        assert.equal(tokens.token_type, "bearer");
        assert.equal(tokens.expires_in, 3600);
        const expected = type === "client_credentials"
          ? ["consumer", "extra", "orders"]
          : ["consumer", "orders"];
        assert.deepEqual(tokens.scope.split(" ").sort(), expected);
      });

      test("is JSON that no cache may store", () => {
        assert.match(response.headers.get("content-type") ?? "", /^application\/json\b/);
        assert.equal(response.headers.get("cache-control"), "no-store");
        assert.equal(response.headers.get("pragma"), "no-cache");
      });

      test("has an access token with this header and these claims", async () => {
        const { header, claims } = decodeJwt(tokens.access_token);
        assert.deepEqual(Object.keys(header).sort(), ["alg", "kid", "typ"]);
        assert.deepEqual([header["alg"], header["typ"]], ["ES256", "at+jwt"]);
        const { jti, iat, exp, ...rest } = claims;
        assert.deepEqual(rest, {
          iss: gatepost.issuer,
          aud: gatepost.issuer,
          sub: subject(),
          client_id: app.id,
          scope: tokens.scope,
        });
        assert.equal(Number(exp) - Number(iat), 3600);
        assert.ok(Math.abs(Number(iat) - Date.now() / 1000) < 60);
        assert.match(String(jti), /^\S{16,}$/);
      });

      test("has an access token that a protected endpoint accepts", async () => {
        assert.equal(await gatepost.isAlive(tokens.access_token), true);
      });
    });
  }

  test("has an access token with a new jti each time", async () => {
    const get = async () =>
      readTokens(await gatepost.token(app, { grant_type: "client_credentials" })).access_token;
    const ids = [await get(), await get()].map((token) => decodeJwt(token).claims["jti"]);
    assert.notEqual(ids[0], ids[1]);
  });

  test("has no refresh token if the app may not use that grant", async () => {
    const once = await gatepost.createApp({ grants: ["client_credentials"] });
    const response = await gatepost.token(once, { grant_type: "client_credentials" });
    readTokens(response);
    assert.equal("refresh_token" in readObject(response), false);
  });

  test("uses ids that begin with u for users and with a for apps", () => {
    assert.match(user.id, /^u[A-Za-z0-9]+$/);
    assert.match(app.id, /^a[A-Za-z0-9]+$/);
  });
});

describe("grants of an app (RFC 6749 §5.2 unauthorized_client)", () => {
  test("are authorization_code, refresh_token and client_credentials by default", async () => {
    const { refresh_token } = readTokens(
      await gatepost.token(plainApp, { grant_type: "client_credentials" }),
    );
    readTokens(await gatepost.token(plainApp, { grant_type: "refresh_token", refresh_token }));
    await gatepost.codeTokens(plainApp, user);
  });

  test("are authorization_code and refresh_token for a public app", async () => {
    const { refresh_token } = await gatepost.codeTokens(publicApp, user);
    readTokens(await gatepost.token(publicApp, { grant_type: "refresh_token", refresh_token }));
    const response = await gatepost.token(publicApp, { grant_type: "client_credentials" });
    assertOAuthError(response, 400, "unauthorized_client");
  });

  test("include password only if it is allowed, and the error says how to allow it", async () => {
    const response = await gatepost.token(plainApp, passwordFields());
    assertOAuthError(response, 400, "unauthorized_client");
    const description = String(readObject(response)["error_description"]);
    assert.match(description, /password.*grants|grants.*password/);
  });

  test("may include password for a public app too", async () => {
    const native = await gatepost.createApp({ type: "public", grants: ["password"] });
    readTokens(await gatepost.token(native, passwordFields()));
  });

  for (const type of ALL_GRANTS) {
    test(`exclude ${type} if only another grant is allowed`, async () => {
      const other = type === "password" ? "client_credentials" : "password";
      const narrow = await gatepost.createApp({ grants: [other] });
      const fields = { ...passwordFields(), grant_type: type, code: "c", refresh_token: "r" };
      assertOAuthError(await gatepost.token(narrow, fields), 400, "unauthorized_client");
    });
  }
});

describe("password (RFC 6749 §4.3)", () => {
  test("returns the same error for a wrong password, a disabled and an unknown user", async () => {
    const disabled = await gatepost.createUser();
    await gatepost.change(disabled, { status: "disabled" });
    const fields = passwordFields();
    const bodies = new Set<string>();
    const cases = [
      { ...fields, password: "not the password" },
      { ...fields, username: disabled.username },
      { ...fields, username: newName("nobody") },
    ];
    for (const each of cases) {
      const response = await gatepost.token(app, each);
      assertOAuthError(response, 400, "invalid_grant");
      bodies.add(response.text);
    }
    assert.equal(bodies.size, 1);
  });

  test("is throttled together with login, as temporarily_unavailable", async () => {
    const victim = await gatepost.createUser();
    const from = { "x-forwarded-for": newAddress() };
    const { username } = victim;
    const fields = { grant_type: "password", username, password: "not the password" };
    for (let count = 0; count < 5; count++) {
      await gatepost.api.postJson("/consumer/login", { username, password: "wrong" }, from);
      const headers = { ...from, ...basicAuth(app) };
      const response = await gatepost.api.postForm("/authorization/token", fields, headers);
      assertOAuthError(response, 400, "invalid_grant");
    }
    const headers = { ...from, ...basicAuth(app) };
    const right = { ...fields, password: victim.password };
    const response = await gatepost.api.postForm("/authorization/token", right, headers);
    assertOAuthError(response, 429, "temporarily_unavailable");
    assert.ok(Number(response.headers.get("retry-after")) > 0);
    const login = await gatepost.api.postJson("/consumer/login", right, from);
    assert.equal(login.status, 429);
  });
});

test("whoami returns kind app and no user name for an app's own token", async () => {
  const tokens = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const response = await gatepost.api.get("/authorization/whoami", bearer(tokens.access_token));
  const { expires_at, ...rest } = readObject(response);
  const { scope } = tokens;
  assert.deepEqual(rest, { sub: app.id, kind: "app", client_id: app.id, scope });
  assert.match(String(expires_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/);
});

test("whoami returns kind user and the user name for a user's token", async () => {
  const pair = newPkce();
  const code = await gatepost.code(app, user, pair.challenge);
  const fields = { grant_type: "authorization_code", code, ...pair.verifier };
  const tokens = readTokens(await gatepost.token(app, fields));
  const response = await gatepost.api.get("/authorization/whoami", bearer(tokens.access_token));
  const { expires_at: _, ...rest } = readObject(response);
  const { username } = user;
  const { scope } = tokens;
  assert.deepEqual(rest, { sub: user.id, kind: "user", username, client_id: app.id, scope });
});
