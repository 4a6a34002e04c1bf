import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Gatepost } from "./gatepost.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { bearer } from "./requests.ts";
import { expectStatus, readObject } from "./responses.ts";

type Members = Readonly<Record<string, unknown>>;

/** A key of an issuer. */
export interface ForeignKey {
  readonly kid: string;
  readonly alg: "ES256" | "RS256" | "EdDSA";
  readonly privateKey: KeyObject;
  /** The public key, as it is in the JWK set. */
  readonly jwk: Members;
}

/** Another authorization server, on the loopback. */
export interface ForeignIssuer {
  /** Its `iss`. */
  readonly url: string;
  readonly receiver: Receiver;
  readonly key: ForeignKey;
  /** Publishes these keys from now on. */
  publish(keys: readonly Members[], cacheControl?: string): void;
  /** An access token (RFC 9068) for the audience; `claims` and `header` replace members. */
  token(claims?: Members, header?: Members, key?: ForeignKey): string;
  close(): Promise<void>;
}

/** Makes a key. */
export function newForeignKey(kid: string, alg: ForeignKey["alg"] = "ES256"): ForeignKey {
  const pair = alg === "ES256" ? generateKeyPairSync("ec", { namedCurve: "P-256" })
    : alg === "RS256" ? generateKeyPairSync("rsa", { modulusLength: 2048 })
    : generateKeyPairSync("ed25519");
  const jwk = { ...pair.publicKey.export({ format: "jwk" }), kid, alg, use: "sig" };
  return { kid, alg, privateKey: pair.privateKey, jwk };
}

/** A JWT of any header and claims, signed with a key. */
export function signForeign(header: Members, claims: unknown, key: ForeignKey): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const input = `${encode(header)}.${encode(claims)}`;
  const digest = key.alg === "EdDSA" ? null : "sha256";
  const signer = { key: key.privateKey, dsaEncoding: "ieee-p1363" } as const;
  return `${input}.${sign(digest, Buffer.from(input), signer).toString("base64url")}`;
}

/** Starts an issuer of tokens for this audience; its metadata is where OpenID clients look. */
export async function startForeignIssuer(
  audience: string,
  { path = "", key = newForeignKey("f1") }: { readonly path?: string; readonly key?: ForeignKey } =
    {},
): Promise<ForeignIssuer> {
  const receiver = await startReceiver();
  const url = `${receiver.url}${path}`;
  const json = (body: unknown, headers = {}) =>
    ({ kind: "answer", status: 200, body: JSON.stringify(body), headers }) as const;
  const metadata = { issuer: url, jwks_uri: `${receiver.url}/keys` };
  receiver.answer(`/.well-known/oauth-authorization-server${path}`, 404);
  receiver.react(`${path}/.well-known/openid-configuration`, json(metadata));
  const issuer: ForeignIssuer = {
    url,
    receiver,
    key,
    publish(keys, cacheControl = "max-age=3600") {
      receiver.react("/keys", json({ keys }, { "cache-control": cacheControl }));
    },
    token(claims = {}, header = {}, by = key) {
      const nowS = Math.floor(Date.now() / 1000);
      return signForeign({ alg: by.alg, typ: "at+jwt", kid: by.kid, ...header }, {
        iss: url,
        sub: "alice",
        aud: audience,
        client_id: "their-app",
        iat: nowS,
        exp: nowS + 600,
        jti: `j${Math.random()}`,
        scope: "consumer orders",
        ...claims,
      }, by);
    },
    close: receiver.close,
  };
  issuer.publish([key.jwk]);
  return issuer;
}

/** Registers an issuer; returns its record. */
export async function registerIssuer(
  { api, adminToken }: Gatepost,
  { url }: Pick<ForeignIssuer, "url">,
  more: Members = {},
): Promise<Members> {
  const body = { issuer: url, scopes: ["consumer", "orders"], ...more };
  return readObject(await expectStatus(201,
    api.postJson("/backend/issuer", body, bearer(adminToken))));
}

/** Waits until a process knows an issuer that another process has registered. */
export async function waitUntilAlive(at: Gatepost, token: string): Promise<void> {
  const endMs = performance.now() + 2_000;
  while (!await at.isAlive(token)) {
    assert.ok(performance.now() < endMs, "the issuer is still unknown");
    await sleep(20);
  }
}
