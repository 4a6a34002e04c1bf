import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { corsPolicy } from "../../src/api/cors.ts";
import { checkCors, checkLimit } from "../../src/hosting/check_policy.ts";

const limitOf = (value: unknown, scopes: readonly string[] | undefined = []) => {
  const reasons: string[] = [];
  return { limit: checkLimit(value, scopes, reasons), reasons };
};
const corsOf = (value: unknown) => {
  const reasons: string[] = [];
  return { cors: checkCors(value, reasons), reasons };
};

test("a limit counts by caller where there is a token, else by address", () => {
  const rate = { count: 100, windowMs: 60_000 };
  const limit = { rate: "100/1m" };
  const publicLimit = checkLimit(limit, undefined, []);
  assert.deepEqual(limitOf(limit), { limit: { ...rate, by: "caller" }, reasons: [] });
  assert.deepEqual(publicLimit, { ...rate, by: "address" });
  for (const by of ["caller", "app", "address"]) {
    assert.deepEqual(limitOf({ ...limit, by }), { limit: { ...rate, by }, reasons: [] });
  }
  assert.deepEqual(limitOf(undefined), { limit: undefined, reasons: [] });
});

describe("a limit is refused in one line for", () => {
  const table: [what: string, value: unknown, reason: RegExp][] = [
    ["a bare rate", "100/1m", /^limit must be an object, such as/],
    ["nothing", null, /^limit must be an object/],
    ["no rate", {}, /^limit\.rate must be a rate such as 100\/1m/],
    ["a rate of nothing", { rate: "0/1m" }, /^limit\.rate must be/],
    ["a number", { rate: 100 }, /^limit\.rate must be/],
    ["a strange `by`", { rate: "1/1s", by: "user" }, /^limit\.by must be one of caller, app, addr/],
    ["another field", { rate: "1/1s", per: "1m" }, /^"per" is not a field of limit$/],
  ];
  for (const [what, value, reason] of table) {
    test(what, () => {
      const { limit, reasons } = limitOf(value);
      assert.equal(reasons.length, 1, reasons.join("\n"));
      assert.match(reasons.join(), reason);
      if (what !== "another field") assert.equal(limit, undefined);
    });
  }
  for (const by of ["caller", "app"]) {
    test(`${by} of an endpoint that takes no token`, () => {
      const reasons: string[] = [];
      checkLimit({ rate: "1/1s", by }, undefined, reasons);
      assert.deepEqual(reasons, [`limit.by must be address: without a scope there is no ${by}`]);
    });
  }
});

test("CORS takes origins or all, and names of headers", () => {
  const origins = ["https://shop.example", "http://localhost:3000"];
  assert.deepEqual(corsOf(undefined), { cors: undefined, reasons: [] });
  assert.deepEqual(corsOf({ origins }), { cors: corsPolicy(origins), reasons: [] });
  assert.deepEqual(corsOf({ origins: "*" }), { cors: corsPolicy("*"), reasons: [] });
  assert.deepEqual(corsOf({ headers: ["X-Cart"], expose: ["X-Total"] }),
    { cors: corsPolicy(undefined, ["X-Cart"], ["X-Total"]), reasons: [] });
});

describe("CORS is refused in one line for", () => {
  const table: [what: string, value: unknown, reason: RegExp][] = [
    ["a bare origin", "https://shop.example", /^cors must be an object, such as/],
    ["an origin alone", { origins: "https://a.example" }, /^cors\.origins must be "\*" or/],
    ["a path", { origins: ["https://a.example/"] }, /^cors\.origins/],
    ["a usual port", { origins: ["https://a.example:443"] }, /^cors\.origins/],
    ["capitals", { origins: ["https://A.example"] }, /^cors\.origins/],
    ["no scheme", { origins: ["a.example"] }, /^cors\.origins/],
    ["a wildcard in a list", { origins: ["*"] }, /^cors\.origins/],
    ["a sandbox", { origins: ["null"] }, /^cors\.origins/],
    ["a number", { origins: ["https://a.example", 1] }, /^cors\.origins/],
    ["a header of two words", { headers: ["X Cart"] }, /^cors\.headers must be a list of names/],
    ["two headers in one text", { expose: ["A, B"] }, /^cors\.expose must be a list of names/],
    ["a line break", { expose: ["A\r\nB"] }, /^cors\.expose/],
    ["another field", { origin: "*" }, /^"origin" is not a field of cors$/],
  ];
  for (const [what, value, reason] of table) {
    test(what, () => {
      const { reasons } = corsOf(value);
      assert.equal(reasons.length, 1, reasons.join("\n"));
      assert.match(reasons.join(), reason);
    });
  }
});
