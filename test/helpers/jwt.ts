import { createJwtSigner, type SigningKey } from "../../src/base/jwt.ts";

/** One JWT of any claims. */
export function signJwt(
  typ: string,
  claims: Readonly<Record<string, unknown>>,
  key: SigningKey,
): string {
  return createJwtSigner(typ, key)(claims);
}
