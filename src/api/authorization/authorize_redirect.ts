import type { HttpRequest, HttpResponse } from "../../base/http_message.ts";
import { newId } from "../../base/id.ts";
import { conflict } from "../../base/problem.ts";
import { CONSOLE_APP } from "../../oauth/principal.ts";
import { redirectWith } from "../../oauth/redirect_uri.ts";
import type { User } from "../../oauth/user.ts";
import { hasSameOrigin } from "../../store/apps.ts";
import { GRANT_ALLOWED, insertAudit } from "../../store/audit.ts";
import { hasCode, insertCode } from "../../store/codes.ts";
import { needsNoConsent, putConsentOfCode } from "../../store/consents.ts";
import type { Services } from "../../services.ts";
import { NO_STORE } from "../../http/respond.ts";
import { refuseConflict } from "../administration.ts";
import type { Visit } from "./authorize_pages.ts";
import type { AuthorizeTarget } from "./authorize_request.ts";
import { newHandle } from "./token_issuer.ts";

/**
 * Stores a code, and the consent if the user has just given it, and redirects to the app with the
 * code. Stores no code and throws Problem 409 if the session has ended, the app has changed, or an
 * earlier consent no longer holds.
 */
export async function sendCode(
  visit: Visit,
  user: User,
  scopes: readonly string[],
  { address, isConsent }: Pick<HttpRequest, "address"> & { readonly isConsent: boolean },
  { database, issuer, config, now }: Pick<Services, "database" | "issuer" | "config" | "now">,
): Promise<HttpResponse> {
  const { request: { app, redirectUri, challenge, registration = [] } } = visit;
  const nowMs = now();
  const id = newId("g", nowMs);
  const { token, hash } = newHandle(id);
  const audited = { actor: user.id, app: app.id, address: address || null };
  const untilMs = nowMs + config.codeTtlMs;
  const parties = { app: app.id, user: user.id, resource: app.resource?.id ?? null };
  const code = { id, ...parties, scopes, redirectUri, challenge, untilMs };
  const isConsole = app.id === CONSOLE_APP;
  const when = isConsole ? [] : [hasSameOrigin(app), ...isConsent ? [] : [needsNoConsent(code)]];
  const changed = "The app or its consent has just changed; start again.";
  const changes = await database.write([
    ...registration,
    insertCode(code, hash, visit.session.hash, nowMs, ...when),
    // The console gets a code on every load, so only its user's login is audited, not its codes.
    ...isConsole ? [] : [
      insertAudit({ ...audited, action: GRANT_ALLOWED, target: id }, nowMs, hasCode(id)),
    ],
    ...isConsent ? [
      putConsentOfCode(id),
      insertAudit({ ...audited, action: "consent.allow", target: app.id }, nowMs, hasCode(id)),
    ] : [],
  ]).catch(refuseConflict(changed));
  if (changes[registration.length] !== 1) throw conflict(changed);
  return sendToApp(visit.request, { code: token }, issuer);
}

/**
 * Redirects to the app's redirect URI with a code or an error (RFC 6749 §4.1.2 and §4.1.2.1), and
 * with the issuer (RFC 9207 §2).
 */
export function sendToApp(
  { redirectUri, form }: AuthorizeTarget,
  outcome: Readonly<Record<string, string>>,
  issuer: string,
): HttpResponse {
  const parameters = { ...outcome, state: form.get("state"), iss: issuer };
  return seeOther(redirectWith(redirectUri, parameters));
}

/** Makes a redirect, with 303 so that no browser sends the form on (RFC 9700 §4.12). */
export function seeOther(location: string, headers: HttpResponse["headers"] = {}): HttpResponse {
  const own = { Location: location, "Referrer-Policy": "no-referrer", ...NO_STORE };
  return { status: 303, headers: { ...own, ...headers } };
}
