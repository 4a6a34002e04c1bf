import { ID_LENGTH, idTimeMs, isId } from "../../base/id.ts";
import { createJwtSigner, MAX_JWT_LENGTH, type SigningKey } from "../../base/jwt.ts";
import { createHmacSha256, equalBytes, newSecret, sha256 } from "../../base/secret.ts";
import type { App } from "../../oauth/app.ts";
import { accessTokenClaims, ACCESS_TOKEN_TYPE } from "../../oauth/claims.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { CONSOLE_APP, PERSONAL_PREFIX } from "../../oauth/principal.ts";
import type { Target } from "../../oauth/resource.ts";
import type { Services } from "../../services.ts";
import type { Grant, RefreshHandle } from "../../store/grants.ts";

/** Makes tokens. The caller must store the part `stored` before it responds. */
export type TokenIssuer = ReturnType<typeof createTokenIssuer>;

/** A chain of refresh tokens ends after this many lifetimes of one refresh token. */
const CHAIN_LIFETIMES = 12;
/** The console's lifetimes, however long others are: a window needs less time than a program. */
const CONSOLE_ACCESS_MS = 10 * 60_000;
const CONSOLE_CHAIN_MS = 12 * 3_600_000;
/** Base64url digits, 132 bits. */
const PROOF_LENGTH = 22;

/** Makes an issuer of tokens. An HMAC by `pageKey` proves that an opaque token was issued here. */
export function createTokenIssuer(
  { issuer, keys, config, pageKey }: Pick<Services, "issuer" | "keys"> & {
    readonly config: Pick<Services["config"], "accessTokenTtlMs" | "refreshTokenTtlMs">;
    readonly pageKey: Uint8Array;
  },
) {
  const { accessTokenTtlMs, refreshTokenTtlMs } = config;
  let signer: { readonly key: SigningKey; readonly sign: ReturnType<typeof createJwtSigner> };
  const opaque = createOpaqueTokens(pageKey);

  function sign(claims: ReturnType<typeof accessTokenClaims>["claims"]): string {
    const key = keys.signing();
    if (signer?.key !== key) signer = { key, sign: createJwtSigner(ACCESS_TOKEN_TYPE, key) };
    const token = signer.sign(claims);
    if (token.length <= MAX_JWT_LENGTH) return token;
    throw new OAuthError("invalid_scope", "The scopes are too many for one token.");
  }

  /** Undefined past the end of the chain: older tokens may be from a time of longer lifetimes. */
  function newRefreshToken(grantId: string, nowMs: number, isConsole: boolean) {
    const chainMs = isConsole ? CONSOLE_CHAIN_MS : CHAIN_LIFETIMES * refreshTokenTtlMs;
    const untilMs = Math.min(nowMs + refreshTokenTtlMs, idTimeMs(grantId) + chainMs);
    return untilMs > nowMs ? { token: opaque.make(grantId), untilMs } : undefined;
  }

  return {
    /**
     * Makes the tokens of a grant with these scopes: `issued` for the response, which has a refresh
     * token if the app may use one; `stored` for the database, which has only that token's hash.
     * Throws OAuthError `invalid_scope` if the scopes make the token too long to be accepted.
     */
    makeTokens(
      { id: grantId, user, scopes }: Pick<Grant, "id" | "user" | "scopes">,
      { id: clientId, grants, metadataUrl, resource }:
        Pick<App, "id" | "grants" | "metadataUrl"> & Target,
      nowMs: number,
    ) {
      const sub = user ?? clientId;
      const isConsole = clientId === CONSOLE_APP;
      const ttlMs = isConsole ? Math.min(CONSOLE_ACCESS_MS, accessTokenTtlMs) : accessTokenTtlMs;
      const parties = { issuer, audience: resource?.url, sub, clientId, metadataUrl };
      const input = { ...parties, grantId, scopes, issuedAtMs: nowMs, ttlMs };
      const { claims, expiresAtMs } = accessTokenClaims(input);
      const mayRefresh = grants.includes("refresh_token");
      const refresh = mayRefresh ? newRefreshToken(grantId, nowMs, isConsole) : undefined;
      return {
        issued: {
          access_token: sign(claims),
          token_type: "bearer",
          expires_in: claims.exp - claims.iat,
          refresh_token: refresh?.token,
          scope: claims.scope,
        },
        stored: {
          refresh: refresh && sha256(refresh.token),
          refreshUntilMs: refresh?.untilMs ?? 0,
          accessUntilMs: expiresAtMs,
        },
      };
    },
    /** Parses a presented refresh token; undefined if it does not have the form of one. */
    parseRefreshToken(token: string): RefreshHandle | undefined {
      return parseHandle(token) ?? opaque.parse(token); // the first as 0.1.0 issued them
    },
    makePersonalToken: (grantId: string) => opaque.make(grantId, PERSONAL_PREFIX),
    /** Parses a personal token; undefined if it was not issued here. Reads no database. */
    parsePersonalToken(token: string): RefreshHandle | undefined {
      const handle = opaque.parse(token, PERSONAL_PREFIX);
      return handle?.isGenuine() ? handle : undefined;
    },
  };
}

const SECRET_LENGTH = 43;

/**
 * Makes a code: the grant's id, by which the row is found, and 256 random bits. Only the SHA-256 of
 * the code is stored. A refresh token begins in the same way.
 */
export function newHandle(grantId: string) {
  const token = grantId + newSecret();
  return { token, hash: sha256(token) };
}

/** Returns the grant's id in a presented code, and the code's hash; undefined if it is no code. */
export function parseHandle(token: string) {
  const grantId = grantIdOf(token);
  return grantId === undefined ? undefined : { grantId, hash: sha256(token) };
}

function grantIdOf(token: string): string | undefined {
  const grantId = token.slice(0, ID_LENGTH);
  const isHandle = isId("g", grantId) && token.length === ID_LENGTH + SECRET_LENGTH &&
    /^[\w-]+$/.test(token);
  return isHandle ? grantId : undefined;
}

/** Makes and parses opaque tokens. An HMAC by this key proves that a token was issued here. */
export function createOpaqueTokens(key: Uint8Array) {
  const hmac = createHmacSha256(key);
  const proofOf = (token: string) => hmac(`refresh ${token}`).slice(0, PROOF_LENGTH);
  return {
    /** Makes a token: the prefix, the grant's id, 256 random bits, and an HMAC of all these. */
    make(grantId: string, prefix = ""): string {
      const unproven = prefix + grantId + newSecret();
      return unproven + proofOf(unproven);
    },
    /** Parses a token; undefined if its form is wrong. The caller must call `isGenuine`. */
    parse(token: string, prefix = "") {
      const [unproven, proof] = [token.slice(0, -PROOF_LENGTH), token.slice(-PROOF_LENGTH)];
      const grantId = grantIdOf(unproven.slice(prefix.length));
      if (grantId === undefined || !token.startsWith(prefix)) return undefined;
      const isGenuine = () => equalBytes(Buffer.from(proof), Buffer.from(proofOf(unproven)));
      return { grantId, hash: sha256(token), isGenuine };
    },
  };
}
