import { ID_LENGTH, isId } from "../base/id.ts";
import { randomBytes } from "../base/secret.ts";
import { formatScope, isScopeName } from "./scope.ts";
import type { Caller } from "./principal.ts";

/** The `typ` of an access token's header (RFC 9068 §2.1). */
export const ACCESS_TOKEN_TYPE = "at+jwt";

/** What an access token says. */
export interface AccessTokenInput {
  readonly issuer: string;
  readonly sub: string;
  readonly clientId: string;
  readonly grantId: string;
  readonly scopes: readonly string[];
  readonly issuedAtMs: number;
  readonly ttlMs: number;
}

/**
 * The claims of a new access token (RFC 9068 §2.2), and when it expires in milliseconds. The `jti`
 * begins with the grant's id, so a token can be told to be revoked without a look into the
 * database.
 */
export function accessTokenClaims(
  input: AccessTokenInput,
): { claims: Record<string, unknown>; expiresAtMs: number } {
  const iat = Math.floor(input.issuedAtMs / 1000);
  const exp = iat + Math.max(1, Math.round(input.ttlMs / 1000));
  return {
    claims: {
      iss: input.issuer,
      sub: input.sub,
      aud: input.issuer,
      client_id: input.clientId,
      iat,
      exp,
      jti: input.grantId + randomBytes(8).toString("hex"),
      scope: formatScope(input.scopes),
    },
    expiresAtMs: exp * 1000,
  };
}

/**
 * The caller that verified claims stand for, or undefined when they are another issuer's, for
 * another audience, expired, or not of the shape that this service issues (RFC 9068 §4).
 */
export function parseAccessClaims(
  claims: Readonly<Record<string, unknown>>,
  issuer: string,
  nowMs: number,
): Caller | undefined {
  const { iss, sub, aud, client_id: clientId, exp, iat, jti, scope } = claims;
  if (iss !== issuer || aud !== issuer) return undefined;
  if (typeof exp !== "number" || !Number.isSafeInteger(exp)) return undefined;
  if (exp * 1000 <= nowMs) return undefined;
  if (typeof iat !== "number") return undefined;
  if (typeof sub !== "string" || typeof clientId !== "string") return undefined;
  if (typeof jti !== "string" || typeof scope !== "string") return undefined;
  const kind = sub.startsWith("u") ? "user" : sub.startsWith("a") ? "app" : undefined;
  const scopes = scope === "" ? [] : scope.split(" ");
  const grantId = jti.slice(0, ID_LENGTH);
  if (jti === grantId || !isId("g", grantId)) return undefined;
  if (kind === undefined || !scopes.every(isScopeName)) return undefined;
  return { sub, kind, clientId, scopes, grantId, jti, expiresAtMs: exp * 1000 };
}
