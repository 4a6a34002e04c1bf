import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Gatepost,
  PASSWORD,
  startGatepost,
  type TestApp,
  type TestUser,
  type TokenResponse,
} from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth, bearer } from "../helpers/requests.ts";
import { assertOAuthError, decodeJwt, readObject, readTokens } from "../helpers/responses.ts";

const SCOPES = ["consumer", "orders", "stock"];

let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
let otherApp: TestApp;
let publicApp: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser({ scopes: SCOPES });
  app = await gatepost.createApp({ scopes: SCOPES, trusted: true });
  otherApp = await gatepost.createApp({ scopes: SCOPES, trusted: true });
  publicApp = await gatepost.createApp({ scopes: SCOPES, trusted: true, type: "public" });
});
after(() => gatepost.stop());

function refresh(token: string, more = {}, by: TestApp = app): Promise<ClientResponse> {
  return gatepost.refresh(by, token, more);
}

/** Exchanges a refresh token that must be valid. */
const renew = async (tokens: TokenResponse, more = {}, by: TestApp = app): Promise<TokenResponse> =>
  readTokens(await refresh(tokens.refresh_token, more, by));

async function assertRefused(tokens: TokenResponse, by: TestApp = app): Promise<void> {
  assertOAuthError(await refresh(tokens.refresh_token, {}, by), 400, "invalid_grant");
}

/** Checks that each access token is refused on the very next request. */
async function assertDead(...all: readonly TokenResponse[]): Promise<void> {
  for (const { access_token } of all) assert.equal(await gatepost.isAlive(access_token), false);
}

describe("refresh_token (RFC 6749 §6)", () => {
  test("returns a new access token and a new refresh token", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    assert.notEqual(second.refresh_token, first.refresh_token);
    assert.notEqual(second.access_token, first.access_token);
    assert.equal(second.expires_in, 3600);
  });

  test("leaves earlier access tokens valid", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    assert.equal(await gatepost.isAlive(first.access_token), true);
    assert.equal(await gatepost.isAlive(second.access_token), true);
  });

  test("keeps the user and the app over several refreshes", async () => {
    let tokens = await gatepost.codeTokens(app, user);
    for (let count = 0; count < 5; count++) tokens = await renew(tokens);
    const { claims } = decodeJwt(tokens.access_token);
    assert.deepEqual([claims["sub"], claims["client_id"]], [user.id, app.id]);
  });

  test("works for an app that acts for itself", async () => {
    const fields = { grant_type: "client_credentials" };
    const tokens = await renew(readTokens(await gatepost.token(app, fields)));
    assert.equal(decodeJwt(tokens.access_token).claims["sub"], app.id);
  });

  test("works for a public app with its client_id alone", async () => {
    const tokens = await gatepost.codeTokens(publicApp, user);
    await renew(await renew(tokens, {}, publicApp), {}, publicApp);
  });
});

describe("a used refresh token that comes again revokes the whole grant (RFC 9700 §4.14.2)", () => {
  test("with its newest refresh token and all access tokens, on the next request", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    const third = await renew(second);
    await assertRefused(first);
    await assertDead(first, second, third);
    await assertRefused(third);
  });

  test("when it is from the middle of the chain", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    const third = await renew(second);
    await renew(third);
    await assertRefused(second);
    await assertDead(first, second, third);
  });

  test("for a public app too", async () => {
    const first = await gatepost.codeTokens(publicApp, user);
    const second = await renew(first, {}, publicApp);
    const third = await renew(second, {}, publicApp);
    await assertRefused(first, publicApp);
    await assertDead(first, second, third);
    await assertRefused(third, publicApp);
  });

  test("even if the request asks for a scope that was never granted", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    const third = await renew(second);
    const response = await refresh(first.refresh_token, { scope: "never" });
    assert.equal(response.status, 400);
    await assertDead(first, second, third);
  });

  test("but no other grant of the same user and app", async () => {
    const other = await gatepost.codeTokens(app, user);
    const first = await gatepost.codeTokens(app, user);
    await renew(await renew(first));
    await assertRefused(first);
    assert.equal(await gatepost.isAlive(other.access_token), true);
    await renew(other);
  });

  test("so of 20 requests at once one or two succeed, whose tokens are revoked too", async () => {
    const first = await gatepost.codeTokens(app, user);
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => refresh(first.refresh_token)),
    );
    const succeeded = responses.filter(({ status }) => status === 200).map(readTokens);
    // The second may have come after the first response, as when that response was lost.
    assert.ok(succeeded.length === 1 || succeeded.length === 2, String(succeeded.length));
    for (const response of responses) {
      if (response.status !== 200) assertOAuthError(response, 400, "invalid_grant");
    }
    await assertDead(first, ...succeeded);
    for (const tokens of succeeded) await assertRefused(tokens);
  });
});

