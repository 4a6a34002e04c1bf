import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** PEM texts of an authority made for one test and of a server certificate that it signed. */
export interface Certificate {
  /** The authority's certificate, which a client must trust, e.g. by NODE_EXTRA_CA_CERTS. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

interface Subject {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

const DAY_MS = 86_400_000;
/** ecdsa-with-SHA256, RFC 5758 §3.2. */
const SIGNATURE_ALGORITHM = sequence(objectId("1.2.840.10045.4.3.2"));

/** Makes a certificate authority and a certificate for these DNS names and IPv4 addresses. */
export function createCertificate(names = ["localhost", "127.0.0.1"]): Certificate {
  const authority = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const server = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = `Test authority ${randomBytes(4).toString("hex")}`;
  const ca = issue(issuer, authority.privateKey, {
    name: issuer,
    publicKey: authority.publicKey,
    // basicConstraints: a CA; keyUsage: keyCertSign (RFC 5280 §4.2.1.9 and §4.2.1.3).
    extensions: [
      extension("2.5.29.19", true, sequence(element(0x01, Buffer.from([0xff])))),
      extension("2.5.29.15", true, element(0x03, Buffer.from([2, 0x04]))),
    ],
  });
  const cert = issue(issuer, authority.privateKey, {
    name: names[0] ?? "localhost",
    publicKey: server.publicKey,
    // subjectAltName; extKeyUsage: serverAuth (RFC 5280 §4.2.1.6 and §4.2.1.12).
    extensions: [
      extension("2.5.29.17", false, sequence(...names.map(generalName))),
      extension("2.5.29.37", false, sequence(objectId("1.3.6.1.5.5.7.3.1"))),
    ],
  });
  return { ca, cert, key: server.privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

/** RFC 5280 §4.1, in DER. */
function issue(issuer: string, issuerKey: KeyObject, subject: Subject): string {
  const now = Date.now();
  const toBeSigned = sequence(
    element(0xa0, integer(Buffer.from([2]))), // version 3
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    SIGNATURE_ALGORITHM,
    commonName(issuer),
    sequence(time(now - DAY_MS), time(now + 30 * DAY_MS)),
    commonName(subject.name),
    subject.publicKey.export({ type: "spki", format: "der" }),
    element(0xa3, sequence(...subject.extensions)),
  );
  const signature = sign("sha256", toBeSigned, issuerKey);
  const der = sequence(toBeSigned, SIGNATURE_ALGORITHM, bitString(signature));
  const rows = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...rows, "-----END CERTIFICATE-----", ""].join("\n");
}

/** One DER element: tag, length (X.690 §8.1.3), content. */
function element(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const bytes = length < 0x100 ? [length] : [length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length, ...bytes]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return element(0x30, Buffer.concat(parts));
}

function integer(bytes: Buffer): Buffer {
  return element(0x02, bytes);
}

function bitString(bytes: Buffer): Buffer {
  return element(0x03, Buffer.concat([Buffer.from([0]), bytes]));
}

/** X.690 §8.19: the first two numbers share a byte, the others are base 128. */
function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = rest.flatMap((part) => {
    const digits = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    return digits;
  });
  return element(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function commonName(name: string): Buffer {
  const pair = sequence(objectId("2.5.4.3"), element(0x0c, Buffer.from(name)));
  return sequence(element(0x31, pair));
}

/** UTCTime: YYMMDDHHMMSSZ (RFC 5280 §4.1.2.5.1). */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]/g, "").slice(2, 14);
  return element(0x17, Buffer.from(`${digits}Z`));
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  const critical = isCritical ? [element(0x01, Buffer.from([0xff]))] : [];
  return sequence(objectId(id), ...critical, element(0x04, value));
}

function generalName(name: string): Buffer {
  const isAddress = /^\d+(\.\d+){3}$/.test(name);
  return isAddress
    ? element(0x87, Buffer.from(name.split(".").map(Number)))
    : element(0x82, Buffer.from(name));
}
