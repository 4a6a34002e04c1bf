import type { Form } from "../../base/form.ts";
import type { HttpRequest, HttpResponse } from "../../base/http_message.ts";
import { malformed, Problem } from "../../base/problem.ts";
import { oneOf, optional, TEXT } from "../../base/shape.ts";
import { readForm } from "../../http/body.ts";
import type { Services } from "../../services.ts";
import { formStep, type PageVisit, showLogin } from "./authorize_pages.ts";
import { seeOther } from "./authorize_redirect.ts";
import { type BrowserSessions, isNavigation } from "./browser_session.ts";
import { SECRET } from "./oauth_form.ts";

/** The members of a form of the login or the consent page. */
export const PAGE_FORM = {
  csrf: TEXT,
  username: optional(TEXT),
  password: optional(SECRET),
  decision: optional(oneOf("allow", "deny", "switch")),
} as const;

/** No page of our own origin, hosted ones among them, may read a form or send one. */
export function checkNavigation(request: HttpRequest): void {
  if (isNavigation(request)) return;
  throw new Problem(403, "foreign_request", "The request was not made by opening a page.");
}

/**
 * The form that one of our own pages sent. To be read before the session, since it may come slowly:
 * what has ended meanwhile is not found then.
 */
export async function readPageForm(request: HttpRequest, sessions: BrowserSessions): Promise<Form> {
  if (!sessions.isOwnForm(request)) {
    throw new Problem(403, "foreign_form", "The form was not sent by this page.");
  }
  const form = await readForm(request);
  if (!form || form.duplicates.length > 0) throw malformed("The form is not well-formed.");
  return form;
}

/** Carries out a login page's form: the way on, or the page once more. */
export async function logIn(
  form: Form,
  address: string,
  visit: PageVisit,
  services: Pick<Services, "sessions" | "passwordLogin" | "site">,
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
    const login = await passwordLogin.check({ username, password, address, findDevice });
    if (!login) return showAgain({ error: "wrong" });
    const cookies = await sessions.logIn(session, login.user.id, login.sinceMs, address);
    return seeOther(visit.address, { "Set-Cookie": cookies });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { code, headers } = error;
    if (code !== "busy" && code !== "throttled") throw error;
    return showAgain({ error: code, retryAfterSeconds: Number(headers["Retry-After"]) });
  }
}
