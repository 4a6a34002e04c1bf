import { createPublicKey, type KeyObject } from "node:crypto";
import { SIGNING_ALGORITHMS, type SigningAlgorithm, type VerificationKey } from "./jwt.ts";
import {
  described,
  type Infer,
  matching,
  named,
  oneOf,
  optional,
  record,
  refined,
  type Shape,
  shown,
  TEXT,
  text,
} from "./shape.ts";

const PART = optional(TEXT);
const MATERIAL = { kty: oneOf("EC", "RSA", "OKP"), crv: PART, x: PART, y: PART, n: PART, e: PART };

/** The public part of a key in a response. */
export const JWK: Shape<VerificationKey["jwk"]> = named("Jwk", described(
  "The public part of a key (RFC 7517).",
  record({ ...MATERIAL, kid: TEXT, alg: TEXT, use: shown<"sig">({ const: "sig" }) }),
));

const REFUSED = text(() => "Is part of a private key, which must not be sent.", { not: {} });
/** Members that hold something of a private or a symmetric key (RFC 7518 §6). */
const PRIVATE_PARTS: object = Object.fromEntries(
  ["d", "p", "q", "dp", "dq", "qi", "oth", "k"].map((name) => [name, optional(REFUSED)]),
);

/** A public key of another party. Unknown members are left out (RFC 7517 §4). */
export const PUBLIC_JWK = named("PublicJwk", refined(record({
  ...MATERIAL,
  kid: optional(matching(/^[\x20-\x7e]{1,128}$/, "Must be 1 to 128 characters of ASCII.")),
  alg: optional(oneOf(...SIGNING_ALGORITHMS)),
  use: optional(oneOf("sig")),
  ...PRIVATE_PARTS,
}), (jwk, report) => {
  if (importPublicJwk(jwk)) return;
  report("Must be a key of P-256, Ed25519 or RSA (2048 to 8192 bits), and fit its alg.");
}));

export type PublicJwk = Infer<typeof PUBLIC_JWK>;

/** Returns the key and its only algorithm (RFC 8725 §3.1), or undefined for an unusable key. */
export function importPublicJwk(jwk: PublicJwk) {
  const key: Record<string, unknown> = jwk;
  try {
    const publicKey = createPublicKey({ key, format: "jwk" });
    const alg = algorithmOf(publicKey);
    return alg && alg === (jwk.alg ?? alg) ? { alg, publicKey } : undefined;
  } catch {
    return undefined; // no key, or one of an unknown kind
  }
}

function algorithmOf(
  { asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject,
): SigningAlgorithm | undefined {
  const { namedCurve, modulusLength: bits = 0, publicExponent } = details;
  if (type === "ec" && namedCurve === "prime256v1") return "ES256";
  if (type === "ed25519") return "EdDSA";
  // Larger RSA keys take long to verify, and an exponent of 1 would let anybody sign.
  const isRsa = type === "rsa" && bits >= 2048 && bits <= 8192 && publicExponent === 65_537n;
  return isRsa ? "RS256" : undefined;
}
