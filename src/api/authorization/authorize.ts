import { decodeFormText, type Form } from "../../base/form.ts";
import type { HttpRequest, HttpResponse } from "../../base/http_message.ts";
import { malformed, Problem } from "../../base/problem.ts";
import { described, named, oneOf, optional, record, TEXT } from "../../base/shape.ts";
import { ConflictError } from "../../database/database.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { CHALLENGE } from "../../oauth/pkce.ts";
import { CONSOLE_APP, isOfBackend } from "../../oauth/principal.ts";
import { isImpersonable } from "../../oauth/redirect_uri.ts";
import type { User } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { findApp } from "../../store/apps.ts";
import { GRANT_DENIED, insertAudit, UNKNOWN } from "../../store/audit.ts";
import { mayOmitConsent } from "../../store/consents.ts";
import { changeFresh } from "../administration.ts";
import { errorPage } from "../pages/error_page.ts";
import type { Operation } from "../operation.ts";
import { isWithin, maxAgeMsOf } from "../recent_login.ts";
import { NO_STORE } from "../../http/respond.ts";
import { formStep, type PageVisit, showConsent, showLogin, type Visit } from "./authorize_pages.ts";
import { seeOther, sendCode, sendToApp } from "./authorize_redirect.ts";
import { type AuthorizeRequest, findTarget, readAuthorizeRequest } from "./authorize_request.ts";
import { choosePassword } from "./choose_password.ts";
import { findGrantable } from "./issue_grant.ts";
import { SECRET } from "./oauth_form.ts";
import { pageOperations } from "./page_operations.ts";

/** Link scanners send HEAD, so it makes no code and no session. */
const HEAD_OF_PAGE: HttpResponse = { status: 200, headers: NO_STORE };

export type AuthorizeServices =
  & Pick<Services, "database" | "sessions" | "site" | "scopeWords">
  & Pick<Services, "passwordLogin" | "issuer" | "config" | "now" | "documents" | "scopes">
  & Pick<Services, "hasher" | "revocations" | "wake" | "consoleApp" | "tokens">;

/** Read by authorize_request.ts (RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2, RFC 9470 §4). */
const QUERY = {
  client_id: described("The app.", TEXT),
  redirect_uri: described("Where the code is sent.", TEXT),
  response_type: optional(described("By default code.", oneOf("code"))),
  scope: optional(described("Names separated by spaces or commas.", TEXT)),
  state: optional(described("Is returned unchanged.", TEXT)),
  code_challenge: optional(described("PKCE; some apps must use it.", CHALLENGE)),
  code_challenge_method: optional(described("Is required with a code_challenge.", oneOf("S256"))),
  resource: optional(described("The tokens' target (RFC 8707); by default this service.", TEXT)),
  login_hint: optional(described("The user name that the login page shows.", TEXT)),
  max_age: optional(described("The maximum age of the login in seconds.", TEXT)),
} as const;

/** The members of a form of the login, the password or the consent page. */
export const PAGE_FORM = {
  csrf: TEXT,
  username: optional(TEXT),
  password: optional(SECRET),
  new_password: optional(SECRET),
  decision: optional(oneOf("allow", "deny", "switch", "keep")),
} as const;
const AuthorizeForm = named("AuthorizeForm", record(PAGE_FORM));

/**
 * GET and POST /authorization/authorize (RFC 6749 §4.1): login page, consent page, and the redirect
 * back with a code. The pages send their forms to the same URL with the same query. A form's CSRF
 * token is bound to the browser session and to that query, so it is of no use with any other.
 */
export function authorizeOperations(services: AuthorizeServices): Operation[] {
  const { sessions, issuer, site } = services;
  const path = "/authorization/authorize";

  /**
   * Sends errors to the app once it is known (RFC 6749 §4.1.2.1). If nobody has registered the app,
   * the user must sign in first, so that its author cannot redirect strangers through this service
   * (RFC 9700 §4.11.2).
   */
  async function respond(http: HttpRequest, query: Form, form?: Form): Promise<HttpResponse> {
    const target = await findTarget(query, http.address, services);
    if ("detail" in target) {
      const title = "This sign-in link does not work";
      return errorPage({ site, status: 400, title, ...target, requestId: http.id });
    }
    const addressOf = (query: string) => `${site.basePath}${path}?${query}`;
    const address = addressOf(http.query);
    const session = await sessions.open(http);
    try {
      const request = await readAuthorizeRequest(target, services);
      // A login made for this request is recent enough, even for max_age=0: `onward` lacks max_age.
      const others = http.query.split("&")
        .filter((pair) => decodeFormText(pair.replace(/=.*/, "")) !== "max_age");
      const onward = addressOf(others.join("&"));
      const visit = { request, session, address, onward };
      if (http.method === "HEAD") return HEAD_OF_PAGE;
      const choice = await choosePassword(visit, http, form, services);
      if (choice) return choice;
      return await (form ? carryOut(form, http, visit, services) : showNext(http, visit, services));
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      if (target.app.metadataUrl && !session.user) {
        if (http.method === "HEAD") return HEAD_OF_PAGE;
        const visit = { request: target, session, address };
        return form ? logIn(form, http, visit, services) : showLogin(visit, {}, services);
      }
      return sendToApp(target, { error: error.code, error_description: error.message }, issuer);
    }
  }

  return pageOperations({
    path,
    query: QUERY,
    get: { id: "authorize", summary: "Log in and consent, in a browser" },
    post: {
      id: "submitAuthorizeForm",
      summary: "A form of the login, the password or the consent page",
      form: AuthorizeForm,
    },
  }, (...request) => changeFresh(() => respond(...request)), services);
}

