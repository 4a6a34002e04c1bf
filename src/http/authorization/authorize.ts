import type { HttpAnswer, HttpRequest } from "../../base/exchange.ts";
import type { Form } from "../../base/form.ts";
import { Problem } from "../../base/problem.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import { isLoopbackHost } from "../../oauth/redirect_uri.ts";
import { grantScope } from "../../oauth/scope.ts";
import type { User } from "../../oauth/user.ts";
import { findApp } from "../../store/apps.ts";
import { findConsentedScopes } from "../../store/consents.ts";
import type { Database } from "../../store/database.ts";
import { findUser } from "../../store/users.ts";
import { readForm } from "../body.ts";
import { consentPage, type ConsentPageInput } from "../pages/consent_page.ts";
import { errorPage } from "../pages/error_page.ts";
import { loginPage, type LoginPageInput } from "../pages/login_page.ts";
import type { PasswordLogin } from "../password_login.ts";
import type { PublicContext, PublicRoute } from "../route.ts";
import { errorRedirect, type RedirectOptions, seeOther, sendCode } from "./authorize_redirect.ts";
import { type AuthorizeRequest, readAuthorizeRequest } from "./authorize_request.ts";
import type { BrowserSession, BrowserSessions } from "./browser_session.ts";

/** What the authorize page works with. */
export interface AuthorizeOptions extends RedirectOptions {
  readonly sessions: BrowserSessions;
  readonly passwordLogin: PasswordLogin;
  /** The path of the base URL, "" where it has none. */
  readonly basePath: string;
}

/** One visit to the page: a valid request, and the browser that makes it. */
interface Visit {
  readonly request: AuthorizeRequest;
  readonly session: BrowserSession;
  /** The query as it was sent: it comes back with each form and is checked anew, so nothing is stored. */
  readonly query: string;
}

/**
 * GET and POST /authorization/authorize (RFC 6749 §4.1): login page, consent page, and the redirect
 * back with a code. The pages' forms are sent to this same address with the same query; a form's token
 * is bound to the browser's session and to that query, so neither can be exchanged for another.
 */
export function authorizeRoutes(options: AuthorizeOptions): PublicRoute[] {
  const { database, sessions, issuer } = options;
  const base = {
    path: "/authorization/authorize",
    access: "public",
    cors: false,
    errors: "page",
  } as const;

  async function withVisit(
    { request }: PublicContext,
    answer: (visit: Visit) => Promise<HttpAnswer>,
  ): Promise<HttpAnswer> {
    const outcome = await readAuthorizeRequest(request.query, (id) => findApp(database, id), issuer);
    switch (outcome.kind) {
      case "page":
        return errorPage({
          status: 400,
          title: "This sign-in link does not work",
          detail: outcome.detail,
          requestId: request.id,
        });
      case "redirect":
        return errorRedirect(outcome, outcome.error, issuer);
      case "request": {
        const session = await sessions.open(request);
        const visit = { request: outcome.request, session, query: request.query };
        try {
          return await answer(visit);
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
      handle: (context) => withVisit(context, (visit) => showNext(visit, options)),
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
async function showNext(visit: Visit, options: AuthorizeOptions): Promise<HttpAnswer> {
  const { request, session } = visit;
  const user = await findLoggedIn(session, options.database);
  if (!user) return showLogin(visit, {}, options);
  const scopes = findScopes(request, user);
  const spared = await isConsentSpared(request, user, scopes, options.database);
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
): Promise<HttpAnswer> {
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
      return showLogin({ ...visit, session: anonymous }, { signedOut: true }, options);
    }
    default:
      throw new Problem(400, "malformed", "The decision is not known.");
  }
}

async function logIn(
  http: HttpRequest,
  visit: Visit,
  username: string,
  password: string,
  options: AuthorizeOptions,
): Promise<HttpAnswer> {
  try {
    const { address } = http;
    const outcome = await options.passwordLogin.check({ username, password, address });
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
        const cookie = await options.sessions.logIn(visit.session, login);
        return seeOther(pageAddress(visit.query, options), { "Set-Cookie": cookie });
      }
      default:
        return outcome satisfies never;
    }
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "busy") throw error;
    return showLogin(visit, { error: "busy", username }, options);
  }
}

function showLogin(
  visit: Visit,
  state: Pick<LoginPageInput, "error" | "username" | "retryAfterSeconds" | "signedOut">,
  options: AuthorizeOptions,
): HttpAnswer {
  const { sessions } = options;
  const page = loginPage({
    ...pageFrame(visit, options),
    ...state,
    csrf: sessions.formToken(visit.session, loginStep(visit.query)),
  });
  return visit.session.isNew ? withCookie(page, sessions.cookie(visit.session)) : page;
}

function showConsent(
  visit: Visit,
  user: User,
  scopes: readonly string[],
  state: Pick<ConsentPageInput, "error">,
  options: AuthorizeOptions,
): HttpAnswer {
  return consentPage({
    ...pageFrame(visit, options),
    ...state,
    csrf: options.sessions.formToken(visit.session, consentStep(visit.query, scopes)),
    username: user.username,
    scopes,
  });
}

function pageAddress(query: string, { basePath }: AuthorizeOptions): string {
  return `${basePath}/authorization/authorize?${query}`;
}

function pageFrame({ request: { app, redirectUri }, query }: Visit, options: AuthorizeOptions) {
  return {
    action: pageAddress(query, options),
    app: { name: app.name, origin: new URL(app.url).origin },
    formActionOrigin: new URL(redirectUri).origin,
  };
}

const loginStep = (query: string) => `login ${query}`;
// What the user reads is what the user allows: other scopes make another form.
const consentStep = (query: string, scopes: readonly string[]) =>
  `consent ${scopes.join(" ")} ${query}`;

async function findLoggedIn(
  { userId }: BrowserSession,
  database: Database,
): Promise<User | undefined> {
  return userId === undefined ? undefined : await findUser(database, userId);
}

function findScopes({ app, requestedScopes }: AuthorizeRequest, user: User): string[] {
  return grantScope({ requested: requestedScopes, app: app.scopes, user: user.scopes });
}

/**
 * A trusted app needs no consent, and one given before is remembered; but anybody can pose as a public
 * app on a loopback URL (RFC 8252 §8.6), and scope `backend` is too much to pass unseen.
 */
async function isConsentSpared(
  { app }: AuthorizeRequest,
  user: User,
  scopes: readonly string[],
  database: Database,
): Promise<boolean> {
  const isLoopback = isLoopbackHost(new URL(app.url).hostname);
  if ((app.type === "public" && isLoopback) || scopes.includes(BACKEND_SCOPE)) return false;
  if (app.trusted) return true;
  const consented = await findConsentedScopes(database, user.id, app.id);
  return scopes.every((name) => consented.includes(name));
}

function withCookie(answer: HttpAnswer, cookie: string): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, "Set-Cookie": cookie } };
}
