import { ANYTHING, record, type Schema, TEXT } from "../../base/shape.ts";
import { BACKEND_READ_SCOPE, BACKEND_SCOPE } from "../../oauth/principal.ts";
import { KEY_PATTERN } from "../idempotency.ts";
import type { Operation } from "../operation.ts";
import { tokensOf } from "../path_pattern.ts";
import { callback, parameter, refusals } from "./openapi_parts.ts";

/**
 * Describes an operation for the document.
 *
 * @param template the template of the path; `own` is the operation's, maybe with other names
 * @param known the names of the events that the reader may see
 * @param shared receives the responses that the description refers to
 */
export function describe(
  operation: Operation,
  template: string,
  own: string,
  known: ReadonlySet<string>,
  shared: Record<string, Schema>,
): Schema {
  const { id, path, access, errors = "problem", refuses = [], query = {}, input = {}, emits } =
    operation;
  const ownNames = namesIn(own);
  const inPath = namesIn(template)
    .map((name, index) => parameter("path", name, input.params?.schema, ownNames[index]));
  const { schema } = input.query ?? record(query); // a shape that is no object names no parameters
  const required = [schema["required"] ?? []].flat(); // may have names that `properties` has not
  const inQuery = [...new Set([...Object.keys(schema["properties"] ?? {}), ...required])]
    .map((name) => parameter("query", String(name), schema));
  const parameters = [...inPath, ...inQuery, ...operation.idempotent ? [KEY_HEADER] : []];
  const body = requestBody(operation);
  const isChecked = inQuery.length > 0 || input.params || input.query || operation.idempotent;
  const statuses = [
    ...(body || isChecked ? [400] : []),
    ...(access === "public" ? [] : [401, ...(access.length > 0 ? [403] : [])]),
    ...(inPath.length > 0 ? [404] : []),
    // RFC 6749 §5.2: the wrong type of body is invalid_request, and so 400.
    ...(body ? (errors === "oauth" ? [413] : [413, 415]) : []),
    ...(operation.idempotent ? [409, 422] : []),
    ...refuses,
  ];
  return {
    ...(emits && {
      description: [
        `Hosted at ${path}.`, // public, so it does not name the file
        ...operation.maxBodyBytes === undefined
          ? []
          : [`Its body has at most ${operation.maxBodyBytes} bytes.`],
        ...emits.filter(({ name }) => known.has(name))
          .map(({ name, description }) => `Dispatches \`${name}\`: ${description}`),
      ].join("\n\n"),
    }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: body }),
    responses: { ...successes(operation), ...refusals(statuses, errors, shared) },
    security: security(operation),
    ...(id === "subscribe" && {
      callbacks: {
        event: { "{$request.body#/endpoint}": { post: callback("The subscribed event") } },
      },
    }),
  };
}

const KEY_HEADER = {
  name: "Idempotency-Key",
  in: "header",
  schema: { ...TEXT.schema, pattern: KEY_PATTERN.source },
};

/** The names of a template's parameters. */
export function namesIn(template: string): string[] {
  return [...template.matchAll(PARAMETER)].map(([, name = ""]) => name);
}

/** Describes the bodies that are accepted; undefined if there are none. */
function requestBody({ method, body, form, input, emits, takesForms }: Operation) {
  const shape = body ?? form ?? input?.body;
  const isRead = emits !== undefined && method !== "GET" && method !== "DELETE";
  if (!shape && !isRead) return undefined;
  const types = [
    ...form ? [] : ["application/json"],
    ...form || takesForms ? ["application/x-www-form-urlencoded"] : [],
    ...shape ? [] : ["*/*"], // the handler may read any other
  ];
  const media = shape ? { schema: shape.schema } : {};
  return {
    ...(shape && { required: !shape.isOptional }),
    content: Object.fromEntries(types.map((type) => [type, media])),
  };
}

function successes({ responses, isLocated }: Operation): Schema {
  const declared = Object.entries(responses);
  const shapes = declared.length > 0 ? declared : [["2XX", ANYTHING] as const];
  return Object.fromEntries(shapes.map(([status, shape]) => [status, {
    description: RESPONSE_TEXTS[status] ?? "Done.",
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/RequestId" },
      ...((isLocated ?? ["201", "303"].includes(status)) && {
        Location: { $ref: "#/components/headers/Location" },
      }),
    },
    ...(shape !== undefined && {
      content: typeof shape === "string"
        ? { [shape]: { schema: TEXT.schema } }
        // Without an output the handler may respond with any type.
        : { "application/json": { schema: shape.schema }, ...status === "2XX" && { "*/*": {} } },
    }),
  }]));
}

const RESPONSE_TEXTS: Readonly<Record<string, string>> = {
  201: "Created.",
  202: "Accepted; it is done in the background.",
  204: "Done; no content.",
  "2XX": "The endpoint's response.",
  303: "Redirects to the next page, or to the app with a code or an error.",
  503: "Temporarily unavailable.",
};

function security({ access, security: kind, refuses }: Operation): readonly Schema[] {
  if (access !== "public") {
    return [...tokenWith(access), ...access[0] === BACKEND_READ_SCOPE ? BACKEND : []];
  }
  // If a request without a token is not refused, no token is required.
  const isOpen = kind === "inspector" && !refuses?.includes(401);
  return kind === undefined ? [] : [...SECURITY[kind], ...isOpen ? [{}] : []];
}

const BACKEND = tokenWith([BACKEND_SCOPE]);

const SECURITY: Readonly<Record<NonNullable<Operation["security"]>, readonly Schema[]>> = {
  client: [{ client: [] }, {}], // or in the body, or a public app
  "client or token": [{ client: [] }, { token: [] }, {}],
  "token or none": [...tokenWith([]), {}],
  inspector: [{ metrics: [] }, ...BACKEND],
};

function tokenWith(scopes: readonly string[]): Schema[] {
  return [{ token: scopes }, { oauth2: scopes }];
}

/** A parameter of a template. */
export const PARAMETER = /\{(.*?)\}/g;

/**
 * Returns the templates of an operation's path, such as "/orders/{id}": with and without each
 * optional part, the fullest first. A template says less than a URLPattern: it leaves out what a
 * group matches, and a wildcard becomes a parameter with the same number as in handlers ("0").
 */
export function toTemplates(pattern: string): string[] {
  let text = ""; // groups are in < >, an optional part ends with ?
  let unnamed = 0;
  let isNamed = false; // a group right behind a name belongs to it
  for (const { name, regexp, mark, literal = "" } of tokensOf(pattern)) {
    const isWildcard = mark === "*" && !/[}>]$/.test(text);
    const isGroup = !isNamed && (regexp !== undefined || isWildcard);
    const parameter = name ?? (isGroup ? String(unnamed++) : undefined);
    isNamed = name !== undefined;
    if (parameter !== undefined) text += `{${parameter}}`;
    else text += MARKS[mark ?? ""] ?? literal.replace(/[<>?{}]/, encodeURIComponent);
  }
  return (text.match(/<[^>]*>\??|\/?\{[^}]*\}\??|[^]/g) ?? []).reduce((templates, part) => {
    const plain = part.replace(/[<>?]/g, "");
    return templates.flatMap((each) => part.endsWith("?") ? [each + plain, each] : each + plain);
  }, [""]).filter((template) => template.startsWith("/"));
}

const MARKS: Readonly<Record<string, string>> = { "{": "<", "}": ">", "?": "?", "*": "?", "+": "" };
