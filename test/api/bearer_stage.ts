import type { TestContext } from "node:test";
import { createTokenIssuer } from "../../src/api/authorization/token_issuer.ts";
import { createBearer } from "../../src/api/bearer.ts";
import { createIssuerTokens } from "../../src/api/issuer_tokens.ts";
import { newId } from "../../src/base/id.ts";
import { generatePrivateKey, importKey } from "../../src/base/jwt.ts";
import { accessTokenClaims } from "../../src/oauth/claims.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { createUses } from "../../src/store/uses.ts";
import { openDatabase } from "../helpers/database.ts";
import { ringOf, signJwt } from "../helpers/jwt.ts";

const ISSUER = "https://as.example/base";
export const NOW_MS = Date.UTC(2026, 0, 1);
export const TTL_MS = 3_600_000;

/** The key k1 of the service. */
export const key = importKey("k1", "ES256", await generatePrivateKey("ES256"));

/** Opens the bearer of a new database, with a clock that stands at `NOW_MS`. */
export async function open(t: TestContext, accessTokenTtlMs = TTL_MS) {
  const database = openDatabase(t);
  const clock = { nowMs: NOW_MS };
  const now = () => clock.nowMs;
  const revocations = await loadRevocations(database, now);
  const kids = new Set(["k1"]);
  const keys = ringOf(key, (kid) => kids.has(kid) ? key : undefined);
  const config = { accessTokenTtlMs, refreshTokenTtlMs: TTL_MS, authorizationServer: true };
  const uses = createUses(database, now);
  const pageKey = new Uint8Array(32);
  const tokens = createTokenIssuer({ issuer: ISSUER, keys, config, pageKey });
  const createFor = (issuer: string) => {
    const fetchDocument = () => Promise.reject(new Error("not needed here"));
    const issuerTokens = createIssuerTokens({ database, revocations, issuer, fetchDocument, now });
    return createBearer({
      issuer, keys, tokens, issuerTokens, revocations, uses, database, now, config,
    });
  };
  return {
    bearer: createFor(ISSUER),
    createFor,
    clock,
    database,
    tokens,
    kids,
    onRefresh: (refresh: () => Promise<void>) => t.mock.method(keys, "refresh", refresh),
    issue(more: Partial<ReturnType<typeof input>> = {}, by = key) {
      const all = { ...input(), ...more };
      const { claims, expiresAtMs } = accessTokenClaims(all);
      return { token: signJwt("at+jwt", claims, by), expiresAtMs, grantId: all.grantId };
    },
    async revoke(target: string) {
      await database.write([revocation(target, NOW_MS + TTL_MS, NOW_MS + TTL_MS)]);
      await revocations.refresh();
    },
  };
}

/** What the claims of a valid token are made of. */
export function input() {
  return {
    issuer: ISSUER,
    sub: "u1",
    clientId: "a1",
    grantId: newId("g", NOW_MS),
    scopes: ["consumer", "orders"],
    issuedAtMs: NOW_MS,
    ttlMs: TTL_MS,
  };
}
