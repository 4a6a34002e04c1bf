import type { HttpResponse } from "../../base/http_message.ts";
import { isPosable } from "../../oauth/app.ts";
import { originOf } from "../../oauth/redirect_uri.ts";
import type { User } from "../../oauth/user.ts";
import { findConsentedScopes } from "../../store/consents.ts";
import type { Services } from "../../services.ts";
import { consentPage, type ConsentPageInput } from "../pages/consent_page.ts";
import { loginPage, type LoginPageInput } from "../pages/login_page.ts";
import type { AuthorizeRequest } from "./authorize_request.ts";
import type { BrowserSession } from "./browser_session.ts";

/** One visit to the page: a valid request, and the browser that makes it. */
export interface Visit {
  readonly request: AuthorizeRequest;
  readonly session: BrowserSession;
  /** As it was sent: it comes back with each form and is checked anew, so nothing is stored. */
  readonly query: string;
}

/** The login page; without what was typed, the name is what the app takes the user for. */
export function showLogin(
  visit: Visit,
  state: Pick<LoginPageInput, "error" | "username" | "retryAfterSeconds" | "signedOut">,
  services: Pick<Services, "sessions" | "site">,
): HttpResponse {
  const { sessions } = services;
  const page = loginPage({
    ...pageFrame(visit, services),
    username: visit.request.form.get("login_hint") ?? "",
    ...state,
    csrf: sessions.formToken(visit.session, formStep(visit)),
  });
  if (!visit.session.isNew) return page;
  return { ...page, headers: { ...page.headers, "Set-Cookie": sessions.cookie(visit.session) } };
}

/** The consent page for these scopes. */
export async function showConsent(
  visit: Visit,
  user: User,
  scopes: readonly string[],
  state: Pick<ConsentPageInput, "error">,
  services: Pick<Services, "database" | "sessions" | "site" | "scopeWords">,
): Promise<HttpResponse> {
  const { app, resource, redirectUri } = visit.request;
  const { database, sessions, scopeWords } = services;
  const allowed = resource ? [] : await findConsentedScopes(database, user.id, app.id);
  return consentPage({
    ...pageFrame(visit, services),
    ...state,
    csrf: sessions.formToken(visit.session, formStep(visit, scopes)),
    username: user.username,
    scopes: scopes.map((name) =>
      ({ name, words: scopeWords.get(name), isNew: !allowed.includes(name) })
    ),
    isPosable: isPosable(app, redirectUri),
    isUnknown: Boolean(app.metadataUrl),
    resource: resource?.url,
  });
}

/** Where a page's form is sent, and where the page is. */
export function pageAddress(query: string, { site }: Pick<Services, "site">): string {
  return `${site.basePath}/authorization/authorize?${query}`;
}

function pageFrame({ request, query }: Visit, { site }: Pick<Services, "site">) {
  const { app, redirectUri } = request;
  return {
    site,
    action: pageAddress(query, { site }),
    app: { name: app.name, origin: new URL(app.url).origin },
    formActionOrigin: originOf(redirectUri),
  };
}

/** What a form's token is bound to: consent to what the user reads, or, without scopes, login. */
export function formStep({ query }: Visit, scopes?: readonly string[]): string {
  return scopes ? `consent ${scopes.join(" ")} ${query}` : `login ${query}`;
}
