import { OAuthError } from "../../oauth/errors.ts";
import { narrowScope } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { findRefreshToken, rotateRefreshToken } from "../../store/grants.ts";
import {
  currentScopes,
  endReplayedGrant,
  type IssuedTokens,
  type IssuingServices,
  makeTokens,
  type TokenRequest,
} from "./issue_grant.ts";
import { readScope, requireParameter } from "./oauth_form.ts";

/**
 * refresh_token (RFC 6749 §6): the presented token is exchanged for the next one. One that was
 * exchanged before has been stolen from somebody, so it ends the whole grant (RFC 9700 §4.14.2);
 * unless the one for which it was exchanged was never seen again: then the response may have been
 * lost, and a request that comes after that exchange may have another instead, once.
 */
export async function exchangeRefreshToken(
  request: TokenRequest,
  services: IssuingServices & Pick<Services, "accounts">,
): Promise<IssuedTokens> {
  const { app, form } = request;
  const { database, tokens, now } = services;
  const old = tokens.parseRefreshToken(requireParameter(form, "refresh_token"));
  if (!old) throw badRefreshToken();
  const presented = await findRefreshToken(database, old, now());
  if (!presented || presented.grant.app !== app.id) throw badRefreshToken();
  const { grant, state } = presented;
  const refuseReuse = async () => {
    await endReplayedGrant(grant.id, "grant.reuse", request, services);
    return badRefreshToken();
  };
  if (state === "used") throw await refuseReuse();

  if (grant.revokedAtMs !== null || grant.refreshUntilMs <= now()) throw badRefreshToken();
  const narrowed = narrowScope(readScope(form), grant.scopes);
  const scopes = await currentScopes(narrowed, grant.user, app, services);

  const nowMs = now();
  const { issued, stored } = makeTokens({ ...grant, scopes }, app, nowMs, services);
  const { refresh: newHash, ...ends } = stored;
  if (!newHash) throw badRefreshToken(); // an app that may not refresh
  const rotation = { ...ends, old, state, newHash, scopes };
  if (!await rotateRefreshToken(database, rotation, nowMs)) {
    // Either the grant has ended meanwhile, or another request was faster with the same token.
    const again = await findRefreshToken(database, old, now());
    throw again?.state === state ? badRefreshToken() : await refuseReuse();
  }
  return issued;
}

function badRefreshToken(): OAuthError {
  return new OAuthError("invalid_grant", "The refresh token is not valid.");
}
