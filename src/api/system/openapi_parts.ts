import { EVENT_NAME } from "../../event/event.ts";
import { CODE_CHALLENGE } from "../../oauth/pkce.ts";
import { DELIVERY_STATUSES } from "../../store/delivery_lists.ts";
import { EVENT_STATUSES } from "../../store/events.ts";
import { MAX_FILTER_LENGTH } from "../backend/audit.ts";
import { CURSOR, DEFAULT_LIMIT, MAX_LIMIT } from "../pagination.ts";
import { id, matching, ref, type Schema, type Schemas, TEXT, TIME, word } from "./json_schema.ts";
import { AUTHORIZATION_SCHEMAS } from "./schemas_authorization.ts";
import { APP_OR_LOGIN, BACKEND_SCHEMAS } from "./schemas_backend.ts";
import { EVENT_SCHEMAS } from "./schemas_events.ts";

/** What a refusal is called in the document, by its status; `default` is any other. */
export const REFUSALS: Readonly<Record<string, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  413: "TooLarge",
  415: "UnsupportedMediaType",
  429: "TooManyRequests",
  default: "Refused",
};

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  BadRequest: "Malformed or not valid; `errors` lists every bad field.",
  Unauthorized: "No token, or one that is not good (any more).",
  Forbidden: "The token lacks a scope.",
  NotFound: "There is nothing of that name, or nothing of the caller's.",
  Conflict: "It does not fit what is there.",
  TooLarge: "The body is too large.",
  UnsupportedMediaType: "The body is not of a type that is taken here.",
  TooManyRequests: "Too many tries; Retry-After says when the next one may come.",
  Refused: "Any other refusal: 405, 500, 503 …",
};

const RETRY_AFTER = { description: "Seconds.", schema: { type: "integer", minimum: 0 } };

/** A parameter of a query. */
function query(name: string, description: string, schema = TEXT, more: Schema = {}): Schema {
  return { name, in: "query", description, schema, ...more };
}

/** A header of a callback. */
function header(name: string, description: string, schema: Schema = TEXT): Schema {
  return { name, in: "header", required: true, description, schema };
}

const AUDITED = { type: "string", maxLength: MAX_FILTER_LENGTH };

/** Every query parameter, by what `OPERATIONS` calls it. */
const QUERY_PARAMETERS: Schemas = {
  limit: query("limit", "How many.", {
    type: "integer",
    minimum: 1,
    maximum: MAX_LIMIT,
    default: DEFAULT_LIMIT,
  }),
  cursor: query("cursor", "The next_cursor of the part before.", matching(CURSOR)),
  client_id: query("client_id", "The app.", TEXT, { required: true }),
  redirect_uri: query("redirect_uri", "Where the code goes.", TEXT, { required: true }),
  response_type: query("response_type", "Absent: code.", word("code")),
  scope: query("scope", "Names separated by spaces or commas."),
  state: query("state", "Comes back as it is."),
  code_challenge: query("code_challenge", "PKCE; required for public apps.", matching(CODE_CHALLENGE)),
  code_challenge_method: query("code_challenge_method", "With a challenge.", word("S256")),
  resource: query("resource", "This service alone (RFC 8707)."),
  login_hint: query("login_hint", "The user name to begin with."),
  user: query("user", "A user's id.", id("u")),
  app: query("app", "", APP_OR_LOGIN),
  name: query("name", "The event's name.", matching(EVENT_NAME)),
  event_status: query("status", "", word(...EVENT_STATUSES)),
  delivery_status: query("status", "", word(...DELIVERY_STATUSES)),
  subscription: query("subscription", "A subscription's id.", id("s")),
  event: query("event", "An event's id.", id("e")),
  actor: query("actor", "Who did it.", AUDITED),
  action: query("action", "What was done.", AUDITED),
  target: query("target", "To what.", AUDITED),
  since: query("since", "At that time or later.", TIME),
  until: query("until", "Before that time.", TIME),
};

/** The headers of every callback (Standard Webhooks, and two of our own). */
const CALLBACK_PARAMETERS: Schemas = {
  webhookId: header("webhook-id", "The delivery; the same on every resend."),
  webhookTimestamp: header("webhook-timestamp", "Seconds since 1970.", { type: "integer" }),
  webhookSignature: header("webhook-signature", "Standard Webhooks; several separated by spaces."),
  gatepostEvent: header("gatepost-event", "The event's name."),
  gatepostAttempt: header("gatepost-attempt", "1 to 4.", { type: "integer" }),
};

/** Whose document it is, and every scope, with what those allow that have words. */
interface Service {
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly scopeWords: ReadonlyMap<string, { readonly description: string }>;
}

/**
 * What operations refer to.
 *
 * @param text the document without this part: answers that it does not refer to are left out
 */
export function components(service: Service, text: string): Schema {
  return {
    schemas: {
      ...AUTHORIZATION_SCHEMAS,
      ...EVENT_SCHEMAS,
      ...BACKEND_SCHEMAS,
      Empty: { type: "object", maxProperties: 0 },
    },
    parameters: { ...QUERY_PARAMETERS, ...CALLBACK_PARAMETERS },
    headers: {
      RequestId: { description: "Names the request in the log.", schema: TEXT },
      Location: { description: "Where it is.", schema: TEXT },
    },
    responses: Object.fromEntries(
      Object.entries(REFUSALS).flatMap(([status, name]) => [
        [name, refusal(status, name, "application/problem+json", "Problem")],
        [`OAuth${name}`, refusal(status, name, "application/json", "OAuthError")],
        [`Page${name}`, {
          description: DESCRIPTIONS[name] ?? name,
          content: { "text/html": { schema: TEXT } },
        }],
      ]).filter(([name]) => text.includes(`"#/components/responses/${String(name)}"`)),
    ),
    securitySchemes: securitySchemes(service),
  };
}

function refusal(status: string, name: string, type: string, schema: string): Schema {
  return {
    description: DESCRIPTIONS[name] ?? name,
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/RequestId" },
      ...(status === "401" && { "WWW-Authenticate": { schema: TEXT } }),
      ...(status === "429" && { "Retry-After": RETRY_AFTER }),
    },
    content: { [type]: { schema: ref(schema) } },
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

/** The headers of a callback, as an operation declares them. */
export function callbackParameters(): Schema[] {
  return Object.keys(CALLBACK_PARAMETERS).map((name) => ({
    $ref: `#/components/parameters/${name}`,
  }));
}
