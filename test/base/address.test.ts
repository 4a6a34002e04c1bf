import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";
import { formatAddress, parseAddress } from "../../src/base/address.ts";
import { isPublicAddress } from "../../src/base/public_address.ts";
import { LITERALS, NO_LITERALS, URL_HOSTS } from "../corpus/addresses.ts";
import { openRandom } from "../helpers/random.ts";

test("the corpus has at least 120 address forms, all different", () => {
  const texts = [...LITERALS, ...URL_HOSTS].map(({ text }) => text);
  assert.ok(texts.length >= 120);
  assert.deepEqual(texts.filter((text, index) => texts.indexOf(text) !== index), []);
});

for (const { text, verdict, why } of LITERALS) {
  test(`isPublicAddress() finds ${text} ${verdict}: ${why}`, () => {
    const address = parseAddress(text);
    assert.ok(address);
    assert.equal(isPublicAddress(address) ? "public" : "refused", verdict);
  });
}

for (const text of NO_LITERALS) {
  test(`parseAddress() refuses ${JSON.stringify(text)}`, () => {
    assert.equal(parseAddress(text), undefined);
  });
}

test("parseAddress() gives an address the same value however it is written", () => {
  const forms = ["2001:db8::1", "2001:DB8:0:0:0:0:0:1", "2001:0db8::0001", "2001:db8::0.0.0.1"];
  for (const form of forms) {
    assert.deepEqual(parseAddress(form), { family: 6, value: 0x20010db8n << 96n | 1n });
  }
});

test("parseAddress() turns an IPv4-mapped address into the IPv4 address", () => {
  for (const form of ["192.0.2.1", "::ffff:192.0.2.1", "0:0:0:0:0:FFFF:c000:0201"]) {
    assert.deepEqual(parseAddress(form), { family: 4, value: 0xc0000201n });
  }
});

test("parseAddress() accepts what inet_pton accepts, and nothing else", (context) => {
  const random = openRandom(context);
  const parts = ["0", "1", "01", "255", "256", "ffff", "FFFFF", "db8", ".", ".", ":", ":", ":",
    "::", "1.2.3.4", "ffff:1.2.3.4", "x"];
  let accepted = 0;
  for (let round = 0; round < 40_000; round += 1) {
    const text = Array.from({ length: 1 + random.below(12) }, () => random.pick(parts)).join("");
    const address = parseAddress(text);
    assert.equal(address !== undefined, isIP(text) !== 0, text);
    if (address !== undefined) accepted += 1;
  }
  assert.ok(accepted > 200, `only ${accepted} texts were accepted, too few to compare`);
});

test("formatAddress() writes IPv6 as URL does, and parseAddress() reads it back", (context) => {
  const random = openRandom(context);
  for (let round = 0; round < 2_000; round += 1) {
    const next = () => (random.chance(50) ? "0" : random.below(0x10000).toString(16));
    const text = Array.from({ length: 8 }, next).join(":");
    const address = parseAddress(text);
    assert.ok(address);
    if (address.family === 6) {
      assert.equal(`[${formatAddress(address)}]`, new URL(`http://[${text}]/`).hostname);
    }
    assert.deepEqual(parseAddress(formatAddress(address)), address);
  }
});

const FORMATTED: readonly (readonly [string, string])[] = [
  ["192.0.2.255", "192.0.2.255"],
  ["0.0.0.0", "0.0.0.0"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["0:0:0:0:0:0:0:0", "::"],
  ["0:0:0:0:0:0:0:1", "::1"],
  ["1:0:0:0:0:0:0:0", "1::"],
  ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
];
for (const [from, to] of FORMATTED) {
  test(`formatAddress() writes ${from} as ${to}`, () => {
    const address = parseAddress(from);
    assert.ok(address);
    assert.equal(formatAddress(address), to);
  });
}
