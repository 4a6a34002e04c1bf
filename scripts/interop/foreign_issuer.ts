import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes, type webcrypto } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SERVER_ENTRY, startServer } from "../../test/helpers/process.ts";
import type { PackageLoader } from "./packages.ts";

/** What issues tokens that the server accepts: an authorization server, and a library. */
export const ISSUERS = [{ name: "oidc-provider", major: 9 }, { name: "jose", major: 6 }] as const;

const PASSWORD = randomBytes(16).toString("hex");
const [CLIENT, SECRET] = ["robot", randomBytes(32).toString("hex")];

/** The part of oidc-provider 9 that is used here. */
interface OidcProvider {
  default: new (issuer: string, configuration: object) => { callback(): RequestListener };
}

/** The part of jose 6 that is used to issue tokens. */
interface Jose {
  SignJWT: new (claims: object) => Token;
  exportJWK(key: webcrypto.CryptoKey): Promise<object>;
  generateKeyPair(alg: string): Promise<webcrypto.CryptoKeyPair>;
}

interface Token {
  setProtectedHeader(header: object): Token;
  setIssuedAt(): Token;
  setExpirationTime(time: string): Token;
  sign(key: webcrypto.CryptoKey): Promise<string>;
}

/** Checks that the built server accepts tokens of oidc-provider and of jose, and no others. */
export async function tryForeignIssuers(load: PackageLoader): Promise<void> {
  const servers: Server[] = [];
  const listen = async () => {
    const server = createServer();
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  };
  const gatepost = await startServer({
    entry: SERVER_ENTRY,
    env: { GATEPOST_ADMIN_PASSWORD: PASSWORD, GATEPOST_CALLBACK_ALLOW: "127.0.0.1" },
  });
  const { url } = gatepost;
  try {
    const credentials = { username: "admin", password: PASSWORD };
    const { token } = await post(`${url}/consumer/login`, credentials);
    const register = (issuer: string) => post(
      `${url}/backend/issuer`, { issuer, scopes: ["orders"] }, String(token), 201,
    );

    const provider = await listen();
    provider.server.on("request", openProvider(load, provider.url, url));
    await register(provider.url);
    for (const [audience, status] of [[url, 200], ["https://other.example", 401]] as const) {
      await expectCaller(url, await obtainToken(provider.url, audience), status, provider.url);
    }

    for (const alg of ["ES256", "RS256", "EdDSA"]) {
      const { server, url: issuer } = await listen();
      const sign = await openSigner(load<Jose>("jose"), server, issuer, alg);
      await register(issuer);
      await expectCaller(url, await sign({ aud: url }), 200, issuer);
      await expectCaller(url, await sign({ aud: [url, "x"] }), 200, issuer);
      await expectCaller(url, await sign({ aud: url, iss: provider.url }), 401);
    }
  } finally {
    await gatepost.stop();
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  }
}

async function post(url: string, body: object, token = "", status = 200) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  assert.equal(response.status, status, text);
  const members: Readonly<Record<string, unknown>> = JSON.parse(text);
  return members;
}

async function expectCaller(url: string, token: string, status: number, issuer?: string) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/authorization/whoami`, { headers });
  const text = await response.text();
  assert.equal(response.status, status, text);
  if (status !== 200) return;
  const { kind, scope, issuer: named } = JSON.parse(text);
  assert.deepEqual([kind, scope, named], ["principal", "orders", issuer]);
}

/** An authorization server whose client may have JWTs for any resource. */
function openProvider(load: PackageLoader, issuer: string, audience: string): RequestListener {
  const { default: Provider } = load<OidcProvider>("oidc-provider");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...privateKey.export({ format: "jwk" }), alg: "ES256", use: "sig", kid: "p1" };
  return new Provider(issuer, {
    clients: [{
      client_id: CLIENT,
      client_secret: SECRET,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: "ES256",
    }],
    scopes: ["orders"],
    jwks: { keys: [jwk] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: "orders",
          audience: resource,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  }).callback();
}

async function obtainToken(issuer: string, resource: string): Promise<string> {
  const response = await fetch(`${issuer}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${CLIENT}:${SECRET}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "orders", resource }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const { access_token: token }: { readonly access_token: string } = JSON.parse(text);
  return token;
}

/** Serves metadata and a key on this server; returns a function that signs tokens with the key. */
async function openSigner(jose: Jose, server: Server, issuer: string, alg: string) {
  const { publicKey, privateKey } = await jose.generateKeyPair(alg);
  const key = { ...await jose.exportJWK(publicKey), kid: "j1" };
  const metadata = { issuer, jwks_uri: `${issuer}/jwks` };
  server.on("request", ({ url }, response) => {
    const body = url === "/jwks" ? { keys: [key] } : metadata;
    response.setHeader("content-type", "application/json").end(JSON.stringify(body));
  });
  return (claims: object) =>
    new jose.SignJWT({ iss: issuer, sub: "alice", scope: "orders other", ...claims })
      .setProtectedHeader({ alg, typ: "at+jwt", kid: "j1" })
      .setIssuedAt().setExpirationTime("5m").sign(privateKey);
}
