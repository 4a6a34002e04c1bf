import { newId } from "../../base/id.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { GrantType } from "../../oauth/grant_type.ts";
import type { AuditRecord } from "../../store/audit.ts";
import { insertGrant } from "../../store/grants.ts";
import type { ExchangeServices, IssuedTokens } from "./exchange.ts";
import type { IssuedAccessToken, TokenIssuer } from "./token_issuer.ts";

/** A new authorization: of a user, or of the app for itself. */
export interface NewAuthorization {
  readonly app: App;
  readonly user: string | undefined;
  readonly type: GrantType;
  readonly scopes: readonly string[];
  /** When it was decided, where that was earlier. */
  readonly decidedAtMs?: number;
  /** Goes into the audit with it. */
  readonly audited?: AuditRecord;
}

/** Stores a new grant and answers with its first tokens; a refresh token where the app may use it. */
export async function issueGrant(
  { app, user, type, scopes, decidedAtMs, audited }: NewAuthorization,
  { database, tokens, revocations, now }: ExchangeServices,
): Promise<IssuedTokens> {
  const nowMs = now();
  const id = newId("g", nowMs);
  const access = tokens.accessToken({
    sub: user ?? app.id,
    clientId: app.id,
    grantId: id,
    scopes,
    issuedAtMs: nowMs,
  });
  const refresh = app.grants.includes("refresh_token") ? tokens.refreshToken(id, nowMs) : undefined;
  const stored = await insertGrant(database, {
    id,
    app: app.id,
    user: user ?? null,
    type,
    scopes,
    refresh: refresh?.hash,
    refreshUntilMs: refresh?.untilMs ?? 0,
    accessUntilMs: access.expiresAtMs,
    decidedAtMs: decidedAtMs ?? nowMs,
  }, audited, revocations);
  if (!stored) throw new OAuthError("invalid_grant", "The user or the app has been disabled.");
  return toIssuedTokens(access, refresh?.token, scopes, tokens);
}

/** Puts together what the token endpoint answers. */
export function toIssuedTokens(
  access: IssuedAccessToken,
  refreshToken: string | undefined,
  scopes: readonly string[],
  { accessTtlMs }: TokenIssuer,
): IssuedTokens {
  return {
    accessToken: access.token,
    expiresInSeconds: Math.max(1, Math.round(accessTtlMs / 1000)),
    refreshToken,
    scopes,
  };
}
