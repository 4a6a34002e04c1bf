import { OAuthError } from "../../oauth/errors.ts";
import { CONSOLE_APP } from "../../oauth/principal.ts";
import { narrowScope } from "../../oauth/scope.ts";
import { findRefreshToken, rotateRefreshToken } from "../../store/grants.ts";
import { hasSession } from "../../store/sessions.ts";
import { type Exchange, refuseReplay, renewTokens } from "./issue_grant.ts";
import { readScope, requireParameter } from "./oauth_form.ts";

/**
 * Grant type refresh_token (RFC 6749 §6): exchanges the presented token for the next one. A token
 * that was exchanged before may be stolen, so it ends the whole grant (RFC 9700 §4.14.2). But if
 * the next token was never presented, the response may be lost, and the token works once more.
 */
export const exchangeRefreshToken: Exchange = async (request, services) => {
  const { app, form } = request;
  const { database, tokens, now } = services;
  const old = tokens.parseRefreshToken(requireParameter(form, "refresh_token"));
  if (!old) throw badRefreshToken();
  const presented = await findRefreshToken(database, old, now());
  if (!presented || presented.grant.app !== app.id) throw badRefreshToken();
  const { grant } = presented;
  const refuseReuse = () =>
    refuseReplay(grant.id, "grant.reuse", badRefreshToken(), request, services);
  if (presented.state === "used") return refuseReuse();

  // The console got its first tokens by a browser session; without any session it gets no more.
  const isOver = app.id === CONSOLE_APP && !await hasSession(database, grant.user ?? "", now());
  if (isOver || grant.revokedAtMs !== null || grant.refreshUntilMs <= now()) {
    throw badRefreshToken();
  }
  const narrowed = { ...grant, scopes: narrowScope(readScope(form), grant.scopes) };
  const { issued, stored, scopes, nowMs } = await renewTokens(narrowed, request, services);
  const { refresh: newHash, ...ends } = stored;
  if (!newHash) throw badRefreshToken(); // the app may not refresh, or its chain has ended
  const rotation = { ...ends, old, newHash, scopes };
  for (let found = presented; found.state !== "used";) {
    const { state, head } = found;
    if (await rotateRefreshToken(database, { ...rotation, state, head }, nowMs)) return issued;
    // Either the grant has ended, or another request with this token was faster, maybe a first try.
    const again = await findRefreshToken(database, old, now());
    if (!again || again.state === state) throw badRefreshToken();
    found = again;
  }
  return refuseReuse();
};

function badRefreshToken(): OAuthError {
  return new OAuthError("invalid_grant", "The refresh token is not valid.");
}
