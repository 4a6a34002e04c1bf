import { type Schema, type Shape, TEXT } from "../../base/shape.ts";
import type { DeclaredEvent } from "../../event/event.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Operation } from "../operation.ts";
import { tokensOf } from "../path_pattern.ts";
import { callback, refusals } from "./openapi_parts.ts";

/** What the document says of an operation of the service itself. */
export function describe(operation: Operation, template: string): Schema {
  const { id, access, errors, refuses = [], query = {}, body, form } = operation;
  const path = pathParameters(template);
  const parameters = [...path, ...Object.entries(query).map(queryParameter)];
  const given = body ?? form;
  const type = body ? "application/json" : "application/x-www-form-urlencoded";
  const statuses = [
    ...(given || parameters.length > path.length ? [400] : []),
    ...(access === "public" ? [] : [401, ...(access.length > 0 ? [403] : [])]),
    ...(path.length > 0 ? [404] : []),
    // RFC 6749 §5.2: the wrong type of body is invalid_request, and so 400.
    ...(given ? (errors === "oauth" ? [413] : [413, 415]) : []),
    ...refuses,
  ];
  return {
    ...(parameters.length > 0 && { parameters }),
    ...(given && {
      requestBody: { required: !given.isOptional, content: { [type]: { schema: given.schema } } },
    }),
    responses: { ...successes(operation), ...refusals(statuses, errors) },
    security: security(operation),
    ...(id === "subscribe" && {
      callbacks: {
        event: { "{$request.body#/endpoint}": { post: callback("What was subscribed to") } },
      },
    }),
  };
}

/** The same of a hosted endpoint; `emits` are its events that the reader may know of. */
export function describeHosted(
  { method, path, access, maxBodyBytes }: Operation,
  template: string,
  emits: readonly DeclaredEvent[],
): Schema {
  const takesBody = method !== "GET" && method !== "DELETE";
  const parameters = pathParameters(template);
  const statuses = [...(access === "public" ? [] : [401, 403]), ...(takesBody ? [400, 413] : [])];
  return {
    description: [
      `Hosted at ${path}.`, // anybody reads this: not which file it is in
      ...maxBodyBytes === undefined ? [] : [`Its body has at most ${maxBodyBytes} bytes.`],
      ...emits.map(({ name, description }) => `Dispatches \`${name}\`: ${description}.`),
    ].join("\n\n"),
    ...(parameters.length > 0 && { parameters }),
    ...(takesBody && {
      requestBody: {
        content: { "application/json": {}, "application/x-www-form-urlencoded": {}, "*/*": {} },
      },
    }),
    responses: {
      "2XX": { description: "What the endpoint answers.", content: { "application/json": {} } },
      ...refusals(statuses),
    },
    security: access === "public" ? [] : tokenWith(access),
  };
}

function pathParameters(template: string): Schema[] {
  return [...template.matchAll(PARAMETER)]
    .map(([, name]) => ({ name, in: "path", required: true, schema: TEXT.schema }));
}

function queryParameter([name, shape]: [name: string, shape: Shape<unknown>]): Schema {
  const { description, ...schema } = shape.schema;
  return {
    name,
    in: "query",
    ...(description !== undefined && { description }),
    ...(!shape.isOptional && shape.fallback === undefined && { required: true }),
    schema,
  };
}

function successes({ responses, isLocated }: Operation): Schema {
  return Object.fromEntries(Object.entries(responses).map(([status, shape]) => [status, {
    description: RESPONSE_TEXTS[status] ?? "Done.",
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/RequestId" },
      ...((["201", "303"].includes(status) || isLocated) && {
        Location: { $ref: "#/components/headers/Location" },
      }),
    },
    ...(shape !== undefined && {
      content: typeof shape === "string"
        ? { [shape]: { schema: TEXT.schema } }
        : { "application/json": { schema: shape.schema } },
    }),
  }]));
}

const RESPONSE_TEXTS: Readonly<Record<string, string>> = {
  201: "Made.",
  202: "Taken; it is done in the background.",
  204: "Done; nothing to say.",
  303: "Go on there: the next page, or back to the app with a code or an error.",
  503: "It cannot, for now.",
};

function security({ access, security: kind, refuses }: Operation): readonly Schema[] {
  if (access !== "public") return tokenWith(access);
  // Where no token is not refused, it is not a condition either.
  const isOpen = kind === "inspector" && !refuses?.includes(401);
  return kind === undefined ? [] : [...SECURITY[kind], ...isOpen ? [{}] : []];
}

const SECURITY: Readonly<Record<NonNullable<Operation["security"]>, readonly Schema[]>> = {
  client: [{ client: [] }, {}], // or in the body, or a public app
  "client or token": [{ client: [] }, { token: [] }, {}],
  "token or none": [...tokenWith([]), {}],
  inspector: [{ metrics: [] }, ...tokenWith([BACKEND_SCOPE])],
};

function tokenWith(scopes: readonly string[]): Schema[] {
  return [{ token: scopes }, { oauth2: scopes }];
}

/** A parameter of a template. */
export const PARAMETER = /\{(.*?)\}/g;

/**
 * The template of an operation's path: "/orders/{id}". A URLPattern says more than a template can:
 * what a group matches is left out, a wildcard becomes a parameter that is numbered as handlers
 * have it ("0"), and an optional part is there.
 */
export function toTemplate(pattern: string): string {
  let text = "";
  let unnamed = 0;
  let isNamed = false; // a group right behind a name belongs to it
  for (const { name, regexp, mark, literal = "" } of tokensOf(pattern)) {
    const isWildcard = mark === "*" && !text.endsWith("}");
    const isGroup = !isNamed && (regexp !== undefined || isWildcard);
    const parameter = name ?? (isGroup ? String(unnamed++) : undefined);
    isNamed = name !== undefined;
    text += parameter === undefined ? literal : `{${parameter}}`;
  }
  return text;
}
