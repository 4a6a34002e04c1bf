import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../../src/base/id.ts";
import { generatePrivateKey, importKey } from "../../../src/base/jwt.ts";
import { sha256 } from "../../../src/base/secret.ts";
import { createTokenIssuer, newHandle } from "../../../src/api/authorization/token_issuer.ts";
import { ringOf } from "../../helpers/jwt.ts";

const NOW_MS = Date.UTC(2030, 0, 1);
const TTL_MS = 3_600_000;
const key = importKey("k1", "ES256", await generatePrivateKey("ES256"));

function createIssuer(pageKey: Uint8Array = Buffer.alloc(32, 1)) {
  return createTokenIssuer({
    issuer: "https://as.example",
    keys: ringOf(key),
    config: { accessTokenTtlMs: TTL_MS, refreshTokenTtlMs: TTL_MS },
    pageKey,
  });
}

/** A new refresh token, and what is stored of it. */
function refreshToken(grantId: string, nowMs = NOW_MS, tokens = createIssuer()) {
  const app = { id: newId("a", NOW_MS), grants: ["refresh_token"] } as const;
  const grant = { id: grantId, user: null, scopes: [] };
  const { issued: { refresh_token: token = "" }, stored } = tokens.makeTokens(grant, app, nowMs);
  return { token, hash: stored.refresh, untilMs: stored.refreshUntilMs };
}

test("a refresh token expires after its TTL, and at most twelve TTLs after its grant", () => {
  const grantId = newId("g", NOW_MS);
  const madeAtMs = parseInt(grantId.slice(1, 10), 36);
  const livesAt = (ageMs: number) => refreshToken(grantId, madeAtMs + ageMs).untilMs - madeAtMs;
  assert.equal(livesAt(0), TTL_MS);
  assert.equal(livesAt(11 * TTL_MS), 12 * TTL_MS);
  assert.equal(livesAt(11.5 * TTL_MS), 12 * TTL_MS);
});

test("no refresh token is made twelve TTLs after the grant", () => {
  const grantId = newId("g", NOW_MS);
  const madeAtMs = parseInt(grantId.slice(1, 10), 36);
  const made = refreshToken(grantId, madeAtMs + 12 * TTL_MS);
  assert.deepEqual(made, { token: "", hash: undefined, untilMs: 0 });
});

test("a refresh token is found by the hash of its whole text, and proven genuine", () => {
  const grantId = newId("g", NOW_MS);
  const { token, hash } = refreshToken(grantId);
  assert.deepEqual(hash, sha256(token));
  const handle = createIssuer().parseRefreshToken(token);
  assert.partialDeepStrictEqual(handle, { grantId, hash });
  assert.equal(handle?.isGenuine?.(), true);
});

test("a refresh token of version 0.1.0 can be found, but has no proof", () => {
  const grantId = newId("g", NOW_MS);
  const { token, hash } = newHandle(grantId);
  assert.deepEqual(createIssuer().parseRefreshToken(token), { grantId, hash });
});

describe("a refresh token is refused where it was not issued here:", () => {
  const { token } = refreshToken(newId("g", NOW_MS));
  const other = newId("g", NOW_MS);
  const service = createIssuer(Buffer.alloc(32, 2));
  const table: [what: string, text: string][] = [
    ["an empty text", ""],
    ["a proof alone", token.slice(-22)],
    ["a token with another proof", token.slice(0, -1) + (token.endsWith("A") ? "B" : "A")],
    ["a token with another secret", token.slice(0, 30) + "AAAA" + token.slice(34)],
    ["a token with another grant", other + token.slice(other.length)],
    ["a token of another service", refreshToken(other, NOW_MS, service).token],
    ["a token with one more character", `${token}A`],
    ["a token without its last character", token.slice(0, -1)],
  ];
  for (const [what, text] of table) {
    test(what, () => {
      const handle = createIssuer().parseRefreshToken(text);
      assert.ok(!handle || handle.isGenuine?.() === false);
    });
  }
});
