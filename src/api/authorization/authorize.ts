import type { HttpResponse, HttpRequest } from "../../base/http_message.ts";
import type { Form } from "../../base/form.ts";
import { Problem } from "../../base/problem.ts";
import { isPosable } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import { grantScope } from "../../oauth/scope.ts";
import type { User } from "../../oauth/user.ts";
import { findApp } from "../../store/apps.ts";
import { findConsentedScopes } from "../../store/consents.ts";
import type { Database } from "../../database/database.ts";
import { readForm } from "../../http/body.ts";
import { errorPage } from "../pages/error_page.ts";
import type { PasswordLogin } from "../password_login.ts";
import type { PublicContext, PublicRoute } from "../route.ts";
import { emptyResponse, NO_STORE } from "../../http/respond.ts";
import {
  consentStep,
  findLoggedIn,
  loginStep,
  pageAddress,
  type PageOptions,
  showConsent,
  showLogin,
  type Visit,
} from "./authorize_pages.ts";
import { errorRedirect, type RedirectOptions, seeOther, sendCode } from "./authorize_redirect.ts";
import { type AuthorizeRequest, readAuthorizeRequest } from "./authorize_request.ts";
import { type BrowserSessions, isNavigation } from "./browser_session.ts";

/** What the authorize page works with. */
export interface AuthorizeOptions extends RedirectOptions, PageOptions {
  readonly passwordLogin: PasswordLogin;
}

/**
 * GET and POST /authorization/authorize (RFC 6749 §4.1): login page, consent page, and the redirect
 * back with a code. The pages' forms are sent to this same address with the same query; a form's token
 * is bound to the browser's session and to that query, so neither can be exchanged for another.
 */
export function authorizeRoutes(options: AuthorizeOptions): PublicRoute[] {
  const { database, sessions, issuer, site } = options;
  const base = {
    path: "/authorization/authorize",
    access: "public",
    cors: false,
    errors: "page",
  } as const;

  async function withVisit(
    { request }: PublicContext,
    response: (visit: Visit) => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    // No page of our own origin, hosted ones among them, is to read a form or to send one.
    if (!isNavigation(request)) {
      throw new Problem(403, "foreign_request", "The request was not made by opening a page.");
    }
    const outcome = await readAuthorizeRequest(request.query, (id) => findApp(database, id), issuer);
    switch (outcome.kind) {
      case "page":
        return errorPage({
          site,
          status: 400,
          title: "This sign-in link does not work",
          detail: outcome.detail,
          facts: outcome.facts ?? [],
          requestId: request.id,
        });
      case "redirect":
        return errorRedirect(outcome, outcome.error, issuer);
      case "request": {
        const session = await sessions.open(request);
        const visit = { request: outcome.request, session, query: request.query };
        try {
          return await response(visit);
        } catch (error) {
          if (!(error instanceof OAuthError)) throw error;
          return errorRedirect(outcome.request, error, issuer);
        }
      }
      default:
        return outcome satisfies never;
    }
  }

  return [
    {
      ...base,
      method: "GET",
      summary: "Log in and consent, in a browser",
      handle: (context) =>
        withVisit(context, async (visit) =>
          // HEAD is what scanners of links send; it makes no code and no session.
          context.request.method === "HEAD" ? emptyResponse(200, NO_STORE) : showNext(visit, options)
        ),
    },
    {
      ...base,
      method: "POST",
      summary: "A form of the login or the consent page",
      async handle(context) {
        // First, since it may come slowly: what has ended meanwhile is not found any more.
        const form = await readOwnForm(context.request, sessions);
        return withVisit(context, (visit) => takeForm(context.request, form, visit, options));
      },
    },
  ];
}

/** The next step of a visit: log in, consent, or back to the app with a code. */
async function showNext(visit: Visit, options: AuthorizeOptions): Promise<HttpResponse> {
  const { request, session } = visit;
  const user = await findLoggedIn(session, options.database);
  if (!user) return showLogin(visit, {}, options);
  const scopes = findScopes(request, user);
  const spared = await canSkipConsent(request, user, scopes, options.database);
  if (!spared) return showConsent(visit, user, scopes, {}, options);
  return await sendCode(request, session, user, scopes, undefined, options) ??
    showLogin(visit, { error: "expired" }, options);
}

