import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { accessTokenClaims, parseAccessClaims } from "../../src/oauth/claims.ts";

const ISSUER = "https://gate.example";
const NOW_MS = 1_700_000_000_400;

const input = {
  issuer: ISSUER,
  sub: newId("u", NOW_MS),
  clientId: newId("a", NOW_MS),
  grantId: newId("g", NOW_MS),
  scopes: ["consumer", "orders"],
  issuedAtMs: NOW_MS,
  ttlMs: 3_600_000,
};
const { claims, expiresAtMs } = accessTokenClaims(input);

describe("accessTokenClaims() (RFC 9068 §2.2)", () => {
  test("has the claims of an access token, with times in whole seconds", () => {
    const { jti, ...rest } = claims;
    assert.deepEqual(rest, {
      iss: ISSUER,
      sub: input.sub,
      aud: ISSUER,
      client_id: input.clientId,
      iat: 1_700_000_000,
      exp: 1_700_003_600,
      scope: "consumer orders",
    });
    assert.match(String(jti), /^\w+$/);
  });

  test("tells the end in milliseconds, as the token has it", () => {
    assert.equal(expiresAtMs, 1_700_003_600_000);
  });

  test("gives each token of a grant another jti", () => {
    assert.notEqual(accessTokenClaims(input).claims["jti"], claims["jti"]);
  });
});

describe("parseAccessClaims() (RFC 9068 §4)", () => {
  test("reads what accessTokenClaims() made", () => {
    assert.deepEqual(parseAccessClaims(claims, ISSUER, NOW_MS), {
      sub: input.sub,
      kind: "user",
      clientId: input.clientId,
      scopes: ["consumer", "orders"],
      grantId: input.grantId,
      jti: claims["jti"],
      expiresAtMs,
    });
  });

  test("tells an app that acts for itself by its id", () => {
    const caller = parseAccessClaims({ ...claims, sub: input.clientId }, ISSUER, NOW_MS);
    assert.equal(caller?.kind, "app");
  });

  test("reads an empty scope as no scopes", () => {
    assert.deepEqual(parseAccessClaims({ ...claims, scope: "" }, ISSUER, NOW_MS)?.scopes, []);
  });

  const ends: [beforeMs: number, isGood: boolean][] = [[1, true], [0, false], [-1, false]];
  for (const [beforeMs, isGood] of ends) {
    test(`${isGood ? "takes" : "refuses"} it ${beforeMs} ms before its end`, () => {
      const caller = parseAccessClaims(claims, ISSUER, expiresAtMs - beforeMs);
      assert.equal(caller !== undefined, isGood);
    });
  }

  const refused: [what: string, change: Readonly<Record<string, unknown>>][] = [
    ["another issuer", { iss: "https://other.example" }],
    ["the issuer with a slash", { iss: `${ISSUER}/` }],
    ["no issuer", { iss: undefined }],
    ["another audience", { aud: "https://other.example" }],
    ["the app as audience", { aud: input.clientId }],
    ["no audience", { aud: undefined }],
    ["no end", { exp: undefined }],
    ["an end in text", { exp: "1700003600" }],
    ["an end that is NaN", { exp: Number.NaN }],
    ["an end that never comes", { exp: Number.POSITIVE_INFINITY }],
    ["an end that is true", { exp: true }],
    ["no time of issue", { iat: undefined }],
    ["no subject", { sub: undefined }],
    ["an empty subject", { sub: "" }],
    ["a subject of another kind", { sub: newId("s", NOW_MS) }],
    ["a subject that is no text", { sub: 7 }],
    ["no app", { client_id: undefined }],
    ["an app that is no text", { client_id: [input.clientId] }],
    ["no jti", { jti: undefined }],
    ["a jti that names no grant", { jti: "x".repeat(41) }],
    ["a jti of nothing but the grant", { jti: input.grantId }],
    ["no scope", { scope: undefined }],
    ["a list of scopes", { scope: ["consumer"] }],
    ["a scope that is none", { scope: 'con"sumer' }],
    ["two spaces between scopes", { scope: "consumer  orders" }],
  ];
  for (const [what, change] of refused) {
    test(`refuses ${what}`, () => {
      assert.equal(parseAccessClaims({ ...claims, ...change }, ISSUER, NOW_MS), undefined);
    });
  }
});
