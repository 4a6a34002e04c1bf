import type { HttpRequest } from "../../base/http_message.ts";
import type { Form } from "../../base/form.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { verifyPkce } from "../../oauth/pkce.ts";
import { insertAuditOfGrant } from "../../store/audit.ts";
import { type Code, findCode, findRedeemedCode, redeemCode } from "../../store/codes.ts";
import { revokeGrant } from "../../store/grant_end.ts";
import { toIssuedTokens } from "./issue_grant.ts";
import { requireParameter } from "./oauth_form.ts";
import { currentScopes } from "./current_scopes.ts";
import type { ExchangeRequest, ExchangeServices, IssuedTokens } from "./exchange.ts";
import { type Handle, parseHandle } from "./token_issuer.ts";

/**
 * authorization_code (RFC 6749 §4.1.3, RFC 7636 §4.6). A failed exchange leaves the code as it is;
 * a redeemed one that its app presents again ends all that came from it (RFC 6749 §4.1.2).
 */
export async function exchangeCode(
  { app, form, request }: ExchangeRequest,
  services: ExchangeServices,
): Promise<IssuedTokens> {
  const { database, tokens, now } = services;
  const handle = parseHandle(requireParameter(form, "code"));
  if (!handle) throw badCode();
  const code = await findCode(database, handle.grantId, handle.hash);
  if (!code) throw await refuseReplay(handle, app, request, services);
  checkCode(code, app, form, now());

  const scopes = await currentScopes(code.scopes, code.user, app, services.accounts);
  const nowMs = now();
  const access = tokens.accessToken({
    sub: code.user,
    clientId: app.id,
    grantId: code.id,
    scopes,
    issuedAtMs: nowMs,
  });
  const mayRefresh = app.grants.includes("refresh_token");
  const refresh = mayRefresh ? tokens.refreshToken(code.id, nowMs) : undefined;
  const redeemed = await redeemCode(database, {
    id: code.id,
    hash: handle.hash,
    user: code.user,
    app: code.app,
    scopes: code.scopes,
    accessScopes: scopes,
    refresh: refresh?.hash,
    refreshUntilMs: refresh?.untilMs ?? 0,
    accessUntilMs: access.expiresAtMs,
  }, nowMs, services.revocations);
  if (!redeemed) throw await refuseReplay(handle, app, request, services);
  return toIssuedTokens(access, refresh?.token, scopes, tokens);
}

function checkCode(code: Code, app: App, form: Form, nowMs: number): void {
  if (code.app !== app.id || code.untilMs <= nowMs) throw badCode();
  const redirectUri = form.get("redirect_uri");
  if (redirectUri !== undefined && redirectUri !== code.redirectUri) {
    throw new OAuthError("invalid_grant", "The redirect_uri is not that of the authorize request.");
  }
  const isBound = app.type === "confidential" || code.challenge !== null;
  if (redirectUri === undefined && !isBound) {
    throw new OAuthError("invalid_grant", "The redirect_uri of the authorize request is missing.");
  }
  const verifier = form.get("code_verifier");
  if (code.challenge === null && verifier === undefined) return;
  // RFC 9700 §2.1.1: a verifier for a code without a challenge is a downgrade.
  if (code.challenge === null || verifier === undefined || !verifyPkce(verifier, code.challenge)) {
    throw new OAuthError("invalid_grant", "The code_verifier does not fit the code.");
  }
}

async function refuseReplay(
  { grantId, hash }: Handle,
  app: App,
  { address }: HttpRequest,
  { database, revocations, now }: ExchangeServices,
): Promise<OAuthError> {
  const redeemed = await findRedeemedCode(database, grantId, hash);
  if (redeemed?.app === app.id) {
    const audited = { actor: app.id, action: "grant.replay", target: grantId, address };
    await database.write([
      insertAuditOfGrant(grantId, audited, now()),
      ...revokeGrant(grantId, now()),
    ]);
    await revocations.refresh();
  }
  return badCode();
}

function badCode(): OAuthError {
  return new OAuthError("invalid_grant", "The code is not valid (any more).");
}
