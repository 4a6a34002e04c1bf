import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAddress } from "../../src/base/address.ts";
import { cidrContains, parseCidr } from "../../src/base/cidr.ts";

function contains(block: string, text: string): boolean {
  const cidr = parseCidr(block);
  const address = parseAddress(text);
  assert.ok(cidr, block);
  assert.ok(address, text);
  return cidrContains(cidr, address);
}

const CONTAINED: readonly (readonly [string, string, boolean])[] = [
  ["10.0.0.0/8", "10.0.0.0", true],
  ["10.0.0.0/8", "10.255.255.255", true],
  ["10.0.0.0/8", "9.255.255.255", false],
  ["10.0.0.0/8", "11.0.0.0", false],
  ["172.16.0.0/12", "172.31.255.255", true],
  ["172.16.0.0/12", "172.32.0.0", false],
  ["192.0.2.128/25", "192.0.2.127", false],
  ["192.0.2.128/25", "192.0.2.200", true],
  ["192.0.2.1/32", "192.0.2.1", true],
  ["192.0.2.1/32", "192.0.2.0", false],
  ["192.0.2.1", "192.0.2.1", true],
  ["192.0.2.1", "192.0.2.2", false],
  ["0.0.0.0/0", "255.255.255.255", true],
  ["fd00::/8", "fdff::1", true],
  ["fd00::/8", "fc00::1", false],
  ["2001:db8::/33", "2001:db8:7fff::1", true],
  ["2001:db8::/33", "2001:db8:8000::1", false],
  ["::1", "::1", true],
  ["::1", "::2", false],
  ["::/0", "ffff::1", true],
];
for (const [block, address, expected] of CONTAINED) {
  test(`cidrContains() finds ${address} ${expected ? "within" : "outside"} ${block}`, () => {
    assert.equal(contains(block, address), expected);
  });
}

const MIXED: readonly (readonly [string, string, boolean])[] = [
  ["::/0", "10.0.0.1", false],
  ["::/3", "0.0.0.1", false],
  ["0.0.0.0/0", "::1", false],
  ["0.0.0.0/0", "::a00:1", false],
  ["::/0", "::ffff:10.0.0.1", false],
  ["10.0.0.0/8", "::ffff:10.0.0.1", true],
  ["10.0.0.0/8", "::ffff:a00:1", true],
  ["10.0.0.0/8", "64:ff9b::10.0.0.1", false],
  ["::ffff:10.0.0.0/104", "10.9.9.9", true],
  ["::ffff:10.0.0.0/104", "11.0.0.1", false],
  ["::ffff:0:0/96", "1.2.3.4", true],
  ["::ffff:0:0/96", "::1.2.3.4", false],
  ["::ffff:10.0.0.1", "10.0.0.1", true],
];
for (const [block, address, expected] of MIXED) {
  test(`cidrContains() keeps the families apart: ${address} in ${block} is ${expected}`, () => {
    assert.equal(contains(block, address), expected);
  });
}

const NO_CIDRS: readonly string[] = [
  "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/08",
  "10.0.0.0/8/8", "10.0.0.0/8 ", " 10.0.0.0/8", "10.0.0.0 /8", "10.0.0.0/255.0.0.0", "10/8",
  "10.0.0.0/0x8", "10.0.0.0/8.0", "::/129", "::/", "fd00::/1000", "[::]/0", "fe80::%eth0/10",
  "::ffff:0:0/95", "localhost", "*",
];
for (const text of NO_CIDRS) {
  test(`parseCidr() refuses ${JSON.stringify(text)}`, () => {
    assert.equal(parseCidr(text), undefined);
  });
}

const UNALIGNED: readonly string[] = [
  "10.1.2.3/8", "0.0.0.1/0", "192.0.2.129/25", "fd00::1/8", "::ffff:10.0.0.1/104",
];
for (const text of UNALIGNED) {
  test(`parseCidr() refuses ${text}, which has bits set past its prefix`, () => {
    assert.equal(parseCidr(text), undefined);
  });
}
