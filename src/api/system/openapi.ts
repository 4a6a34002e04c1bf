import { createCache } from "../../base/cache.ts";
import { ANYTHING, named, record, type Schema, type Shape, shown, TEXT } from "../../base/shape.ts";
import { OWN_EVENTS } from "../../event/own_events.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { version } from "../../version.ts";
import { bearerToken } from "../bearer.ts";
import { type Operation, operation } from "../operation.ts";
import { describe, describeHosted, PARAMETER, toTemplate } from "./openapi_operation.ts";
import { callback, components, type Service } from "./openapi_parts.ts";

type DocumentServices = Service & Pick<Services, "events">;

const OBJECT = shown<object>({ type: "object" });
const OBJECTS = shown<readonly object[]>({ type: "array", items: OBJECT.schema });

const OpenApi = named("OpenApi", record({
  openapi: TEXT,
  info: OBJECT,
  servers: OBJECTS,
  tags: OBJECTS,
  paths: OBJECT,
  webhooks: OBJECT,
  components: OBJECT,
}));

/** Documents that are kept, one for each set of scopes that makes a difference. */
const DOCUMENT_LIMIT = 16;

/**
 * GET /openapi.json: the document of these operations and of itself. Without a token it has no
 * endpoint and no event that needs one; with a token also what its scopes open, and all with
 * `backend`.
 */
export function openApiOperation(
  operations: readonly Operation[],
  services: DocumentServices & Pick<Services, "bearer">,
): Operation {
  // Clients that do not read their response hold no copies of their own.
  const documents = createCache<Buffer>(DOCUMENT_LIMIT);
  const itself = operation({
    id: "getOpenApi",
    method: "GET",
    path: "/openapi.json",
    access: "public",
    security: "token or none",
    cors: "anyone",
    limit: "never",
    summary: "This document",
    responses: { 200: OpenApi },
    refuses: [401],
    async handle({ request }) {
      const caller = bearerToken(request) === undefined
        ? undefined
        : await services.bearer.authenticate(request, []);
      const held = services.scopes.filter((scope) => caller?.scopes.includes(scope));
      const key = caller ? `with ${held.join(" ")}` : "";
      let body = documents.get(key);
      if (!body) {
        const isKnown = (scopes: readonly string[]) =>
          caller !== undefined &&
          (held.includes(BACKEND_SCOPE) || scopes.every((scope) => held.includes(scope)));
        const document = createOpenApi([...operations, itself], services, isKnown);
        body = Buffer.from(JSON.stringify(document));
        documents.set(key, body);
      }
      const headers = {
        "Content-Type": "application/json",
        "Cache-Control": caller ? "private, no-cache" : "no-cache",
        Vary: "Authorization",
      };
      return { status: 200, headers, body };
    },
  });
  return itself;
}

/**
 * The OpenAPI 3.1 document of these operations, of which hosted ones come last.
 *
 * @param isKnown whether the reader may know of what needs these scopes, of which there may be none
 */
export function createOpenApi(
  operations: readonly Operation[],
  service: DocumentServices,
  isKnown: (scopes: readonly string[]) => boolean,
): Schema {
  const events = service.events.filter(({ scope }) => scope.length === 0 || isKnown(scope));
  const names = new Set(events.map(({ name }) => name));
  const paths: Record<string, Record<string, Schema>> = {};
  const templates = new Map<string, string>(); // by shape: to OpenAPI these are one path
  const ids = new Set<string>();

  for (const each of operations) {
    const id = uniqueId(each.id, ids); // also where it is not shown: ids do not shift
    if (each.emits && each.access !== "public" && !isKnown(each.access)) continue;
    const own = toTemplate(each.path);
    const shape = own.replace(PARAMETER, "{}");
    const template = templates.getOrInsert(shape, own);
    const item = paths[template] ??= {};
    // Two patterns that OpenAPI cannot tell apart: only the one that goes first is there.
    item[each.method.toLowerCase()] ??= {
      operationId: id,
      summary: each.summary,
      tags: [tagOf(each)],
      ...each.emits
        ? describeHosted(each, template, each.emits.filter(({ name }) => names.has(name)))
        : describe(each, template),
    };
  }
  const document = {
    openapi: "3.1.1",
    info: {
      title: "Gatepost",
      version,
      description: "Access tokens, hosted endpoints, and the delivery of their events.",
    },
    servers: [{ url: service.issuer }],
    tags: [...new Set(operations.map(tagOf))]
      .map((name) => ({ name, description: TAG_TEXTS[name] ?? name })),
    paths,
    webhooks: Object.fromEntries(
      [...events.map((event) => ({ ...event, shape: ANYTHING })), ...OWN_EVENTS].map(
        ({ name, description, shape: { schema } }) => [name, {
          post: { operationId: uniqueId(`on_${name}`, ids), ...callback(description, schema) },
        }],
      ),
    ),
  };
  const shapes = [...operations.flatMap(shapesOf), ...OWN_EVENTS.map(({ shape }) => shape)];
  const schemas = Object.assign({}, ...shapes.map(({ definitions }) => definitions));
  return { ...document, components: components(service, schemas, JSON.stringify(document)) };
}

const TAG_TEXTS: Readonly<Record<string, string>> = {
  consumer: "What consumers subscribe to, and what is sent to them.",
  authorization: "Access tokens and who may have them (OAuth 2.0).",
  backend: "Administration.",
  system: "The service itself.",
  hosted: "The endpoints that are hosted here.",
};

/** Every shape that an operation speaks of. */
function shapesOf({ query, body, form, responses }: Operation): Shape<unknown>[] {
  const sent = Object.values(responses).filter((shape) => typeof shape === "object");
  return [...Object.values(query ?? {}), body ?? [], form ?? [], sent].flat();
}

function uniqueId(name: string, taken: Set<string>): string {
  const plain = name.replace(/\W+/g, "_");
  let id = plain;
  for (let count = 2; taken.has(id); count++) id = `${plain}_${count}`;
  taken.add(id);
  return id;
}

function tagOf({ path, emits }: Operation): string {
  const [, first = ""] = path.split("/");
  if (emits) return "hosted";
  return first === ".well-known" ? "authorization" : first === "openapi.json" ? "system" : first;
}
