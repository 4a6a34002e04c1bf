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
import type { AuthorizeRequest } from "./authorize_request.ts";
import type { BrowserSession } from "./browser_session.ts";
import { newHandle } from "./token_issuer.ts";

/**
 * Stores a code, and the consent where it was given just now (from an address), and sends the code
 * to the app. Undefined, and nothing is stored, when the session has ended meanwhile.
 */
export async function sendCode(
  { app, redirectUri, challenge, state }: AuthorizeRequest,
  session: BrowserSession,
  user: User,
  scopes: readonly string[],
  consentFrom: string | undefined,
  { database, issuer, config, now }: Pick<Services, "database" | "issuer" | "config" | "now">,
): Promise<HttpResponse | undefined> {
  const nowMs = now();
  const id = newId("g", nowMs);
  const { token: code, hash } = newHandle(id);
  const audited = { actor: user.id, app: app.id, address: consentFrom || null };
  const [inserted] = await database.write([
    insertCode({
      id,
      app: app.id,
      user: user.id,
      scopes,
      redirectUri,
      challenge: challenge ?? null,
      untilMs: nowMs + config.codeTtlMs,
    }, hash, sha256(session.id)),
    insertAuditOfChange({ ...audited, action: GRANT_ALLOWED, target: id }, nowMs),
    ...consentFrom === undefined ? [] : [
      putConsentOfCode(id),
      insertAuditOfChange({ ...audited, action: "consent.allow", target: app.id }, nowMs),
    ],
  ]);
  if (inserted !== 1) return undefined;
  return seeOther(redirectWith(redirectUri, { code, state, iss: issuer }));
}

/** Tells the app, at its redirect URI, why it gets no code (RFC 6749 §4.1.2.1). */
export function errorRedirect(
  { redirectUri, state }: { readonly redirectUri: string; readonly state: string | undefined },
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
