import type { Form } from "../../base/form.ts";
import type { HttpRequest, HttpResponse } from "../../base/http_message.ts";
import { checkErrors, malformed, Problem } from "../../base/problem.ts";
import { parseShape } from "../../base/shape.ts";
import { SUBSCRIPTION_LIMIT } from "../../event/subscription.ts";
import { BACKEND_READ_SCOPE, covers, LOGIN_APP } from "../../oauth/principal.ts";
import type { User } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { listActingApps } from "../../store/consents.ts";
import { listLiveGrants } from "../../store/grants.ts";
import { listPart } from "../../store/list.ts";
import { isLive, listSessions, sessionId } from "../../store/sessions.ts";
import { SUBSCRIPTION_LIST } from "../../store/subscriptions.ts";
import { type Administration, found } from "../administration.ts";
import { logIn } from "../authorization/authorize.ts";
import { formStep, pageFrame, showLogin } from "../authorization/authorize_pages.ts";
import { choosePassword } from "../authorization/choose_password.ts";
import { seeOther } from "../authorization/authorize_redirect.ts";
import type { BrowserSession } from "../authorization/browser_session.ts";
import { pageOperations } from "../authorization/page_operations.ts";
import type { Operation } from "../operation.ts";
import type { AccountFrame } from "../pages/account_layout.ts";
import { assetHref } from "../pages/console_page.ts";
import {
  accountPage,
  madeTokenPage,
  passwordPage,
  tokenPage,
  withdrawPage,
} from "../pages/account_page.ts";
import { isWithin, maxAgeMsOf } from "../recent_login.ts";
import {
  changePassword,
  endOwnGrant,
  endSession,
  endSessions,
  makePersonalToken,
  NewToken,
  PasswordChange,
  withdrawApp,
} from "./account_acts.ts";

/** The acts of forms: what each does with the id in the form, and what the page says afterwards. */
const ACTS = new Map<string, { readonly act?: typeof endSession; readonly done: string }>([
  ["withdraw", { act: withdrawApp, done: "The app may no longer act for you." }],
  ["session", { act: endSession, done: "You are signed out in that browser." }],
  ["sessions", { act: endSessions, done: "You are signed out in every other browser." }],
  ["token", { act: endOwnGrant, done: "The token has ended." }],
  ["password", { done: "Your password is changed." }],
]);

/**
 * GET and POST /account: the operations of /consumer as pages, with the session of the login page
 * and the same protection. The query chooses the page: `app` confirms the withdrawal of that app,
 * `do` asks for a password or a token. A form's `do` has the name of the act, and the id.
 */
