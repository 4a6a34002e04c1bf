import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import {
  createHmacSha256,
  equalBytes,
  equalText,
  newSecret,
  randomBytes,
  sha256,
} from "../../src/base/secret.ts";

test("randomBytes() returns the requested number of bytes, up to 256", () => {
  for (const count of [0, 1, 8, 12, 16, 32, 255, 256]) {
    assert.equal(randomBytes(count).length, count);
  }
  assert.throws(() => randomBytes(257), RangeError);
});

test("randomBytes() never returns the same bytes twice, even past the end of its pool", () => {
  const seen = new Set<string>();
  for (let count = 0; count < 5_000; count++) seen.add(randomBytes(8).toString("hex"));
  assert.equal(seen.size, 5_000);
});

test("changes to bytes of randomBytes() do not affect later ones", () => {
  const first = randomBytes(32);
  const copy = Buffer.from(first);
  first.fill(0xff);
  const later = Array.from({ length: 1_000 }, () => randomBytes(32));
  assert.ok(!later.some((bytes) => bytes.equals(copy) || bytes.equals(first)));
});

test("randomBytes() returns every byte value about equally often", () => {
  const counts = new Array<number>(256).fill(0);
  for (let round = 0; round < 1_000; round++) {
    for (const byte of randomBytes(256)) counts[byte] = (counts[byte] ?? 0) + 1;
  }
  // 1,000 expected each; 250 is eight standard deviations.
  assert.ok(counts.every((count) => count > 750 && count < 1_250), String(counts));
});

test("newSecret() returns 256 bits as 43 characters of base64url", () => {
  const secrets = new Set(Array.from({ length: 1_000 }, newSecret));
  assert.equal(secrets.size, 1_000);
  for (const secret of secrets) {
    assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
    assert.equal(Buffer.from(secret, "base64url").length, 32);
  }
});

describe("sha256() hashes a string's UTF-8 (FIPS 180-4)", () => {
  const table: [text: string, hex: string][] = [
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    ["\u00fc", "607474ca475a9724d7360aba71a56d5df77e61350e3f724cfa1f46e857e2d85f"],
  ];
  for (const [text, hex] of table) {
    test(JSON.stringify(text), () => assert.equal(sha256(text).toString("hex"), hex));
  }
});

test("createHmacSha256() gives the test vector of RFC 4231 §4.3 as base64url", () => {
  const expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
  const actual = createHmacSha256(Buffer.from("Jefe"))("what do ya want for nothing?");
  assert.equal(Buffer.from(actual, "base64url").toString("hex"), expected);
  assert.match(actual, /^[A-Za-z0-9_-]{43}$/);
});

test("createHmacSha256() equals createHmac() for keys of 0 to 64 bytes, and refuses longer", () => {
  for (let length = 0; length <= 64; length++) {
    const key = randomBytes(length);
    const hmac = createHmacSha256(key);
    for (const text of ["", "\u00fc".repeat(length), "a".repeat(3 * length)]) {
      assert.equal(hmac(text), createHmac("sha256", key).update(text).digest("base64url"));
    }
  }
  assert.throws(() => createHmacSha256(randomBytes(65)), RangeError);
});

describe("equalBytes() compares", () => {
  const table: [what: string, a: number[], b: number[], isEqual: boolean][] = [
    ["equal bytes", [1, 2, 3], [1, 2, 3], true],
    ["no bytes with no bytes", [], [], true],
    ["bytes whose last one differs", [1, 2, 3], [1, 2, 4], false],
    ["bytes whose first one differs", [0, 2, 3], [1, 2, 3], false],
    ["bytes with more bytes", [1, 2], [1, 2, 3], false],
    ["bytes with fewer bytes", [1, 2, 3], [1, 2], false],
    ["no bytes with one byte", [], [0], false],
  ];
  for (const [what, a, b, isEqual] of table) {
    test(what, () => assert.equal(equalBytes(Uint8Array.from(a), Uint8Array.from(b)), isEqual));
  }
});

describe("equalText() compares", () => {
  const table: [given: string, expected: string, isEqual: boolean][] = [
    ["secret", "secret", true],
    ["", "", true],
    ["secret", "secreT", false],
    ["secret", "secret ", false],
    ["", "secret", false],
    ["\u00fc", "u\u0308", false],
    ["\u{1f511}", "\u{1f511}", true],
  ];
  for (const [given, expected, isEqual] of table) {
    const what = `${JSON.stringify(given)} with ${JSON.stringify(expected)}`;
    test(what, () => assert.equal(equalText(given, expected), isEqual));
  }
});
