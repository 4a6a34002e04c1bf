import assert from "node:assert/strict";
import type { Gatepost, TestApp, TestUser } from "./gatepost.ts";
import type { ClientResponse, Client } from "./http_client.ts";

/** Checks an error page that only the user sees: no form, and no redirect to the app. */
export function assertErrorPage(response: ClientResponse): void {
  assert.equal(response.status, 400, response.text);
  assert.equal(response.headers.get("location"), null);
  assert.match(response.headers.get("content-type") ?? "", /^text\/html\b/);
  assert.deepEqual(response.forms(), []);
}

export function assertLoginPage(response: ClientResponse, status = 200): void {
  assert.equal(response.status, status, response.text);
  const names = response.forms()[0]?.inputs.map(({ name }) => name) ?? [];
  assert.ok(names.includes("username") && names.includes("password"), names.join());
}

export function assertConsentPage(response: ClientResponse): void {
  assert.equal(response.status, 200, response.text);
  const values = response.forms()[0]?.buttons.map(({ value }) => value) ?? [];
  assert.ok(values.includes("allow") && values.includes("deny"), response.text);
}

/** What a page's form would send, without its buttons. */
export function fieldsOf(page: ClientResponse): Readonly<Record<string, string>> {
  return page.forms()[0]?.fields ?? {};
}

/** The parameters with which a response sends the browser back to the app. */
export function readCallback(
  gatepost: Gatepost,
  response: ClientResponse,
  app: TestApp,
): URLSearchParams {
  assert.equal(response.status, 303, response.text);
  const url = new URL(response.location ?? "");
  assert.equal(url.origin + url.pathname, app.redirectUri);
  assert.equal(url.searchParams.get("iss"), gatepost.issuer);
  return url.searchParams;
}

/** Checks a response that sends the browser back to the app with a code. */
export function assertCode(gatepost: Gatepost, response: ClientResponse, app: TestApp): void {
  const parameters = readCallback(gatepost, response, app);
  assert.ok(parameters.has("code"), parameters.toString());
}

/** Checks a response that sends the browser back to the app with an error (RFC 6749 §4.1.2.1). */
export function assertErrorRedirect(
  gatepost: Gatepost,
  response: ClientResponse,
  app: TestApp,
  expected: { readonly error: string; readonly state?: string },
): void {
  const parameters = readCallback(gatepost, response, app);
  assert.equal(parameters.get("error"), expected.error);
  assert.match(parameters.get("error_description") ?? "", /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
  assert.equal(parameters.get("state"), expected.state ?? null);
  assert.equal(parameters.has("code"), false);
}

/** Logs in at the login page with the right password, and follows the redirect. */
export async function passLogin(
  browser: Client,
  page: ClientResponse,
  user: TestUser,
): Promise<ClientResponse> {
  const { username, password } = user;
  return browser.follow(await browser.submit(page, { username, password }));
}
