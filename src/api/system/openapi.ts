import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { DeclaredEvent } from "../consumer/event.ts";
import type { Route } from "../route.ts";
import { ref, type Schema, TEXT } from "./json_schema.ts";
import { callbackParameters, components, REFUSALS } from "./openapi_parts.ts";
import { pathParameters, type PathTemplate, toTemplate } from "./openapi_path.ts";
import { type OperationDocs, OPERATIONS } from "./operations.ts";

/** A hosted endpoint, as far as the document tells of it. */
export interface HostedOperation {
  readonly method: string;
  readonly pattern: { readonly text: string };
  /** All that a token must carry; undefined on a public endpoint. */
  readonly scopes: readonly string[] | undefined;
  readonly maxBodyBytes: number | undefined;
  readonly emits: readonly { readonly name: string; readonly description: string }[];
  readonly exportName: string;
}

/** What the document is made of. */
export interface OpenApiOptions {
  readonly version: string;
  readonly issuer: string;
  readonly routes: readonly Route[];
  readonly hosted: readonly HostedOperation[];
  readonly events: readonly DeclaredEvent[];
  /** Every scope that means something here. */
  readonly scopes: readonly string[];
  /** What those allow that have words. */
  readonly scopeWords: ReadonlyMap<string, { readonly description: string }>;
}

type Paths = Record<string, Record<string, Schema>>;

const OWN_EVENTS = [
  {
    name: "gatepost.delivery.failed",
    description: "A delivery has failed after its last resend",
    schema: ref("DeliveryFailed"),
  },
  {
    name: "gatepost.subscription.disabled",
    description: "A subscription has been disabled",
    schema: ref("SubscriptionDisabled"),
  },
];

/**
 * The OpenAPI 3.1 document of the whole interface, hosted endpoints included.
 *
 * @param isKnown whether the reader may know of what needs these scopes, of which there may be none
 */
export function createOpenApi(
  options: OpenApiOptions,
  isKnown: (scopes: readonly string[]) => boolean,
): Schema {
  const { version, issuer, routes, hosted } = options;
  const events = options.events.filter(({ scope }) => scope.length === 0 || isKnown(scope));
  const eventNames = new Set(events.map(({ name }) => name));
  const paths: Paths = {};
  const templates = new Map<string, PathTemplate>(); // by shape: to OpenAPI these are one path
  const ids = new Set<string>();

  function add(path: string, method: string, make: (template: PathTemplate) => Schema): void {
    const template = toTemplate(path);
    const known = templates.get(template.shape) ?? template;
    templates.set(template.shape, known);
    const item = paths[known.text] ??= {};
    // Two patterns that OpenAPI cannot tell apart: the one that goes first stands for both.
    item[method.toLowerCase()] ??= make(known);
  }

  for (const route of routes) {
    const docs = OPERATIONS[route.path]?.[route.method];
    if (docs) ids.add(docs.id);
    add(route.path, route.method, (template) => builtInOperation(route, docs, template));
  }
  for (const endpoint of hosted) {
    const id = uniqueId(endpoint.exportName, ids); // also where it is not shown: ids do not shift
    if (endpoint.scopes !== undefined && !isKnown(endpoint.scopes)) continue;
    const emits = endpoint.emits.filter(({ name }) => eventNames.has(name));
    const shown = { ...endpoint, emits };
    add(endpoint.pattern.text, endpoint.method, (template) => hostedOperation(shown, id, template));
  }
  const document = {
    openapi: "3.1.1",
    info: {
      title: "Gatepost",
      version,
      description: "Access tokens, hosted endpoints, and the delivery of their events.",
    },
    servers: [{ url: issuer }],
    tags: [...new Set([...routes.map(({ path }) => tagOf(path)), ...hosted.map(() => "hosted")])]
      .map((name) => ({ name, description: TAG_TEXTS[name] ?? name })),
    paths,
    webhooks: Object.fromEntries(
      [...events.map((event) => ({ ...event, schema: {} })), ...OWN_EVENTS].map((event) => [
        event.name,
        {
          post: {
            operationId: uniqueId(`on_${event.name}`, ids),
            ...callback(event.description, event.schema),
          },
        },
      ]),
    ),
  };
  return { ...document, components: components(options, JSON.stringify(document)) };
}

const TAG_TEXTS: Readonly<Record<string, string>> = {
  consumer: "What consumers subscribe to, and what is sent to them.",
  authorization: "Access tokens and who may have them (OAuth 2.0).",
  backend: "Administration.",
  system: "The service itself.",
  hosted: "The endpoints that are hosted here.",
};

function builtInOperation(
  route: Route,
  docs: OperationDocs | undefined,
  template: PathTemplate,
): Schema {
  const { access, summary, path, method } = route;
  const query = (docs?.query ?? []).map((name) => ({ $ref: `#/components/parameters/${name}` }));
  const parameters = [...pathParameters(template), ...query];
  const body = requestBody(docs);
  const statuses = [
    ...(query.length > 0 || body ? [400] : []),
    ...(access === "public" ? [] : [401, ...(access.length > 0 ? [403] : [])]),
    ...(template.names.length > 0 ? [404] : []),
    // RFC 6749 §5.2: the wrong type of body is invalid_request, and so 400.
    ...(body ? (route.errors === "oauth" ? [413] : [413, 415]) : []),
    ...(docs?.refuses ?? []),
  ];
  return {
    operationId: docs?.id ?? `${method.toLowerCase()}${path.replace(/\W+/g, "_")}`,
    summary,
    tags: [tagOf(path)],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: body }),
    responses: { ...successResponses(docs), ...refusals(statuses, route.errors) },
    security: security(access, docs),
    ...(docs?.id === "subscribe" && {
      callbacks: {
        event: { "{$request.body#/endpoint}": { post: callback("What was subscribed to", {}) } },
      },
    }),
  };
}