export function accountPageOperations(
  services: Administration &
    Pick<Services, "sessions" | "site" | "issuer" | "passwordLogin" | "hasher" | "tokens"> &
    Pick<Services, "scopeWords" | "consoleAssets">,
  hasConsole: boolean,
): Operation[] {
  const { database, now, sessions, site, issuer, scopeWords } = services;
  const path = "/account";
  const home = site.basePath + path;

  async function respond(http: HttpRequest, form: Form, sent?: Form): Promise<HttpResponse> {
    const done = form.get("done");
    const session = await sessions.open(http);
    const address = done !== undefined || http.query === "" ? home : `${home}?${http.query}`;
    const request = { app: undefined, form, redirectUri: issuer };
    const visit = { request, session, address, purpose: "to see your account" };
    const choice = await choosePassword(visit, http, sent, services);
    if (choice) return choice;
    const { user } = session;
    const [act] = actOf(sent ?? form);
    if (!user || (sent && act === undefined)) {
      if (sent) return logIn(sent, http, visit, services);
      const signedOut = done === "session";
      // A new cookie makes browsers drop all pages that they keep for Back, even no-store ones.
      if (signedOut) visit.session = await sessions.logOut(session, http);
      return showLogin(visit, { signedOut }, services);
    }
    // A token outlives the session, and somebody else may sit there by now: ask for the password.
    const isRecent = isWithin(maxAgeMsOf(user.scopes), session.sinceMs, now());
    if (act === "make" && !isRecent) return showLogin(visit, {}, services);
    const step = formStep(visit, []);
    const frame: AccountFrame = {
      ...pageFrame(visit, services),
      csrf: sessions.formToken(session, step),
      styleHref: assetHref(services, "console.css"),
      username: user.username,
      session: sessionId(session.hash),
      hasConsole: hasConsole && covers(user.scopes, BACKEND_READ_SCOPE),
      message: ACTS.get(done ?? "")?.done,
      status: 200,
    };
    if (!sent) return show(frame, form, user);
    try {
      if (sessions.checkFormToken(session, step, sent.get("csrf"))) {
        return await carryOut(http, sent, session, user, frame);
      }
      throw new Problem(400, "stale_form", "This page was open for too long. Please try again.");
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const { code, errors, status } = error;
      const isInvalid = code === "invalid";
      const message = isInvalid ? errors.map(({ detail }) => detail).join(" ") : error.message;
      const { headers, ...page } = await show({ ...frame, message, status }, form, user, sent);
      return { ...page, headers: { ...headers, ...error.headers } };
    }
  }

  async function show(frame: AccountFrame, query: Form, user: User, sent?: Form) {
    const app = query.get("app");
    const apps = await listActingApps(database, user.id, now(), app);
    if (app !== undefined) {
      const owned = { owner: user.id, app, limit: SUBSCRIPTION_LIMIT };
      const { items } = await listPart(database, SUBSCRIPTION_LIST, owned);
      const open = items.filter(({ status }) => status !== "disabled");
      return withdrawPage(frame, found(apps[0], "app"), open.length);
    }
    if (query.get("do") === "password") return passwordPage(frame);
    if (query.get("do") === "make") return tokenPage(frame, user.scopes, scopeWords, sent);
    const grants = await listLiveGrants(database, user.id, now());
    const all = await listSessions(database, user.id, now());
    return accountPage(frame, { apps, grants, sessions: all, scopeWords, nowMs: now() });
  }

  async function carryOut(
    request: HttpRequest,
    form: Form,
    session: BrowserSession,
    user: User,
    frame: AccountFrame,
  ): Promise<HttpResponse> {
    const actor = { caller: { sub: user.id, clientId: LOGIN_APP, scopes: user.scopes }, request };
    const [name = "", id = ""] = actOf(form);
    const { act } = ACTS.get(name) ?? {};
    if (act) {
      await act(actor, id, services);
      return seeOther(`${home}?done=${name}`);
    }
    if (name === "password") {
      const fields = { current: form.get("current") ?? "", new: form.get("new") ?? "" };
      const change = parseShape(PasswordChange, fields, "form");
      // The new session is younger than all that the change ends, but ends with any later change.
      const sinceMs = await changePassword(actor, change, services) + 1;
      const cookies = await sessions.logIn(session, user.id, sinceMs, request);
      return seeOther(`${home}?done=password`, { "Set-Cookie": cookies });
    }
    if (name !== "make") throw malformed("The action is not known.");
    const given = parseShape(NewToken, {
      name: form.get("name") ?? "",
      scopes: user.scopes.filter((name) => form.get(`scope ${name}`) !== undefined),
      expires_in: Number(form.get("days")) * 86_400,
    }, "form");
    // A program may want a token without scopes. A person who ticks none has overlooked them.
    const detail = "Choose what the token may do.";
    checkErrors(given.scopes.length > 0 ? [] : [{ pointer: "/scopes", detail }], "form");
    const isLoggedIn = isLive(session.hash, now());
    const { token } = await makePersonalToken(actor, given, isLoggedIn, services);
    return madeTokenPage(frame, given.name, token);
  }

  const summary = "A user's own account, in a browser";
  const [get, post] = [{ id: "account GET", summary }, { id: "account POST", summary }];
  return pageOperations({ path, get, post }, async (...request) => {
    const { headers, ...page } = await respond(...request);
    // No other window may control this page, not even one with a hosted page of this origin.
    return { ...page, headers: { ...headers, "Cross-Origin-Opener-Policy": "same-origin" } };
  }, services);
}

/** Returns the act of a form or of its page, and the id that the act is about. */
const actOf = (form: Form): string[] => form.get("do")?.split(" ") ?? [];
