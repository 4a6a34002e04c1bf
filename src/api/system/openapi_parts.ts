import {
  described,
  manyOf,
  named,
  optional,
  record,
  type Schema,
  shown,
  TEXT,
} from "../../base/shape.ts";
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

/** Refusals by status: the name in the document, and what it means; `default` is any other. */
const REFUSALS: Readonly<Record<string, readonly [name: string, description: string]>> = {
  400: ["BadRequest", "Malformed or not valid; `errors` lists every bad field."],
  401: ["Unauthorized", "No token, or one that is expired, revoked or invalid."],
  403: ["Forbidden", "The token lacks a scope."],
  404: ["NotFound", "There is nothing of that name, or nothing of the caller's."],
  409: ["Conflict", "It does not fit what is there."],
  413: ["TooLarge", "The body is too large."],
  415: ["UnsupportedMediaType", "The body is not of a type that is taken here."],
  429: ["TooManyRequests", "Too many tries; Retry-After says when the next one may come."],
  default: ["Refused", "Any other refusal: 405, 500, 503 …"],
};

/** The forms of errors, by what their names begin with. */
const ERROR_FORMS = {
  problem: ["", "application/problem+json", PROBLEM.schema],
  oauth: ["OAuth", "application/json", OAUTH_ERROR.schema],
  page: ["Page", "text/html", TEXT.schema],
} as const;

const RETRY_AFTER = { description: "Seconds.", schema: { type: "integer", minimum: 0 } };

/** The refusals of an operation by status, any other included. */
export function refusals(
  statuses: readonly number[],
  errors: NonNullable<Operation["errors"]> = "problem",
): Schema {
  const [prefix] = ERROR_FORMS[errors];
  return Object.fromEntries([...statuses, "default"].map((status) => [
    status,
    { $ref: `#/components/responses/${prefix}${REFUSALS[status]?.[0]}` },
  ]));
}

/** Every refusal that an operation may refer to. */
function refusalResponses(): [name: string, response: Schema][] {
  return Object.entries(REFUSALS).flatMap(([status, [name, description]]) =>
    Object.entries(ERROR_FORMS).map(([form, [prefix, type, schema]]): [string, Schema] => [
      `${prefix}${name}`,
      {
        description,
        ...(form !== "page" && {
          headers: {
            "X-Request-Id": { $ref: "#/components/headers/RequestId" },
            ...(status === "401" && { "WWW-Authenticate": { schema: TEXT.schema } }),
            ...(status === "429" && { "Retry-After": RETRY_AFTER }),
          },
        }),
        content: { [type]: { schema } },
      },
    ])
  );
}

/** A header of a callback. */
function header(name: string, description: string, schema = TEXT.schema): Schema {
  return { name, in: "header", required: true, description, schema };
}

/** The headers of every callback (Standard Webhooks, and two of our own). */
const CALLBACK_PARAMETERS: Schemas = {
  webhookId: header("webhook-id", "The delivery; the same on every resend."),
  webhookTimestamp: header("webhook-timestamp", "Seconds since 1970.", { type: "integer" }),
  webhookSignature: header("webhook-signature", "Standard Webhooks; several separated by spaces."),
  gatepostEvent: header("gatepost-event", "The event's name."),
  gatepostAttempt: header("gatepost-attempt", "1 to 4.", { type: "integer" }),
};

/** The request that takes an event to a subscriber. */
export function callback(summary: string, schema: Schema = {}): Schema {
  return {
    summary,
    security: [], // it is the signature that proves it
    parameters: Object.keys(CALLBACK_PARAMETERS).map((name) => ({
      $ref: `#/components/parameters/${name}`,
    })),
    requestBody: { required: true, content: { "application/json": { schema } } },
    responses: {
      "2XX": { description: "It is delivered." },
      default: { description: "It is sent again, up to 3 times." },
    },
  };
}

/** Whose document it is, and every scope, with what those allow that have words. */
export type Service = Pick<Services, "issuer" | "scopes" | "scopeWords">;

/**
 * What operations refer to.
 *
 * @param schemas those of the operations by name
 * @param text the document without this part: refusals that it does not refer to are left out
 */
export function components(service: Service, schemas: Schemas, text: string): Schema {
  return {
    schemas: { ...schemas, ...PROBLEM.definitions, ...OAUTH_ERROR.definitions },
    parameters: CALLBACK_PARAMETERS,
    headers: {
      RequestId: { description: "Names the request in the log.", schema: TEXT.schema },
      Location: { description: "Where it is.", schema: TEXT.schema },
    },
    responses: Object.fromEntries(
      refusalResponses().filter(([name]) => text.includes(`"#/components/responses/${name}"`)),
    ),
    securitySchemes: securitySchemes(service),
  };
}

function securitySchemes({ issuer, scopes, scopeWords }: Service): Schemas {
  const tokenUrl = `${issuer}/authorization/token`;
  const textOf = (name: string) => scopeWords.get(name)?.description ?? "";
  const names = Object.fromEntries(scopes.map((name) => [name, textOf(name)]));
  const flow = { tokenUrl, refreshUrl: tokenUrl, scopes: names };
  return {
    token: {
      type: "http",
      scheme: "bearer",
      bearerFormat: "JWT",
      description: "An access token, of the login endpoint or the token endpoint.",
    },
    oauth2: {
      type: "oauth2",
      flows: {
        authorizationCode: { authorizationUrl: `${issuer}/authorization/authorize`, ...flow },
        clientCredentials: flow,
        password: flow,
      },
    },
    client: { type: "http", scheme: "basic", description: "An app's client_id and client_secret." },
    metrics: { type: "http", scheme: "bearer", description: "The metrics token." },
  };
}
