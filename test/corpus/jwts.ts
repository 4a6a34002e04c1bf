import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";

/** A key as jwks.json has it. */
export type PublishedKey = JsonWebKey & { readonly kid: string };

/** What an attacker starts from: a good ES256 token, and the public key that verifies it. */
export interface Prey {
  readonly token: string;
  readonly jwk: PublishedKey;
}

type Members = Readonly<Record<string, unknown>>;
type Forgery = readonly [what: string, token: string];

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const encodeText = (text: string): string => Buffer.from(text).toString("base64url");

function decode(part: string): Members {
  const members: Members = JSON.parse(Buffer.from(part, "base64url").toString());
  return members;
}

function takeApart(token: string): [header: string, claims: string, signature: string] {
  const [header = "", claims = "", signature = ""] = token.split(".");
  return [header, claims, signature];
}

function signEs256(input: string, key: KeyObject): string {
  return sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" })
    .toString("base64url");
}

/** Tokens made without the private key; not one may be accepted (RFC 8725 §2, §3). */
export function forgedTokens({ token, jwk }: Prey): readonly Forgery[] {
  return [
    ...withoutSignature(token),
    ...withMac({ token, jwk }),
    ...withOwnKey({ token, jwk }),
    ...withOddSignature(token),
    ...withOddForm(token),
    ...withOddJson(token),
  ];
}

/** RFC 8725 §2.1: "none" in every spelling. */
function withoutSignature(token: string): Forgery[] {
  const [header, claims, signature] = takeApart(token);
  return ["none", "None", "NONE", "nOnE", "none ", "", null, undefined, ["none"]].flatMap((alg) => {
    const changed = encode({ ...decode(header), alg });
    const name = alg === undefined ? "no alg" : `alg ${JSON.stringify(alg)}`;
    return [
      [`${name} and an empty signature`, `${changed}.${claims}.`],
      [`${name} and no third part`, `${changed}.${claims}`],
      [`${name} and the true signature`, `${changed}.${claims}.${signature}`],
    ] as const;
  });
}

/** RFC 8725 §2.1: the public key as an HMAC secret, in every form that it is published in. */
function withMac({ token, jwk }: Prey): Forgery[] {
  const [header, claims] = takeApart(token);
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const pem = String(key.export({ format: "pem", type: "spki" }));
  const secrets: [what: string, secret: string | Buffer][] = [
    ["PEM", pem],
    ["PEM without its last line feed", pem.trimEnd()],
    ["PEM with CR LF", pem.replaceAll("\n", "\r\n")],
    ["DER", key.export({ format: "der", type: "spki" })],
    ["JWK", JSON.stringify(jwk)],
    ["x", Buffer.from(String(jwk.x), "base64url")],
    ["x as text", String(jwk.x)],
    ["kid", jwk.kid],
    ["nothing", ""],
  ];
  return secrets.flatMap(([what, secret]) =>
    [["HS256", "sha256"], ["HS384", "sha384"], ["HS512", "sha512"]].map(([alg, digest = ""]) => {
      const input = `${encode({ ...decode(header), alg })}.${claims}`;
      const mac = createHmac(digest, secret).update(input).digest("base64url");
      return [`${alg} with the public key as ${what}`, `${input}.${mac}`] as const;
    })
  );
}

/** RFC 8725 §3.10, RFC 7515 §4.1: a key that the token itself brings, or points to. */
function withOwnKey({ token, jwk }: Prey): Forgery[] {
  const [header, claims] = takeApart(token);
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ownJwk = own.publicKey.export({ format: "jwk" });
  const x5c = [own.publicKey.export({ format: "der", type: "spki" }).toString("base64")];
  const { kid } = jwk;
  const headers: [what: string, change: Members][] = [
    ["the true kid", {}],
    ["a kid of its own", { kid: "k000000000000000000000000" }],
    ["no kid", { kid: undefined }],
    ["an empty kid", { kid: "" }],
    ["kid null", { kid: null }],
    ["a list of kids", { kid: [kid] }],
    ["a kid that is a path", { kid: "../../../../dev/null" }],
    ["a kid that is SQL", { kid: "' UNION SELECT 'x" }],
    ["kid __proto__", { kid: "__proto__" }],
    ["kid constructor", { kid: "constructor" }],
    ["a kid with a space at the end", { kid: `${kid} ` }],
    ["its key in jwk", { jwk: ownJwk }],
    ["its key in jwk under the true kid", { jwk: { ...ownJwk, kid } }],
    ["its key in jwk and no kid", { jwk: ownJwk, kid: undefined }],
    ["its keys at jku", { jku: "http://127.0.0.1:1/jwks.json" }],
    ["its certificate in x5c", { x5c }],
    ["its certificate at x5u", { x5u: "http://127.0.0.1:1/cert.pem" }],
    ["a thumbprint in x5t", { x5t: "AAAA", "x5t#S256": "AAAA" }],
    ["crit with an unknown extension", { crit: ["exp"], exp: 1 }],
    ["an unencoded payload (RFC 7797)", { crit: ["b64"], b64: false }],
    ["a claim in the header (RFC 7519 §5.3)", { iss: decode(claims)["iss"] }],
  ];
  return headers.map(([what, change]) => {
    const input = `${encode({ ...decode(header), ...change })}.${claims}`;
    return [`signed by another key, ${what}`, `${input}.${signEs256(input, own.privateKey)}`];
  });
}

