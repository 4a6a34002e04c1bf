import { createJwtSigner, type SigningKey, type VerificationKey } from "../../src/base/jwt.ts";
import type { KeyRing } from "../../src/store/key_ring.ts";

/** Signs a JWT with any claims. */
export function signJwt(
  typ: string,
  claims: Readonly<Record<string, unknown>>,
  key: SigningKey,
): string {
  return createJwtSigner(typ, key)(claims);
}

/** A key ring of one key, which never changes. */
export function ringOf(
  key: SigningKey & VerificationKey,
  find: KeyRing["find"] = () => key,
): KeyRing {
  const none = () => Promise.reject(new Error("not needed here"));
  return {
    find,
    findSigning: () => undefined, // no test needs it
    signing: () => ({ ...key, signsFromMs: 0 }),
    published: () => [],
    rotate: none,
    withdraw: none,
    refresh: none,
  };
}
