import type { Form } from "../../base/form.ts";
import type { HttpRequest, HttpResponse } from "../../base/http_message.ts";
import { newId } from "../../base/id.ts";
import { conflict, malformed, Problem, tooMany } from "../../base/problem.ts";
import { sha256 } from "../../base/secret.ts";
import { described, named, optional, record, TEXT } from "../../base/shape.ts";
import { createThrottle } from "../../base/throttle.ts";
import { throttleAddress } from "../../http/client_address.ts";
import { parseUserCode } from "../../oauth/device_code.ts";
import { DEVICE_GRANT } from "../../oauth/grant_type.ts";
import type { User } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { findApp } from "../../store/apps.ts";
import { FAILED_USER_CODE, GRANT_ALLOWED, GRANT_DENIED, UNKNOWN } from "../../store/audit.ts";
import { decideDeviceCode, findDeviceCode } from "../../store/device_codes.ts";
import type { Operation } from "../operation.ts";
import { verifiedPage, verifyPage, type VerifyPageInput } from "../pages/verify_page.ts";
import { isWithin, maxAgeMsOf } from "../recent_login.ts";
import { type AuthorizeServices, logIn, PAGE_FORM } from "./authorize.ts";
import { formStep, pageFrame, type PageVisit, showConsent, showLogin } from "./authorize_pages.ts";
import { choosePassword } from "./choose_password.ts";
import { findGrantable } from "./issue_grant.ts";
import { pageOperations } from "./page_operations.ts";
import { checkAllowed } from "./token.ts";

const USER_CODE = optional(described("The code that the device shows.", TEXT));
const VerifyForm = named("VerifyForm", record({ ...PAGE_FORM, user_code: USER_CODE }));

/**
 * GET and POST /authorization/verify (RFC 8628 §3.3): login, the code that a device shows, and
 * consent. Consent is always asked for, since only the user knows whose device it is (§5.4). Forms
 * are protected as those of the authorize page. Each process counts wrong codes for itself.
 */