async function readOwnForm(http: HttpRequest, sessions: BrowserSessions): Promise<Form> {
  if (!sessions.isOwnForm(http)) {
    throw new Problem(403, "foreign_form", "The form was not sent by this page.");
  }
  const form = await readForm(http);
  if (!form || form.duplicates.length > 0) {
    throw new Problem(400, "malformed", "The form is not well-formed.");
  }
  return form;
}

async function takeForm(
  http: HttpRequest,
  form: Form,
  visit: Visit,
  options: AuthorizeOptions,
): Promise<HttpResponse> {
  const { sessions, database } = options;
  const { session, request, query } = visit;
  const token = form.get("csrf");
  const decision = form.get("decision");
  if (decision === undefined) {
    const username = form.get("username") ?? "";
    if (!sessions.checkFormToken(session, loginStep(query), token)) {
      return showLogin(visit, { error: "expired", username }, options);
    }
    return logIn(http, visit, username, form.get("password") ?? "", options);
  }
  const user = await findLoggedIn(session, database);
  if (!user) return showLogin(visit, { error: "expired" }, options);
  const scopes = findScopes(request, user);
  if (!sessions.checkFormToken(session, consentStep(query, scopes), token)) {
    return showConsent(visit, user, scopes, { error: "expired" }, options);
  }
  switch (decision) {
    case "allow":
      return await sendCode(request, session, user, scopes, http.address, options) ??
        showLogin(visit, { error: "expired" }, options);
    case "deny":
      throw new OAuthError("access_denied", "The user did not allow it.");
    case "switch": {
      const anonymous = await sessions.logOut(session);
      return showLogin({ ...visit, session: anonymous }, SIGNED_OUT, options);
    }
    default:
      throw new Problem(400, "malformed", "The decision is not known.");
  }
}

// Whoever signs out may be about to use another account than the app has hinted at.
const SIGNED_OUT = { signedOut: true, username: "" };

async function logIn(
  http: HttpRequest,
  visit: Visit,
  username: string,
  password: string,
  options: AuthorizeOptions,
): Promise<HttpResponse> {
  try {
    const { address } = http;
    const findDevice = (user: string) => options.sessions.findDevice(visit.session, user);
    const outcome = await options.passwordLogin.check({ username, password, address, findDevice });
    switch (outcome.kind) {
      case "wrong":
        return showLogin(visit, { error: "wrong", username }, options);
      case "throttled": {
        const { retryAfterSeconds } = outcome;
        return showLogin(visit, { error: "throttled", username, retryAfterSeconds }, options);
      }
      case "ok": {
        const { user, sinceMs } = outcome;
        const login = { userId: user.id, sinceMs, address };
        const cookies = await options.sessions.logIn(visit.session, login);
        return seeOther(pageAddress(visit.query, options), { "Set-Cookie": cookies });
      }
      default:
        return outcome satisfies never;
    }
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "busy") throw error;
    return showLogin(visit, { error: "busy", username }, options);
  }
}

function findScopes({ app, requestedScopes }: AuthorizeRequest, user: User): string[] {
  return grantScope({ requested: requestedScopes, app: app.scopes, user: user.scopes });
}

/**
 * A trusted app needs no consent, and one given before is remembered; but not where another program
 * can pose as the app, and scope `backend` is too much to pass unseen.
 */
async function canSkipConsent(
  { app }: AuthorizeRequest,
  user: User,
  scopes: readonly string[],
  database: Database,
): Promise<boolean> {
  if (isPosable(app) || scopes.includes(BACKEND_SCOPE)) return false;
  if (app.trusted) return true;
  const consented = await findConsentedScopes(database, user.id, app.id);
  return scopes.every((name) => consented.includes(name));
}