describe("a refresh may be repeated once, since its response may have been lost:", () => {
  test("the repeat gives new tokens, and the chain continues with them", async () => {
    const first = await gatepost.codeTokens(app, user);
    const lost = await renew(first);
    const second = await renew(first);
    assert.notEqual(second.refresh_token, lost.refresh_token);
    const third = await renew(second);
    assert.equal(await gatepost.isAlive(third.access_token), true);
  });

  test("the same token a third time revokes the grant", async () => {
    const first = await gatepost.codeTokens(app, user);
    await renew(first);
    const second = await renew(first);
    await assertRefused(first);
    await assertDead(first, second);
    await assertRefused(second);
  });

  test("the refresh token of the lost response revokes the grant when it is used", async () => {
    const first = await gatepost.codeTokens(app, user);
    const stolen = await renew(first);
    const second = await renew(first);
    await assertRefused(stolen);
    await assertDead(first, stolen, second);
    await assertRefused(second);
  });

  test("another app cannot repeat it", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    await assertRefused(first, otherApp);
    await renew(second);
  });

  test("a repeat with a scope that was never granted changes nothing", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    const response = await refresh(first.refresh_token, { scope: "never" });
    assertOAuthError(response, 400, "invalid_scope");
    await renew(second);
  });
});

describe("a refresh token that is not the app's own revokes nothing", () => {
  const madeUp: [what: string, make: (token: string) => string][] = [
    ["one character", () => "x"],
    ["the example of RFC 6749 §4.1.4", () => "tGzv3JOkF0XG5Qx2TlKWIA"],
    ["with its last character changed",
      (token) => token.slice(0, -1) + (token.endsWith("A") ? "B" : "A")],
    ["without its last character", (token) => token.slice(0, -1)],
    ["with a character added", (token) => `${token}A`],
    ["with another secret of the same length",
      (token) => token.slice(0, -20) + "A".repeat(20)],
    ["in lower case", (token) => token.toLowerCase()],
    ["a long text", () => "A".repeat(10_000)],
  ];
  for (const [what, make] of madeUp) {
    test(`a made-up token: ${what}`, async () => {
      const tokens = await gatepost.codeTokens(app, user);
      const response = await refresh(make(tokens.refresh_token));
      assertOAuthError(response, 400, "invalid_grant");
      assert.equal(await gatepost.isAlive(tokens.access_token), true);
      await renew(tokens);
    });
  }

  test("another app's valid token", async () => {
    const tokens = await gatepost.codeTokens(app, user);
    await assertRefused(tokens, otherApp);
    await assertRefused(tokens, publicApp);
    assert.equal(await gatepost.isAlive(tokens.access_token), true);
    await renew(tokens);
  });

  test("another app's used token", async () => {
    const first = await gatepost.codeTokens(app, user);
    const second = await renew(first);
    await assertRefused(first, otherApp);
    assert.equal(await gatepost.isAlive(second.access_token), true);
    await renew(second);
  });

  test("an access token", async () => {
    const tokens = await gatepost.codeTokens(app, user);
    assertOAuthError(await refresh(tokens.access_token), 400, "invalid_grant");
    await renew(tokens);
  });
});

