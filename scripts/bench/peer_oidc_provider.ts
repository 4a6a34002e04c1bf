/** node-oidc-provider as its manual sets it up for JWT access tokens: `FOLDER CLIENT_ID SECRET`. */
import { generateKeyPairSync } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { importPeer } from "./peers.ts";

interface OidcProvider {
  default: new (issuer: string, configuration: object) => { callback(): RequestListener };
}

const [folder = "", clientId = "", clientSecret = ""] = process.argv.slice(2);
const { default: Provider } = await importPeer<OidcProvider>(folder, "oidc-provider");

const server = createServer({ keepAliveTimeout: 65_000, noDelay: true });
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const provider = new Provider(issuer, {
    clients: [{
      client_id: clientId,
      client_secret: clientSecret,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: "ES256",
    }],
    scopes: ["orders"],
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), alg: "ES256", use: "sig" }] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => issuer,
        getResourceServerInfo: () => ({
          scope: "orders",
          audience: issuer,
          accessTokenTTL: 3600,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(JSON.stringify({ url: issuer }));
});
