import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { corsPolicy } from "../../src/api/cors.ts";
import type { FieldError } from "../../src/base/problem.ts";
import { errorLine } from "../../src/hosting/check_data.ts";
import { checkEndpoint } from "../../src/hosting/check_endpoint.ts";

function check(members: Readonly<Record<string, unknown>>) {
  const errors: FieldError[] = [];
  const endpoint = { method: "GET", path: "/", handle() {}, ...members };
  const loaded = checkEndpoint(endpoint, { file: "a.ts", exportName: "a" }, errors);
  return { loaded, reasons: errors.map(errorLine) };
}

const limitOf = (limit: unknown, access: object = { scope: [] }) => {
  const { loaded, reasons } = check({ limit, ...access });
  return { limit: loaded?.limit, reasons };
};
const PUBLIC = { public: true };
const corsOf = (cors: unknown) => {
  const { loaded, reasons } = check({ cors, ...PUBLIC });
  return { cors: loaded?.cors, reasons };
};

test("a limit counts by caller if there is a token, or else by address", () => {
  const rate = { count: 100, windowMs: 60_000 };
  const limit = { rate: "100/1m" };
  assert.deepEqual(limitOf(limit), { limit: { ...rate, by: "caller" }, reasons: [] });
  assert.deepEqual(limitOf(limit, PUBLIC).limit, { ...rate, by: "address" });
  for (const by of ["caller", "app", "address"]) {
    assert.deepEqual(limitOf({ ...limit, by }), { limit: { ...rate, by }, reasons: [] });
  }
  assert.deepEqual(limitOf(undefined), { limit: undefined, reasons: [] });
});

describe("a limit is refused in one line for", () => {
  const table: [what: string, value: unknown, reason: RegExp][] = [
    ["a bare rate", "100/1m", /^\/limit Must be an object/],
    ["null", null, /^\/limit Must be an object/],
    ["no rate", {}, /^\/limit\/rate Is required/],
    ["a rate of 0", { rate: "0/1m" }, /^\/limit\/rate Must be a rate such as 100\/1m/],
    ["a number as the rate", { rate: 100 }, /^\/limit\/rate Must be/],
    ["an unknown `by`", { rate: "1/1s", by: "user" }, /^\/limit\/by Must be one of: caller, app/],
    ["another field", { rate: "1/1s", per: "1m" }, /^\/limit\/per Unknown member/],
  ];
  for (const [what, value, reason] of table) {
    test(what, () => {
      const { limit, reasons } = limitOf(value);
      assert.equal(reasons.length, 1, reasons.join("\n"));
      assert.match(reasons.join(), reason);
      assert.equal(limit, undefined);
    });
  }
  for (const by of ["caller", "app"]) {
    test(`counting by ${by} at a public endpoint`, () => {
      const { reasons } = limitOf({ rate: "1/1s", by }, PUBLIC);
      assert.deepEqual(reasons, ["/limit/by Must be address without a scope."]);
    });
  }
});

test("CORS accepts a list of origins or all, and names of headers", () => {
  const origins = ["https://shop.example", "http://localhost:3000"];
  assert.deepEqual(corsOf(undefined), { cors: undefined, reasons: [] });
  assert.deepEqual(corsOf({ origins }), { cors: corsPolicy(origins), reasons: [] });
  assert.deepEqual(corsOf({ origins: "*" }), { cors: corsPolicy("*"), reasons: [] });
  assert.deepEqual(corsOf({ headers: ["X-Cart"], expose: ["X-Total"] }),
    { cors: corsPolicy(undefined, ["X-Cart"], ["X-Total"]), reasons: [] });
});

describe("CORS is refused in one line for", () => {
  const table: [what: string, value: unknown, reason: RegExp][] = [
    ["a bare origin", "https://shop.example", /^\/cors Must be an object/],
    ["an origin without a list", { origins: "https://a.example" }, /^\/cors\/origins Must be/],
    ["a path", { origins: ["https://a.example/"] }, /^\/cors\/origins\/0 Must be/],
    ["a default port", { origins: ["https://a.example:443"] }, /^\/cors\/origins\/0 Must be/],
    ["capital letters", { origins: ["https://A.example"] }, /^\/cors\/origins\/0 Must be/],
    ["no scheme", { origins: ["a.example"] }, /^\/cors\/origins\/0 Must be/],
    ["a wildcard in a list", { origins: ["*"] }, /^\/cors\/origins\/0 Must be/],
    ["a sandbox's origin", { origins: ["null"] }, /^\/cors\/origins\/0 Must be/],
    ["a number", { origins: ["https://a.example", 1] }, /^\/cors\/origins\/1 Must be/],
    ["a header of two words", { headers: ["X Cart"] }, /^\/cors\/headers\/0 Must be the name/],
    ["two headers in one string", { expose: ["A, B"] }, /^\/cors\/expose\/0 Must be the name/],
    ["a line break", { expose: ["A\r\nB"] }, /^\/cors\/expose\/0/],
    ["another field", { origin: "*" }, /^\/cors\/origin Unknown member\.$/],
  ];
  for (const [what, value, reason] of table) {
    test(what, () => {
      const { reasons } = corsOf(value);
      assert.equal(reasons.length, 1, reasons.join("\n"));
      assert.match(reasons.join(), reason);
    });
  }
});
