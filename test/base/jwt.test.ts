import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, sign, webcrypto } from "node:crypto";
import { describe, test } from "node:test";
import {
  generatePrivateKey,
  importKey,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
  type SigningKey,
  type VerificationKey,
  verifyJwt,
} from "../../src/base/jwt.ts";
import { signJwt } from "../helpers/jwt.ts";
import { openRandom } from "../helpers/random.ts";

const TYP = "at+jwt";
const CLAIMS = { sub: "u1", scope: "consumer", n: 1, deep: { a: [1, null, "\u00fc"] } };

type Key = SigningKey & VerificationKey;

const keys: Record<SigningAlgorithm, Key> = {
  ES256: await makeKey("k-es", "ES256"),
  RS256: await makeKey("k-rs", "RS256"),
  EdDSA: await makeKey("k-ed", "EdDSA"),
};
/** A header that is accepted. */
const good = { alg: "ES256", typ: TYP, kid: keys.ES256.kid };

const find = (kid: string) => Object.values(keys).find((key) => key.kid === kid);
const verify = (token: string) => verifyJwt(token, TYP, find);

for (const alg of SIGNING_ALGORITHMS) {
  const key = keys[alg];

  test(`${alg}: verifyJwt() returns the claims of a signed JWT`, () => {
    assert.deepEqual(verify(signJwt(TYP, CLAIMS, key)), CLAIMS);
  });

  test(`${alg}: the header holds alg, typ and kid, and nothing else (RFC 7515 §4)`, () => {
    const [header = ""] = signJwt(TYP, CLAIMS, key).split(".");
    const read: unknown = JSON.parse(Buffer.from(header, "base64url").toString());
    assert.deepEqual(read, { alg, typ: TYP, kid: key.kid });
  });

  test(`${alg}: Web Crypto verifies the signature with the JWK (RFC 7518 §3.1)`, async () => {
    const { signed, bytes } = takeApart(signJwt(TYP, CLAIMS, key));
    assert.ok(await webVerify(key, signed, bytes));
    assert.ok(!await webVerify(key, `${signed}x`, bytes));
  });

  test(`${alg}: the published JWK holds nothing of the private key (RFC 7517 §9.3)`, () => {
    assert.partialDeepStrictEqual(key.jwk, { kid: key.kid, alg, use: "sig" });
    for (const member of ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]) {
      assert.equal(member in key.jwk, false, member);
    }
    const pem = createPublicKey({ key: { ...key.jwk }, format: "jwk" });
    assert.ok(pem.equals(key.publicKey));
  });

  test(`${alg}: a JWT signed with another key of the same kid is refused`, async () => {
    assert.equal(verify(signJwt(TYP, CLAIMS, await makeKey(key.kid, alg))), undefined);
  });

  test(`${alg}: a JWT with a changed character is refused`, () => {
    const token = signJwt(TYP, CLAIMS, key);
    for (let at = 0; at < token.length; at += 3) {
      const other = token[at] === "A" ? "B" : "A";
      assert.equal(verify(token.slice(0, at) + other + token.slice(at + 1)), undefined, `at ${at}`);
    }
  });

  test(`${alg}: a signature that is too short, too long, zero or missing is refused`, () => {
    const { signed, bytes } = takeApart(signJwt(TYP, CLAIMS, key));
    const zeros = [Buffer.alloc(bytes.length), Buffer.alloc(1)];
    const longer = Buffer.concat([bytes, Buffer.alloc(1)]);
    for (const other of [bytes.subarray(0, -1), bytes.subarray(1), longer, ...zeros]) {
      assert.equal(verify(`${signed}.${other.toString("base64url")}`), undefined);
    }
    assert.equal(verify(`${signed}.`), undefined);
    assert.equal(verify(signed), undefined);
  });
}

test("ES256: the signature is r and s of 32 bytes each; DER is refused (RFC 7518 §3.4)", () => {
  const { signed, bytes } = takeApart(signJwt(TYP, CLAIMS, keys.ES256));
  assert.equal(bytes.length, 64);
  const der = sign("sha256", Buffer.from(signed), keys.ES256.privateKey).toString("base64url");
  assert.equal(verify(`${signed}.${der}`), undefined);
});

test("RS256: a new key has at least 2,048 bits (RFC 7518 §3.3)", () => {
  const { modulusLength = 0 } = keys.RS256.publicKey.asymmetricKeyDetails ?? {};
  assert.ok(modulusLength >= 2_048, `${modulusLength}`);
});

