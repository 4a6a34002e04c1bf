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
import { bearer, newPkce } from "../helpers/requests.ts";
import { assertOAuthError, readTokens } from "../helpers/responses.ts";

type Fields = Readonly<Record<string, string>>;

let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
let otherApp: TestApp;
let publicApp: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const scopes = ["consumer", "orders"];
  app = await gatepost.createApp({ scopes, trusted: true });
  otherApp = await gatepost.createApp({ scopes, trusted: true });
  publicApp = await gatepost.createApp({ scopes, trusted: true, type: "public" });
});
after(() => gatepost.stop());

const exchange = (code: string, more: Fields = {}, by: TestApp = app): Promise<ClientResponse> =>
  gatepost.token(by, { grant_type: "authorization_code", code, ...more });

const refresh = (tokens: TokenResponse, by: TestApp = app): Promise<ClientResponse> =>
  gatepost.refresh(by, tokens.refresh_token);

async function assertAlive(tokens: TokenResponse): Promise<void> {
  assert.equal(await gatepost.isAlive(tokens.access_token), true);
  readTokens(await refresh(tokens));
}

async function assertRevoked(tokens: TokenResponse, by: TestApp = app): Promise<void> {
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  assertOAuthError(await refresh(tokens, by), 400, "invalid_grant");
}

describe("a code is redeemed once (RFC 6749 §4.1.2)", () => {
  test("a second exchange is invalid_grant, and revokes the tokens of the first", async () => {
    const code = await gatepost.code(app, user);
    const tokens = readTokens(await exchange(code));
    assertOAuthError(await exchange(code), 400, "invalid_grant");
    await assertRevoked(tokens);
  });

  test("a second exchange revokes the tokens of a refresh in between, too", async () => {
    const code = await gatepost.code(app, user);
    const first = readTokens(await exchange(code));
    const second = readTokens(await refresh(first));
    assertOAuthError(await exchange(code), 400, "invalid_grant");
    assert.equal(await gatepost.isAlive(first.access_token), false);
    await assertRevoked(second);
  });

  test("a second exchange with a wrong redirect URI revokes the tokens all the same", async () => {
    const code = await gatepost.code(app, user);
    const tokens = readTokens(await exchange(code));
    const redirect = { redirect_uri: "https://app.example/other" };
    assertOAuthError(await exchange(code, redirect), 400, "invalid_grant");
    await assertRevoked(tokens);
  });

  test("a second exchange by another app revokes nothing", async () => {
    const code = await gatepost.code(app, user);
    const tokens = readTokens(await exchange(code));
    assertOAuthError(await exchange(code, {}, otherApp), 400, "invalid_grant");
    await assertAlive(tokens);
  });

  test("a second exchange revokes no other grant of the same user and app", async () => {
    const code = await gatepost.code(app, user);
    const other = readTokens(await exchange(await gatepost.code(app, user)));
    readTokens(await exchange(code));
    await exchange(code);
    await assertAlive(other);
  });

  test("exactly one of 20 exchanges at once succeeds, and its tokens are revoked", async () => {
    const code = await gatepost.code(app, user);
    const responses = await Promise.all(Array.from({ length: 20 }, () => exchange(code)));
    const succeeded = responses.filter(({ status }) => status === 200);
    assert.equal(succeeded.length, 1);
    for (const response of responses) {
      if (response.status !== 200) assertOAuthError(response, 400, "invalid_grant");
    }
    for (const response of succeeded) await assertRevoked(readTokens(response));
  });

  test("exactly one of 20 exchanges at once succeeds for a public app with PKCE", async () => {
    const pair = newPkce();
    const code = await gatepost.code(publicApp, user, pair.challenge);
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => exchange(code, pair.verifier, publicApp)),
    );
    const succeeded = responses.filter(({ status }) => status === 200);
    assert.equal(succeeded.length, 1);
    for (const response of succeeded) await assertRevoked(readTokens(response), publicApp);
  });
});

describe("a made-up code is invalid_grant", () => {
  const cases: [what: string, make: (code: string) => string][] = [
    ["one character", () => "x"],
    ["the example of RFC 6749 §4.1.2", () => "SplxlOBeZQQYbYS6WxSbIA"],
    ["the code without its last character", (code) => code.slice(0, -1)],
    ["the code with a character added", (code) => `${code}A`],
    ["the code in upper case", (code) => code.toUpperCase()],
    ["the code with its last character changed",
      (code) => code.slice(0, -1) + (code.endsWith("A") ? "B" : "A")],
    ["the code with a space added", (code) => `${code} `],
    ["the code with a NUL added", (code) => `${code}\0`],
    ["a long text", () => "A".repeat(10_000)],
    ["SQL", () => "' OR 1=1 --"],
  ];
  for (const [what, make] of cases) {
    test(`${what}, and the real code still works`, async () => {
      const code = await gatepost.code(app, user);
      assertOAuthError(await exchange(make(code)), 400, "invalid_grant");
      await assertAlive(readTokens(await exchange(code)));
    });
  }

  test("a refresh token, which still works", async () => {
    const tokens = readTokens(await exchange(await gatepost.code(app, user)));
    assertOAuthError(await exchange(tokens.refresh_token), 400, "invalid_grant");
    await assertAlive(tokens);
  });
});