/** The next step of a visit: log in, consent, or back to the app with a code. */
async function showNext({ address }: HttpRequest, visit: Visit, services: AuthorizeServices) {
  const { request, session: { user } } = visit;
  if (!user || !isRecent(visit, [], services)) return showLogin(visit, {}, services);
  const scopes = findGrantable(request.requestedScopes, request.app, user, services);
  if (!isRecent(visit, scopes, services)) return showLogin(visit, {}, services);
  return await canSkipConsent(request, user, scopes, services)
    ? sendCode(visit, user, scopes, { address, isConsent: false }, services)
    : showConsent(visit, user, scopes, {}, services);
}

async function carryOut(form: Form, http: HttpRequest, visit: Visit, services: AuthorizeServices) {
  const { sessions } = services;
  const { session, request } = visit;
  const decision = form.get("decision");
  if (decision === undefined) return logIn(form, http, visit, services);
  const { user } = session;
  if (!user) return showLogin(visit, { error: "expired" }, services);
  const scopes = findGrantable(request.requestedScopes, request.app, user, services);
  if (!sessions.checkFormToken(session, formStep(visit, scopes), form.get("csrf"))) {
    return showConsent(visit, user, scopes, { error: "expired" }, services);
  }
  switch (decision) {
    case "allow":
      if (!isRecent(visit, scopes, services)) {
        return showLogin(visit, { error: "expired" }, services);
      }
      return sendCode(visit, user, scopes, { address: http.address, isConsent: true }, services);
    case "deny":
      await recordDenial(request.app, user, http, services);
      throw new OAuthError("access_denied", "The user did not allow it.");
    case "switch": {
      const anonymous = { ...visit, session: await sessions.logOut(session, http) };
      // The user may want to use another account than the one in the app's login_hint.
      return showLogin(anonymous, { signedOut: true, username: "" }, services);
    }
    default:
      throw malformed("The decision is not known.");
  }
}

/** Records a denial; an app known only by its document has no stored id before it is allowed. */
async function recordDenial(
  { id }: App,
  user: User,
  { address }: HttpRequest,
  { database, now }: AuthorizeServices,
): Promise<void> {
  const app = await findApp(database, id) ? id : null;
  const parties = { actor: user.id, app, target: app ?? UNKNOWN, address: address || null };
  await database.write([insertAudit({ ...parties, action: GRANT_DENIED }, now())]);
}

/**
 * Whether the login is as recent as the app asks for (OpenID Connect Core §3.1.2.1) and as these
 * scopes demand. The console's scopes do not matter, since it asks for a login before grave acts.
 */
function isRecent(
  { request: { app, maxAgeMs }, session }: Visit,
  scopes: readonly string[],
  { now }: Pick<Services, "now">,
): boolean {
  const neededMs = app.id === CONSOLE_APP ? Infinity : maxAgeMsOf(scopes);
  return isWithin(Math.min(maxAgeMs, neededMs), session.sinceMs, now());
}

/** Handles the form of a login page: returns the redirect onward, or the page with an error. */
export async function logIn(
  form: Form,
  from: Pick<HttpRequest, "address" | "headers">,
  visit: PageVisit,
  services: Pick<Services, "database" | "sessions" | "passwordLogin" | "site">,
): Promise<HttpResponse> {
  const { sessions, passwordLogin } = services;
  const { session } = visit;
  const [username = "", password = ""] = [form.get("username"), form.get("password")];
  const showAgain = (state: Parameters<typeof showLogin>[1]) =>
    showLogin(visit, { ...state, username }, services);
  if (!sessions.checkFormToken(session, formStep(visit), form.get("csrf"))) {
    return showAgain({ error: "expired" });
  }
  const findDevice = (user: string) => sessions.findDevice(session, user);
  try {
    const { address } = from;
    const login = await passwordLogin.check({ username, password, address, findDevice });
    if (!login) return showAgain({ error: "wrong" });
    const { user, sinceMs, uses } = login;
    const cookies = await sessions.logIn(session, user.id, sinceMs, from, uses);
    return seeOther(visit.onward ?? visit.address, { "Set-Cookie": cookies });
  } catch (error) {
    if (error instanceof ConflictError) return showAgain({ error: "wrong" });
    if (!(error instanceof Problem)) throw error;
    const { code, headers } = error;
    if (code !== "busy" && code !== "throttled") throw error;
    return showAgain({ error: code, retryAfterSeconds: Number(headers["Retry-After"]) });
  }
}

/**
 * Whether the consent page is skipped: for trusted apps, and for registered apps with an earlier
 * consent at this service; but not if another program can pose as the app, nor for backend scopes.
 * The console is our own code at our own address, so it never needs consent.
 */
async function canSkipConsent(
  { app, redirectUri }: AuthorizeRequest,
  user: User,
  scopes: readonly string[],
  { database }: AuthorizeServices,
): Promise<boolean> {
  if (app.id === CONSOLE_APP) return true;
  if (isImpersonable(app, redirectUri) || scopes.some(isOfBackend)) return false;
  const wanted = { user: user.id, app: app.id, scopes, resource: app.resource?.id ?? null };
  return mayOmitConsent(database, wanted);
}
