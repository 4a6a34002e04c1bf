import type { Form } from "../../base/form.ts";
import type { HttpRequest, HttpResponse } from "../../base/http_message.ts";
import { malformed } from "../../base/problem.ts";
import { LOGIN_APP } from "../../oauth/principal.ts";
import { checkPassword } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { isLive } from "../../store/sessions.ts";
import { findUserByName, keepPassword, replacePassword } from "../../store/users.ts";
import { type Administration, changeAudited, storeAudited } from "../administration.ts";
import { passwordPage } from "../pages/password_page.ts";
import { pageFrame, type PageVisit } from "./authorize_pages.ts";
import { seeOther } from "./authorize_redirect.ts";

/**
 * Shows the page on which a user replaces a password that this service made, or handles its form.
 * Undefined if there is none to replace. Until it is replaced, a visit can do nothing else, so a
 * one-time password opens nothing but this page. Throws Problem 409 if the session has ended.
 */
export async function choosePassword(
  visit: PageVisit,
  request: HttpRequest,
  form: Form | undefined,
  services: Administration & Pick<Services, "sessions" | "site" | "hasher">,
): Promise<HttpResponse | undefined> {
  const { database, sessions, hasher, config, now } = services;
  const { address, session, session: { user, givenPassword: given } } = visit;
  if (!user || !given) return undefined;
  const { id: target, username } = user;
  const step = `password ${address}`;
  const csrf = sessions.formToken(session, step);
  const page = { ...pageFrame(visit, services), csrf, username, given };
  const actor = { caller: { sub: target, clientId: LOGIN_APP }, request };

  if (!form) return passwordPage(page);
  if (!sessions.checkFormToken(session, step, form.get("csrf"))) {
    return passwordPage({ ...page, error: "This page was open for too long. Please try again." });
  }
  const decision = form.get("decision");
  if (decision === "keep" && given === "printed") {
    await storeAudited(actor, "user.keep_password", target, [keepPassword(target)], services);
    return seeOther(address);
  }
  if (decision !== undefined) throw malformed("The decision is not known.");
  const wanted = form.get("new_password") ?? "";
  // Without this check, a password that a terminal or a log has shown could become permanent.
  const isGivenPassword = async () =>
    hasher.verify(wanted, (await findUserByName(database, username))?.phc);
  const error = checkPassword(wanted) ??
    (await isGivenPassword() ? "It is the password that was made for you." : undefined);
  if (error) return passwordPage({ ...page, error: `The password was not changed. ${error}` });
  const phc = await hasher.hash(wanted);
  const nowMs = now();
  const when = isLive(session.hash, nowMs);
  const replace = replacePassword(target, phc, when, nowMs, config.accessTokenTtlMs);
  // This browser continues, with a session younger than all that the change ends.
  const { insert, cookie } = sessions.newSession(target, nowMs + 1, request);
  await changeAudited(actor, "user.change_password", target, [...replace, insert], services);
  return seeOther(address, { "Set-Cookie": cookie });
}
