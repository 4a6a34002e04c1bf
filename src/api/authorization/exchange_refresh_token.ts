import { OAuthError } from "../../oauth/errors.ts";
import { narrowScope } from "../../oauth/scope.ts";
import { insertAuditOfGrant } from "../../store/audit.ts";
import { revokeGrant } from "../../store/grant_end.ts";
import { findRefreshToken, rotateRefreshToken } from "../../store/grants.ts";
import { currentScopes } from "./current_scopes.ts";
import { toIssuedTokens } from "./issue_grant.ts";
import { readScope, requireParameter } from "./oauth_form.ts";
import type { ExchangeRequest, ExchangeServices, IssuedTokens } from "./exchange.ts";

/**
 * refresh_token (RFC 6749 §6): the presented token is exchanged for the next one. One that was
 * exchanged before has been stolen from somebody, so it ends the whole grant (RFC 9700 §4.14.2);
 * unless the one for which it was exchanged was never seen again: then the answer may have been
 * lost, and a request that comes after that exchange may have another instead, once.
 */
export async function exchangeRefreshToken(
  request: ExchangeRequest,
  services: ExchangeServices,
): Promise<IssuedTokens> {
  const { app, form } = request;
  const { database, tokens, now } = services;
  const handle = tokens.parseRefreshToken(requireParameter(form, "refresh_token"));
  if (!handle) throw badRefreshToken();
  const { grantId } = handle;
  const presented = await findRefreshToken(database, handle, now());
  if (!presented || presented.grant.app !== app.id) throw badRefreshToken();
  const { grant, state } = presented;
  if (state === "used") throw await refuseReuse(grantId, request, services);

  if (grant.revokedAtMs !== null || grant.refreshUntilMs <= now()) throw badRefreshToken();
  const narrowed = narrowScope(readScope(form), grant.scopes);
  const scopes = await currentScopes(narrowed, grant.user, app, services.accounts);

  const nowMs = now();
  const access = tokens.accessToken({
    sub: grant.user ?? app.id,
    clientId: app.id,
    grantId,
    scopes,
    issuedAtMs: nowMs,
  });
  const next = tokens.refreshToken(grantId, nowMs);
  const rotated = await rotateRefreshToken(database, {
    old: handle,
    state,
    newHash: next.hash,
    scopes,
    refreshUntilMs: next.untilMs,
    accessUntilMs: access.expiresAtMs,
  }, nowMs);
  if (!rotated) {
    // Either the grant has ended meanwhile, or another request was faster with the same token.
    const again = await findRefreshToken(database, handle, now());
    const isSame = again?.state === state;
    throw isSame ? badRefreshToken() : await refuseReuse(grantId, request, services);
  }
  return toIssuedTokens(access, next.token, scopes, tokens);
}

async function refuseReuse(
  grantId: string,
  { app, request: { address } }: ExchangeRequest,
  { database, revocations, now }: ExchangeServices,
): Promise<OAuthError> {
  const audited = { actor: app.id, action: "grant.reuse", target: grantId, address };
  await database.write([
    insertAuditOfGrant(grantId, audited, now()),
    ...revokeGrant(grantId, now()),
  ]);
  await revocations.refresh();
  return badRefreshToken();
}

function badRefreshToken(): OAuthError {
  return new OAuthError("invalid_grant", "The refresh token is not valid (any more).");
}
