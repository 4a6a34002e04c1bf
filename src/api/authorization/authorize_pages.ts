import type { HttpResponse } from "../../base/http_message.ts";
import type { App } from "../../oauth/app.ts";
import { WEBHOOKS_PATH } from "../../oauth/console_app.ts";
import { CONSOLE_APP } from "../../oauth/principal.ts";
import { isImpersonable, originOf } from "../../oauth/redirect_uri.ts";
import type { Target } from "../../oauth/resource.ts";
import type { User } from "../../oauth/user.ts";
import { findConsentedScopes } from "../../store/consents.ts";
import { findUnusedFirstUser } from "../../store/users.ts";
import type { Services } from "../../services.ts";
import { consentPage, type ConsentPageInput } from "../pages/consent_page.ts";
import { loginPage, type LoginPageInput } from "../pages/login_page.ts";
import type { AuthorizeRequest, AuthorizeTarget } from "./authorize_request.ts";
import type { BrowserSession } from "./browser_session.ts";

/** One visit to a page: the request, and the session of the browser. */
export interface PageVisit<Asking = App | undefined> {
  readonly request: Pick<AuthorizeTarget, "form" | "redirectUri"> & { readonly app: Asking };
  readonly session: BrowserSession;
  /**
   * The address of the page and of its forms, with the query as received. Each form sends the query
   * again and it is checked again, so nothing is stored.
   */
  readonly address: string;
  /** Where a login leads, if not to `address`. */
  readonly onward?: string;
  /** What the user signs in for, if not for an app. */
  readonly purpose?: string;
}

/** A visit with a valid authorization request. */
export interface Visit extends PageVisit<App> {
  readonly request: AuthorizeRequest;
}

/**
 * Makes the login page. Unless `state` has the name that was typed, the page shows the name of the
 * user who must log in again, or the app's login_hint, or the first user's name.
 */
export async function showLogin(
  visit: PageVisit,
  state: Pick<LoginPageInput, "error" | "username" | "retryAfterSeconds" | "signedOut">,
  services: Pick<Services, "database" | "sessions" | "site">,
): Promise<HttpResponse> {
  const { database, sessions } = services;
  const { request: { app, form, redirectUri }, session: { user } } = visit;
  // Users who come to see their webhooks may not know of a console.
  const isOwn = app?.id === CONSOLE_APP && redirectUri?.endsWith(WEBHOOKS_PATH);
  const firstUser = (await findUnusedFirstUser(database))?.username;
  const page = loginPage({
    ...pageFrame(visit, services),
    app: isOwn ? undefined : app,
    purpose: isOwn ? "to see your webhooks" : visit.purpose,
    firstUser,
    isAgain: user !== undefined,
    username: user?.username ?? form.get("login_hint") ?? firstUser ?? "",
    ...state,
    csrf: sessions.formToken(visit.session, formStep(visit)),
  });
  if (!visit.session.isNew) return page;
  return { ...page, headers: { ...page.headers, "Set-Cookie": sessions.cookie(visit.session) } };
}

/** Makes the consent page for these scopes; those that the user has not yet allowed are marked. */
export async function showConsent(
  visit: PageVisit<App & Target>,
  user: User,
  scopes: readonly string[],
  state: Pick<ConsentPageInput, "error" | "userCode">,
  services: Pick<Services, "database" | "sessions" | "site" | "scopeWords">,
): Promise<HttpResponse> {
  const { app, redirectUri } = visit.request;
  const { database, sessions, scopeWords } = services;
  const allowed = app.resource ? [] : await findConsentedScopes(database, user.id, app.id);
  return consentPage({
    ...pageFrame(visit, services),
    app,
    ...state,
    csrf: sessions.formToken(visit.session, formStep(visit, scopes)),
    username: user.username,
    scopes: scopes.map((name) =>
      ({ name, words: scopeWords.get(name), isNew: !allowed.includes(name) })
    ),
    isImpersonable: isImpersonable(app, redirectUri),
    resource: app.resource?.url,
  });
}

/** Returns what all pages of a visit share. */
export function pageFrame({ request, address }: PageVisit, { site }: Pick<Services, "site">) {
  return { site, action: address, formActionOrigin: originOf(request.redirectUri) };
}

/** Returns what a form's CSRF token is bound to: consent to these scopes; without scopes, login. */
export function formStep({ address }: PageVisit, scopes?: readonly string[]): string {
  return scopes ? `consent ${scopes.join(" ")} ${address}` : `login ${address}`;
}