describe("importKey() derives the public key of", () => {
  const table: [what: string, alg: SigningAlgorithm, jwk: Record<string, string>][] = [
    ["RFC 7515 Appendix A.3", "ES256", {
      kty: "EC", crv: "P-256",
      x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
      y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
      d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
    }],
    ["RFC 8037 Appendix A.1", "EdDSA", {
      kty: "OKP", crv: "Ed25519",
      x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
      d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    }],
  ];
  for (const [what, alg, { d = "", ...publicJwk }] of table) {
    test(what, () => {
      const privateKey = createPrivateKey({ key: { ...publicJwk, d }, format: "jwk" });
      const pem = String(privateKey.export({ format: "pem", type: "pkcs8" }));
      assert.deepEqual(importKey("k", alg, pem).jwk, { ...publicJwk, kid: "k", alg, use: "sig" });
    });
  }
});

// Each header is signed with the right key.
describe("verifyJwt() refuses the header", () => {
  const { kid } = good;
  const table: [what: string, header: unknown][] = [
    ["alg none", { ...good, alg: "none" }],
    ["alg NONE", { ...good, alg: "NONE" }],
    ["alg HS256, which could use the public key as a secret", { ...good, alg: "HS256" }],
    ["alg ES384", { ...good, alg: "ES384" }],
    ["the alg of another of our keys", { ...good, alg: "RS256" }],
    ["alg in lower case", { ...good, alg: "es256" }],
    ["no alg", { typ: TYP, kid, x: 1 }],
    ["alg as a list", { ...good, alg: ["ES256"] }],
    ["another typ, such as that of an ID token", { ...good, typ: "JWT" }],
    ["typ in another case", { ...good, typ: "AT+JWT" }],
    ["typ with its full name", { ...good, typ: "application/at+jwt" }],
    ["no typ", { alg: "ES256", kid, x: 1 }],
    ["no kid", { alg: "ES256", typ: TYP, x: 1 }],
    ["an unknown kid", { ...good, kid: "k-none" }],
    ["the kid of another of our keys", { ...good, kid: "k-ed" }],
    ["a kid that is not a string", { ...good, kid: [kid] }],
    ["crit (RFC 7515 §4.1.11)", { ...good, crit: ["exp"] }],
    ["a key of its own, jwk (RFC 7515 §4.1.3)", { ...good, jwk: keys.ES256.jwk }],
    ["jku (RFC 7515 §4.1.2)", { ...good, jku: "https://evil.example/jwks.json" }],
    ["x5c", { ...good, x5c: ["MIIB"] }],
    ["x5u", { ...good, x5u: "https://evil.example/cert" }],
    ["b64 (RFC 7797)", { ...good, b64: false }],
    ["zip", { ...good, zip: "DEF" }],
    ["cty", { ...good, cty: "JWT" }],
    ["an unknown member", { ...good, x: 1 }],
    ["a list", [good]],
    ["null", null],
    ["a string", "ES256"],
  ];
  for (const [what, header] of table) {
    test(what, () => assert.equal(verify(signRaw(JSON.stringify(header), "{}")), undefined));
  }

  test("but accepts a good header that is signed in the same way", () => {
    assert.deepEqual(verify(signRaw(JSON.stringify(good), '{"a":1}')), { a: 1 });
  });
});

test("verifyJwt() refuses HS256 with the public key as the secret (RFC 8725 §2.1)", async () => {
  const pem = String(keys.RS256.publicKey.export({ format: "pem", type: "spki" }));
  const signed = `${part({ alg: "HS256", typ: TYP, kid: keys.RS256.kid })}.${part(CLAIMS)}`;
  const secret = await webcrypto.subtle.importKey(
    "raw", Buffer.from(pem), { name: "HMAC", hash: "SHA-256" }, false, ["sign"],
  );
  const signature = Buffer.from(await webcrypto.subtle.sign("HMAC", secret, Buffer.from(signed)));
  assert.equal(verify(`${signed}.${signature.toString("base64url")}`), undefined);
});

describe("verifyJwt() refuses correctly signed claims that are not an object:", () => {
  const header = JSON.stringify(good);
  for (const claims of ["[]", "null", "1", '"x"', "", "{", "{}x", "\ufeff{}"]) {
    test(JSON.stringify(claims), () => assert.equal(verify(signRaw(header, claims)), undefined));
  }
});

test("verifyJwt() refuses a header or claims that are not UTF-8 (RFC 7515 §5.2)", () => {
  const notUtf8 = (json: string) => Buffer.from(json, "latin1");
  assert.equal(verify(signRaw(JSON.stringify(good), notUtf8('{"sub":"u\u00ff"}'))), undefined);
  const odd = notUtf8(JSON.stringify({ ...good, kid: "k\u00ff" }));
  assert.equal(verifyJwt(signRaw(odd, "{}"), TYP, () => keys.ES256), undefined);
});

