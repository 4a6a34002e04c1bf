import { GRANT_TYPES } from "../../oauth/grant_type.ts";
import type { KeyRing } from "../../store/key_ring.ts";
import { jsonAnswer } from "../respond.ts";
import type { PublicRoute } from "../route.ts";

/** What the metadata speaks of. */
export interface MetadataOptions {
  readonly issuer: string;
  readonly keys: KeyRing;
  /** Every scope that means something here. */
  readonly scopes: readonly string[];
}

const CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"];
// Shorter than the time a new key is published before it signs, so that no verifier misses it.
const CACHE = { "Cache-Control": "public, max-age=300" };

/** What a client or a resource server can find out by itself: RFC 8414, RFC 9728 and the keys. */
export function metadataRoutes({ issuer, keys, scopes }: MetadataOptions): PublicRoute[] {
  return [
    metadataRoute("/.well-known/oauth-authorization-server", "Server metadata (RFC 8414)", () => ({
      issuer,
      authorization_endpoint: `${issuer}/authorization/authorize`,
      token_endpoint: `${issuer}/authorization/token`,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      revocation_endpoint: `${issuer}/authorization/revoke`,
      introspection_endpoint: `${issuer}/authorization/introspect`,
      scopes_supported: scopes,
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: GRANT_TYPES,
      token_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "none"],
      revocation_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "none"],
      introspection_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "Bearer"],
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true, // RFC 9207 §3
    })),
    metadataRoute("/.well-known/oauth-protected-resource", "Resource metadata (RFC 9728)", () => ({
      resource: issuer,
      authorization_servers: [issuer],
      scopes_supported: scopes,
      bearer_methods_supported: ["header"],
    })),
    metadataRoute("/.well-known/jwks.json", "The keys that verify access tokens (RFC 7517)", () => ({
      keys: keys.published().map(({ jwk }) => jwk),
    })),
  ];
}

function metadataRoute(path: string, summary: string, make: () => unknown): PublicRoute {
  return {
    method: "GET",
    path,
    access: "public",
    cors: true,
    summary,
    handle: () => Promise.resolve(jsonAnswer(200, make(), CACHE)),
  };
}
