import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readIssuerToken } from "../../src/oauth/issuer_token.ts";

type Members = Readonly<Record<string, unknown>>;

const BASE_URL = "https://api.example.com";
const NOW_MS = Date.UTC(2026, 10, 23, 12, 0, 0, 500);
const NOW_S = Math.floor(NOW_MS / 1000);
const ISSUER =
  { audience: null, scopes: ["consumer", "orders"], scopeClaim: "scope", jwtType: false } as const;
const HEADER = { alg: "ES256", typ: "at+jwt", kid: "k1" };
const CLAIMS = {
  iss: "https://id.example.com", sub: "alice", aud: BASE_URL, client_id: "c", jti: "j",
  iat: NOW_S - 10, exp: NOW_S + 60, scope: "orders profile",
};

function read(claims: Members = {}, header: Members = {}, issuer: Members = {}) {
  const jwt = { header: { ...HEADER, ...header }, claims: { ...CLAIMS, ...claims } };
  return readIssuerToken(jwt, { ...ISSUER, ...issuer }, BASE_URL, NOW_MS);
}

test("readIssuerToken() returns the contents of an RFC 9068 token", () => {
  assert.deepEqual(read(), {
    kid: "k1", sub: "alice", scopes: ["orders"], expiresAtMs: CLAIMS.exp * 1000,
  });
});

describe("readIssuerToken() accepts", () => {
  const GOOD: readonly (readonly [what: string, claims: Members, header?: Members,
    issuer?: Members])[] = [
    ["application/at+jwt", {}, { typ: "application/at+jwt" }],
    ["a type in capitals", {}, { typ: "AT+JWT" }],
    ["application/at+jwt in capitals", {}, { typ: "APPLICATION/AT+JWT" }],
    ["typ JWT if the issuer's record allows it", {}, { typ: "JWT" }, { jwtType: true }],
    ["at+jwt if the record allows JWT", {}, {}, { jwtType: true }],
    ["other header parameters", {}, { x5t: "x", nonce: "x", jku: "https://evil.example" }],
    ["one of several audiences", { aud: ["account", BASE_URL] }],
    ["the record's audience", { aud: "api://orders" }, {}, { audience: "api://orders" }],
    ["no iat", { iat: undefined }],
    ["a clock that is 60 s ahead", { iat: NOW_MS / 1000 + 60, nbf: NOW_MS / 1000 + 60 }],
    ["fractions of a second", { exp: NOW_S + 0.75, iat: NOW_S - 0.5 }],
    ["a subject of 255 characters", { sub: "x".repeat(255) }],
    ["a subject in any script", { sub: "ålice|日本" }],
  ];
  for (const [what, ...parts] of GOOD) {
    test(what, () => assert.equal(read(...parts)?.kid, "k1"));
  }
});

describe("readIssuerToken() refuses", () => {
  const headers: readonly (readonly [what: string, header: Members])[] = [
    ["typ JWT", { typ: "JWT" }],
    ["typ id_token", { typ: "id_token+jwt" }],
    ["typ logout+jwt", { typ: "logout+jwt" }],
    ["typ dpop+jwt", { typ: "dpop+jwt" }],
    ["typ text/at+jwt", { typ: "text/at+jwt" }],
    ["a typ with two prefixes", { typ: "application/application/at+jwt" }],
    ["no typ", { typ: undefined }],
    ["a typ in a list", { typ: ["at+jwt"] }],
    ["no kid", { kid: undefined }],
    ["kid null", { kid: null }],
    ["a list of kids", { kid: ["k1"] }],
    ["crit", { crit: ["exp"] }],
    ["an empty crit", { crit: [] }],
    ["crit null", { crit: null }],
    ["crit b64", { crit: ["b64"], b64: false }],
    ["a nested token", { cty: "JWT" }],
  ];
  for (const [what, header] of headers) {
    test(what, () => assert.equal(read({}, header), undefined));
  }

  const claims: readonly (readonly [what: string, claims: Members])[] = [
    ["another audience", { aud: "https://other.example" }],
    ["an audience with the same beginning", { aud: `${BASE_URL}/` }],
    ["an audience inside another text", { aud: `x ${BASE_URL}` }],
    ["no audience", { aud: undefined }],
    ["an empty list of audiences", { aud: [] }],
    ["an audience in a nested list", { aud: [[BASE_URL]] }],
    ["an audience as a member's name", { aud: { [BASE_URL]: true } }],
    ["aud null", { aud: null }],
    ["an exp that has passed", { exp: NOW_S }],
    ["an exp that is now", { exp: NOW_MS / 1000 }],
    ["no exp", { exp: undefined }],
    ["an exp that is a string", { exp: String(NOW_S + 60) }],
    ["an exp that is null", { exp: null }],
    ["an exp beyond all dates", { exp: 1e300 }],
    ["an exp that RFC 3339 cannot express", { exp: 253_402_300_800 }],
    ["an exp in milliseconds", { exp: NOW_MS + 60_000_000_000_000 }],
    ["a negative exp", { exp: -1 }],
    ["an nbf 61 s ahead", { nbf: NOW_S + 62 }],
    ["an iat 61 s ahead", { iat: NOW_S + 62 }],
    ["an nbf that is a string", { nbf: "0" }],
    ["an nbf that is null", { nbf: null }],
    ["an iat that is a string", { iat: "0" }],
    ["no subject", { sub: undefined }],
    ["an empty subject", { sub: "" }],
    ["a subject that is a number", { sub: 7 }],
    ["a list of subjects", { sub: ["alice"] }],
    ["a subject of 256 characters", { sub: "x".repeat(256) }],
    ["a subject with a line feed", { sub: "alice\n" }],
    ["a subject with NUL", { sub: "a\0b" }],
    ["a subject with a mark that reverses text", { sub: "a\u{202e}b" }],
    ["a token that is bound to a key (RFC 7800)", { cnf: { jkt: "x" } }],
    ["cnf null", { cnf: null }],
  ];
  for (const [what, change] of claims) {
    test(what, () => assert.equal(read(change), undefined));
  }

  test("the base URL if the record has another audience", () => {
    assert.equal(read({}, {}, { audience: "api://orders" }), undefined);
  });
});

describe("readIssuerToken() finds the scopes", () => {
  const CASES: readonly (readonly [claims: Members, found: readonly string[], issuer?: Members])[] =
    [
      [{ scope: "consumer orders" }, ["consumer", "orders"]],
      [{ scope: "orders,consumer" }, []],
      [{ scope: "backend admin" }, []],
      [{ scope: "backend orders" }, ["backend", "orders"], { scopes: ["backend", "orders"] }],
      [{ scope: ["orders"] }, ["orders"]],
      [{ scope: "" }, []],
      [{ scope: undefined }, []],
      [{ scope: null }, []],
      [{ scope: 7 }, []],
      [{ scope: { orders: true } }, []],
      [{ scope: [["orders"]] }, []],
      [{ scope: "Orders" }, []],
      [{ scp: "orders" }, ["orders"], { scopeClaim: "scp" }],
      [{ scp: ["orders", 7, "consumer"] }, ["consumer", "orders"], { scopeClaim: "scp" }],
      [{ roles: ["orders"], scope: "consumer" }, ["orders"], { scopeClaim: "roles" }],
      [{ scope: "consumer" }, [], { scopeClaim: "roles" }],
    ];
  for (const [claims, found, issuer] of CASES) {
    test(`in ${JSON.stringify(claims)} by ${JSON.stringify(issuer ?? {})}`, () => {
      assert.deepEqual(read(claims, {}, issuer)?.scopes, found);
    });
  }
});
