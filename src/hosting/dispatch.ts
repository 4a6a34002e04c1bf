import { newId } from "../base/id.ts";
import { encodeJson } from "../base/json.ts";
import { isPlainObject } from "../base/plain_object.ts";
import { type Infer, object } from "../base/shape.ts";
import { unavailable } from "../api/unavailable.ts";
import type { Sql } from "../database/sql.ts";
import {
  checkDispatchableName,
  type DeclaredEvent,
  type Event,
  type EventOrigin,
  NewEvent,
} from "../event/event.ts";
import type { Dispatch } from "../mod.ts";
import type { Services } from "../services.ts";
import { EVENTS_AT_ONCE, insertEvents } from "../store/events.ts";
import { checkData } from "./check_data.ts";

/** The services that dispatching uses; `events` are all events that modules declare. */
export type DispatchServices =
  & Pick<Services, "config" | "database" | "events" | "log" | "metrics" | "wake" | "now">;

/** The most events in one commit, and the most bytes of their data: other commits wait. */
const [EVENT_LIMIT, DATA_LIMIT] = [10_000, 64 * 2 ** 20];

const { subject, key } = NewEvent.members;
const OPTIONS = object({ subject, key });

/**
 * Collects the events of one request or run; {@link Dispatch} has the errors of `dispatch`.
 *
 * @param emits the endpoint's own declarations, which go before those of other endpoints
 * @param origin the request or run that the events come from
 * @param idempotent whether nothing may be stored before the end: a repeat would store it again
 */
export function collectEvents(
  services: DispatchServices,
  emits: readonly DeclaredEvent[],
  origin: EventOrigin,
  idempotent = false,
) {
  const events: Event[] = [];
  let size = 0;
  let isOpen = true;
  let storing: Promise<void> | undefined;

  function dispatch(name: unknown, data: unknown, options?: unknown): string {
    if (!isOpen) throw new Error("dispatch() was called after the handler had settled.");
    const { event, bytes } = createEvent(services, emits, name, data, options);
    const total = size + bytes;
    if (events.length === EVENT_LIMIT || (total > DATA_LIMIT && events.length > 0)) {
      const limits = `${EVENT_LIMIT} events, and ${DATA_LIMIT / 2 ** 20} MiB of their data`;
      throw new RangeError(`At most ${limits}, go into one commit: use flush().`);
    }
    events.push({ ...event, ...origin });
    size = total;
    return event.id;
  }
  dispatch.flush = flush;

  function flush(): Promise<void> {
    return isOpen && !idempotent
      ? store() ?? Promise.resolve()
      : Promise.reject(new Error("flush() is refused: the handler is idempotent or has settled."));
  }

  /** Stores the collected events behind those being stored, and not at all if that fails. */
  function store(more: readonly Sql[] = []): Promise<void> | undefined {
    if (events.length + more.length === 0) return storing;
    const batch = events.splice(0);
    size = 0;
    const next = () => storeEvents(batch, more, services, origin);
    const stored = storing ? storing.then(next) : next();
    stored.catch(() => {
      if (storing === stored) storing = undefined; // later events are stored all the same
    });
    storing = stored;
    return stored;
  }

  return {
    dispatch,
    /**
     * Ends dispatching. Stores the collected events together with `more`, or drops the events.
     * Rejects with Problem 503 if that, or a running flush, fails. Undefined: nothing to await.
     */
    close(end: "store" | "drop", more?: readonly Sql[]): Promise<void> | undefined {
      isOpen = false;
      if (end === "drop") events.length = 0;
      return store(more);
    },
  };
}

/** Stores all events durably and wakes the distributor, or stores none and throws Problem 503. */
async function storeEvents(
  events: readonly Event[],
  more: readonly Sql[],
  { config, database, log, metrics, wake }: DispatchServices,
  { request: request_id, source }: EventOrigin,
): Promise<void> {
  try {
    const inserts: Sql[] = [];
    for (let start = 0; start < events.length; start += EVENTS_AT_ONCE) {
      inserts.push(insertEvents(events.slice(start, start + EVENTS_AT_ONCE), config.cron));
    }
    const changes = await database.write([...inserts, ...more]);
    const stored = changes.slice(0, inserts.length).reduce((sum, changed) => sum + changed, 0);
    metrics.count("gatepost_events_dispatched_total", [], stored);
  } catch (cause) {
    // Logged here, since a failed flush that nobody awaits must be seen too.
    log.error("events not stored", { request_id, source, error: cause });
    throw unavailable(cause, "what it dispatched");
  }
  wake();
}

function createEvent(
  { config: { maxPayloadBytes }, events, log, now }: DispatchServices,
  emits: readonly DeclaredEvent[],
  name: unknown,
  data: unknown,
  options: unknown,
): { readonly event: Event; readonly bytes: number } {
  if (typeof name !== "string" || checkDispatchableName(name) !== undefined) {
    throw new TypeError(
      "An event's name is 1 to 128 of A-Za-z0-9._:- and does not start with gatepost.",
    );
  }
  const isNamed = (event: DeclaredEvent) => event.name === name;
  const declared = emits.find(isNamed) ?? events.find(isNamed);
  // An event for one principal must never reach all, so unclear options are refused.
  const isClear = options === undefined || (isPlainObject(options) &&
    Reflect.ownKeys(options).length === Object.keys(options).length);
  if (!isClear) {
    throw new TypeError("dispatch() takes { subject, key } as options.");
  }
  const { subject, key }: Infer<typeof OPTIONS> = options
    ? checkData(OPTIONS, options, "The event's option")
    : {};
  const json = encodeJson(declared?.data ? checkData(declared.data, data) : data);
  const bytes = Buffer.byteLength(json);
  if (bytes > maxPayloadBytes) {
    throw new RangeError(
      `The event's data has ${bytes} bytes of JSON; at most ${maxPayloadBytes} are allowed.`,
    );
  }
  if (!declared) warnOnce(name, log);
  const createdAtMs = now();
  const id = newId("e", createdAtMs);
  return { event: { id, name, json, subject, key, createdAtMs }, bytes };
}

/** Names that were warned of, up to a limit: names may be made of what callers send. */
const WARNED = new Set<string>();
const WARNED_LIMIT = 1_000;

function warnOnce(name: string, log: Services["log"]): void {
  if (WARNED.has(name) || WARNED.size === WARNED_LIMIT) return;
  WARNED.add(name);
  log.warn("dispatched an event that no module declares", { event: name });
}
