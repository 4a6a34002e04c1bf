import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  assertOAuthError,
  bearer,
  type Gatepost,
  newPkce,
  PASSWORD,
  readTokens,
  startGatepost,
  type TestApp,
  type TestUser,
  type TokenResponse,
} from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";

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
  test("and then again is invalid_grant, and ends what came of it at once", async () => {
    const code = await gatepost.code(app, user);
    const tokens = readTokens(await exchange(code));
    assertOAuthError(await exchange(code), 400, "invalid_grant");
    await assertRevoked(tokens);
  });

  test("and again ends what was refreshed meanwhile, too", async () => {
    const code = await gatepost.code(app, user);
    const first = readTokens(await exchange(code));
    const second = readTokens(await refresh(first));
    assertOAuthError(await exchange(code), 400, "invalid_grant");
    assert.equal(await gatepost.isAlive(first.access_token), false);
    await assertRevoked(second);
  });

  test("and a replay that is wrong in something else is a replay all the same", async () => {
    const code = await gatepost.code(app, user);
    const tokens = readTokens(await exchange(code));
    const redirect = { redirect_uri: "https://app.example/other" };
    assertOAuthError(await exchange(code, redirect), 400, "invalid_grant");
    await assertRevoked(tokens);
  });

  test("and the replay by another app ends nothing", async () => {
    const code = await gatepost.code(app, user);
    const tokens = readTokens(await exchange(code));
    assertOAuthError(await exchange(code, {}, otherApp), 400, "invalid_grant");
    await assertAlive(tokens);
  });

  test("and its replay ends no other grant of the same user and app", async () => {
    const code = await gatepost.code(app, user);
    const other = readTokens(await exchange(await gatepost.code(app, user)));
    readTokens(await exchange(code));
    await exchange(code);
    await assertAlive(other);
  });

  test("by exactly one of 20 at once, and then everything is revoked", async () => {
    const code = await gatepost.code(app, user);
    const responses = await Promise.all(Array.from({ length: 20 }, () => exchange(code)));
    const won = responses.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const response of responses) {
      if (response.status !== 200) assertOAuthError(response, 400, "invalid_grant");
    }
    for (const response of won) await assertRevoked(readTokens(response));
  });

  test("by exactly one of 20 at once of a public app with PKCE", async () => {
    const pair = newPkce();
    const code = await gatepost.code(publicApp, user, pair.challenge);
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => exchange(code, pair.verifier, publicApp)),
    );
    const won = responses.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const response of won) await assertRevoked(readTokens(response), publicApp);
  });
});

describe("a code that is made up is invalid_grant", () => {
  const cases: [what: string, make: (code: string) => string][] = [
    ["one character", () => "x"],
    ["no code of ours", () => "SplxlOBeZQQYbYS6WxSbIA"],
    ["the code without its last character", (code) => code.slice(0, -1)],
    ["the code with a character more", (code) => `${code}A`],
    ["the code in upper case", (code) => code.toUpperCase()],
    ["the code with its last character changed",
      (code) => code.slice(0, -1) + (code.endsWith("A") ? "B" : "A")],
    ["the code with a space behind", (code) => `${code} `],
    ["the code with a NUL behind", (code) => `${code}\0`],
    ["a long one", () => "A".repeat(10_000)],
    ["SQL", () => "' OR 1=1 --"],
  ];
  for (const [what, make] of cases) {
    test(`${what}, and the true one stays good`, async () => {
      const code = await gatepost.code(app, user);
      assertOAuthError(await exchange(make(code)), 400, "invalid_grant");
      await assertAlive(readTokens(await exchange(code)));
    });
  }

  test("a refresh token", async () => {
    const tokens = readTokens(await exchange(await gatepost.code(app, user)));
    assertOAuthError(await exchange(tokens.refresh_token), 400, "invalid_grant");
    await assertAlive(tokens);
  });
});

