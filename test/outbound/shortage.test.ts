import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { describe, test } from "node:test";
import { findShortage } from "../../src/outbound/shortage.ts";

/** As fetch rejects when a socket cannot be connected. */
function failed(code: string, address?: string): Error {
  return new TypeError("fetch failed", {
    cause: Object.assign(new Error("connect"), { code, address }),
  });
}

describe("findShortage()", () => {
  const lo = ["127.0.0.1", "::1"].map((address) => ({ address, internal: true }));
  const outside = (address: string) => ({ address, internal: false });
  const linkLocal = outside("fe80::1");
  const ipv4 = outside("198.51.100.7");
  const ipv6 = outside("2001:db8::7");
  const NETWORKS = {
    "no network": { lo, eth0: [linkLocal] },
    "IPv4 alone": { lo, eth0: [ipv4, linkLocal] },
    "IPv6 alone": { lo, eth0: [linkLocal, ipv6] },
    "both": { lo, eth0: [ipv4], eth1: [ipv6], eth2: undefined },
  };
  const CASES: readonly (readonly [code: string, address: string, own: readonly string[]])[] = [
    ["EMFILE", "192.0.2.1", Object.keys(NETWORKS)],
    ["ENFILE", "192.0.2.1", Object.keys(NETWORKS)],
    ["ENOBUFS", "2001:db8::1", Object.keys(NETWORKS)],
    ["ENOMEM", "192.0.2.1", Object.keys(NETWORKS)],
    ["ENETDOWN", "192.0.2.1", Object.keys(NETWORKS)],
    ["ENETUNREACH", "192.0.2.1", ["no network"]],
    ["ENETUNREACH", "2001:db8::1", ["no network"]],
    ["EADDRNOTAVAIL", "192.0.2.1", ["no network", "IPv4 alone", "both"]],
    ["EADDRNOTAVAIL", "2001:db8::1", ["no network", "IPv6 alone", "both"]],
    ["NAME_LOOKUP_UNANSWERED", "", ["no network"]],
    ["NAME_LOOKUP_FAILED", "", []],
    ["EHOSTUNREACH", "192.0.2.1", []],
    ["ECONNREFUSED", "192.0.2.1", []],
    ["ETIMEDOUT", "192.0.2.1", []],
  ];
  for (const [code, address, own] of CASES) {
    test(`counts ${code} of ${address} as a shortage with ${own.join(", ") || "nothing"}`, () => {
      const error = failed(code, address);
      const found = Object.entries(NETWORKS)
        .filter(([, interfaces]) => findShortage(error, () => interfaces) === code)
        .map(([name]) => name);
      assert.deepEqual(found, own);
    });
  }

  test("looks into the errors of several addresses", () => {
    const errors = ["192.0.2.1", "2001:db8::1"].map((address) =>
      Object.assign(new Error("connect"), { code: "EADDRNOTAVAIL", address })
    );
    const all = Object.assign(new AggregateError(errors), { code: "EADDRNOTAVAIL" });
    assert.equal(findShortage(all, () => NETWORKS["IPv4 alone"]), "EADDRNOTAVAIL");
    assert.equal(findShortage(all, () => NETWORKS["IPv6 alone"]), undefined);
  });

  test("finds only general shortages if this machine's addresses cannot be read", () => {
    const unreadable = () => {
      throw new Error("uv_interface_addresses");
    };
    for (const code of ["ENETUNREACH", "EADDRNOTAVAIL", "NAME_LOOKUP_UNANSWERED"]) {
      assert.equal(findShortage(failed(code, "192.0.2.1"), unreadable), undefined);
    }
    assert.equal(findShortage(failed("EMFILE"), unreadable), "EMFILE");
  });

  test("uses this machine's addresses by default, and finds none without an error", () => {
    const error = failed("NAME_LOOKUP_UNANSWERED");
    assert.equal(findShortage(error), findShortage(error, networkInterfaces));
    assert.equal(findShortage(undefined), undefined);
  });
});
