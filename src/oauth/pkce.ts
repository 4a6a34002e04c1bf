import { hash, timingSafeEqual } from "node:crypto";

/** RFC 7636 §4.2: BASE64URL(SHA256(verifier)) is 43 characters, never more; `plain` is not done. */
export const CODE_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** RFC 7636 §4.1: code-verifier = 43*128unreserved. */
export const CODE_VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** Tells whether `text` has the shape of an S256 `code_challenge` (RFC 7636 §4.2). */
export function isCodeChallenge(text: string): boolean {
  return CODE_CHALLENGE.test(text);
}

/** Tells whether `text` has the shape of a `code_verifier` (RFC 7636 §4.1). */
export function isCodeVerifier(text: string): boolean {
  return CODE_VERIFIER.test(text);
}

/**
 * Tells whether `challenge` was made from `verifier` by S256 (RFC 7636 §4.6), in a time that does
 * not tell where they differ. False for either that is ill-formed.
 */
export function verifyPkce(verifier: string, challenge: string): boolean {
  if (!isCodeVerifier(verifier) || !isCodeChallenge(challenge)) return false;
  const made = hash("sha256", verifier, "base64url");
  return timingSafeEqual(Buffer.from(made), Buffer.from(challenge));
}