describe("the scope of a refresh (RFC 6749 §6)", () => {
  const sorted = ({ scope }: TokenResponse) => scope.split(" ").sort();

  test("is the whole scope of the grant if the request names none", async () => {
    assert.deepEqual(sorted(await renew(await gatepost.codeTokens(app, user))), SCOPES);
  });

  test("narrows the access token, while the chain keeps its scope", async () => {
    const narrow = await renew(await gatepost.codeTokens(app, user), { scope: "orders" });
    assert.equal(narrow.scope, "orders");
    assert.equal(decodeJwt(narrow.access_token).claims["scope"], "orders");
    assert.deepEqual(sorted(await renew(narrow)), SCOPES);
  });

  test("may be separated by commas", async () => {
    const first = await gatepost.codeTokens(app, user);
    assert.deepEqual(sorted(await renew(first, { scope: "stock,orders" })), ["orders", "stock"]);
  });

  for (const scope of ["other", "orders other", "backend", 'or"ders']) {
    test(`is invalid_scope for ${scope}, and the token stays valid`, async () => {
      const first = await gatepost.codeTokens(app, user);
      assertOAuthError(await refresh(first.refresh_token, { scope }), 400, "invalid_scope");
      await renew(first);
    });
  }

  test("never includes a scope that the first request left out", async () => {
    const first = await gatepost.codeTokens(app, user, { scope: "orders" });
    const response = await refresh(first.refresh_token, { scope: "orders stock" });
    assertOAuthError(response, 400, "invalid_scope");
    assert.equal((await renew(first)).scope, "orders");
  });

  test("ends with the grant when the user loses one of its scopes", async () => {
    const demoted = await gatepost.createUser({ scopes: SCOPES });
    const first = await gatepost.codeTokens(app, demoted);
    await gatepost.change(demoted, { scopes: ["consumer"] });
    await assertRefused(first);
    await assertDead(first);
  });
});

describe("a refresh token ends with", () => {
  test("the disabling of its user, for good", async () => {
    const leaver = await gatepost.createUser();
    const tokens = await gatepost.codeTokens(app, leaver);
    await gatepost.change(leaver, { status: "disabled" });
    await assertRefused(tokens);
    await assertDead(tokens);
    await gatepost.change(leaver, { status: "active" });
    await assertRefused(tokens);
    await assertDead(tokens);
  });

  test("a new password of its user", async () => {
    const careful = await gatepost.createUser();
    const tokens = await gatepost.codeTokens(app, careful);
    await gatepost.change(careful, { password: `${PASSWORD} 2` });
    await assertRefused(tokens);
    await assertDead(tokens);
  });

  test("the deletion of its user", async () => {
    const leaver = await gatepost.createUser();
    const tokens = await gatepost.codeTokens(app, leaver);
    const headers = bearer(gatepost.adminToken);
    await gatepost.api.send("DELETE", `/backend/user/${leaver.id}`, { headers });
    await assertRefused(tokens);
    await assertDead(tokens);
  });

  test("the disabling of its app, as invalid_client, for good", async () => {
    const short = await gatepost.createApp({ trusted: true });
    const tokens = await gatepost.codeTokens(short, user);
    await gatepost.change(short, { status: "disabled" });
    const response = await refresh(tokens.refresh_token, {}, short);
    assertOAuthError(response, 401, "invalid_client");
    await assertDead(tokens);
    await gatepost.change(short, { status: "active" });
    await assertRefused(tokens, short);
    await assertDead(tokens);
  });

  test("the loss of its app's grant refresh_token, as unauthorized_client", async () => {
    const short = await gatepost.createApp({ trusted: true });
    const tokens = await gatepost.codeTokens(short, user);
    await gatepost.change(short, { grants: ["authorization_code"] });
    const response = await refresh(tokens.refresh_token, {}, short);
    assertOAuthError(response, 400, "unauthorized_client");
  });

  test("its lifetime, GATEPOST_REFRESH_TOKEN_TTL after its own issue", async () => {
    const quick = await startGatepost({ env: { GATEPOST_REFRESH_TOKEN_TTL: "2s" } });
    try {
      const at = await quick.createApp();
      const first = readTokens(await quick.token(at, { grant_type: "client_credentials" }));
      const next = { grant_type: "refresh_token", refresh_token: first.refresh_token };
      await sleep(1200);
      const second = readTokens(await quick.token(at, next));
      await sleep(1200);
      const third = { grant_type: "refresh_token", refresh_token: second.refresh_token };
      readTokens(await quick.token(at, third));
      const late = readTokens(await quick.token(at, { grant_type: "client_credentials" }));
      await sleep(2100);
      const tooLate = { grant_type: "refresh_token", refresh_token: late.refresh_token };
      assertOAuthError(await quick.token(at, tooLate), 400, "invalid_grant");
      const fields = { token: late.refresh_token }; // RFC 7662 §2.2
      const state = await quick.api.postForm("/authorization/introspect", fields, basicAuth(at));
      assert.deepEqual(readObject(state), { active: false });
    } finally {
      await quick.stop();
    }
  });
});
