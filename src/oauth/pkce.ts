import { equalBytes, sha256 } from "../base/secret.ts";
import { shown } from "../base/shape.ts";

/** RFC 7636 §4.2: BASE64URL(SHA256(verifier)) has 43 characters; `plain` is not supported. */
export const CODE_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** RFC 7636 §4.1: code-verifier = 43*128unreserved. */
export const CODE_VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** Their schemas in the OpenAPI document. */
export const CHALLENGE = shown<string>({ type: "string", pattern: CODE_CHALLENGE.source });
export const VERIFIER = shown<string>({ type: "string", pattern: CODE_VERIFIER.source });

/** Whether `challenge` was made from this well-formed verifier by S256 (RFC 7636 §4.6). */
export function verifyPkce(verifier: string, challenge: string): boolean {
  return CODE_VERIFIER.test(verifier) &&
    equalBytes(Buffer.from(sha256(verifier).toString("base64url")), Buffer.from(challenge));
}
