import { newId } from "../base/id.ts";
import { encodeJson } from "../base/json.ts";
import { checkDispatchableName, type Event, isPrincipalId } from "../event/event.ts";
import type { Dispatch } from "../mod.ts";
import type { Services } from "../services.ts";
import { insertEvent } from "../store/events.ts";
import { isPlainObject } from "./check_fields.ts";

/** One event as it is to be stored: encoded once, the same bytes for every subscriber. */
type DispatchedEvent = Omit<Event, "createdAtMs">;

/** How many events one request or run may dispatch: they are stored in one commit. */
const EVENT_LIMIT = 10_000;

/** Collects the events of one request or run; {@link Dispatch} has the errors of `dispatch`. */
export function collectEvents(services: Pick<Services, "config" | "now">) {
  let events: DispatchedEvent[] = [];
  let isOpen = true;
  const dispatch: Dispatch = Object.assign((name: unknown, data: unknown, options?: unknown) => {
    if (!isOpen) throw new Error("dispatch() was called after the handler had settled.");
    if (events.length === EVENT_LIMIT) {
      throw new RangeError(`At most ${EVENT_LIMIT} events are dispatched by one request or run.`);
    }
    const event = createEvent(services, name, data, options);
    events.push(event);
    return event.id;
  }, { flush: () => Promise.reject(new Error("not built yet")) });
  return {
    dispatch,
    /** Ends dispatching, and returns what was dispatched, in order. */
    close(): readonly DispatchedEvent[] {
      isOpen = false;
      const collected = events;
      events = [];
      return collected;
    },
  };
}

/** Stores all events durably, to be distributed at once, or none and throws. */
export async function storeEvents(
  events: readonly DispatchedEvent[],
  { database, metrics, wake, now }: Pick<Services, "database" | "metrics" | "wake" | "now">,
): Promise<void> {
  const createdAtMs = now();
  await database.write(events.map((event) => insertEvent({ ...event, createdAtMs })));
  metrics.count("gatepost_events_dispatched_total", [], events.length);
  wake();
}

function createEvent(
  { config: { maxPayloadBytes }, now }: Pick<Services, "config" | "now">,
  name: unknown,
  data: unknown,
  options: unknown,
): DispatchedEvent {
  if (typeof name !== "string" || checkDispatchableName(name) !== undefined) {
    throw new TypeError(
      "An event's name is 1 to 128 of A-Za-z0-9._:- and does not start with gatepost.",
    );
  }
  const subject = options === undefined ? undefined : readSubject(options);
  const json = encodeJson(data);
  const bytes = Buffer.byteLength(json);
  if (bytes > maxPayloadBytes) {
    throw new RangeError(
      `The event's data has ${bytes} bytes of JSON; at most ${maxPayloadBytes} are allowed.`,
    );
  }
  return { id: newId("e", now()), name, json, subject };
}

/** What was meant for one principal must never reach all, so anything unclear is refused. */
function readSubject(options: unknown): string | undefined {
  if (!isPlainObject(options)) throw new TypeError("dispatch() takes { subject } as options.");
  const names = Object.keys(options);
  if (names.some((name) => name !== "subject")) {
    throw new TypeError("dispatch() knows no option but subject.");
  }
  if (names.length === 0) return undefined;
  const { subject } = options;
  if (!isPrincipalId(subject)) {
    throw new TypeError("The subject of an event must be the id of a user or an app.");
  }
  return subject;
}
