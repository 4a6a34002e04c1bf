import { createHmac, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

type Members = Readonly<Record<string, unknown>>;

/** A bad assertion: its label, the fields sent with the grant, and the status of the response. */
export interface Forgery {
  readonly what: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly status: 400 | 401;
}

/** What an attacker may know, and even the app's own private key. */
export interface AssertionPrey {
  readonly app: string;
  readonly issuer: string;
  readonly privateKey: KeyObject;
  readonly jwk: JsonWebKey & { readonly kid: string };
  /** Another app with a key of its own. */
  readonly other: { readonly app: string; readonly kid: string; readonly privateKey: KeyObject };
}

export const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

const encodeText = (text: string): string => Buffer.from(text).toString("base64url");
const encode = (value: unknown): string => encodeText(JSON.stringify(value));

/** An ES256 JWT of these two texts, whatever they are. */
function signText(header: string, claims: string, key: KeyObject): string {
  const input = `${encodeText(header)}.${encodeText(claims)}`;
  const signature = sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}

/** An ES256 JWT of this header and these claims. */
export function signAssertion(header: Members, claims: Members, key: KeyObject): string {
  return signText(JSON.stringify(header), JSON.stringify(claims), key);
}

let lastJti = 0;

/** The claims of a good assertion, with a `jti` that no other has. */
export function assertionClaims(app: string, issuer: string) {
  const iat = Math.floor(Date.now() / 1000);
  const jti = `j${process.pid}-${++lastJti}`;
  return { iss: app, sub: app, aud: issuer, iat, exp: iat + 60, jti };
}

/** The fields of a request that presents an assertion. */
export function assertionFields(assertion: string) {
  return { client_assertion_type: ASSERTION_TYPE, client_assertion: assertion };
}

/**
 * Assertions of which none may be accepted (RFC 7523 §3, RFC 7521 §4.2, RFC 8725 §3). Most are
 * signed with the app's own key: what is wrong is then what the name says, and nothing else.
 */
export function badAssertions(prey: AssertionPrey): readonly Forgery[] {
  const { app, issuer, privateKey, jwk, other } = prey;
  const header = { alg: "ES256", typ: "JWT", kid: jwk.kid };
  const claims = () => assertionClaims(app, issuer);
  const nowS = Math.floor(Date.now() / 1000);
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ownJwk = own.publicKey.export({ format: "jwk" });

  const wrongClaims: [what: string, change: Members][] = [
    ["no iss", { iss: undefined }],
    ["the iss of another app", { iss: other.app }],
    ["the issuer of the service as iss", { iss: issuer }],
    ["iss in a list", { iss: [app] }],
    ["no sub", { sub: undefined }],
    ["the sub of another app", { sub: other.app }],
    ["sub in a list", { sub: [app] }],
    ["the iss and sub of another app", { iss: other.app, sub: other.app }],
    ["iss and sub in upper case", { iss: app.toUpperCase(), sub: app.toUpperCase() }],
    ["no aud", { aud: undefined }],
    ["another server as aud", { aud: "https://other.example" }],
    ["the token endpoint as aud", { aud: `${issuer}/authorization/token` }],
    ["the issuer with a slash at the end as aud", { aud: `${issuer}/` }],
    ["the issuer in upper case as aud", { aud: issuer.toUpperCase() }],
    ["the issuer and another server as aud", { aud: [issuer, "https://other.example"] }],
    ["the issuer twice as aud", { aud: [issuer, issuer] }],
    ["the issuer and null as aud", { aud: [issuer, null] }],
    ["a list in a list as aud", { aud: [[issuer]] }],
    ["an empty list as aud", { aud: [] }],
    ["an object as aud", { aud: { 0: issuer } }],
    ["no exp", { exp: undefined }],
    ["exp that has passed", { exp: nowS - 1, iat: undefined }],
    ["exp that has passed long ago", { exp: 1, iat: undefined }],
    ["exp an hour ahead", { exp: nowS + 3600 }],
    ["exp too far ahead", { exp: nowS + 330 }],
    ["an exp in the endless future", { exp: 1e300 }],
    ["exp in milliseconds", { exp: Date.now() + 60_000 }],
    ["exp as text", { exp: String(nowS + 60) }],
    ["exp null", { exp: null }],
    ["exp as a list", { exp: [nowS + 60] }],
    ["iat in the future", { iat: nowS + 120 }],
    ["iat an hour ago", { iat: nowS - 3600 }],
    ["iat as text", { iat: String(nowS) }],
    ["iat null", { iat: null }],
    ["nbf in the future", { nbf: nowS + 120 }],
    ["nbf as text", { nbf: String(nowS - 1) }],
    ["no jti", { jti: undefined }],
    ["an empty jti", { jti: "" }],
    ["jti as a number", { jti: 7 }],
    ["jti null", { jti: null }],
    ["more than 8,192 characters", { x: "x".repeat(8192) }],
  ];
  const wrongHeaders: [what: string, change: Members, key?: KeyObject][] = [
    ["alg none", { alg: "none" }],
    ["alg HS256", { alg: "HS256" }],
    ["alg RS256 on an EC key", { alg: "RS256" }],
    ["alg ES384", { alg: "ES384" }],
    ["alg in lower case", { alg: "es256" }],
    ["alg in a list", { alg: ["ES256"] }],
    ["no alg", { alg: undefined }],
    ["typ at+jwt", { typ: "at+jwt" }],
    ["typ jwt in lower case", { typ: "jwt" }],
    ["typ null", { typ: null }],
    ["typ in a list", { typ: ["JWT"] }],
    ["an unknown kid", { kid: "nobody" }],
    ["the kid of another app", { kid: other.kid }],
    ["the key and kid of another app", { kid: other.kid }, other.privateKey],
    ["the key of another app", {}, other.privateKey],
    ["the key of another app, without kid", { kid: undefined }, other.privateKey],
    ["kid null", { kid: null }],
    ["kid in a list", { kid: [jwk.kid] }],
    ["kid __proto__", { kid: "__proto__" }],
    ["an unknown key", {}, own.privateKey],
    ["a key in jwk", { jwk: ownJwk }, own.privateKey],
    ["a key in jwk under the true kid", { jwk: { ...ownJwk, kid: jwk.kid } }, own.privateKey],
    ["keys at jku", { jku: "http://127.0.0.1:1/jwks.json" }],
    ["a certificate in x5c", { x5c: ["AAAA"] }],
    ["crit with an unknown extension", { crit: ["exp"], exp: nowS + 60 }],
    ["an empty crit", { crit: [] }],
    ["crit b64 (RFC 7797)", { crit: ["b64"], b64: false }],
    ["b64 alone", { b64: false }],
    ["zip", { zip: "DEF" }],
    ["cty JWT, as of a nested JWT", { cty: "JWT" }],
  ];
  const bare = (assertion: string) => assertionFields(assertion);
  const good = () => signAssertion(header, claims(), privateKey);
  const [goodHeader = "", goodClaims = "", goodSignature = ""] = good().split(".");
  const pem = String(own.publicKey.export({ format: "pem", type: "spki" }));
  const withMac = (secret: string) => {
    const input = `${encode({ ...header, alg: "HS256" })}.${encode(claims())}`;
    return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
  };
  const text = JSON.stringify(claims());
  const signed = JSON.stringify(header);
  const odd: [what: string, fields: Readonly<Record<string, string>>, status?: 400][] = [
    ["no signature", bare(`${goodHeader}.${goodClaims}.`)],
    ["alg none and no signature", bare(`${encode({ alg: "none" })}.${encode(claims())}.`)],
    ["alg none and the true signature",
      bare(`${encode({ ...header, alg: "none" })}.${goodClaims}.${goodSignature}`)],
    ["HS256 with the JWK as the secret", bare(withMac(JSON.stringify(jwk)))],
    ["HS256 with x as the secret", bare(withMac(String(jwk.x)))],
    ["HS256 with a PEM as the secret", bare(withMac(pem))],
    ["HS256 with nothing as the secret", bare(withMac(""))],
    ["altered claims", bare(`${goodHeader}.${encode(claims())}.${goodSignature}`)],
    ["a nested JWT", bare(signText(JSON.stringify({ ...header, cty: "JWT" }), good(), privateKey))],
    ["a JWT as the claims", bare(signText(signed, JSON.stringify(good()), privateKey))],
    ["aud twice, the last one wrong",
      bare(signText(signed, text.replace("}", ',"aud":"https://other.example"}'), privateKey))],
    ["sub twice, the last one another app's",
      bare(signText(signed, text.replace("}", `,"sub":"${other.app}"}`), privateKey))],
    ["alg twice, the last one none",
      bare(signText(signed.replace("}", ',"alg":"none"}'), text, privateKey))],
    ["alg twice, the true one last and unsigned",
      bare(`${encodeText(signed.replace("{", '{"alg":"none",'))}.${encodeText(text)}.AAAA`)],
    ["claims in a list", bare(signText(signed, `[${text}]`, privateKey))],
    ["claims that are no JSON", bare(signText(signed, text.slice(1), privateKey))],
    ["padding", bare(`${good()}==`)],
    ["a space at the end", bare(`${good()} `)],
    ["four parts", bare(`${good()}.AAAA`)],
    ["five parts, as a JWE has", bare(`${good()}.AAAA.AAAA`)],
    ["JSON serialization", bare(JSON.stringify({ payload: goodClaims, signature: "x" }))],
    ["a text that is no JWT", bare("assertion")],
    ["a wrong type", { ...bare(good()), client_assertion_type: "jwt-bearer" }],
    ["the type for SAML", {
      ...bare(good()),
      client_assertion_type: ASSERTION_TYPE.replace("jwt", "saml2"),
    }],
    ["no type", { client_assertion: good() }],
    ["no assertion", { client_assertion_type: ASSERTION_TYPE, client_id: app }],
    ["another app's client_id", { ...bare(good()), client_id: other.app }],
    ["an unknown client_id", { ...bare(good()), client_id: "aunknown" }],
    ["client_id alone", { client_id: app }],
    ["a secret instead of an assertion", { client_id: app, client_secret: goodSignature }],
    ["a secret as well", { ...bare(good()), client_id: app, client_secret: "secret" }, 400],
  ];
  const status: Forgery["status"] = 401;
  return [
    ...wrongClaims.map(([what, change]): Forgery => {
      const token = signAssertion(header, { ...claims(), ...change }, privateKey);
      return { what, fields: assertionFields(token), status };
    }),
    ...wrongHeaders.map(([what, change, key = privateKey]): Forgery => {
      const token = signAssertion({ ...header, ...change }, claims(), key);
      return { what, fields: assertionFields(token), status };
    }),
    ...odd.map(([what, fields, refused = status]): Forgery => ({ what, fields, status: refused })),
  ];
}

/** Public keys that an app may not register: where the error is, in the list of keys. */
export function badKeys(): readonly (readonly [what: string, jwks: unknown, pointer: string])[] {
  const pairOf = (curve: string) => generateKeyPairSync("ec", { namedCurve: curve });
  const { privateKey, publicKey } = pairOf("P-256");
  const ec = publicKey.export({ format: "jwk" });
  const rsa = (modulusLength: number, publicExponent = 65_537) =>
    generateKeyPairSync("rsa", { modulusLength, publicExponent });
  const ed = generateKeyPairSync("ed25519");
  const keys = (...list: readonly unknown[]) => ({ keys: list });
  return [
    ["a private EC key", keys(privateKey.export({ format: "jwk" })), "/jwks/keys/0/d"],
    ["a private Ed25519 key", keys(ec, ed.privateKey.export({ format: "jwk" })), "/jwks/keys/1/d"],
    ["a private RSA key",
      keys(rsa(2048).privateKey.export({ format: "jwk" })), "/jwks/keys/0/d"],
    ["a private part without the others", keys({ ...ec, qi: "AQAB" }), "/jwks/keys/0/qi"],
    ["a symmetric key", keys({ kty: "oct", k: "c2VjcmV0" }), "/jwks/keys/0/kty"],
    ["RSA of 1,024 bits", keys(rsa(1024).publicKey.export({ format: "jwk" })), "/jwks/keys/0"],
    ["RSA with the exponent 3",
      keys(rsa(2048, 3).publicKey.export({ format: "jwk" })), "/jwks/keys/0"],
    ["RSA with the exponent 1",
      keys({ ...rsa(2048).publicKey.export({ format: "jwk" }), e: "AQ" }), "/jwks/keys/0"],
    ["P-384", keys(pairOf("P-384").publicKey.export({ format: "jwk" })), "/jwks/keys/0"],
    ["secp256k1", keys(pairOf("secp256k1").publicKey.export({ format: "jwk" })), "/jwks/keys/0"],
    ["X25519", keys(generateKeyPairSync("x25519").publicKey.export({ format: "jwk" })),
      "/jwks/keys/0"],
    ["a point that is not on the curve", keys({ ...ec, y: ec.x }), "/jwks/keys/0"],
    ["a key without y", keys({ kty: "EC", crv: "P-256", x: ec.x }), "/jwks/keys/0"],
    ["an alg that does not fit the key", keys({ ...ec, alg: "RS256" }), "/jwks/keys/0"],
    ["alg none", keys({ ...ec, alg: "none" }), "/jwks/keys/0/alg"],
    ["alg HS256", keys({ ...ec, alg: "HS256" }), "/jwks/keys/0/alg"],
    ["a key for encryption", keys({ ...ec, use: "enc" }), "/jwks/keys/0/use"],
    ["a kid that is no text", keys({ ...ec, kid: 1 }), "/jwks/keys/0/kid"],
    ["a duplicate kid", keys({ ...ec, kid: "a" }, { ...ec, kid: "b" }, { ...ec, kid: "a" }),
      "/jwks/keys/2/kid"],
    ["an empty list of keys", keys(), "/jwks/keys"],
    ["six keys", keys(ec, ec, ec, ec, ec, ec), "/jwks/keys"],
    ["keys that are no list", { keys: ec }, "/jwks/keys"],
    ["a JWK set without keys", {}, "/jwks/keys"],
    ["a list instead of a JWK set", [ec], "/jwks"],
    ["a URL instead of a JWK set", "https://app.example/jwks.json", "/jwks"],
  ];
}
