import { ID_LENGTH, isId } from "../base/id.ts";
import { randomBytes } from "../base/secret.ts";
import type { App } from "./app.ts";
import { isScopeName } from "./scope.ts";
import type { Caller } from "./principal.ts";

/** The `typ` of an access token's header (RFC 9068 §2.1). */
export const ACCESS_TOKEN_TYPE = "at+jwt";

/**
 * Returns the claims of a new access token (RFC 9068 §2.2) and when it expires. The `jti` begins
 * with the grant's id, so that a revoked token is recognized without the database. The claim `app`
 * is the app's id if its client_id is a URL.
 */
export function accessTokenClaims(
  { issuer, audience = issuer, sub, clientId, metadataUrl, grantId, scopes, issuedAtMs, ttlMs }:
    & Pick<Caller, "sub" | "clientId" | "grantId" | "scopes" | "audience">
    & { readonly issuer: string; readonly issuedAtMs: number; readonly ttlMs: number }
    & Pick<App, "metadataUrl">,
) {
  const iat = Math.floor(issuedAtMs / 1000);
  const exp = iat + Math.max(1, Math.round(ttlMs / 1000));
  const jti = grantId + randomBytes(8).toString("hex");
  const scope = scopes.join(" ");
  const claims = { iss: issuer, sub, aud: audience, client_id: clientId, iat, exp, jti, scope };
  const named = metadataUrl ? { ...claims, client_id: metadataUrl, app: clientId } : claims;
  return { claims: named, expiresAtMs: exp * 1000 };
}

/**
 * Returns the caller that verified claims name. Undefined if the claims are another issuer's, have
 * expired, or do not have the shape that this service issues (RFC 9068 §4).
 */
export function parseAccessClaims(
  claims: Readonly<Record<string, unknown>>,
  issuer: string,
  nowMs: number,
): Caller | undefined {
  const { iss, sub, aud, client_id, app: clientId = client_id, exp, iat, jti, scope } = claims;
  if (iss !== issuer || typeof aud !== "string") return undefined;
  if (typeof iat !== "number" || typeof exp !== "number") return undefined;
  if (!Number.isSafeInteger(exp) || exp * 1000 <= nowMs) return undefined;
  if (typeof sub !== "string" || typeof clientId !== "string") return undefined;
  if (typeof jti !== "string" || typeof scope !== "string") return undefined;
  const kind = sub.startsWith("u") ? "user" : sub.startsWith("a") ? "app" : undefined;
  const scopes = scope === "" ? [] : scope.split(" ");
  const grantId = jti.slice(0, ID_LENGTH);
  if (jti === grantId || !isId("g", grantId)) return undefined;
  if (kind === undefined || !scopes.every(isScopeName)) return undefined;
  const times = { issuedAtMs: iat * 1000, expiresAtMs: exp * 1000 };
  const caller = { sub, kind, clientId, scopes, grantId, jti, ...times } as const;
  return aud === issuer ? caller : { ...caller, audience: aud };
}
