import { ID_LENGTH, idTimeMs, isId } from "../../base/id.ts";
import { createJwtSigner, MAX_JWT_LENGTH, type SigningKey } from "../../base/jwt.ts";
import { equalText, hmac, newSecret, sha256 } from "../../base/secret.ts";
import { accessTokenClaims, type AccessTokenInput, ACCESS_TOKEN_TYPE } from "../../oauth/claims.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { Services } from "../../services.ts";
import type { RefreshHandle } from "../../store/grants.ts";

/** Makes tokens; storing what must be stored is the caller's part, before it responds. */
export type TokenIssuer = ReturnType<typeof createTokenIssuer>;

/** A chain of refresh tokens ends after so many of their lifetimes. */
const CHAIN_LIFETIMES = 12;
/** Base64url digits, 132 bits. */
const PROOF_LENGTH = 22;

/** Makes an issuer of tokens; with `pageKey` refresh tokens prove that they were issued here. */
export function createTokenIssuer(
  { issuer, keys, config, pageKey }: Pick<Services, "issuer" | "keys"> & {
    readonly config: Pick<Services["config"], "accessTokenTtlMs" | "refreshTokenTtlMs">;
    readonly pageKey: Uint8Array;
  },
) {
  const { accessTokenTtlMs: ttlMs, refreshTokenTtlMs } = config;
  let signer: { readonly key: SigningKey; readonly sign: ReturnType<typeof createJwtSigner> };
  const proofOf = (token: string) => hmac(pageKey, `refresh ${token}`).slice(0, PROOF_LENGTH);

  return {
    /** Throws OAuthError `invalid_scope` where the scopes make a token that would be refused. */
    accessToken(input: Omit<AccessTokenInput, "issuer" | "ttlMs">) {
      const { claims, expiresAtMs } = accessTokenClaims({ ...input, issuer, ttlMs });
      const key = keys.signing();
      if (signer?.key !== key) signer = { key, sign: createJwtSigner(ACCESS_TOKEN_TYPE, key) };
      const token = signer.sign(claims);
      if (token.length <= MAX_JWT_LENGTH) return { token, expiresAtMs };
      throw new OAuthError("invalid_scope", "The scopes do not fit into one token: too many.");
    },
    /** Makes a refresh token; only its hash is stored. */
    refreshToken(grantId: string, nowMs: number) {
      const unproven = newHandle(grantId).token;
      const token = unproven + proofOf(unproven);
      const chainEndMs = idTimeMs(grantId) + CHAIN_LIFETIMES * refreshTokenTtlMs;
      const untilMs = Math.min(nowMs + refreshTokenTtlMs, chainEndMs);
      return { token, hash: sha256(token), untilMs };
    },
    /** Takes a presented refresh token apart; undefined when it cannot have been issued here. */
    parseRefreshToken(token: string): RefreshHandle | undefined {
      const old = parseHandle(token); // as 0.1.0 issued them
      if (old) return { ...old, isGenuine: false };
      const unproven = token.slice(0, -PROOF_LENGTH);
      const handle = parseHandle(unproven);
      if (!handle || !equalText(token.slice(-PROOF_LENGTH), proofOf(unproven))) return undefined;
      return { grantId: handle.grantId, hash: sha256(token), isGenuine: true };
    },
  };
}

const SECRET_LENGTH = 43;

/**
 * A new code, or the beginning of a refresh token: the grant's id, so that its row is found without
 * a search, and 256 random bits, of which only the SHA-256 is kept.
 */
export function newHandle(grantId: string) {
  const token = grantId + newSecret();
  return { token, hash: sha256(token) };
}

/** The grant that a presented code names, and its hash; undefined where it cannot be a code. */
export function parseHandle(token: string) {
  const grantId = token.slice(0, ID_LENGTH);
  const isHandle = isId("g", grantId) && token.length === ID_LENGTH + SECRET_LENGTH &&
    /^[\w-]+$/.test(token);
  return isHandle ? { grantId, hash: sha256(token) } : undefined;
}
