import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findShortage } from "../../src/outbound/shortage.ts";

/** As fetch rejects when a socket cannot be connected. */
function failed(code: string, address?: string): Error {
  return new TypeError("fetch failed", {
    cause: Object.assign(new Error("connect"), { code, address }),
  });
}

describe("findShortage()", () => {
  const FAMILIES: Readonly<Record<string, readonly number[]>> = {
    "no network": [],
    "IPv4 alone": [4],
    "IPv6 alone": [6],
    "both": [4, 6],
  };
  const CASES: readonly (readonly [code: string, address: string, own: readonly string[]])[] = [
    ["EMFILE", "192.0.2.1", Object.keys(FAMILIES)],
    ["ENFILE", "192.0.2.1", Object.keys(FAMILIES)],
    ["ENOBUFS", "2001:db8::1", Object.keys(FAMILIES)],
    ["ENOMEM", "192.0.2.1", Object.keys(FAMILIES)],
    ["ENETDOWN", "192.0.2.1", Object.keys(FAMILIES)],
    ["ENETUNREACH", "192.0.2.1", ["no network"]],
    ["ENETUNREACH", "2001:db8::1", ["no network"]],
    ["EADDRNOTAVAIL", "192.0.2.1", ["no network", "IPv4 alone", "both"]],
    ["EADDRNOTAVAIL", "2001:db8::1", ["no network", "IPv6 alone", "both"]],
    ["EHOSTUNREACH", "192.0.2.1", []],
    ["ECONNREFUSED", "192.0.2.1", []],
    ["ETIMEDOUT", "192.0.2.1", []],
  ];
  for (const [code, address, own] of CASES) {
    test(`finds ${code} of ${address} a shortage with ${own.join(", ") || "nothing"}`, () => {
      const error = failed(code, address);
      const found = Object.entries(FAMILIES)
        .filter(([, families]) => findShortage(error, () => new Set(families)) === code)
        .map(([name]) => name);
      assert.deepEqual(found, own);
    });
  }

  test("looks into the errors of several addresses", () => {
    const errors = ["192.0.2.1", "2001:db8::1"].map((address) =>
      Object.assign(new Error("connect"), { code: "EADDRNOTAVAIL", address })
    );
    const all = Object.assign(new AggregateError(errors), { code: "EADDRNOTAVAIL" });
    assert.equal(findShortage(all, () => new Set([4])), "EADDRNOTAVAIL");
    assert.equal(findShortage(all, () => new Set([6])), undefined);
  });

  test("asks this machine for its addresses, and finds nothing in what is no error", () => {
    assert.equal(findShortage(failed("EMFILE", "192.0.2.1")), "EMFILE");
    assert.equal(findShortage(undefined), undefined);
  });
});
