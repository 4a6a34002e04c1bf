import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Form, parseForm } from "../../src/base/form.ts";
import { clientAuthFailed, parseClientAuth } from "../../src/oauth/client_auth.ts";
import { OAuthError } from "../../src/oauth/errors.ts";
import { badBasicHeaders, basic, goodBasicHeaders } from "../corpus/basic_headers.ts";

describe("parseClientAuth() reads Basic (RFC 6749 §2.3.1, RFC 7617 §2)", () => {
  for (const [what, authorization, clientId, secrets] of goodBasicHeaders) {
    test(what, () => {
      assert.deepEqual(parseClientAuth(authorization, form("")), { clientId, secrets });
    });
  }
});

describe("parseClientAuth() refuses as invalid_client (RFC 6749 §5.2, RFC 7617 §2)", () => {
  for (const [what, authorization] of badBasicHeaders) {
    test(what, () => checkRefusal(authorization, "", "invalid_client"));
    test(`${what}, with credentials in the body`, () => {
      checkRefusal(authorization, "client_id=a&client_secret=b", "invalid_client");
    });
  }
});

describe("parseClientAuth() reads the body (RFC 6749 §2.3.1, §3.2.1)", () => {
  const table: [what: string, body: string, clientId: string, secrets: string[]][] = [
    ["an id and a secret", "client_id=a&client_secret=b", "a", ["b"]],
    ["an id alone: a public app", "client_id=a", "a", []],
    ["an empty secret, which counts as none", "client_id=a&client_secret=", "a", []],
    ["a secret that is decoded once", "client_id=a&client_secret=b%2Bc%2525", "a", ["b+c%25"]],
    ["a plus sign as a space", "client_id=a&client_secret=b+c", "a", ["b c"]],
    ["an id beside other parameters", "grant_type=x&client_id=a&scope=y", "a", []],
  ];
  for (const [what, body, clientId, secrets] of table) {
    test(what, () => {
      assert.deepEqual(parseClientAuth(undefined, form(body)), { clientId, secrets });
    });
  }
});

describe("parseClientAuth() accepts client_id beside Basic (RFC 6749 §3.2.1)", () => {
  const table: [what: string, pair: string, body: string, secrets: string[]][] = [
    ["the same id", "a:b", "client_id=a", ["b"]],
    ["the same id, encoded in Basic", "%61:b", "client_id=a", ["b"]],
    ["an empty id, which counts as none", "a:b", "client_id=", ["b"]],
    ["an empty secret in the body, which counts as none", "a:b", "client_secret=", ["b"]],
    ["the same id beside an empty password", "a:", "client_id=a", []],
  ];
  for (const [what, pair, body, secrets] of table) {
    test(what, () => {
      assert.deepEqual(parseClientAuth(basic(pair), form(body)), { clientId: "a", secrets });
    });
  }
});

describe("parseClientAuth() refuses mixtures as invalid_request (RFC 6749 §2.3)", () => {
  const table: [what: string, authorization: string, body: string][] = [
    ["both secrets", basic("a:b"), "client_id=a&client_secret=b"],
    ["both secrets, the body's without an id", basic("a:b"), "client_secret=b"],
    ["both secrets, differing", basic("a:b"), "client_id=a&client_secret=c"],
    ["an empty password and a secret in the body", basic("a:"), "client_id=a&client_secret=b"],
    ["another id in the body", basic("a:b"), "client_id=c"],
    ["another id in the body, with its secret", basic("a:b"), "client_id=c&client_secret=d"],
    ["an id in another case", basic("a:b"), "client_id=A"],
    ["another id beside an empty password", basic("a:"), "client_id=c"],
    ["an id that equals Basic's only before decoding", basic("%61:b"), "client_id=%2561"],
  ];
  for (const [what, authorization, body] of table) {
    test(what, () => checkRefusal(authorization, body, "invalid_request"));
  }
});

describe("parseClientAuth() refuses a missing app as invalid_client (RFC 6749 §5.2)", () => {
  for (const body of ["", "client_id=", "client_secret=b", "client_id=&client_secret=b", "a=b"]) {
    test(`"${body}"`, () => checkRefusal(undefined, body, "invalid_client"));
  }
});

test("refusals do not repeat the credentials", () => {
  const inputs: [authorization: string | undefined, body: string][] = [
    [basic("hunter2:hunter2"), "client_id=a"],
    [basic("hunter2:hunter2"), "client_secret=hunter2"],
    [basic("hunter2"), ""],
    ["Bearer hunter2", ""],
    [undefined, "client_secret=hunter2"],
  ];
  for (const [authorization, body] of inputs) {
    const error = refusal(authorization, body);
    assert.doesNotMatch(`${error.message} ${JSON.stringify(error.headers)}`, /hunter2/);
  }
});

test("clientAuthFailed() returns a 401 with the challenge (RFC 6749 §5.2)", () => {
  const error = clientAuthFailed();
  assert.equal(error.code, "invalid_client");
  assert.equal(error.status, 401);
  assert.equal(
    error.headers["WWW-Authenticate"],
    'Basic realm="gatepost", charset="UTF-8"',
  );
});

test("the corpus holds at least 60 headers", () => {
  assert.ok(goodBasicHeaders.length + badBasicHeaders.length >= 60);
});

function form(body: string): Form {
  const parsed = parseForm(body);
  assert.ok(parsed !== undefined);
  return parsed;
}

function refusal(authorization: string | undefined, body: string): OAuthError {
  try {
    parseClientAuth(authorization, form(body));
  } catch (error) {
    assert.ok(error instanceof OAuthError);
    return error;
  }
  assert.fail("accepted");
}

function checkRefusal(authorization: string | undefined, body: string, code: string): void {
  const error = refusal(authorization, body);
  assert.equal(error.code, code);
  assert.equal(error.status, code === "invalid_client" ? 401 : 400);
  assert.equal("WWW-Authenticate" in error.headers, code === "invalid_client");
}
