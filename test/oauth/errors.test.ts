import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OAuthError } from "../../src/oauth/errors.ts";

describe("OAuthError has its code's status (RFC 6749 §5.2, RFC 6750 §3.1, RFC 8628 §3.5)", () => {
  const table: Record<OAuthError["code"], number> = {
    access_denied: 400,
    authorization_pending: 400,
    expired_token: 400,
    insufficient_scope: 403,
    invalid_client: 401,
    invalid_grant: 400,
    invalid_request: 400,
    invalid_scope: 400,
    invalid_target: 400,
    invalid_token: 401,
    server_error: 500,
    slow_down: 400,
    temporarily_unavailable: 503,
    unauthorized_client: 400,
    unsupported_grant_type: 400,
    unsupported_response_type: 400,
  };
  for (const [code, status] of Object.entries(table)) {
    test(code, () => {
      assert.equal(new OAuthError(code as OAuthError["code"], "x").status, status);
    });
  }
});

test("OAuthError accepts a status and headers (RFC 9110 §10.2.3)", () => {
  const options = { status: 429, headers: { "Retry-After": "60" } };
  const error = new OAuthError("temporarily_unavailable", "Too many failures.", options);
  assert.equal(error.status, 429);
  assert.deepEqual(error.headers, { "Retry-After": "60" });
});

test("invalid_client carries the Basic challenge (RFC 6749 §5.2, RFC 7617 §2.1)", () => {
  const error = new OAuthError("invalid_client", "x", { headers: { "Retry-After": "1" } });
  assert.deepEqual(error.headers, {
    "WWW-Authenticate": 'Basic realm="gatepost", charset="UTF-8"',
    "Retry-After": "1",
  });
});

test("other errors carry no challenge of their own (RFC 6749 §5.2)", () => {
  assert.deepEqual(new OAuthError("invalid_token", "x").headers, {});
  assert.deepEqual(new OAuthError("invalid_grant", "x").headers, {});
});

test("a description has only allowed characters (RFC 6749 §5.2)", () => {
  for (let code = 0; code < 0x180; code++) {
    const character = String.fromCharCode(code);
    const { message } = new OAuthError("invalid_request", `a${character}b`);
    assert.match(message, /^a[\x20-\x21\x23-\x5b\x5d-\x7e]b$/, `character ${code}`);
    const allowed = code >= 0x20 && code <= 0x7e && character !== '"' && character !== "\\";
    if (allowed) assert.equal(message, `a${character}b`);
  }
});

test("a description replaces each forbidden character by one character (RFC 6749 §5.2)", () => {
  const error = new OAuthError("invalid_request", 'say "\\" \u{1f511}\r\n');
  assert.equal(error.message, "say '/' ???");
});