function successResponses(docs: OperationDocs | undefined): Schema {
  const responses = Object.entries(docs?.responses ?? { 200: "" });
  return Object.fromEntries(responses.map(([status, kind]) => [status, {
    description: ANSWER_TEXTS[status] ?? "Done.",
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/RequestId" },
      ...((["201", "303"].includes(status) || docs?.isLocated) && {
        Location: { $ref: "#/components/headers/Location" },
      }),
    },
    ...(kind !== "" && {
      content: kind.includes("/")
        ? { [kind]: { schema: TEXT } }
        : { "application/json": { schema: ref(kind) } },
    }),
  }]));
}

const ANSWER_TEXTS: Readonly<Record<string, string>> = {
  201: "Made.",
  202: "Taken; it is done in the background.",
  204: "Done; nothing to say.",
  303: "Go on there: the next page, or back to the app with a code or an error.",
  503: "It cannot, for now.",
};

function refusals(statuses: readonly (number | "default")[], errors: Route["errors"]): Schema {
  const prefix = errors === "oauth" ? "OAuth" : errors === "page" ? "Page" : "";
  const names = [...new Set([...statuses, "default" as const])];
  return Object.fromEntries(names.map((status) => [
    status,
    { $ref: `#/components/responses/${prefix}${REFUSALS[status]}` },
  ]));
}

function requestBody(docs: OperationDocs | undefined): Schema | undefined {
  const named = docs?.json ?? docs?.form;
  if (named === undefined) return undefined;
  const type = docs?.json ? "application/json" : "application/x-www-form-urlencoded";
  return {
    required: !named.endsWith("?"),
    content: { [type]: { schema: ref(named.replace("?", "")) } },
  };
}

function security(access: Route["access"], docs: OperationDocs | undefined): Schema[] {
  if (access !== "public") return tokenWith(access);
  const kind = docs?.security;
  switch (kind) {
    case undefined:
      return [];
    case "client":
      return [{ client: [] }, {}]; // or in the body, or a public app
    case "client or token":
      return [{ client: [] }, { token: [] }, {}];
    case "token or none":
      return [...tokenWith([]), {}];
    case "inspector":
      return [{ metrics: [] }, ...tokenWith([BACKEND_SCOPE]), ...open(docs?.refuses)];
    default:
      return kind satisfies never;
  }
}

/** Where no token is not refused, it is no condition either. */
function open(refuses: readonly number[] = []): Schema[] {
  return refuses.includes(401) ? [] : [{}];
}

function tokenWith(scopes: readonly string[]): Schema[] {
  return [{ token: scopes }, { oauth2: scopes }];
}

function hostedOperation(endpoint: HostedOperation, id: string, template: PathTemplate): Schema {
  const { method, pattern, scopes, maxBodyBytes, emits, exportName } = endpoint;
  const takesBody = method !== "GET" && method !== "DELETE";
  const parameters = pathParameters(template);
  const statuses = [...(scopes ? [401, 403] : []), ...(takesBody ? [400, 413] : [])];
  return {
    operationId: id,
    summary: exportName,
    description: [
      `Hosted at ${pattern.text}.`, // anybody reads this: not which file it is in
      ...maxBodyBytes === undefined ? [] : [`Its body has at most ${maxBodyBytes} bytes.`],
      ...emits.map(({ name, description }) => `Dispatches \`${name}\`: ${description}.`),
    ].join("\n\n"),
    tags: ["hosted"],
    ...(parameters.length > 0 && { parameters }),
    ...(takesBody && {
      requestBody: {
        content: { "application/json": {}, "application/x-www-form-urlencoded": {}, "*/*": {} },
      },
    }),
    responses: {
      "2XX": { description: "What the endpoint answers.", content: { "application/json": {} } },
      ...refusals(statuses, "problem"),
    },
    security: scopes ? tokenWith(scopes) : [],
  };
}

function callback(summary: string, schema: Schema): Schema {
  return {
    summary,
    security: [], // it is the signature that proves it
    parameters: callbackParameters(),
    requestBody: { required: true, content: { "application/json": { schema } } },
    responses: {
      "2XX": { description: "It is delivered." },
      default: { description: "It is sent again, up to 3 times." },
    },
  };
}

function uniqueId(name: string, taken: Set<string>): string {
  const plain = name.replace(/\W+/g, "_");
  let id = plain;
  for (let count = 2; taken.has(id); count++) id = `${plain}_${count}`;
  taken.add(id);
  return id;
}

function tagOf(path: string): string {
  const [, first = ""] = path.split("/");
  return first === ".well-known" ? "authorization" : first === "openapi.json" ? "system" : first;
}
