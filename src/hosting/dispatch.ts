import { encodeJson } from "../base/json.ts";
import { checkDispatchableName, type Event, isPrincipalId } from "../event/event.ts";
import type { Dispatch } from "../mod.ts";
import { isPlainObject } from "./check.ts";

/** One event as it is to be stored: encoded once, the same bytes for every subscriber. */
export type DispatchedEvent = Pick<Event, "id" | "name" | "json"> & { readonly subject?: string };

/** What dispatching needs from outside. */
export interface Dispatching {
  /** The largest JSON text of one event, in bytes of UTF-8. */
  readonly maxPayloadBytes: number;
  newEventId(): string;
  /** Stores all events durably, or none and throws. */
  commit(events: readonly DispatchedEvent[]): Promise<void>;
}

type Rules = Omit<Dispatching, "commit">;

/** The events of one request or run. */
export interface Collector {
  readonly dispatch: Dispatch;
  /** Ends dispatching, and returns what was dispatched, in order. */
  close(): readonly DispatchedEvent[];
}

/** How many events one request or run may dispatch: they are stored in one commit. */
const EVENT_LIMIT = 10_000;

/** Makes a collector; {@link Dispatch} has its errors. */
export function collectEvents(rules: Rules): Collector {
  let events: DispatchedEvent[] = [];
  let isOpen = true;
  return {
    dispatch(name, data, options) {
      if (!isOpen) throw new Error("dispatch() was called after the handler had settled.");
      if (events.length === EVENT_LIMIT) {
        throw new RangeError(`At most ${EVENT_LIMIT} events are dispatched by one request or run.`);
      }
      const event = createEvent(rules, name, data, options);
      events.push(event);
      return event.id;
    },
    close() {
      isOpen = false;
      const collected = events;
      events = [];
      return collected;
    },
  };
}

function createEvent(
  { maxPayloadBytes, newEventId }: Rules,
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
  const id = newEventId();
  return subject === undefined ? { id, name, json } : { id, name, json, subject };
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