/** The true header and claims with a wrong signature, or with the true one in another form. */
function withOddSignature(token: string): Forgery[] {
  const [header, claims, signature] = takeApart(token);
  const bytes = Buffer.from(signature, "base64url");
  const order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
  const one = "1".padStart(64, "0");
  const signatures: [what: string, bytes: Buffer][] = [
    ["zeros (CVE-2022-21449)", Buffer.alloc(64)],
    ["the order of the group, twice", Buffer.from(order + order, "hex")],
    ["one and one", Buffer.from(one + one, "hex")],
    ["r and zero", Buffer.concat([bytes.subarray(0, 32), Buffer.alloc(32)])],
    ["s and r", Buffer.concat([bytes.subarray(32), bytes.subarray(0, 32)])],
    ["the true one cut by a byte", bytes.subarray(0, 63)],
    ["the true one with a byte more", Buffer.concat([bytes, Buffer.alloc(1)])],
    ["the true one twice", Buffer.concat([bytes, bytes])],
    ["the true one in DER", derOf(bytes)],
    ["one byte", Buffer.from([1])],
  ];
  const text = `${header}.${claims}`;
  return [
    ...signatures.map(([what, odd]): Forgery =>
      [`a signature of ${what}`, `${text}.${odd.toString("base64url")}`]
    ),
    ...["ES384", "ES512", "ES256K", "RS256", "PS256", "EdDSA", "es256", "ES256 "].map(
      (alg): Forgery =>
        [`the true signature under alg ${alg}`,
          `${encode({ ...decode(header), alg })}.${claims}.${signature}`],
    ),
  ];
}

/** ECDSA-Sig-Value of RFC 3279 §2.2.3; with leading zeros where r or s begin with a high bit. */
function derOf(bytes: Buffer): Buffer {
  const integers = [bytes.subarray(0, 32), bytes.subarray(32)].map((part) => {
    const padded = (part[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.alloc(1), part]) : part;
    return Buffer.concat([Buffer.from([0x02, padded.length]), padded]);
  });
  const body = Buffer.concat(integers);
  return Buffer.concat([Buffer.from([0x30, body.length]), body]);
}

/** RFC 7515 §3.1, §2: anything but three parts of base64url without padding. */
function withOddForm(token: string): Forgery[] {
  const [header, claims, signature] = takeApart(token);
  const lastBits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const last = lastBits.indexOf(signature.at(-1) ?? "A");
  // 64 bytes leave four bits of the last character over; they must be zero (RFC 4648 §3.5).
  const loose = [1, 2, 4, 8].map((bit): Forgery =>
    [`bit ${bit} set after the end of the signature`,
      token.slice(0, -1) + (lastBits[last ^ bit] ?? "")]
  );
  const standard = (part: string) => Buffer.from(part, "base64url").toString("base64");
  return [
    ...loose,
    ["padding at the end", `${token}==`],
    ["padding in every part", [header, claims, signature].map(standard).join(".")],
    ["a dot at the end", `${token}.`],
    ["a dot at the start", `.${token}`],
    ["two dots between", `${header}..${claims}.${signature}`],
    ["the header twice", `${header}.${token}`],
    ["the signature twice", `${token}.${signature}`],
    ["five parts, as JWE has", `${header}.${claims}.${claims}.${claims}.${signature}`],
    ["no dots", token.replaceAll(".", "")],
    ["the header alone", header],
    ["only dots", ".."],
    ["header and claims swapped", `${claims}.${header}.${signature}`],
    ["claims in place of the signature", `${header}.${claims}.${claims}`],
    ["JSON serialization (RFC 7515 §7.2)",
      JSON.stringify({ payload: claims, protected: header, signature })],
    ["quotes around it", `"${token}"`],
    ["a comma at the end", `${token},`],
    ["a percent escape in it", token.replace(".", "%2e")],
    ["a character in it that is not base64url", token.replace(/.$/, "!")],
    ["the token twice", `${token}${token}`],
    ["the token twice with a space between", `${token} ${token}`],
    ["nine thousand characters of claims", `${header}.${"A".repeat(9000)}.${signature}`],
    ["nine thousand characters of signature", `${token}${"A".repeat(9000)}`],
  ];
}

