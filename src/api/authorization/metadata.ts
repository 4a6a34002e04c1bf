import { pathOf } from "../../base/base_url.ts";
import { METHODS } from "../../base/http_message.ts";
import { JWK } from "../../base/jwk.ts";
import { SIGNING_ALGORITHMS } from "../../base/jwt.ts";
import { described, FLAG, manyOf, named, optional, record, TEXT, URI } from "../../base/shape.ts";
import { jsonResponse } from "../../http/respond.ts";
import { isOfBackend, toAskFor } from "../../oauth/principal.ts";
import { grantTypesOf } from "../../oauth/profile.ts";
import type { Services } from "../../services.ts";
import { notFound } from "../administration.ts";
import { RESOURCE_METADATA } from "../bearer.ts";
import { type Operation, published } from "../operation.ts";
import { checkPath, createRouter } from "../router.ts";

const TEXTS = manyOf(TEXT);

const ResourceMetadata = named("ResourceMetadata", described("RFC 9728.", record({
  resource: URI,
  authorization_servers: optional(manyOf(URI)),
  scopes_supported: optional(TEXTS),
  bearer_methods_supported: TEXTS,
})));

const Jwks = named("Jwks", record({ keys: manyOf(JWK) }));

const CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "private_key_jwt"];
// Shorter than the time a new key is published before it signs, so that no verifier misses it.
const CACHE = { "Cache-Control": "public, max-age=300" };

/** Metadata for discovery: the server's (RFC 8414), the resource's (RFC 9728), and the keys. */
export function metadataOperations(
  services: DescribingServices & Pick<Services, "keys" | "scopes">,
): Operation[] {
  const { config, issuer, keys, scopes } = services;
  const { profile, clientMetadata, authorizationServer } = config;
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
    client_id_metadata_document_supported: clientMetadata !== "off",
    subject_types_supported: ["public"], // without it OpenID clients refuse the document
  };
  const members = Object.entries(server).map(([name, value]) => [name, shapeOf(value)]);
  const served = record(Object.fromEntries(members));
  const responses = { 200: named("ServerMetadata", described("RFC 8414.", served)) };
  const ofServer = { responses, handle: async () => jsonResponse(200, server, CACHE) };
  return [
    ...authorizationServer ? [
      published("GET", "/.well-known/oauth-authorization-server", "getServerMetadata",
        "Server metadata (RFC 8414)", ofServer),
      // RFC 8414 §5: clients of OpenID providers look at this path, in either of the two forms.
      published("GET", "/.well-known/openid-configuration", "getOpenIdConfiguration",
        "Server metadata where OpenID clients look for it", ofServer),
    ] : [],
    // Clients ask for these scopes if no challenge names any, so backend scopes are left out.
    published("GET", RESOURCE_METADATA, "getResourceMetadata", "Resource metadata (RFC 9728)", {
      responses: { 200: ResourceMetadata },
      handle: () =>
        describeResource(services, issuer, scopes.filter((scope) => !isOfBackend(scope))),
    }),
    published("GET", "/.well-known/jwks.json", "getKeys",
      "The keys that verify access tokens (RFC 7517)", {
      responses: { 200: Jwks },
      handle: async () =>
        jsonResponse(200, { keys: keys.published().map(({ jwk }) => jwk) }, CACHE),
    }),
  ];
}

/**
 * Metadata of each path where one of these operations refuses an invalid token, because each such
 * challenge points to the metadata of its path (RFC 9728 §3.1, §5.1).
 */
export function pathMetadataOperation(
  operations: readonly Operation[],
  services: DescribingServices,
): Operation {
  const { issuer } = services;
  const find = createRouter(operations.filter(({ access, security = "client", refuses }) =>
    access !== "public" || security !== "client" && refuses?.includes(401)));
  // (.*) since a hosted path may be just /, or have a wildcard that matches empty segments.
  return published("GET", `${RESOURCE_METADATA}/:path(.*)`, "getPathMetadata",
    "Resource metadata of a path that needs a token", {
    responses: { 200: ResourceMetadata },
    async handle({ request }) {
      const path = request.path.replace(RESOURCE_METADATA, "");
      const local = checkPath(path.slice(pathOf(issuer).length));
      const found = METHODS.flatMap((method) => find(method, local)?.operation ?? []);
      if (found.length === 0) throw notFound("protected path");
      const scopes = found.flatMap(({ access }) => access === "public" ? [] : access.map(toAskFor));
      return describeResource(services, new URL(issuer).origin + path, [...new Set(scopes)]);
    },
  });
}

type DescribingServices = Pick<Services, "config" | "issuer" | "issuerTokens">;

/** RFC 9728 §3.2: a list without elements is left out. */
async function describeResource(
  { config, issuer, issuerTokens }: DescribingServices,
  resource: string,
  scopes: readonly string[],
) {
  const others = (await issuerTokens.list()).map((each) => each.issuer);
  const servers = config.authorizationServer ? [issuer, ...others] : others;
  return jsonResponse(200, {
    resource,
    ...(servers.length > 0 && { authorization_servers: servers }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ["header"],
  }, CACHE);
}

/** Every string value of the server's metadata is a URI. */
function shapeOf(value: string | readonly string[] | boolean) {
  if (typeof value === "string") return URI;
  return typeof value === "boolean" ? FLAG : TEXTS;
}
