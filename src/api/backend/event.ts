import { recordOf } from "../../base/fields.ts";
import { newId } from "../../base/id.ts";
import { encodeJson } from "../../base/json.ts";
import { checkErrors, type FieldError, Problem } from "../../base/problem.ts";
import {
  ANYTHING,
  below,
  type Infer,
  named,
  record,
  reportTo,
  withMembers,
} from "../../base/shape.ts";
import { ManagedDelivery, toManagedDelivery } from "../../event/delivery_record.ts";
import { EventRecord, NewEvent } from "../../event/event.ts";
import type { Services } from "../../services.ts";
import { CLI_ACTOR } from "../../store/audit.ts";
import { listDeliveries } from "../../store/delivery_lists.ts";
import { EVENT_LIST, findEvent, findEventByKey, insertEvent } from "../../store/events.ts";
import { type Administration, found, locatedResponse, storeAudited } from "../administration.ts";
import { respondOnce } from "../idempotency.ts";
import { backend, type Operation } from "../operation.ts";
import { listing, pageMembers, pagination, toPageRecord } from "../pagination.ts";

const PATH = "/backend/event";
const { items: DELIVERIES, next_cursor: NEXT_CURSOR } = pageMembers(ManagedDelivery);
export const EventWithDeliveries = named("EventWithDeliveries", withMembers(EventRecord, {
  data: ANYTHING,
  deliveries: DELIVERIES,
  next_cursor: NEXT_CURSOR,
}));

/** /backend/event: read dispatched events, and dispatch an event by hand. */
export function eventOperations(
  services: Administration & Pick<Services, "metrics" | "heavy" | "events">,
): Operation[] {
  const { database, heavy, config: { maxPayloadBytes }, events, metrics, now } = services;

  /** Returns the event's data as JSON, parsed by its declared schema as `dispatch` does. */
  async function asDeclared({ name, data: json }: Infer<typeof NewEvent>): Promise<string> {
    const declared = events.find((event) => event.name === name)?.data;
    if (!declared) return json;
    const errors: FieldError[] = [];
    const data = await declared.parse(JSON.parse(json), below(reportTo(errors), "data"));
    checkErrors(errors, "body");
    return encodeJson(data);
  }

  return [
    backend("POST", PATH, "dispatchEvent", "Dispatch an event", {
      body: NewEvent,
      responses: { 202: named("EventId", record({ id: EventRecord.members.id })) },
      isLocated: true,
      idempotent: true,
      async handle({ body, ...context }) {
        const { name, subject, key } = body;
        const respond = (id: string) => locatedResponse(202, context.request.path, id, { id });
        return respondOnce(services, context, () => JSON.stringify(body), async (keep) => {
          const json = await asDeclared(body);
          if (Buffer.byteLength(json) > maxPayloadBytes) {
            const detail = `The data is larger than ${maxPayloadBytes} bytes of JSON.`;
            throw new Problem(413, "too_large", detail);
          }
          const createdAtMs = now();
          const id = newId("e", createdAtMs);
          const { caller: { sub: principal }, request: { id: request } } = context;
          const source = principal === CLI_ACTOR ? CLI_ACTOR : "backend";
          const by = { request, source, principal };
          const insert = insertEvent({ id, name, json, subject, key, createdAtMs, ...by });
          // With a `key` the response is kept later: its id may be that of an earlier event.
          const stored = [insert, ...key === undefined ? keep(respond(id)) : []];
          const [changed = 0] =
            await storeAudited(context, "event.dispatch", id, stored, services);
          metrics.count("gatepost_events_dispatched_total", [], changed);
          const isNew = key === undefined || changed > 0;
          return respond(isNew ? id : found(await findEventByKey(database, name, key), "event"));
        });
      },
    }),
    backend("GET", PATH, "listEvents", "List events",
      listing(heavy, EVENT_LIST, EventRecord, toRecord)),
    backend("GET", `${PATH}/:id`, "getEvent",
      "One event with its data and a page of its deliveries", {
      query: pagination(ManagedDelivery.members.id),
      returns: EventWithDeliveries,
      async handle({ query, params }) {
        const { json, ...event } = found(await findEvent(database, params.id), "event");
        const page = await listDeliveries(database, { ...query, event: event.id });
        const { items: deliveries, next_cursor } = toPageRecord(page, toManagedDelivery);
        return { ...toRecord(event), data: JSON.parse(json), deliveries, next_cursor };
      },
    }),
  ];
}

const toRecord = recordOf(EventRecord);
