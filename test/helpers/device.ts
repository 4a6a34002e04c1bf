import assert from "node:assert/strict";
import type { Gatepost, TestApp, TestUser } from "./gatepost.ts";
import { assertConsentPage, passLogin } from "./authorize_pages.ts";
import type { ClientResponse, Client } from "./http_client.ts";
import { basicAuth } from "./requests.ts";
import { readObject } from "./responses.ts";

type Fields = Readonly<Record<string, string>>;

export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** What the device endpoint returns with 200 (RFC 8628 §3.2). */
export interface Device {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string;
  readonly expires_in: number;
  readonly interval: number;
}

/** POST to the device endpoint; the app authenticates by Basic, a public app by its id. */
export function askForDevice(
  { api }: Gatepost,
  app: TestApp,
  fields: Fields = {},
  headers: Fields = {},
): Promise<ClientResponse> {
  return app.secret === ""
    ? api.postForm("/authorization/device", { client_id: app.id, ...fields }, headers)
    : api.postForm("/authorization/device", fields, { ...basicAuth(app), ...headers });
}

/** The codes of a new device. */
export async function newDevice(gatepost: Gatepost, app: TestApp, fields: Fields = {}) {
  const response = await askForDevice(gatepost, app, fields);
  assert.equal(response.status, 200, response.text);
  const device: Device = JSON.parse(response.text);
  return device;
}

/** One poll of the token endpoint. */
export function poll(
  gatepost: Gatepost,
  app: TestApp,
  { device_code }: Pick<Device, "device_code">,
): Promise<ClientResponse> {
  return gatepost.token(app, { grant_type: DEVICE_GRANT, device_code });
}

/** The error of a poll, or the scope of its tokens. */
export async function pollFor(...request: Parameters<typeof poll>): Promise<unknown> {
  const body = readObject(await poll(...request));
  return body["error"] ?? body["scope"];
}

/** The path of the page for a code, relative to the base URL of a test's browser. */
export const VERIFY = "/authorization/verify";

/** Logs a user in, in a new browser; returns the browser and the page on which a code is typed. */
export async function openVerify(gatepost: Gatepost, user: TestUser, query = "") {
  const browser = gatepost.openBrowser();
  const page = await passLogin(browser, await browser.get(VERIFY + query), user);
  assertCodePage(page);
  return { browser, page };
}

/** Types a code; returns the consent page. */
export async function typeCode(
  browser: Client,
  page: ClientResponse,
  code: string,
): Promise<ClientResponse> {
  const consent = await browser.submit(page, { user_code: code });
  assertConsentPage(consent);
  return consent;
}

/** Logs in, types the code of a device and decides. */
export async function decide(
  gatepost: Gatepost,
  user: TestUser,
  { user_code }: Pick<Device, "user_code">,
  decision: "allow" | "deny" = "allow",
): Promise<ClientResponse> {
  const { browser, page } = await openVerify(gatepost, user);
  return browser.submit(await typeCode(browser, page, user_code), {}, decision);
}

/** Checks that the response is the page on which a code is typed. */
export function assertCodePage(response: ClientResponse, status = 200): void {
  assert.equal(response.status, status, response.text);
  const names = response.forms()[0]?.inputs.map(({ name }) => name) ?? [];
  assert.deepEqual(names, ["csrf", "user_code"], response.text);
}
