import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { GRANT_TYPES, parseGrantType } from "../../src/oauth/grant_type.ts";

test("there are four grant types", () => {
  assert.deepEqual([...GRANT_TYPES].sort(), [
    "authorization_code",
    "client_credentials",
    "password",
    "refresh_token",
  ]);
});

test("parseGrantType() knows each by its name", () => {
  for (const type of GRANT_TYPES) assert.equal(parseGrantType(type), type);
});

describe("parseGrantType() knows no", () => {
  const table = [
    "",
    "code",
    "implicit",
    "Password",
    " password",
    "password ",
    "password,refresh_token",
    "toString",
    "0",
    "urn:ietf:params:oauth:grant-type:device_code",
  ];
  for (const text of table) {
    test(JSON.stringify(text), () => assert.equal(parseGrantType(text), undefined));
  }
});
