import { type Fields, openFields } from "../../base/fields.ts";
import { newId } from "../../base/id.ts";
import { encodeJson } from "../../base/json.ts";
import { Problem } from "../../base/problem.ts";
import { checkDispatchableName, checkEventName, isPrincipalId } from "../../event/event.ts";
import { formatScope } from "../../oauth/scope.ts";
import { listDeliveries } from "../../store/delivery_lists.ts";
import {
  EVENT_STATUSES,
  type EventSummary,
  findEvent,
  insertEvent,
  listEvents,
} from "../../store/events.ts";
import { readJson } from "../../http/body.ts";
import { checkWord, listResponse, readFilteredPagination, readPagination } from "../pagination.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";
import { BACKEND_ROUTE, type BackendOptions, found, storeAudited } from "./backend_route.ts";
import { toRecord as toDeliveryRecord } from "./delivery.ts";

/** What the backend's events work with. */
export interface EventAdministrationOptions extends BackendOptions {
  readonly maxPayloadBytes: number;
  /** Told how many events have been stored, for the metrics. */
  readonly observeDispatch?: (events: number) => void;
}

/** /backend/event: what has been dispatched, and dispatching by hand. */
export function eventRoutes(options: EventAdministrationOptions): ProtectedRoute[] {
  const { database, maxBodyBytes, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/event" };
  const filters = { name: checkEventName, status: checkWord(EVENT_STATUSES) };

  return [
    {
      ...collection,
      method: "POST",
      summary: "Dispatch an event",
      async handle(context) {
        const body = await readJson(context.request, maxBodyBytes, { exactIntegers: true });
        const { name, json, subject } = parseDispatch(body);
        checkPayload(json, options.maxPayloadBytes);
        const createdAtMs = now();
        const id = newId("e", createdAtMs);
        const insert = insertEvent({ id, name, json, subject, createdAtMs });
        await storeAudited(context, [insert], { action: "event.dispatch", target: id }, options);
        options.observeDispatch?.(1);
        const location = `${options.basePath}${collection.path}/${id}`;
        return jsonResponse(202, { id }, { Location: location, ...NO_STORE });
      },
    },
    {
      ...collection,
      method: "GET",
      summary: "List events",
      async handle({ request }) {
        const { page, filter } = readFilteredPagination(request, filters);
        const status = EVENT_STATUSES.find((each) => each === filter.status);
        const events = await listEvents(database, { name: filter.name, status }, page);
        return listResponse(events, toRecord);
      },
    },
    {
      ...collection,
      path: `${collection.path}/:id`,
      method: "GET",
      summary: "One event with its data and its deliveries, these in parts as lists are",
      async handle({ request, params }) {
        const page = readPagination(request);
        const event = found(await findEvent(database, params["id"] ?? ""), "event");
        const deliveries = await listDeliveries(database, { event: event.id }, page);
        return jsonResponse(200, {
          ...toRecord(event),
          data: JSON.parse(event.json),
          deliveries: deliveries.items.map(toDeliveryRecord),
          next_cursor: deliveries.next ?? null,
        }, NO_STORE);
      },
    },
  ];
}

/** Reads the JSON that dispatches; throws Problem 400 with every fault. */
function parseDispatch(value: unknown) {
  const fields = openFields(value);
  const event = {
    name: fields.requiredText("name", checkDispatchableName),
    subject: fields.text("subject", (subject) =>
      isPrincipalId(subject) ? undefined : "Must be the id of a user or an app."),
    json: readData(fields),
  };
  fields.finish("event");
  return event;
}

function readData(fields: Fields): string {
  const data = fields.value("data");
  if (!fields.has("data")) {
    fields.report("data", "Is required.");
    return "";
  }
  try {
    return encodeJson(data);
  } catch {
    fields.report("data", "Has a number that cannot be passed on as it is."); // past a double
    return "";
  }
}

function checkPayload(json: string, maxPayloadBytes: number): void {
  if (Buffer.byteLength(json) > maxPayloadBytes) {
    const detail = `The data is larger than ${maxPayloadBytes} bytes of JSON.`;
    throw new Problem(413, "too_large", detail);
  }
}

function toRecord(event: EventSummary): Record<string, unknown> {
  const { id, name, status, subject, scopes, createdAtMs } = event;
  return {
    id,
    name,
    status,
    ...(subject !== null && { subject }),
    ...(scopes.length > 0 && { scope: formatScope(scopes) }),
    created_at: new Date(createdAtMs).toISOString(),
  };
}