describe("a failed exchange is invalid_grant and leaves the code valid (RFC 6749 §4.1.3)", () => {
  async function assertStillValid(wrong: Fields, right: Fields = {}, parameters: Fields = {}) {
    const code = await gatepost.code(app, user, parameters);
    assertOAuthError(await exchange(code, wrong), 400, "invalid_grant");
    const again = await exchange(code, wrong);
    assertOAuthError(again, 400, "invalid_grant");
    await assertAlive(readTokens(await exchange(code, right)));
    return again;
  }

  test("with another app's credentials", async () => {
    const code = await gatepost.code(app, user);
    assertOAuthError(await exchange(code, {}, otherApp), 400, "invalid_grant");
    assertOAuthError(await exchange(code, {}, publicApp), 400, "invalid_grant");
    await assertAlive(readTokens(await exchange(code)));
  });

  const redirects: [what: string, redirectUri: string][] = [
    ["another redirect URI", "https://app.example/other"],
    ["the app URL for the redirect URI", "https://app.example"],
    ["a slash after the redirect URI", "https://app.example/cb/"],
    ["an empty query after the redirect URI", "https://app.example/cb?"],
    ["the host of the redirect URI in upper case", "https://APP.example/cb"],
    ["the default port in the redirect URI", "https://app.example:443/cb"],
    ["an escaped letter in the redirect URI", "https://app.example/%63b"],
    ["a space after the redirect URI", "https://app.example/cb "],
  ];
  for (const [what, redirectUri] of redirects) {
    test(`with ${what}`, async () => {
      await assertStillValid({ redirect_uri: redirectUri }, { redirect_uri: app.redirectUri });
    });
  }

  const pair = newPkce();
  const text = pair.verifier.code_verifier;
  const verifiers: [what: string, verifier: string, description: RegExp][] = [
    ["an empty verifier", "", /missing/],
    ["another verifier", newPkce().verifier.code_verifier, /does not fit/],
    ["the challenge as the verifier", pair.challenge.code_challenge, /does not fit/],
    ["a verifier of 42 characters", text.slice(0, 42), /43 to 128/],
    ["a verifier with a character added", `${text}A`, /does not fit/],
    ["a verifier of 129 characters", "A".repeat(129), /43 to 128/],
    ["a padded verifier", `${text}=`, /letters, digits and -\._~/],
  ];
  for (const [what, code_verifier, description] of verifiers) {
    test(`with ${what}, and the description says why (RFC 7636 §4.6)`, async () => {
      const response = await assertStillValid({ code_verifier }, pair.verifier, pair.challenge);
      assert.match(response.text, description);
    });
  }

  test("with no verifier", async () => {
    assert.match((await assertStillValid({}, pair.verifier, pair.challenge)).text, /missing/);
  });

  test("with a verifier for a code without a challenge (RFC 9700 §2.1.1)", async () => {
    assert.match((await assertStillValid(newPkce().verifier)).text, /without a code_challenge/);
  });
});

describe("an exchange may leave redirect_uri out", () => {
  test("where the app authenticates with its secret", async () => {
    readTokens(await exchange(await gatepost.code(app, user)));
  });

  test("where PKCE is used", async () => {
    const pair = newPkce();
    const code = await gatepost.code(publicApp, user, pair.challenge);
    readTokens(await exchange(code, pair.verifier, publicApp));
  });

  test("or send it exactly as at authorize, with its query", async () => {
    const redirect_uri = "https://app.example/cb?mode=1&x=%2F";
    const code = await gatepost.code(app, user, { redirect_uri });
    readTokens(await exchange(code, { redirect_uri }));
  });
});

describe("between a code and its exchange", () => {
  test("disabling the user makes the exchange invalid_grant, for good", async () => {
    const leaver = await gatepost.createUser();
    const code = await gatepost.code(app, leaver);
    await gatepost.change(leaver, { status: "disabled" });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
    await gatepost.change(leaver, { status: "active" });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });

  test("a new password of the user makes the exchange invalid_grant", async () => {
    const careful = await gatepost.createUser();
    const code = await gatepost.code(app, careful);
    await gatepost.change(careful, { password: `${PASSWORD} 2` });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });

  test("deleting the user makes the exchange invalid_grant", async () => {
    const leaver = await gatepost.createUser();
    const code = await gatepost.code(app, leaver);
    const headers = bearer(gatepost.adminToken);
    await gatepost.api.send("DELETE", `/backend/user/${leaver.id}`, { headers });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });

  test("disabling the app makes the exchange invalid_client, for good", async () => {
    const short = await gatepost.createApp({ trusted: true });
    const code = await gatepost.code(short, user);
    await gatepost.change(short, { status: "disabled" });
    assertOAuthError(await exchange(code, {}, short), 401, "invalid_client");
    await gatepost.change(short, { status: "active" });
    assertOAuthError(await exchange(code, {}, short), 400, "invalid_grant");
  });

  test("taking a scope of the code from the user makes the exchange invalid_grant", async () => {
    const demoted = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const code = await gatepost.code(app, demoted);
    await gatepost.change(demoted, { scopes: ["consumer"] });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });
});

test("a code expires after GATEPOST_CODE_TTL", async () => {
  const quick = await startGatepost({ env: { GATEPOST_CODE_TTL: "1s" } });
  try {
    const [someone, at] = [await quick.createUser(), await quick.createApp({ trusted: true })];
    const fields = { grant_type: "authorization_code" };
    const inTime = await quick.code(at, someone);
    readTokens(await quick.token(at, { ...fields, code: inTime }));
    const tooLate = await quick.code(at, someone);
    await sleep(1100);
    assertOAuthError(await quick.token(at, { ...fields, code: tooLate }), 400, "invalid_grant");
  } finally {
    await quick.stop();
  }
});
