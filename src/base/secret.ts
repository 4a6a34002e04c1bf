import { hash, randomFillSync, timingSafeEqual } from "node:crypto";

const POOL = Buffer.alloc(8192);
let used = POOL.length;

/** Returns `count` unpredictable bytes (at most 256) from a pool: filling it costs far more. */
export function randomBytes(count: number): Buffer {
  if (count > 256) throw new RangeError("randomBytes: 256 bytes at most");
  if (used + count > POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  const bytes = Buffer.from(POOL.subarray(used, used + count));
  POOL.fill(0, used, used + count); // what was given out is not kept
  used += count;
  return bytes;
}

/** A secret with 256 bits of entropy: 43 characters of base64url. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** A password with 144 bits of entropy: 24 characters of base64url. */
export function newPassword(): string {
  return randomBytes(18).toString("base64url");
}

/** SHA-256 of bytes or a string's UTF-8: 32 bytes. High-entropy secrets are stored so. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash("sha256", data, "buffer");
}

const BLOCK_BYTES = 64;

/**
 * Makes HMAC-SHA-256 (RFC 2104 §2) of a string's UTF-8 as base64url; its key has at most 64 bytes.
 * It uses two one-shot hashes: an Hmac object costs a busy process several times as much.
 */
export function createHmacSha256(key: Uint8Array): (text: string) => string {
  if (key.length > BLOCK_BYTES) throw new RangeError("createHmacSha256: a key of 64 bytes at most");
  const pad = (byte: number) =>
    Uint8Array.from({ length: BLOCK_BYTES }, (_, index) => byte ^ (key[index] ?? 0));
  const [inner, outer] = [pad(0x36), pad(0x5c)];
  return (text) => {
    const hashed = sha256(Buffer.concat([inner, Buffer.from(text)]));
    return hash("sha256", Buffer.concat([outer, hashed]), "base64url");
  };
}

/** Whether two byte strings are equal, in a time that does not show where they differ. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}

/** Whether two strings are equal, in a time that shows neither where they differ nor a length. */
export function equalText(given: string, expected: string): boolean {
  return timingSafeEqual(sha256(given), sha256(expected));
}
