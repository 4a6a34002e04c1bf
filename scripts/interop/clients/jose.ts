import type { Client, ClientPackage, Members } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of jose 6 that is used here. */
interface Jose {
  createRemoteJWKSet(url: URL): KeySet;
  jwtVerify(token: string, keys: KeySet, options: {
    readonly issuer: string;
    readonly audience: string;
    readonly typ: string;
    readonly algorithms: readonly string[];
    readonly requiredClaims: readonly string[];
  }): Promise<{ readonly payload: Members }>;
}

type KeySet = (...request: readonly never[]) => Promise<unknown>;

export const JOSE: ClientPackage = { name: "jose", major: 6, open };

function open(load: PackageLoader, { issuer, signingAlg }: Stage): Client {
  const jose = load<Jose>("jose");
  const keys = jose.createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`));
  return {
    auth: [],
    async verify(accessToken, audience) {
      const { payload } = await jose.jwtVerify(accessToken, keys, {
        issuer,
        audience,
        typ: "at+jwt",
        algorithms: [signingAlg],
        // RFC 9068 §2.2.
        requiredClaims: ["sub", "client_id", "iat", "exp", "jti"],
      });
      return payload;
    },
  };
}
