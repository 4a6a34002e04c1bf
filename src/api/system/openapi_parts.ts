import {
  ANYTHING,
  COUNT,
  described,
  manyOf,
  named,
  optional,
  record,
  type Schema,
  shown,
  TEXT,
} from "../../base/shape.ts";
import type { DeclaredEvent } from "../../event/event.ts";
import { grantTypesOf } from "../../oauth/profile.ts";
import type { Services } from "../../services.ts";
import type { Operation } from "../operation.ts";

type Schemas = Readonly<Record<string, Schema>>;

/** The errors of RFC 9457, and of the OAuth endpoints. */
const PROBLEM = named("Problem", described("Problem details (RFC 9457).", record({
  type: described("urn:gatepost:problem: and a stable code.", TEXT),
  title: TEXT,
  status: shown({ type: "integer", minimum: 400, maximum: 599 }),
  detail: TEXT,
  request_id: described("As in X-Request-Id.", TEXT),
  errors: optional(manyOf(record({
    pointer: described("JSON Pointer (RFC 6901) of the bad field; empty: the whole body.", TEXT),
    detail: TEXT,
  }))),
})));
const OAUTH_ERROR = named("OAuthError", described("An error of RFC 6749, section 5.2.", record({
  error: described("A code of RFC 6749 section 5.2 and its extensions.", TEXT),
  error_description: TEXT,
})));

type Refusal = readonly [name: string, description: string];

/** Refusals by status: the name in the document, and what it means. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  400: ["BadRequest", "Malformed or not valid; `errors` lists every bad field."],
  401: ["Unauthorized", "No token, or one that is expired, revoked or invalid."],
  403: ["Forbidden", "The token lacks a scope."],
  404: ["NotFound", "Not found, or not the caller's."],
  409: ["Conflict", "It conflicts with the current state."],
  413: ["TooLarge", "The body is too large."],
  415: ["UnsupportedMediaType", "The body's media type is not accepted."],
  422: ["KeyReused", "The Idempotency-Key was used by a different request."],
  429: ["TooManyRequests", "Too many requests; Retry-After says when to try again."],
};
const ANY_REFUSAL: Refusal = ["Refused", "Any other refusal: 405, 500, 503 …"];

/** The forms of errors: the prefix of their names, the media type and the schema. */
const ERROR_FORMS = {
  problem: ["", "application/problem+json", PROBLEM.schema],
  oauth: ["OAuth", "application/json", OAUTH_ERROR.schema],
  page: ["Page", "text/html", TEXT.schema],
} as const;

/** Headers of a 429; the last two only for rate limits (draft-ietf-httpapi-ratelimit-headers). */
const LIMIT_HEADERS = {
  "Retry-After": { description: "Seconds.", schema: { type: "integer", minimum: 0 } },
  RateLimit: { description: "Requests left, and seconds until the reset.", schema: TEXT.schema },
  "RateLimit-Policy": { description: "Requests, and per how many seconds.", schema: TEXT.schema },
};

/**
 * Makes the error responses of an operation by status, with a default for any other.
 *
 * @param responses receives the responses that are referred to, by name
 */
export function refusals(
  statuses: readonly number[],
  errors: NonNullable<Operation["errors"]>,
  responses: Record<string, Schema>,
): Schema {
  const [prefix, type, schema] = ERROR_FORMS[errors];
  return Object.fromEntries([...statuses, "default"].map((status) => {
    const [name, description] = REFUSALS[status] ?? ANY_REFUSAL;
    const headers = {
      "X-Request-Id": { $ref: "#/components/headers/RequestId" },
      ...(status === 401 && { "WWW-Authenticate": { schema: TEXT.schema } }),
      ...(status === 429 && LIMIT_HEADERS),
    };
    responses[prefix + name] = {
      description,
      ...(errors !== "page" && { headers }),
      content: { [type]: { schema } },
    };
    return [status, { $ref: `#/components/responses/${prefix}${name}` }];
  }));
}

/**
 * Describes the parameter of a request by this schema of an object, in which its name is `member`.
 * A parameter with a default may be missing.
 */
export function parameter(
  place: "path" | "query" | "header",
  name: string,
  { properties, required }: Schema = {},
  member = name,
): Schema {
  const schemas = new Map<string, Schema>(Object.entries(properties ?? {}));
  const { description, ...schema } = schemas.get(member) ?? TEXT.schema;
  const isNeeded = Array.isArray(required) && required.includes(member);
  return {
    name,
    in: place,
    ...(description !== undefined && { description }),
    ...((place === "path" || (isNeeded && !("default" in schema))) && { required: true }),
    schema,
  };
}

/** The headers of every callback (Standard Webhooks, and two of our own). */
export const CALLBACK_HEADERS = record({
  "webhook-id": described("The delivery's id; the same on every resend.", TEXT),
  "webhook-timestamp": described("Seconds since 1970.", COUNT),
  "webhook-signature": described("Standard Webhooks; several are separated by spaces.", TEXT),
  "gatepost-event": described("The event's name.", TEXT),
  "gatepost-attempt": described("The number of the attempt, 1 to 4.", COUNT),
});

/** Describes the callback: the request that brings an event to a subscriber. */
export function callback(
  summary: string,
  { data = ANYTHING, example }: Pick<DeclaredEvent, "data" | "example"> = {},
): Schema {
  const media = { schema: data.schema, ...(example !== undefined && { example }) };
  return {
    summary,
    security: [], // its signature authenticates it
    parameters: Object.keys(CALLBACK_HEADERS.members)
      .map((name) => parameter("header", name, CALLBACK_HEADERS.schema)),
    requestBody: { required: true, content: { "application/json": media } },
    responses: {
      "2XX": { description: "It is delivered." },
      default: { description: "It is sent again, up to 3 times." },
    },
  };
}

/** The services that a document is made from: issuer, events, scopes and their words. */
export type DocumentServices =
  & Pick<Services, "issuer" | "events" | "scopes" | "scopeWords">
  & { readonly config: Pick<Services["config"], "profile" | "authorizationServer"> };

/** Makes what operations refer to: schemas and responses by name, and what every document has. */
export function components(service: DocumentServices, schemas: Schemas, responses: Schemas) {
  return {
    schemas: { ...schemas, ...PROBLEM.definitions, ...OAUTH_ERROR.definitions },
    headers: {
      RequestId: { description: "Names the request in the log.", schema: TEXT.schema },
      Location: { description: "The URL of the result or of the next page.", schema: TEXT.schema },
    },
    responses,
    securitySchemes: securitySchemes(service),
  };
}

function securitySchemes({ config, issuer, scopes, scopeWords }: DocumentServices): Schemas {
  const tokenUrl = `${issuer}/authorization/token`;
  const textOf = (name: string) => scopeWords.get(name)?.description ?? "";
  const names = Object.fromEntries(scopes.map((name) => [name, textOf(name)]));
  const flow = { tokenUrl, refreshUrl: tokenUrl, scopes: names };
  const token = {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "An access token, of this service or of a registered issuer.",
  };
  return {
    token,
    oauth2: !config.authorizationServer ? token : {
      type: "oauth2",
      flows: {
        authorizationCode: { authorizationUrl: `${issuer}/authorization/authorize`, ...flow },
        clientCredentials: flow,
        ...(grantTypesOf(config.profile).includes("password") && { password: flow }),
      },
    },
    client: { type: "http", scheme: "basic", description: "An app's client_id and client_secret." },
    metrics: { type: "http", scheme: "bearer", description: "The metrics token." },
  };
}
