import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseAddress } from "../../src/base/address.ts";
import {
  clientAddress,
  isTrustedProxy,
  throttleAddress,
  throttleNetworks,
} from "../../src/http/client_address.ts";
import { readCidr } from "../helpers/cidr.ts";

const PROXIES = ["10.0.0.0/8", "2001:db8:ffff::/48", "fe80::/10"].map(readCidr);

describe("clientAddress() behind trusted proxies", () => {
  type Row = [what: string, socket: string, forwardedFor: string, client: string];
  const table: Row[] = [
    ["is the socket's without the header", "10.0.0.1", "", "10.0.0.1"],
    ["is what the proxy reports", "10.0.0.1", "192.0.2.7", "192.0.2.7"],
    ["is the socket's if that is no proxy", "192.0.2.9", "192.0.2.7", "192.0.2.9"],
    ["is never what the client itself wrote", "10.0.0.1", "203.0.113.5, 192.0.2.7", "192.0.2.7"],
    ["is found behind several proxies", "10.0.0.1", "192.0.2.7, 10.0.0.2, 10.0.0.3", "192.0.2.7"],
    ["is the last one that is no proxy", "10.0.0.1", "10.9.9.9, 192.0.2.7, 10.0.0.2", "192.0.2.7"],
    ["is the outermost if all are proxies", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["is the last one that can be read", "10.0.0.1", "192.0.2.7, unknown, 10.0.0.2", "10.0.0.2"],
    ["is the proxy's if it reports nothing readable", "10.0.0.1", "unknown", "10.0.0.1"],
    ["is read without a port (RFC 7239 §6)", "10.0.0.1", "192.0.2.7:51234", "192.0.2.7"],
    ["is read without brackets and a port", "10.0.0.1", "[2001:db8::7]:443", "2001:db8::7"],
    ["is read without brackets", "10.0.0.1", "[2001:db8::7]", "2001:db8::7"],
    ["is found behind a proxy with a port", "10.0.0.1", "192.0.2.7, 10.0.0.2:80", "192.0.2.7"],
    ["is not read before an invalid port", "10.0.0.1", "192.0.2.7:x", "10.0.0.1"],
    ["has no port at the end of IPv6", "10.0.0.1", "2001:db8::7:443", "2001:db8::7:443"],
    ["is read without spaces around", "10.0.0.1", "  203.0.113.5 ,\t192.0.2.7  ", "192.0.2.7"],
    ["is found behind a mapped IPv4 proxy", "::ffff:10.0.0.1", "192.0.2.7", "192.0.2.7"],
    ["is IPv6 in canonical form", "2001:db8:ffff::1", "2001:DB8:0:0::7", "2001:db8::7"],
    ["is found behind a link-local proxy with a zone", "fe80::1%eth0", "192.0.2.7", "192.0.2.7"],
    ["has no zone itself", "fe80::1%eth0", "unknown", "fe80::1"],
    ["knows a mapped proxy in the header", "10.0.0.1", "192.0.2.7, ::ffff:10.0.0.2", "192.0.2.7"],
    ["is canonical without a header too", "2001:DB8:0::1", "", "2001:db8::1"],
    ["is the IPv4 address of a mapped one", "::ffff:192.0.2.7", "", "192.0.2.7"],
  ];
  for (const [what, socket, forwardedFor, client] of table) {
    test(what, () => assert.equal(clientAddress(socket, forwardedFor, PROXIES), client));
  }
});

test("clientAddress() ignores the header if no proxy is trusted", () => {
  for (const socket of ["127.0.0.1", "10.0.0.1", "::1"]) {
    assert.equal(clientAddress(socket, "192.0.2.7", []), socket);
  }
});

test("clientAddress() takes linear time over a long header", () => {
  const startMs = performance.now();
  clientAddress("10.0.0.1", "10.0.0.2,".repeat(20_000), PROXIES);
  assert.ok(performance.now() - startMs < 1_000);
});

test("isTrustedProxy() is true within the blocks, and false for what is no address", () => {
  assert.equal(isTrustedProxy(parseAddress("10.255.255.255"), PROXIES), true);
  assert.equal(isTrustedProxy(parseAddress("11.0.0.0"), PROXIES), false);
  assert.equal(isTrustedProxy(parseAddress("unknown"), PROXIES), false);
  assert.equal(isTrustedProxy(parseAddress("10.0.0.1"), []), false);
});

describe("throttleAddress() counts", () => {
  const table: [address: string, unit: string][] = [
    ["192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "20010db800010002"],
    ["2001:db8:1:2::", "20010db800010002"],
    ["2001:db8:1:3::", "20010db800010003"],
    ["::1", "0000000000000000"],
    ["fe80::1:2%eth0", "fe80000000000000"],
    ["64:ff9b::192.0.2.7", "192.0.2.7"], // NAT64 has all of IPv4 in one /64
    ["64:ff9b:0:0:1::c000:207", "0064ff9b00000000"],
    ["unreadable", "unreadable"],
  ];
  for (const [address, unit] of table) {
    test(`${address} as ${unit}`, () => assert.equal(throttleAddress(address), unit));
  }

  test("a whole /64 as one, and the next as another", () => {
    assert.equal(
      throttleAddress("2001:db8::1"),
      throttleAddress("2001:db8::ffff:ffff:ffff:ffff"),
    );
    assert.notEqual(throttleAddress("2001:db8::1"), throttleAddress("2001:db8:0:1::1"));
  });
});

describe("throttleNetworks() counts", () => {
  test("only an IPv4 address itself", () => {
    const network = { first: "192.0.2.7", last: "192.0.2.7", share: 1 };
    assert.deepEqual(throttleNetworks("192.0.2.7"), [network]);
    assert.deepEqual(throttleNetworks("64:ff9b::c000:207"), [network]);
  });
  test("an IPv6 address in its /64, and in its /56 and /48, which are allowed more", () => {
    assert.deepEqual(throttleNetworks("2001:db8:1:2a3b::5"), [
      { first: "20010db800012a3b", last: "20010db800012a3b", share: 1 },
      { first: "20010db800012a00", last: "20010db800012aff", share: 4 },
      { first: "20010db800010000", last: "20010db80001ffff", share: 16 },
    ]);
  });
  test("text that is no address unchanged", () => {
    assert.deepEqual(throttleNetworks("?"), [{ first: "?", last: "?", share: 1 }]);
  });
});