describe("a failed exchange is invalid_grant and does not burn the code (RFC 6749 §4.1.3)", () => {
  async function assertNotBurnt(wrong: Fields, right: Fields = {}, parameters: Fields = {}) {
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
    ["a slash behind the redirect URI", "https://app.example/cb/"],
    ["an empty query behind it", "https://app.example/cb?"],
    ["its host in upper case", "https://APP.example/cb"],
    ["its default port", "https://app.example:443/cb"],
    ["an escape for a letter", "https://app.example/%63b"],
    ["a space behind it", "https://app.example/cb "],
  ];
  for (const [what, redirectUri] of redirects) {
    test(`with ${what}`, async () => {
      await assertNotBurnt({ redirect_uri: redirectUri }, { redirect_uri: app.redirectUri });
    });
  }

  const pair = newPkce();
  const text = pair.verifier.code_verifier;
  const verifiers: [what: string, verifier: string, description: RegExp][] = [
    ["an empty verifier", "", /missing/],
    ["another verifier", newPkce().verifier.code_verifier, /does not fit/],
    ["the challenge for a verifier", pair.challenge.code_challenge, /does not fit/],
    ["a verifier cut short", text.slice(0, 42), /43 to 128/],
    ["a verifier with more behind", `${text}A`, /does not fit/],
    ["a verifier of 129 characters", "A".repeat(129), /43 to 128/],
    ["a padded verifier", `${text}=`, /letters, digits and -\._~/],
  ];
  for (const [what, code_verifier, description] of verifiers) {
    test(`with ${what}, which the description says (RFC 7636 §4.6)`, async () => {
      const response = await assertNotBurnt({ code_verifier }, pair.verifier, pair.challenge);
      assert.match(response.text, description);
    });
  }

  test("with no verifier", async () => {
    assert.match((await assertNotBurnt({}, pair.verifier, pair.challenge)).text, /missing/);
  });

  test("with a verifier for a code without a challenge (RFC 9700 §2.1.1)", async () => {
    assert.match((await assertNotBurnt(newPkce().verifier)).text, /without a code_challenge/);
  });
});

describe("an exchange may leave redirect_uri out", () => {
  test("where the app proves itself with its secret", async () => {
    readTokens(await exchange(await gatepost.code(app, user)));
  });

  test("where PKCE is used", async () => {
    const pair = newPkce();
    const code = await gatepost.code(publicApp, user, pair.challenge);
    readTokens(await exchange(code, pair.verifier, publicApp));
  });

  test("and may send it as it was sent, queries and all", async () => {
    const redirect_uri = "https://app.example/cb?mode=1&x=%2F";
    const code = await gatepost.code(app, user, { redirect_uri });
    readTokens(await exchange(code, { redirect_uri }));
  });
});

describe("between a code and its exchange", () => {
  test("a disabled user makes it invalid_grant, for good", async () => {
    const leaver = await gatepost.createUser();
    const code = await gatepost.code(app, leaver);
    await gatepost.change(leaver, { status: "disabled" });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
    await gatepost.change(leaver, { status: "active" });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });

  test("a new password makes it invalid_grant", async () => {
    const careful = await gatepost.createUser();
    const code = await gatepost.code(app, careful);
    await gatepost.change(careful, { password: `${PASSWORD} 2` });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });

  test("a removed user makes it invalid_grant", async () => {
    const leaver = await gatepost.createUser();
    const code = await gatepost.code(app, leaver);
    const headers = bearer(gatepost.adminToken);
    await gatepost.api.send("DELETE", `/backend/user/${leaver.id}`, { headers });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });

  test("a disabled app makes it invalid_client, and the code does not come back", async () => {
    const short = await gatepost.createApp({ trusted: true });
    const code = await gatepost.code(short, user);
    await gatepost.change(short, { status: "disabled" });
    assertOAuthError(await exchange(code, {}, short), 401, "invalid_client");
    await gatepost.change(short, { status: "active" });
    assertOAuthError(await exchange(code, {}, short), 400, "invalid_grant");
  });

  test("a scope of it that the user loses makes it invalid_grant", async () => {
    const demoted = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const code = await gatepost.code(app, demoted);
    await gatepost.change(demoted, { scopes: ["consumer"] });
    assertOAuthError(await exchange(code), 400, "invalid_grant");
  });
});

test("a code expires, after GATEPOST_CODE_TTL", async () => {
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
