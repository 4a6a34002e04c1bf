import assert from "node:assert/strict";
import { createDecipheriv } from "node:crypto";
import { describe, test } from "node:test";
import { createSeal, SealError } from "../../src/base/seal.ts";

const KEY = Buffer.alloc(32, 7);
const SECRET = "-----BEGIN PRIVATE KEY-----\nMC4C\u00fc\n";

test("a seal decrypts what it encrypted in the same context", () => {
  const seal = createSeal(KEY);
  assert.equal(seal.active, true);
  for (const secret of ["", "a", SECRET, "\u{1f511}".repeat(500)]) {
    assert.equal(seal.decrypt(seal.encrypt(secret, "k1"), "k1"), secret);
  }
});

test("an encrypted secret is `sealed:` and base64url that does not contain the secret", () => {
  const stored = createSeal(KEY).encrypt(SECRET, "k1");
  assert.match(stored, /^sealed:[A-Za-z0-9_-]+$/);
  const bytes = Buffer.from(stored.slice("sealed:".length), "base64url");
  assert.equal(bytes.length, 12 + Buffer.byteLength(SECRET) + 16);
  assert.ok(!bytes.includes("PRIVATE"));
});

test("encrypt() is AES-256-GCM: nonce of 12 bytes, text, tag of 16 (NIST SP 800-38D)", () => {
  const bytes = Buffer.from(createSeal(KEY).encrypt(SECRET, "k1").slice(7), "base64url");
  const nonce = bytes.subarray(0, 12);
  const decipher = createDecipheriv("aes-256-gcm", KEY, nonce, { authTagLength: 16 })
    .setAAD(Buffer.from("k1"))
    .setAuthTag(bytes.subarray(-16));
  const decrypted = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
  assert.equal(decrypted.toString(), SECRET);
});

test("encrypt() never uses a nonce twice, even for the same secret", () => {
  const seal = createSeal(KEY);
  const nonces = new Set(
    Array.from({ length: 5_000 }, () =>
      Buffer.from(seal.encrypt("x", "k1").slice(7), "base64url").subarray(0, 12).toString("hex")),
  );
  assert.equal(nonces.size, 5_000);
});

test("decrypt() refuses a secret that was encrypted in another context", () => {
  const seal = createSeal(KEY);
  const stored = seal.encrypt(SECRET, "k1");
  for (const context of ["k2", "", "K1", "k1 "]) {
    assert.throws(() => seal.decrypt(stored, context), SealError);
  }
});

test("decrypt() refuses a secret that another key encrypted", () => {
  const stored = createSeal(KEY).encrypt(SECRET, "k1");
  const other = Buffer.from(KEY);
  other[31] = 8;
  assert.throws(() => createSeal(other).decrypt(stored, "k1"), SealError);
});

test("decrypt() without a key refuses an encrypted secret", () => {
  const stored = createSeal(KEY).encrypt(SECRET, "k1");
  assert.throws(() => createSeal(undefined).decrypt(stored, "k1"), SealError);
});

test("decrypt() refuses a secret of which any bit was changed", () => {
  const seal = createSeal(KEY);
  const bytes = Buffer.from(seal.encrypt("secret", "k1").slice(7), "base64url");
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const altered = Buffer.from(bytes);
    altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    const stored = `sealed:${altered.toString("base64url")}`;
    assert.throws(() => seal.decrypt(stored, "k1"), SealError, `bit ${bit}`);
  }
});

test("decrypt() refuses a secret that was cut to any length", () => {
  const seal = createSeal(KEY);
  const bytes = Buffer.from(seal.encrypt("secret", "k1").slice(7), "base64url");
  for (let length = 0; length < bytes.length; length++) {
    const stored = `sealed:${bytes.subarray(0, length).toString("base64url")}`;
    assert.throws(() => seal.decrypt(stored, "k1"), SealError, `length ${length}`);
  }
});

test("a SealError does not contain the stored secret", () => {
  const stored = createSeal(KEY).encrypt(SECRET, "k1");
  assert.throws(() => createSeal(Buffer.alloc(32)).decrypt(stored, "k1"), (error: unknown) => {
    assert.ok(error instanceof SealError);
    assert.equal(error.name, "SealError");
    assert.ok(!error.message.includes(stored.slice(7, 15)));
    return true;
  });
});

describe("a seal without a key", () => {
  const seal = createSeal(undefined);

  test("is not active", () => assert.equal(seal.active, false));

  test("decrypts what it encrypted", () => {
    assert.equal(seal.decrypt(seal.encrypt(SECRET, "k1"), "k1"), SECRET);
  });

  test("returns a secret that begins with `sealed:` as it was", () => {
    assert.equal(seal.decrypt(seal.encrypt("sealed:x", "k1"), "k1"), "sealed:x");
  });

  test("makes secrets that a seal with a key still decrypts", () => {
    assert.equal(createSeal(KEY).decrypt(seal.encrypt(SECRET, "k1"), "k1"), SECRET);
  });
});

test("a secret of an older key is decrypted, and renew() encrypts it with the first key", () => {
  const older = Buffer.alloc(32, 9);
  const both = createSeal(KEY, older);
  const stored = createSeal(older).encrypt(SECRET, "k1");
  assert.equal(both.decrypt(stored, "k1"), SECRET);
  const renewed = both.renew(stored, "k1");
  assert.equal(createSeal(KEY).decrypt(renewed, "k1"), SECRET);
  assert.equal(both.renew(renewed, "k1"), renewed);
  assert.throws(() => createSeal(older).decrypt(renewed, "k1"), SealError);
});

test("renew() encrypts a secret that was stored readable, and without a key leaves it so", () => {
  const plain = createSeal().encrypt(SECRET, "k1");
  assert.equal(createSeal(KEY).decrypt(createSeal(KEY).renew(plain, "k1"), "k1"), SECRET);
  assert.notEqual(createSeal(KEY).renew(plain, "k1"), plain);
  assert.equal(createSeal().renew(plain, "k1"), plain);
});
