import type { Schema } from "../../base/shape.ts";
import type { Services } from "../../services.ts";
import { INFO, type IsKnown, knownEvents } from "./document.ts";
import { CALLBACK_HEADERS } from "./openapi_parts.ts";
import { eventId } from "./operation_id.ts";

/**
 * The AsyncAPI 3.0 document: a channel, a message and an operation for each event. Its server is
 * this service, where subscriptions are made; each subscription has its own endpoint.
 */
export function createAsyncApi(
  { events, issuer }: Pick<Services, "events" | "issuer">,
  isKnown: IsKnown,
): Schema {
  const { host, protocol, pathname } = new URL(issuer);
  const known = knownEvents(events, isKnown);
  const schemas = Object.assign({}, ...known.map(({ data }) => data?.definitions));
  const entries = known.map((event) => ({ ...event, id: eventId(event.name) }));
  return {
    asyncapi: "3.0.0",
    info: INFO,
    servers: {
      gatepost: {
        host,
        protocol: protocol.replace(":", ""),
        ...(pathname !== "/" && { pathname }),
        description: "Sends each event in a POST to the endpoints of its subscriptions, " +
          "which are made at /consumer/subscription.",
      },
    },
    channels: Object.fromEntries(entries.map(({ id, name, description, data, example }) => [id, {
      address: name,
      messages: {
        [id]: {
          name,
          summary: description,
          contentType: "application/json",
          headers: { $ref: "#/components/schemas/CallbackHeaders" },
          payload: data?.schema ?? {},
          ...(example !== undefined && { examples: [{ payload: example }] }),
        },
      },
    }])),
    operations: Object.fromEntries(entries.map(({ id, description }) => [id, {
      action: "send",
      channel: { $ref: `#/channels/${id}` },
      summary: description,
      bindings: { http: { method: "POST", bindingVersion: "0.3.0" } },
    }])),
    components: { schemas: { CallbackHeaders: CALLBACK_HEADERS.schema, ...schemas } },
  };
}
