import { GRANT_TYPES } from "../../oauth/grant_type.ts";
import { CODE_VERIFIER } from "../../oauth/pkce.ts";
import {
  COUNT,
  described,
  FLAG,
  list,
  matching,
  object,
  ref,
  type Schema,
  type Schemas,
  TEXT,
  TIME,
  URI,
  word,
} from "./json_schema.ts";

const SCOPE = described("Names separated by spaces.");
const CREDENTIALS = {
  "client_id?": described("In place of the Basic header, or of a public app."),
  "client_secret?": described("In place of the Basic header.", { ...TEXT, format: "password" }),
};

/** What login and the OAuth endpoints take and answer, and every error. */
export const AUTHORIZATION_SCHEMAS: Schemas = {
  Problem: object({
    type: described("urn:gatepost:problem: and a stable code."),
    title: TEXT,
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: TEXT,
    request_id: described("As in X-Request-Id."),
    "errors?": list(object({
      pointer: described("JSON Pointer (RFC 6901) of the bad field; empty: the whole body."),
      detail: TEXT,
    })),
  }, { description: "Problem details (RFC 9457)." }),
  OAuthError: object({
    error: described("A code of RFC 6749 section 5.2 and its extensions."),
    error_description: TEXT,
  }, { description: "An error of RFC 6749, section 5.2." }),
  LoginRequest: object({ username: TEXT, password: { ...TEXT, format: "password" } }),
  LoginResponse: object({ token: described("An access token, in JWT form.") }),
  TokenRequest: object({
    grant_type: word(...GRANT_TYPES),
    "code?": described("authorization_code: as it came to the redirect URI."),
    "redirect_uri?": described("authorization_code: as the authorize request had it.", URI),
    "code_verifier?": described(
      "authorization_code: of PKCE (RFC 7636).",
      matching(CODE_VERIFIER),
    ),
    "refresh_token?": described("refresh_token: the newest one of its grant."),
    "username?": described("password: whose password it is."),
    "password?": described("password.", { ...TEXT, format: "password" }),
    "scope?": described("Names separated by spaces or commas."),
    "resource?": described("This service alone (RFC 8707).", URI),
    ...CREDENTIALS,
  }),
  TokenResponse: object({
    access_token: described("A JWT as in RFC 9068."),
    token_type: { const: "bearer" },
    expires_in: described("Seconds.", { type: "integer", minimum: 1 }),
    "refresh_token?": described("Where the app may use that grant."),
    scope: SCOPE,
  }),
  RevokeRequest: object({
    "token?": described("An access or a refresh token; none: the one in the Authorization header."),
    "token_type_hint?": TEXT,
    ...CREDENTIALS,
  }),
  IntrospectRequest: object({ token: TEXT, "token_type_hint?": TEXT, ...CREDENTIALS }),
  Introspection: introspection(),
  Caller: object({
    sub: TEXT,
    kind: word("user", "app"),
    "username?": TEXT,
    client_id: TEXT,
    scope: SCOPE,
    expires_at: TIME,
  }),
  AuthorizeForm: object({
    csrf: TEXT,
    "username?": TEXT,
    "password?": { ...TEXT, format: "password" },
    "decision?": word("allow", "deny", "switch"),
  }),
  ServerMetadata: object({
    issuer: URI,
    authorization_endpoint: URI,
    token_endpoint: URI,
    jwks_uri: URI,
    revocation_endpoint: URI,
    introspection_endpoint: URI,
    userinfo_endpoint: URI,
    scopes_supported: list(TEXT),
    response_types_supported: list(TEXT),
    response_modes_supported: list(TEXT),
    grant_types_supported: list(TEXT),
    token_endpoint_auth_methods_supported: list(TEXT),
    revocation_endpoint_auth_methods_supported: list(TEXT),
    introspection_endpoint_auth_methods_supported: list(TEXT),
    code_challenge_methods_supported: list(TEXT),
    authorization_response_iss_parameter_supported: FLAG,
  }, { description: "RFC 8414." }),
  ResourceMetadata: object({
    resource: URI,
    authorization_servers: list(URI),
    scopes_supported: list(TEXT),
    bearer_methods_supported: list(TEXT),
  }, { description: "RFC 9728." }),
  Jwk: object({
    kty: word("EC", "RSA", "OKP"),
    kid: TEXT,
    alg: TEXT,
    use: { const: "sig" },
    "crv?": TEXT,
    "x?": TEXT,
    "y?": TEXT,
    "n?": TEXT,
    "e?": TEXT,
  }, { description: "The public part of a key (RFC 7517)." }),
  Jwks: object({ keys: list(ref("Jwk")) }),
};

function introspection(): Schema {
  return object({
    active: described("False, and nothing else, for what is not good or not the asker's.", FLAG),
    "scope?": SCOPE,
    "client_id?": TEXT,
    "username?": TEXT,
    "token_type?": { const: "bearer" },
    "exp?": described("Seconds since 1970.", COUNT),
    "sub?": TEXT,
    "aud?": URI,
    "iss?": URI,
    "jti?": TEXT,
  }, { description: "RFC 7662." });
}
