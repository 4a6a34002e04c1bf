import assert from "node:assert/strict";
import { STATUS_CODES } from "node:http";
import type { TokenResponse } from "./gatepost.ts";
import type { ClientResponse } from "./http_client.ts";

/** The tokens of a response, which must be 200. */
export function readTokens(response: ClientResponse): TokenResponse {
  assert.equal(response.status, 200, response.text);
  const tokens: TokenResponse = JSON.parse(response.text);
  return tokens;
}

/** The response, once it has this status; another one fails the test. */
export async function expectStatus(
  status: number,
  responding: Promise<ClientResponse>,
): Promise<ClientResponse> {
  const response = await responding;
  assert.equal(response.status, status, response.text);
  return response;
}

/** A response's JSON, which must be an object. */
export function readObject(response: ClientResponse): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(response.text);
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), response.text);
  return { ...value };
}

/** The items of a list's response, which must be 200. */
export function readItems(response: ClientResponse): readonly Readonly<Record<string, unknown>>[] {
  assert.equal(response.status, 200, response.text);
  const { items } = readObject(response);
  assert.ok(Array.isArray(items), response.text);
  return items;
}

/** Checks a problem response (RFC 9457) and returns the pointers of its errors, sorted. */
export function assertProblem(response: ClientResponse, status: number): readonly string[] {
  assert.equal(response.status, status, response.text);
  assert.equal(response.headers.get("content-type"), "application/problem+json");
  const { type, errors = [], ...problem } = readObject(response);
  assert.match(String(type), /^urn:gatepost:problem:[a-z_]+$/);
  assert.deepEqual([problem["status"], problem["title"]], [status, STATUS_CODES[status]]);
  assert.ok(Array.isArray(errors));
  for (const { detail } of errors) assert.ok(typeof detail === "string" && detail !== "");
  return errors.map(({ pointer }) => String(pointer)).sort();
}

/** Checks an error of the token endpoint and similar endpoints (RFC 6749 §5.2). */
export function assertOAuthError(response: ClientResponse, status: number, error: string): void {
  const body = readObject(response);
  assert.deepEqual([response.status, body["error"]], [status, error], response.text);
  assert.deepEqual(Object.keys(body).sort(), ["error", "error_description"]);
  assert.match(String(body["error_description"]), /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
  assert.match(response.headers.get("content-type") ?? "", /^application\/json\b/);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.equal(response.headers.get("pragma"), "no-cache");
}

/** The parts of a JWT, whose signature is not verified (RFC 7515 §3.1). */
export function decodeJwt(token: string) {
  const [header = "", claims = "", signature = ""] = token.split(".");
  const decode = (part: string): Readonly<Record<string, unknown>> =>
    JSON.parse(Buffer.from(part, "base64url").toString());
  return { header: decode(header), claims: decode(claims), signature };
}
