import assert from "node:assert/strict";
import type { Gatepost, TestApp, TestUser } from "./gatepost.ts";
import type { Answer, Client } from "./http_client.ts";

/** Checks an error page that only the user sees: no form, and no redirect to the app. */
export function assertErrorPage(answer: Answer): void {
  assert.equal(answer.status, 400, answer.text);
  assert.equal(answer.headers.get("location"), null);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/html\b/);
  assert.deepEqual(answer.forms(), []);
}

export function assertLoginPage(answer: Answer, status = 200): void {
  assert.equal(answer.status, status, answer.text);
  const names = answer.forms()[0]?.inputs.map(({ name }) => name) ?? [];
  assert.ok(names.includes("username") && names.includes("password"), names.join());
}

export function assertConsentPage(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text);
  const values = answer.forms()[0]?.buttons.map(({ value }) => value) ?? [];
  assert.ok(values.includes("allow") && values.includes("deny"), answer.text);
}

/** The parameters with which a response sends the browser back to the app. */
export function readCallback(
  gatepost: Gatepost,
  answer: Answer,
  app: TestApp,
): URLSearchParams {
  assert.equal(answer.status, 303, answer.text);
  const url = new URL(answer.location ?? "");
  assert.equal(url.origin + url.pathname, app.redirectUri);
  assert.equal(url.searchParams.get("iss"), gatepost.issuer);
  return url.searchParams;
}

/** Checks a response that sends the browser back to the app with a code. */
export function assertCode(gatepost: Gatepost, answer: Answer, app: TestApp): void {
  const parameters = readCallback(gatepost, answer, app);
  assert.ok(parameters.has("code"), parameters.toString());
}

/** Checks a response that sends the browser back to the app with an error (RFC 6749 §4.1.2.1). */
export function assertErrorRedirect(
  gatepost: Gatepost,
  answer: Answer,
  app: TestApp,
  expected: { readonly error: string; readonly state?: string },
): void {
  const parameters = readCallback(gatepost, answer, app);
  assert.equal(parameters.get("error"), expected.error);
  assert.match(parameters.get("error_description") ?? "", /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
  assert.equal(parameters.get("state"), expected.state ?? null);
  assert.equal(parameters.has("code"), false);
}

/** Logs in at the login page with the right password, and follows the redirect. */
export async function passLogin(browser: Client, page: Answer, user: TestUser): Promise<Answer> {
  const { username, password } = user;
  return browser.follow(await browser.submit(page, { username, password }));
}
