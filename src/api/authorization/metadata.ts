import { JWK } from "../../base/jwk.ts";
import { SIGNING_ALGORITHMS } from "../../base/jwt.ts";
import { described, FLAG, manyOf, named, record, type Shape, TEXT, URI } from "../../base/shape.ts";
import { jsonResponse } from "../../http/respond.ts";
import { isOfBackend } from "../../oauth/principal.ts";
import { grantTypesOf } from "../../oauth/profile.ts";
import type { Services } from "../../services.ts";
import { type Operation, operation } from "../operation.ts";

const TEXTS = manyOf(TEXT);

const ResourceMetadata = named("ResourceMetadata", described("RFC 9728.", record({
  resource: URI,
  authorization_servers: manyOf(URI),
  scopes_supported: TEXTS,
  bearer_methods_supported: TEXTS,
})));

const Jwks = named("Jwks", record({ keys: manyOf(JWK) }));

const CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "private_key_jwt"];
// Shorter than the time a new key is published before it signs, so that no verifier misses it.
const CACHE = { "Cache-Control": "public, max-age=300" };

/** What a client or a resource server can find out by itself: RFC 8414, RFC 9728 and the keys. */
export function metadataOperations(
  { config: { profile, authorizationServer: isOn }, issuer, issuerTokens, keys, scopes }:
    Pick<Services, "config" | "issuer" | "issuerTokens" | "keys" | "scopes">,
): Operation[] {
  const server = {
    issuer,
    authorization_endpoint: `${issuer}/authorization/authorize`,
    token_endpoint: `${issuer}/authorization/token`,
    device_authorization_endpoint: `${issuer}/authorization/device`, // RFC 8628 §4
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    revocation_endpoint: `${issuer}/authorization/revoke`,
    introspection_endpoint: `${issuer}/authorization/introspect`,
    userinfo_endpoint: `${issuer}/authorization/whoami`, // by its name at OpenID Connect Discovery
    scopes_supported: scopes,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: grantTypesOf(profile),
    token_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "none"],
    revocation_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "none"],
    introspection_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS, "Bearer"],
    token_endpoint_auth_signing_alg_values_supported: SIGNING_ALGORITHMS,
    revocation_endpoint_auth_signing_alg_values_supported: SIGNING_ALGORITHMS,
    introspection_endpoint_auth_signing_alg_values_supported: SIGNING_ALGORITHMS,
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true, // RFC 9207 §3
  };
  const members = Object.entries(server).map(([name, value]) => [name, shapeOf(value)]);
  const served = record(Object.fromEntries(members));
  const shape = named("ServerMetadata", described("RFC 8414.", served));
  const ofServer = [
    document("/.well-known/oauth-authorization-server", "getServerMetadata",
      "Server metadata (RFC 8414)", shape, () => server),
    // RFC 8414 §5: clients of OpenID providers look there, by either of the two forms.
    document("/.well-known/openid-configuration", "getOpenIdConfiguration",
      "The same where OpenID clients look", shape, () => server),
  ];
  return [
    ...isOn ? ofServer : [],
    document("/.well-known/oauth-protected-resource", "getResourceMetadata",
      "Resource metadata (RFC 9728)", ResourceMetadata, async () => ({
        resource: issuer,
        authorization_servers:
          [...isOn ? [issuer] : [], ...(await issuerTokens.list()).map((each) => each.issuer)],
        // What a client asks for where no challenge names its scopes: not for administration.
        scopes_supported: scopes.filter((scope) => !isOfBackend(scope)),
        bearer_methods_supported: ["header"],
      })),
    document("/.well-known/jwks.json", "getKeys",
      "The keys that verify access tokens (RFC 7517)", Jwks,
      () => ({ keys: keys.published().map(({ jwk }) => jwk) })),
  ];
}

/** Every text of the server's metadata is an address. */
function shapeOf(value: string | readonly string[] | boolean): Shape<unknown> {
  if (typeof value === "string") return URI;
  return typeof value === "boolean" ? FLAG : TEXTS;
}

/** A document that anyone may read. */
function document<T extends object>(
  path: string,
  id: string,
  summary: string,
  shape: Shape<T>,
  make: () => T | Promise<T>,
) {
  return operation({
    id,
    method: "GET",
    path,
    access: "public",
    cors: "anyone",
    limit: "never",
    summary,
    responses: { 200: shape },
    handle: async () => jsonResponse(200, await make(), CACHE),
  });
}
