import { GRANT_TYPES } from "../../oauth/grant_type.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { KeyRing } from "../../store/key_ring.ts";
import { jsonResponse } from "../../http/respond.ts";
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
  const server = {
    issuer,
    authorization_endpoint: `${issuer}/authorization/authorize`,
    token_endpoint: `${issuer}/authorization/token`,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    revocation_endpoint: `${issuer}/authorization/revoke`,
    introspection_endpoint: `${issuer}/authorization/introspect`,
    userinfo_endpoint: `${issuer}/authorization/whoami`, // by its name at OpenID Connect Discovery
    scopes_supported: scopes,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: GRANT_TYPES,
    token_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "none"],
    revocation_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "none"],
    introspection_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "Bearer"],
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true, // RFC 9207 §3
  };
  return [
    metadataRoute(
      "/.well-known/oauth-authorization-server",
      "Server metadata (RFC 8414)",
      () => server,
    ),
    // RFC 8414 §5: clients of OpenID providers look there, by either of the two forms.
    metadataRoute(
      "/.well-known/openid-configuration",
      "The same where OpenID clients look",
      () => server,
    ),
    metadataRoute("/.well-known/oauth-protected-resource", "Resource metadata (RFC 9728)", () => ({
      resource: issuer,
      authorization_servers: [issuer],
      // What a client asks for where no challenge names its scopes: not for administration.
      scopes_supported: scopes.filter((scope) => scope !== BACKEND_SCOPE),
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
    cors: "anyone",
    summary,
    handle: () => Promise.resolve(jsonResponse(200, make(), CACHE)),
  };
}
