import { createCache, createLookup } from "../../base/cache.ts";
import { idBound, idOf } from "../../base/id.ts";
import { oneAtATime } from "../../base/one_at_a_time.ts";
import { Problem } from "../../base/problem.ts";
import { described, type InferMembers, matching, optional } from "../../base/shape.ts";
import {
  type ChangedDelivery,
  type Delivery,
  toManagedDelivery,
} from "../../event/delivery_record.ts";
import { BACKEND_READ_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { AUDIT_LIST } from "../../store/audit.ts";
import { findDelivery, listDeliveries } from "../../store/delivery_lists.ts";
import { EVENT_LIST } from "../../store/events.ts";
import { listPart } from "../../store/list.ts";
import { backend, type Operation } from "../operation.ts";
import { toAuditRecord } from "./audit.ts";
import { findProblems, type ProblemServices } from "./problem.ts";

const MAX_WATCHERS = 64;
const TICK_MS = 500;
/** How often the database is read, and how many rows of a topic are sent each time. */
const [READ_MS, ROWS] = [1_000, 2];
/** How many missed rows are sent to a client that reconnects, and how old they may be. */
const [MISSED_ROWS, MISSED_MS] = [100, 3_600_000];
/** One more than is sent, to see whether there are more. */
const READ_ROWS = MISSED_ROWS + 1;
/** How long it may take until a row with a new id is stored. */
const STORED_AFTER_MS = 2_000;
/** How often problems are looked for again. */
const PROBLEMS_MS = 5_000;
const HEARTBEAT_MS = 15_000;
/** A client with this many unread bytes gets nothing; at the next heartbeat its stream ends. */
const HELD_BYTES = 65_536;
const HEARTBEAT = Buffer.from(":\n\n");
/** How many changed deliveries are remembered while a client watches. */
const HELD_CHANGES = 5_000;

const TOPICS = matching(
  /^(delivery|problem|audit)(,(delivery|problem|audit))*$/,
  "Must be one or more of delivery, problem and audit, separated by commas.",
);

const STREAM_QUERY = {
  topics: optional(TOPICS, "delivery,problem,audit"),
  subscription: optional(described("Only deliveries of this subscription.", idOf("s"))),
  request: described("Only deliveries of events that the request with this X-Request-Id " +
    "dispatched: first as they are, then every change.", EVENT_LIST.filters.request),
} as const;

/** A client of the stream. */
interface Watcher extends InferMembers<typeof STREAM_QUERY> {
  /** The deliveries of `request` as they were sent last, as JSON by id. */
  shown: ReadonlyMap<string, string>;
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  /** Rejects if the token is no longer valid. */
  readonly check: () => Promise<unknown>;
  /** Rows whose ids are from this time or later have not been read. */
  sinceMs: number;
  rows: number;
  /** The problems that were sent last. */
  problems: string;
  beatMs: number;
}

/** GET /backend/stream: changes as server-sent events. Nothing runs while no client watches. */
export function streamOperation(
  services: ProblemServices & Pick<Services, "heavy" | "bearer" | "watchDeliveries" | "log">,
): Operation {
  const { heavy, bearer, watchDeliveries, log, now } = services;
  const watchers = new Set<Watcher>();
  let changed: ChangedDelivery[] = [];
  const recent = createCache<true>(HELD_CHANGES); // ids of changed deliveries
  const readProblems = createLookup(1, () => Math.floor(now() / PROBLEMS_MS), async () =>
    JSON.stringify({ items: await findProblems(services) }));
  let timer: NodeJS.Timeout | undefined;
  let readAtMs = 0;

  function leave(watcher: Watcher): boolean {
    const isLeaving = watchers.delete(watcher);
    if (watchers.size === 0) {
      clearInterval(timer);
      watchDeliveries(undefined);
      changed = [];
    }
    return isLeaving;
  }

  function end(watcher: Watcher): void {
    if (leave(watcher)) watcher.controller.close();
  }

  const hasRoom = ({ controller }: Watcher) => (controller.desiredSize ?? 0) > 0;

  /** Ends streams of invalid tokens and slow clients, and calls `sendNew` once a second. */
  function tick(): void {
    const nowMs = now();
    for (const watcher of watchers) {
      watcher.check().catch(() => end(watcher));
      if (Math.abs(nowMs - watcher.beatMs) < HEARTBEAT_MS) continue;
      watcher.beatMs = nowMs;
      if (hasRoom(watcher)) watcher.controller.enqueue(HEARTBEAT);
      else end(watcher);
    }
    if (Math.abs(nowMs - readAtMs) < READ_MS) return;
    readAtMs = nowMs;
    sendNew().catch((error: unknown) => log.debug("changes could not be sent", { error }));
  }

  const watch = () =>
    watchDeliveries((more) => {
      changed = [...changed, ...more].slice(-HELD_CHANGES);
      for (const { id } of more) recent.set(id, true);
    });

  const sendNew = oneAtATime(async () => {
    const nowMs = now();
    watch(); // every time, since the worker thread may be a new one
    const changes = changed;
    changed = [];
    // Most clients get the same rows, so each query runs once for all of them.
    const reads = new Map<string, Promise<unknown>>();
    const once = <T>(key: string, read: () => Promise<T>) =>
      reads.getOrInsertComputed(key, read) as Promise<T>;
    const readers = watchers.values().filter(hasRoom);
    await Promise.all(readers.map((watcher) => sendTo(watcher, changes, nowMs, once)));
  });

  /** Sends what this process has changed, and what any process has stored under new ids. */
  async function sendTo(
    watcher: Watcher,
    changes: readonly ChangedDelivery[],
    nowMs: number,
    once: <T>(key: string, read: () => Promise<T>) => Promise<T>,
  ) {
    const { topics, subscription, request, shown, sinceMs, rows } = watcher;
    const untilMs = nowMs - STORED_AFTER_MS;
    const events: (readonly [topic: string, json: string])[] = [];
    let dropped = 0;
    const sample = <Item>(items: readonly Item[]) => {
      dropped += Math.max(0, items.length - rows);
      return items.slice(-rows);
    };
    if (topics.includes("delivery") && request !== undefined) {
      watcher.shown = await listOfRequest(request, subscription);
      for (const [id, json] of watcher.shown) {
        if (shown.get(id) !== json) events.push(["delivery", json]);
      }
    } else if (topics.includes("delivery")) {
      const given = { subscription, limit: READ_ROWS, cursor: idBound("d", untilMs) };
      const { items } = await once(`deliveries ${subscription}`, () =>
        listDeliveries(heavy, given));
      const fresh = items.map(({ id }) => id).reverse()
        .filter((id) => id >= idBound("d", sinceMs) && (rows > ROWS || !recent.get(id)));
      const own = changes.filter((each) => [undefined, each.subscription].includes(subscription));
      for (const id of sample([...new Set([...fresh, ...own.map((each) => each.id)])])) {
        const json = await once(id, async () => {
          const delivery = await findDelivery(heavy, id);
          return delivery && JSON.stringify(toManagedDelivery(delivery));
        });
        if (json) events.push(["delivery", json]);
      }
    }
    if (topics.includes("audit")) {
      const given = { since: sinceMs, until: untilMs, limit: READ_ROWS };
      const { items } = await once(`audit ${sinceMs}`, () => listPart(heavy, AUDIT_LIST, given));
      for (const entry of sample(items.toReversed())) {
        events.push(["audit", JSON.stringify(toAuditRecord(entry))]);
      }
    }
    const problems = topics.includes("problem") ? await once("problems", readProblems) : undefined;
    if (problems !== undefined && problems !== watcher.problems) {
      watcher.problems = problems;
      events.push(["problem", problems]);
    }
    if (dropped > 0) events.push(["dropped", JSON.stringify({ count: dropped })]); // at least
    watcher.sinceMs = untilMs;
    watcher.rows = ROWS;
    if (events.length === 0 || !watchers.has(watcher)) return;
    const text = events.map(([topic, json]) => `event: ${topic}\ndata: ${json}\n`).join("\n");
    // Only the last event has the id, so that a client that reconnects misses none of them.
    watcher.controller.enqueue(Buffer.from(`${text}id: ${untilMs}\n\n`));
  }

  /** Returns the deliveries of a request's events, oldest first, as JSON by id. */
  async function listOfRequest(request: string, subscription: string | undefined) {
    const limit = MISSED_ROWS;
    const { items: events } = await listPart(heavy, EVENT_LIST, { request, limit });
    const found: Delivery[] = [];
    for (const { id: event } of events) {
      found.push(...(await listDeliveries(heavy, { event, subscription, limit })).items);
      if (found.length >= MISSED_ROWS) break;
    }
    const wanted = found.slice(0, MISSED_ROWS).reverse();
    return new Map(wanted.map((each) => [each.id, JSON.stringify(toManagedDelivery(each))]));
  }

  return backend("GET", "/backend/stream", "watch", "Watch what happens, as server-sent events", {
    query: STREAM_QUERY,
    responses: { 200: "text/event-stream" },
    refuses: [503],
    async handle({ query, request }) {
      if (watchers.size >= MAX_WATCHERS) {
        const headers = { "Retry-After": "10" };
        throw new Problem(503, "busy", `${MAX_WATCHERS} clients watch already.`, { headers });
      }
      const nowMs = now();
      const lastMs = Number(request.headers["last-event-id"] ?? NaN);
      const isBack = lastMs < nowMs - STORED_AFTER_MS;
      const check = async () => bearer.authenticate(request, [BACKEND_READ_SCOPE]);
      let watcher: Watcher;
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          const sinceMs = isBack ? Math.max(lastMs, nowMs - MISSED_MS) : nowMs - STORED_AFTER_MS;
          const rows = isBack ? MISSED_ROWS : ROWS;
          const seen = { sinceMs, rows, shown: new Map(), problems: "", beatMs: nowMs };
          watcher = { ...query, controller, check, ...seen };
          // Sends the head too. A client that is cut off before any event resumes from this id.
          const dropped = lastMs < sinceMs ? 'event: dropped\ndata: {"count":1}\n' : "";
          controller.enqueue(Buffer.from(`${dropped}id: ${sinceMs}\n\n`));
          if (watchers.size === 0) {
            timer = setInterval(tick, TICK_MS).unref();
            watch(); // at once, not only at the first read
          }
          watchers.add(watcher);
        },
        cancel: () => void leave(watcher),
      }, new ByteLengthQueuingStrategy({ highWaterMark: HELD_BYTES }));
      return { status: 200, headers: { "content-type": "text/event-stream" }, body };
    },
  });
}