export function verifyOperations(
  services: AuthorizeServices & Pick<Services, "failures">,
): Operation[] {
  const { database, failures, issuer, now, sessions, site } = services;
  const throttle = (limit: number) => createThrottle({ limit, windowMs: 15 * 60_000, now });
  // 5 guesses among 20^8 codes hit a given code with a chance of 2^-32 (RFC 8628 §5.1).
  const [ofUser, ofAddress] = [throttle(5), throttle(50)];
  const path = "/authorization/verify";

  async function respond(http: HttpRequest, query: Form, form?: Form): Promise<HttpResponse> {
    const code = parseUserCode(query.get("user_code") ?? "");
    // Nobody is sent to an app: the forms lead back here.
    const request = { app: undefined, form: query, redirectUri: issuer };
    const visit = { request, session: await sessions.open(http), address: addressOf(code) };
    const choice = await choosePassword(visit, http, form, services);
    if (choice) return choice;
    const { user } = visit.session;
    if (!user || form?.get("password") !== undefined) {
      return form ? logIn(form, http, visit, services) : showLogin(visit, {}, services);
    }
    const typed = form?.get("user_code") ?? code;
    try {
      return form ? await carryOut(form, http, visit, user, typed) : showCode(visit, user, typed);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return showCode(visit, user, typed, error);
    }
  }

  const addressOf = (code?: string) =>
    site.basePath + path + (code === undefined ? "" : `?user_code=${code}`);

  function showCode(visit: PageVisit, user: User, code = "", error?: VerifyPageInput["error"]) {
    return verifyPage({
      ...pageFrame(visit, services),
      csrf: sessions.formToken(visit.session, formStep(visit, [])),
      username: user.username,
      userCode: parseUserCode(code) ?? code,
      error,
    });
  }

  async function carryOut(
    form: Form,
    http: HttpRequest,
    visit: PageVisit,
    user: User,
    typed = "",
  ): Promise<HttpResponse> {
    const { address } = http;
    const { session } = visit;
    const decision = form.get("decision");
    const isFormOf = (page: PageVisit, scopes: readonly string[]) =>
      sessions.checkFormToken(session, formStep(page, scopes), form.get("csrf"));
    const logOut = async () => {
      const anonymous = { ...visit, session: await sessions.logOut(session, http) };
      return showLogin(anonymous, { signedOut: true }, services);
    };
    const isCodeForm = isFormOf(visit, []);
    if (isCodeForm && decision === "switch") return logOut();
    const { userCode, device, app, scopes } = await findWaitingDevice(typed, user, address);
    const request = { ...visit.request, app };
    const consent = { ...visit, request, address: addressOf(userCode) };
    const isRecent = isWithin(maxAgeMsOf(scopes), session.sinceMs, now());
    if (!isRecent && (isCodeForm || decision === "allow")) {
      return showLogin({ ...visit, address: consent.address }, {}, services);
    }
    if (isCodeForm) return showConsent(consent, user, scopes, { userCode }, services);
    if (!isFormOf(consent, scopes)) {
      throw new Problem(400, "stale_form", "This page was open for too long. Please try again.");
    }
    if (decision === "switch") return logOut();
    if (decision !== "allow" && decision !== "deny") throw malformed("The decision is not known.");

    const isAllowed = decision === "allow";
    const nowMs = now();
    const id = newId("g", nowMs);
    const { hash, untilMs } = device;
    const parties = { app: app.id, user: user.id };
    const code = { ...parties, id, scopes, redirectUri: "", challenge: null, untilMs };
    const [action, target] = isAllowed ? [GRANT_ALLOWED, id] : [GRANT_DENIED, app.id];
    const audited = { actor: user.id, app: app.id, action, target, address: address || null };
    const given = isAllowed ? code : undefined;
    if (!await decideDeviceCode(database, hash, given, session.hash, audited, nowMs)) {
      throw codeUsed();
    }
    return verifiedPage(site, isAllowed);
  }

  /** Finds the device that shows a code, with its app and scopes; throws Problem if none waits. */
  async function findWaitingDevice(typed: string, user: User, address: string) {
    const limits = [[ofUser, user.id], [ofAddress, throttleAddress(address)]] as const;
    const waitMs = Math.max(...limits.map(([limit, key]) => limit.waitMs(key)));
    if (waitMs > 0) throw tooMany("throttled", "Too many wrong codes. Try again later.", waitMs);
    // Counted before the code is looked up, so that simultaneous guesses stay within the limit.
    for (const [limit, key] of limits) limit.fail(key);
    const userCode = parseUserCode(typed) ?? "";
    const device = await findDeviceCode(database, "userCode", sha256(userCode));
    if (!device) {
      const failure = { actor: user.id, action: FAILED_USER_CODE, target: UNKNOWN, address };
      failures.record(throttleAddress(address), failure);
      throw new Problem(400, "wrong_code", "No device is waiting with this code. Check the code.");
    }
    for (const [limit, key] of limits) limit.forgive(key);
    if (device.decision !== null) throw codeUsed();
    const app = await findApp(database, device.app);
    if (device.untilMs <= now() || app?.status !== "active") {
      throw new Problem(400, "expired", "This code has expired. Get a new one on your device.");
    }
    checkAllowed(app, DEVICE_GRANT);
    const scopes = findGrantable(device.scopes, app, user, services);
    return { userCode, device, app, scopes };
  }

  const codeUsed = () =>
    conflict("This code has been used. If your device still waits, get a new one there.");

  return pageOperations({
    path,
    query: { user_code: USER_CODE },
    get: {
      id: "verifyDevice",
      summary: "Connect a device by the code that it shows, in a browser",
    },
    post: {
      id: "submitVerifyForm",
      summary: "A form of the login, the password, the code or the consent page",
      form: VerifyForm,
    },
  }, respond, services);
}
