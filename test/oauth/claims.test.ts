import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { accessTokenClaims, parseAccessClaims } from "../../src/oauth/claims.ts";

const ISSUER = "https://as.example/base";
const NOW_MS = Date.UTC(2026, 0, 1, 0, 0, 0, 789);
const grantId = newId("g", NOW_MS);
const INPUT = {
  issuer: ISSUER,
  sub: "u1",
  clientId: "a1",
  grantId,
  scopes: ["consumer", "orders"],
  issuedAtMs: NOW_MS,
  ttlMs: 3_600_000,
};

test("accessTokenClaims() returns the claims of RFC 9068 §2.2, times in whole seconds", () => {
  const { claims } = accessTokenClaims(INPUT);
  const { jti, ...rest } = claims;
  const iat = Math.floor(NOW_MS / 1000);
  assert.deepEqual(rest, {
    iss: ISSUER,
    sub: "u1",
    aud: ISSUER,
    client_id: "a1",
    iat,
    exp: iat + 3600,
    scope: "consumer orders",
  });
  assert.equal(typeof jti, "string");
});

test("accessTokenClaims() returns the same expiry as exp", () => {
  const { claims, expiresAtMs } = accessTokenClaims(INPUT);
  assert.equal(expiresAtMs, Number(claims["exp"]) * 1000);
});

test("accessTokenClaims() never sets iat in the future", () => {
  assert.ok(Number(accessTokenClaims(INPUT).claims["iat"]) * 1000 <= NOW_MS);
});

test("accessTokenClaims() gives a token a lifetime of at least a second", () => {
  const { claims } = accessTokenClaims({ ...INPUT, ttlMs: 1 });
  assert.equal(Number(claims["exp"]) - Number(claims["iat"]), 1);
});

test("accessTokenClaims() gives each token a unique id that begins with its grant's id", () => {
  const ids = new Set<string>();
  for (let count = 0; count < 1_000; count++) {
    const jti = String(accessTokenClaims(INPUT).claims["jti"]);
    assert.ok(jti.startsWith(grantId) && /^[0-9a-z]+$/.test(jti));
    ids.add(jti);
  }
  assert.equal(ids.size, 1_000);
});

test("parseAccessClaims() reads what accessTokenClaims() wrote", () => {
  const { claims, expiresAtMs } = accessTokenClaims(INPUT);
  assert.deepEqual(parseAccessClaims(claims, ISSUER, NOW_MS), {
    sub: "u1",
    kind: "user",
    clientId: "a1",
    scopes: ["consumer", "orders"],
    grantId,
    jti: claims["jti"],
    issuedAtMs: Math.floor(NOW_MS / 1000) * 1000,
    expiresAtMs,
  });
});

test("parseAccessClaims() recognizes an app by its id", () => {
  const { claims } = accessTokenClaims({ ...INPUT, sub: "a1" });
  assert.equal(parseAccessClaims(claims, ISSUER, NOW_MS)?.kind, "app");
});

test("parseAccessClaims() reads an empty scope as no scopes", () => {
  const { claims } = accessTokenClaims({ ...INPUT, scopes: [] });
  assert.deepEqual(parseAccessClaims(claims, ISSUER, NOW_MS)?.scopes, []);
});

test("parseAccessClaims() accepts a token until its last millisecond (RFC 7519 §4.1.4)", () => {
  const { claims, expiresAtMs } = accessTokenClaims(INPUT);
  assert.ok(parseAccessClaims(claims, ISSUER, expiresAtMs - 1));
  assert.equal(parseAccessClaims(claims, ISSUER, expiresAtMs), undefined);
  assert.equal(parseAccessClaims(claims, ISSUER, expiresAtMs + 1), undefined);
});

describe("parseAccessClaims() refuses (RFC 9068 §4)", () => {
  const { claims } = accessTokenClaims(INPUT);
  const table: [what: string, change: Record<string, unknown>][] = [
    ["another issuer", { iss: "https://evil.example/base" }],
    ["an issuer that differs in a slash", { iss: `${ISSUER}/` }],
    ["an issuer in another case", { iss: "https://AS.example/base" }],
    ["no issuer", { iss: undefined }],
    ["a list of audiences, which this service never issues", { aud: [ISSUER] }],
    ["no audience", { aud: undefined }],
    ["no exp", { exp: undefined }],
    ["an exp that is a string", { exp: "9999999999" }],
    ["an exp that is null", { exp: null }],
    ["no iat", { iat: undefined }],
    ["no sub", { sub: undefined }],
    ["a sub that is a list", { sub: ["u1"] }],
    ["a sub that is neither a user nor an app", { sub: "login" }],
    ["an empty sub", { sub: "" }],
    ["no client_id", { client_id: undefined }],
    ["no jti", { jti: undefined }],
    ["a jti that is a number", { jti: 1 }],
    ["a jti without a grant", { jti: "0123456789abcdef0123456789abcdef0123456789" }],
    ["a jti that is only a grant's id", { jti: grantId }],
    ["a jti that begins with another kind's id", { jti: `u${grantId.slice(1)}0123456789abcdef` }],
    ["no scope", { scope: undefined }],
    ["a scope that is a list", { scope: ["consumer"] }],
    ["a scope with two spaces", { scope: "consumer  orders" }],
    ["a scope with a comma", { scope: "consumer,orders" }],
    ["a scope with a quote", { scope: 'consumer"' }],
  ];
  for (const [what, change] of table) {
    test(what, () => {
      assert.equal(parseAccessClaims({ ...claims, ...change }, ISSUER, NOW_MS), undefined);
    });
  }
});

test("parseAccessClaims() returns the audience of a token for another resource", () => {
  const { claims } = accessTokenClaims(INPUT);
  const aud = "https://mcp.example/mcp";
  assert.equal(parseAccessClaims({ ...claims, aud }, ISSUER, NOW_MS)?.audience, aud);
  const own = parseAccessClaims(claims, ISSUER, NOW_MS);
  assert.ok(own && !("audience" in own));
});

test("a token has the app's metadata URL as client_id, and the app's id besides", () => {
  const metadataUrl = "https://app.example/client.json";
  const { claims } = accessTokenClaims({ ...INPUT, metadataUrl });
  assert.equal(claims.client_id, metadataUrl);
  assert.equal(parseAccessClaims(claims, ISSUER, NOW_MS)?.clientId, INPUT.clientId);
});
