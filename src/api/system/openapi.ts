import type { Schema } from "../../base/shape.ts";
import type { Operation } from "../operation.ts";
import { INFO, type IsKnown, knownEvents } from "./document.ts";
import { describe, PARAMETER, toTemplates } from "./openapi_operation.ts";
import { callback, components, type DocumentServices } from "./openapi_parts.ts";
import { eventId, operationId } from "./operation_id.ts";

/** Makes the OpenAPI 3.1 document of these operations, in which hosted ones come last. */
export function createOpenApi(
  operations: readonly Operation[],
  service: DocumentServices,
  isKnown: IsKnown,
): Schema {
  const events = knownEvents(service.events, isKnown);
  const names = new Set(events.map(({ name }) => name));
  const paths: Record<string, Record<string, Schema>> = {};
  const responses: Record<string, Schema> = {};
  const templates = new Map<string, string>(); // by shape: OpenAPI takes one shape as one path

  for (const each of operations) {
    if (each.emits && each.access !== "public" && !isKnown(each.access)) continue;
    for (const own of toTemplates(each.path)) {
      // Numbers become names that code can use. No clash: a pattern's own names have no hyphen.
      const named = own.replace(/\{(\d+)\}/g, "{unnamed-$1}");
      const template = templates.getOrInsert(own.replace(PARAMETER, "{}"), named);
      const item = paths[template] ??= {};
      // If OpenAPI cannot tell two patterns apart, the document has only the first one.
      item[each.method.toLowerCase()] ??= {
        operationId: each.emits ? operationId(each.method, own) : each.id,
        summary: each.summary,
        tags: [tagOf(each)],
        ...describe(each, template, own, names, responses),
      };
    }
  }
  const shapes = [...operations.flatMap(shapesOf), ...events.map(({ data }) => data)];
  const schemas = Object.assign({}, ...shapes.map((shape) => shape?.definitions));
  return {
    openapi: "3.1.1",
    info: INFO,
    servers: [{ url: service.issuer }],
    tags: [...new Set(operations.map(tagOf))]
      .map((name) => ({ name, description: TAG_TEXTS[name] ?? name })),
    paths,
    webhooks: Object.fromEntries(events.map((event) => [event.name, {
      post: { operationId: `on_${eventId(event.name)}`, ...callback(event.description, event) },
    }])),
    components: components(service, schemas, responses),
  };
}

const TAG_TEXTS: Readonly<Record<string, string>> = {
  consumer: "What consumers subscribe to, and what is sent to them.",
  authorization: "Access tokens and who may have them (OAuth 2.0).",
  backend: "Administration.",
  system: "The service itself.",
  hosted: "The endpoints that are hosted here.",
};

/** Returns every shape that an operation uses. */
function shapesOf({ query = {}, body, form, responses }: Operation) {
  const sent = Object.values(responses).filter((shape) => typeof shape === "object");
  return [...Object.values(query), body, form, ...sent];
}

function tagOf({ path, emits }: Operation): string {
  const [, first = ""] = path.split("/");
  if (emits) return "hosted";
  return first === ".well-known" ? "authorization" : first.endsWith(".json") ? "system" : first;
}