describe("verifyJwt() refuses a form that is not canonical:", () => {
  const token = signJwt(TYP, CLAIMS, keys.EdDSA);
  const [header = "", claims = "", signature = ""] = token.split(".");
  const table: [what: string, text: string][] = [
    ["padding", `${header}.${claims}.${signature}==`],
    ["padding inside", `${header}=.${claims}.${signature}`],
    ["stray bits at the end (RFC 4648 §3.5)", `${header}.${claims}.${strayBits(signature)}`],
    ["the other base64 alphabet", `${header}.${claims}.+/${signature.slice(2)}`],
    ["a space at the start", ` ${token}`],
    ["a space at the end", `${token} `],
    ["a line feed at the end", `${token}\n`],
    ["a line feed inside", `${header}.\n${claims}.${signature}`],
    ["a NUL inside", `${header}\u0000.${claims}.${signature}`],
    ["a fourth part", `${token}.`],
    ["five parts, as a JWE has", `${header}..${claims}.${signature}.x`],
    ["two parts", `${header}.${claims}`],
    ["a first part that is empty", `.${claims}.${signature}`],
    ["a second part that is empty", `${header}..${signature}`],
    ["JSON serialization", JSON.stringify({ payload: claims, protected: header, signature })],
    ["an empty text", ""],
    ["dots alone", ".."],
  ];
  for (const [what, text] of table) {
    test(what, () => assert.equal(verify(text), undefined));
  }
});

test("verifyJwt() refuses a signed header with stray bits that decodes to the same text", () => {
  const [header = "", claims = ""] = signJwt(TYP, { a: 1 }, keys.EdDSA).split(".");
  const altered = strayBits(header);
  if (altered === header) return assert.fail("a header of this length has no unused bits");
  const signed = `${altered}.${claims}`;
  const signature = sign(null, Buffer.from(signed), keys.EdDSA.privateKey).toString("base64url");
  assert.equal(verify(`${signed}.${signature}`), undefined);
});

test("verifyJwt() accepts a JWT of 8,192 characters and refuses a longer one", () => {
  const sized = (length: number): string => {
    for (let fill = 0; ; fill++) {
      const token = signJwt(TYP, { x: "x".repeat(fill) }, keys.EdDSA);
      if (token.length >= length) return token;
      fill += Math.max(0, Math.floor((length - token.length) * 3 / 4) - 4);
    }
  };
  const longest = sized(8_190);
  assert.ok(longest.length <= 8_192);
  assert.notEqual(verify(longest), undefined);
  assert.equal(verify(sized(8_193)), undefined);
});

test("verifyJwt() looks up a key only for a well-formed header, and only once", () => {
  const asked: string[] = [];
  const findKey = (kid: string) => void asked.push(kid);
  const header = part({ ...good, kid: "k", crv: 1 });
  assert.equal(verifyJwt(`${header}.e30.AAAA`, TYP, findKey), undefined);
  assert.deepEqual(asked, []);
  assert.equal(verifyJwt(signJwt(TYP, CLAIMS, keys.EdDSA), TYP, findKey), undefined);
  assert.deepEqual(asked, ["k-ed"]);
});

test("verifyJwt() refuses 20,000 altered tokens and never throws", (t) => {
  const random = openRandom(t);
  const tokens = SIGNING_ALGORITHMS.map((alg) => signJwt(TYP, CLAIMS, keys[alg]));
  const pieces = [
    ".", "..", "=", "-", "_", "e30", "eyJhbGciOiJub25lIn0", "\u0000", "\u{1f511}", "null",
    part({ alg: "none" }), part({ alg: "EdDSA", typ: TYP, kid: "k-ed" }), "A".repeat(100),
  ];
  for (let run = 0; run < 20_000; run++) {
    const token = random.pick(tokens);
    const text = random.chance(10)
      ? Buffer.from(random.bytes(80)).toString("latin1")
      : random.mutate(token, pieces);
    if (tokens.includes(text)) continue;
    assert.equal(verify(text), undefined, random.describe(text));
  }
});

async function makeKey(kid: string, alg: SigningAlgorithm): Promise<Key> {
  return importKey(kid, alg, await generatePrivateKey(alg));
}

/** What a token's signature covers, and the signature's bytes. */
function takeApart(token: string) {
  const signed = token.slice(0, token.lastIndexOf("."));
  return { signed, bytes: Buffer.from(token.slice(signed.length + 1), "base64url") };
}

function part(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** The same bytes with the last character's unused bits set, where it has any. */
function strayBits(text: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  if (text.length % 4 === 0) return text;
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? "") + 1];
}

/** Signs any header and claims with our ES256 key. */
function signRaw(header: string | Buffer, claims: string | Buffer): string {
  const signed = [header, claims].map((part) => Buffer.from(part).toString("base64url")).join(".");
  const { privateKey: key } = keys.ES256;
  const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
  return `${signed}.${signature.toString("base64url")}`;
}

async function webVerify({ alg, jwk }: Key, signed: string, signature: Buffer<ArrayBuffer>) {
  const algorithm = {
    ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
    RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
    EdDSA: { name: "Ed25519" },
  }[alg];
  const { subtle } = webcrypto;
  const publicKey = await subtle.importKey("jwk", { ...jwk }, algorithm, true, ["verify"]);
  return subtle.verify(algorithm, publicKey, signature, Buffer.from(signed));
}
