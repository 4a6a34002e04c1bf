import { createPrivateKey, createPublicKey, generateKeyPair, sign, verify } from "node:crypto";
import { promisify } from "node:util";
import { isRecord } from "./shape.ts";
import { decodeUtf8 } from "./utf8.ts";

const generate = promisify(generateKeyPair); // runs in a pool thread, since an RSA key takes long

/** The signature algorithms by their names in a JWT header (RFC 7518 §3.1, RFC 8037 §3.1). */
export const SIGNING_ALGORITHMS = ["ES256", "RS256", "EdDSA"] as const;

export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/** The digest of each algorithm, and how its keys are made. */
const ALGORITHMS = {
  ES256: { digest: "sha256", generate: () => generate("ec", { namedCurve: "P-256" }) },
  RS256: { digest: "sha256", generate: () => generate("rsa", { modulusLength: 2048 }) },
  EdDSA: { digest: null, generate: () => generate("ed25519") },
} as const satisfies Readonly<Record<SigningAlgorithm, unknown>>;

/** The form of an ES256 signature (RFC 7518 §3.4); it means nothing to the other algorithms. */
const DSA = { dsaEncoding: "ieee-p1363" } as const;

type KeyPair = Readonly<ReturnType<typeof importKey>>;

/** A key that signs: its id and algorithm go into each header. */
export type SigningKey = Pick<KeyPair, "kid" | "alg" | "privateKey">;

/** A key that verifies, and the public JWK it is published as (RFC 7517). */
export type VerificationKey = Omit<KeyPair, "privateKey">;

/** A new private key in PKCS#8 PEM. */
export async function generatePrivateKey(alg: SigningAlgorithm): Promise<string> {
  const { privateKey } = await ALGORITHMS[alg].generate();
  return String(privateKey.export({ format: "pem", type: "pkcs8" }));
}

/** Both halves of a key from its private PEM. */
export function importKey(kid: string, alg: SigningAlgorithm, pem: string) {
  const privateKey = createPrivateKey(pem);
  const publicKey = createPublicKey(privateKey);
  const members = publicKey.export({ format: "jwk" });
  const jwk: Readonly<Record<string, unknown>> = { ...members, kid, alg, use: "sig" };
  return { kid, alg, privateKey, publicKey, jwk };
}

/** Signs JWTs of one kind with one key: compact form (RFC 7515 §3.1), header `{alg, typ, kid}`. */
export function createJwtSigner(typ: string, { alg, kid, privateKey }: SigningKey) {
  const header = encode({ alg, typ, kid });
  const { digest } = ALGORITHMS[alg];
  const key = { key: privateKey, ...DSA };
  return (claims: Readonly<Record<string, unknown>>): string => {
    const signed = `${header}.${encode(claims)}`;
    return `${signed}.${sign(digest, Buffer.from(signed), key).toString("base64url")}`;
  };
}

/** The length in characters of the longest JWT that is accepted. */
export const MAX_JWT_LENGTH = 8192;
const COMPACT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** A parsed JWT. Nothing in it has been verified. */
export type UnprovenJwt = Readonly<NonNullable<ReturnType<typeof parseJwt>>>;

/** The parts of a JWT in its one canonical form; undefined for anything else. */
export function parseJwt(token: string) {
  if (token.length > MAX_JWT_LENGTH) return undefined;
  const [, headerPart = "", claimsPart = "", signaturePart = ""] = COMPACT.exec(token) ?? [];
  const header = decode(headerPart);
  const claims = decode(claimsPart);
  const signature = decodeBytes(signaturePart);
  if (header === undefined || claims === undefined || signature === undefined) return undefined;
  return { header, claims, signed: `${headerPart}.${claimsPart}`, signature };
}

/** Returns `typ`, a media type, without `application/`, which is optional (RFC 7515 §4.1.9). */
export function shortType(typ: unknown): unknown {
  return typeof typ === "string" ? typ.replace(/^application\//i, "") : typ;
}

/** Whether the key has signed the JWT. `alg` must be the key's own algorithm (RFC 8725 §3.1). */
export function isSignedBy(
  { header, signed, signature }: UnprovenJwt,
  { alg, publicKey }: Pick<VerificationKey, "alg" | "publicKey">,
): boolean {
  if (header["alg"] !== alg) return false;
  const { digest } = ALGORITHMS[alg];
  return verify(digest, Buffer.from(signed), { key: publicKey, ...DSA }, signature);
}

/**
 * Returns the claims of a JWT with a valid signature, else undefined. The header's `kid` chooses
 * only the key: the key decides the algorithm, and `typ` must be as given (RFC 8725 §3.11). A
 * header with any other member, such as `crit` or `jwk`, is refused. The caller checks time, issuer
 * and audience.
 */
export function verifyJwt(
  token: string,
  typ: string,
  findKey: (kid: string) => VerificationKey | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const jwt = parseJwt(token);
  if (jwt === undefined || Object.keys(jwt.header).length !== 3) return undefined;
  const { kid, typ: given } = jwt.header;
  const key = typeof kid === "string" && given === typ ? findKey(kid) : undefined;
  return key && isSignedBy(jwt, key) ? jwt.claims : undefined;
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** Strict base64url (RFC 7515 §2): what does not encode back to itself is refused. */
function decodeBytes(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, "base64url");
  return bytes.toString("base64url") === part ? bytes : undefined;
}

function decode(part: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = decodeBytes(part);
  const text = bytes && decodeUtf8(bytes); // RFC 7515 §5.2
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // not JSON
  }
}
