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

test("a refresh token lives for its own time, and no longer than twelve from its grant on", () => {
  const grantId = newId("g", NOW_MS);
  const madeAtMs = parseInt(grantId.slice(1, 10), 36);
  const livesAt = (ageMs: number) => refreshToken(grantId, madeAtMs + ageMs).untilMs - madeAtMs;
  assert.equal(livesAt(0), TTL_MS);
  assert.equal(livesAt(11 * TTL_MS), 12 * TTL_MS);
  assert.equal(livesAt(11.5 * TTL_MS), 12 * TTL_MS);
});

test("no refresh token is made once twelve lifetimes have passed", () => {
  const grantId = newId("g", NOW_MS);
  const madeAtMs = parseInt(grantId.slice(1, 10), 36);
  const made = refreshToken(grantId, madeAtMs + 12 * TTL_MS);
  assert.deepEqual(made, { token: "", hash: undefined, untilMs: 0 });
});

test("a refresh token is known again, by the hash of its whole text", () => {
  const grantId = newId("g", NOW_MS);
  const { token, hash } = refreshToken(grantId);
  assert.deepEqual(hash, sha256(token));
  const handle = createIssuer().parseRefreshToken(token);
  assert.partialDeepStrictEqual(handle, { grantId, hash });
  assert.equal(handle?.isGenuine?.(), true);
});

test("a refresh token as 0.1.0 issued them is looked up, and proves nothing", () => {
  const grantId = newId("g", NOW_MS);
  const { token, hash } = newHandle(grantId);
  assert.deepEqual(createIssuer().parseRefreshToken(token), { grantId, hash });
});

describe("what was not issued here is not a refresh token:", () => {
  const { token } = refreshToken(newId("g", NOW_MS));
  const other = newId("g", NOW_MS);
  const service = createIssuer(Buffer.alloc(32, 2));
  const table: [what: string, text: string][] = [
    ["nothing", ""],
    ["a proof alone", token.slice(-22)],
    ["one with another proof", token.slice(0, -1) + (token.endsWith("A") ? "B" : "A")],
    ["one with another secret", token.slice(0, 30) + "AAAA" + token.slice(34)],
    ["one with another grant", other + token.slice(other.length)],
    ["one of another service", refreshToken(other, NOW_MS, service).token],
    ["one with more behind", `${token}A`],
    ["one without its last character", token.slice(0, -1)],
  ];
  for (const [what, text] of table) {
    test(what, () => {
      const handle = createIssuer().parseRefreshToken(text);
      assert.ok(!handle || handle.isGenuine?.() === false);
    });
  }
});