/** The true signature with another header or other claims. */
function withOddJson(token: string): Forgery[] {
  const [header, claims, signature] = takeApart(token);
  const said = decode(claims);
  const text = Buffer.from(header, "base64url").toString();
  const changes: [what: string, change: Members][] = [
    ["more scopes", { scope: `${String(said["scope"])} backend` }],
    ["another subject", { sub: "u000000000000000000000000" }],
    ["a later exp", { exp: Number(said["exp"]) + 86_400 }],
    ["another jti", { jti: "g000000000000000000000000ffff" }],
    ["another app", { client_id: "a000000000000000000000000" }],
  ];
  const headers: [what: string, header: string][] = [
    ["alg none before the true one", text.replace("{", '{"alg":"none",')],
    ["alg none after the true one", text.replace("}", ',"alg":"none"}')],
    ["the true members twice", text.replace("}", `,${text.slice(1)}`)],
    ["a space at the start", ` ${text}`],
    ["a line feed at the end", `${text}\n`],
    ["a byte order mark at the start", `\ufeff${text}`],
    ["a member more", text.replace("}", ',"x":1}')],
    ["a list around it", `[${text}]`],
    ["null", "null"],
    ["a string", '"ES256"'],
    ["nothing", ""],
    ["no JSON", "{alg:ES256}"],
    ["deep nesting", `${"[".repeat(500)}${"]".repeat(500)}`],
    ["__proto__ in it", text.replace("}", ',"__proto__":{"alg":"none"}}')],
  ];
  return [
    ...changes.map(([what, change]): Forgery =>
      [`claims with ${what}`, `${header}.${encode({ ...said, ...change })}.${signature}`]
    ),
    ...["null", "[]", '"x"', "1", "", "{}"].map((odd): Forgery =>
      [`claims ${odd || "of nothing"}`, `${header}.${encodeText(odd)}.${signature}`]
    ),
    ...headers.map(([what, odd]): Forgery =>
      [`a header with ${what}`, `${encodeText(odd)}.${claims}.${signature}`]
    ),
  ];
}

/**
 * Tokens signed with the service's own key that are not its access tokens (RFC 9068 §4,
 * RFC 8725 §3.11, §3.12): as if a second kind of token shared the key.
 */
export function misusedTokens(token: string, key: KeyObject): readonly Forgery[] {
  const [headerPart, claimsPart] = takeApart(token);
  const header = decode(headerPart);
  const claims = decode(claimsPart);
  const issuer = String(claims["iss"]);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const headers: [what: string, change: Members][] = [
    ["typ JWT", { typ: "JWT" }],
    ["typ id_token+jwt", { typ: "id_token+jwt" }],
    ["typ at+jwt in a list", { typ: ["at+jwt"] }],
    ["no typ", { typ: undefined }],
    ["no kid", { kid: undefined }],
    ["no alg", { alg: undefined }],
    ["alg none", { alg: "none" }],
    ["alg RS256", { alg: "RS256" }],
    ["alg HS256", { alg: "HS256" }],
    ["crit with an unknown extension", { crit: ["exp"], exp: nowSeconds + 60 }],
    ["an empty crit", { crit: [] }],
    ["crit b64 (RFC 7797)", { crit: ["b64"], b64: false }],
    ["another kid", { kid: "k000000000000000000000000" }],
  ];
  const bodies: [what: string, change: Members][] = [
    ["another issuer", { iss: "https://other.example" }],
    ["the issuer with a slash at the end", { iss: `${issuer}/` }],
    ["the issuer in upper case", { iss: issuer.toUpperCase() }],
    ["no issuer", { iss: undefined }],
    ["a list of issuers", { iss: [issuer] }],
    ["another audience", { aud: "https://other.example" }],
    ["an app as the audience", { aud: claims["client_id"] }],
    ["no audience", { aud: undefined }],
    ["an empty list of audiences", { aud: [] }],
    ["an exp that has passed", { exp: nowSeconds - 1 }],
    ["an exp of now", { exp: nowSeconds }],
    ["no exp", { exp: undefined }],
    ["an exp that is text", { exp: String(nowSeconds + 60) }],
    ["an exp that is null", { exp: null }],
    ["no subject", { sub: undefined }],
    ["a subject that is neither a user nor an app", { sub: "somebody" }],
    ["a subject that is a number", { sub: 1 }],
    ["no client_id", { client_id: undefined }],
    ["no jti", { jti: undefined }],
    ["an empty jti", { jti: "" }],
    ["no iat", { iat: undefined }],
    ["a list of scopes", { scope: ["backend"] }],
  ];
  const signed = (head: Members, body: unknown): string => {
    const input = `${encode(head)}.${encode(body)}`;
    return `${input}.${signEs256(input, key)}`;
  };
  return [
    ...headers.map(([what, change]): Forgery =>
      [what, signed({ ...header, ...change }, claims)]
    ),
    ...bodies.map(([what, change]): Forgery => [what, signed(header, { ...claims, ...change })]),
    ["claims that are a list", signed(header, [claims])],
    ["claims that are null", signed(header, null)],
    ["claims that are text", signed(header, JSON.stringify(claims))],
  ];
}
