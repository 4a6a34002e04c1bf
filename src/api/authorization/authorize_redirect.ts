import type { HttpResponse } from "../../base/http_message.ts";
import { newId } from "../../base/id.ts";
import { sha256 } from "../../base/secret.ts";
import type { OAuthError } from "../../oauth/errors.ts";
import { redirectWith } from "../../oauth/redirect_uri.ts";
import type { User } from "../../oauth/user.ts";
import { GRANT_ALLOWED, insertAuditOfChange } from "../../store/audit.ts";
import { insertCode } from "../../store/codes.ts";
import { putConsentOfCode } from "../../store/consents.ts";
import type { Services } from "../../services.ts";
import { emptyResponse, NO_STORE } from "../../http/respond.ts";
import { showLogin, type Visit } from "./authorize_pages.ts";
import type { AuthorizeTarget } from "./authorize_request.ts";
import { newHandle } from "./token_issuer.ts";

/**
 * Stores a code, and the consent where it was given just now (from an address), and sends the code
 * to the app. When the session has ended meanwhile nothing is stored, and the user logs in again.
 */
export async function sendCode(
  visit: Visit,
  user: User,
  scopes: readonly string[],
  consentFrom: string | undefined,
  services: Pick<Services, "database" | "issuer" | "config" | "now" | "sessions" | "site">,
): Promise<HttpResponse> {
  const { request: { app, redirectUri, challenge, state }, session } = visit;
  const { database, issuer, config, now } = services;
  const nowMs = now();
  const id = newId("g", nowMs);
  const { token, hash } = newHandle(id);
  const audited = { actor: user.id, app: app.id, address: consentFrom || null };
  const untilMs = nowMs + config.codeTtlMs;
  const parties = { app: app.id, user: user.id };
  const code = { id, ...parties, scopes, redirectUri, challenge: challenge ?? null, untilMs };
  const [inserted] = await database.write([
    insertCode(code, hash, sha256(session.id)),
    insertAuditOfChange({ ...audited, action: GRANT_ALLOWED, target: id }, nowMs),
    ...consentFrom === undefined ? [] : [
      putConsentOfCode(id),
      insertAuditOfChange({ ...audited, action: "consent.allow", target: app.id }, nowMs),
    ],
  ]);
  if (inserted !== 1) return showLogin(visit, { error: "expired" }, services);
  return seeOther(redirectWith(redirectUri, { code: token, state, iss: issuer }));
}

/** Sends the app, at its redirect URI, the reason why it gets no code (RFC 6749 §4.1.2.1). */
export function errorRedirect(
  { redirectUri, state }: AuthorizeTarget,
  { error, description }: OAuthError,
  issuer: string,
): HttpResponse {
  const parameters = { error, error_description: description, state, iss: issuer };
  return seeOther(redirectWith(redirectUri, parameters));
}

/** RFC 9700 §4.12: 303, so that no browser sends the form on. */
export function seeOther(location: string, headers: HttpResponse["headers"] = {}): HttpResponse {
  return emptyResponse(303, {
    Location: location,
    "Referrer-Policy": "no-referrer",
    ...NO_STORE,
    ...headers,
  });
}
