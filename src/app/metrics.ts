import { readdir } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { METHODS } from "../base/http_message.ts";
import { counter, createMetrics, histogram, type Read } from "../base/metrics.ts";
import type { DeliveryWorker } from "../delivery/worker.ts";
import type { OpenDatabase } from "../database/engine.ts";
import { DISTRIBUTOR_STATES } from "../event/distributor_state.ts";
import { BOUNDS_MS } from "../event/figures.ts";
import type { Backlog } from "../store/backlog.ts";
import type { KeyRing } from "../store/key_ring.ts";
import { revision, version } from "../version.ts";

/** The sources that gauges are read from at each request for metrics. */
interface MetricSources {
  readonly connections: () => Promise<number>;
  readonly worker: Pick<DeliveryWorker, "report" | "state">;
  readonly backlog: () => Promise<Backlog>;
  readonly cluster: OpenDatabase["cluster"];
  readonly keys: Pick<KeyRing, "findSigning">;
  readonly droppedLogLines: () => number;
  readonly loopDelay: ReturnType<typeof watchEventLoop>;
  readonly now: () => number;
}

const LOOP_RESOLUTION_MS = 20;

const gauge = <const L extends readonly string[]>(
  help: string,
  read: Read<MetricSources>,
  ...labels: L
) => ({ type: "gauge", help, labels, read }) as const;

/** A counter whose value is kept elsewhere. */
const total = (help: string, read: Read<MetricSources>) =>
  ({ ...gauge(help, read), type: "counter" }) as const;

/** The histogram holds the time between two ticks, from which the intended wait is taken off. */
const lag = (which: string, readNs: (delay: MetricSources["loopDelay"]) => number) =>
  gauge(`Lag of the event loop since the last scrape, ${which}.`, ({ loopDelay }) =>
    Math.max(0, readNs(loopDelay) / 1e9 - LOOP_RESOLUTION_MS / 1000));

/**
 * All metrics. `count` and `observe` take their names, and the table in the documents is generated
 * from them. Names with process_ and nodejs_ are the ones that Prometheus' own clients use.
 */
export const METRICS = {
  gatepost_build_info: gauge("Version and revision that are running.",
    () => [[[version, revision], 1]], "version", "revision"),
  gatepost_http_requests_total: counter(
    "Requests by response; route is the pattern that the path matched.",
    "method", "route", "status"),
  gatepost_http_request_duration_seconds: histogram(
    "Time from the head of a request to its response.",
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10], "method", "route"),
  gatepost_http_refusals_total: counter(
    "Requests rejected before routing: malformed or timed out.", "status"),
  gatepost_rate_limited_total: counter(
    "Requests refused by a rate limit; policy is endpoint, user, app, principal or address.",
    "policy"),
  gatepost_http_connections: gauge("Open connections.", ({ connections }) => connections()),
  gatepost_tokens_issued_total: counter(
    "Access tokens issued, by grant type; login is the login endpoint.", "grant"),
  gatepost_logins_total: {
    ...counter("Checks of a user name and a password, at whichever endpoint.", "outcome"),
    initial: [["ok"], ["wrong"], ["throttled"], ["busy"]],
  },
  gatepost_signing_key_age_seconds: gauge("Age of the signing key.",
    ({ keys, now }) => ageSeconds(keys.findSigning()?.signsFromMs, now)),
  gatepost_events_dispatched_total: counter("Events stored for distribution by this process."),
  gatepost_delivery_attempts_total: {
    ...counter("Callbacks sent by this process; success is a response of 2xx.", "outcome"),
    initial: [["success"], ["failure"]],
  },
  gatepost_delivery_attempt_duration_seconds: histogram(
    "Time of one callback, its response included.",
    BOUNDS_MS.map((ms) => ms / 1000), "outcome"),
  gatepost_deliveries_in_flight: gauge("Callbacks in flight in this process.",
    ({ worker }) => worker.report().inFlight),
  gatepost_callbacks_held_up: gauge(
    "1 while this process lacks what callbacks need: descriptors, memory, a port or a network.",
    ({ worker }) => worker.report().want === undefined ? 0 : 1),
  gatepost_events_pending: gauge(
    "Events of the database whose deliveries have not been made yet; counted up to a million.",
    async ({ backlog }) => (await backlog()).events),
  gatepost_deliveries_pending: gauge(
    "Deliveries of the database that are due, in flight, waiting for a resend or paused; " +
      "counted up to a million.",
    async ({ backlog }) => (await backlog()).deliveries),
  gatepost_oldest_pending_age_seconds: gauge(
    "Time since the oldest pending event or delivery was dispatched, paused ones left out; " +
      "0 where there is none.",
    async ({ backlog, now }) => ageSeconds((await backlog()).oldestMs, now)),
  gatepost_overdue_seconds: gauge("Age of the most overdue delivery or event.",
    async ({ backlog, now }) => ageSeconds((await backlog()).overdueSinceMs, now)),
  gatepost_distributor_state: gauge("1 for the state that the distributor is in.",
    ({ worker }) => {
      const current = worker.state();
      return DISTRIBUTOR_STATES.map((state) => [[state], Number(state === current)] as const);
    }, "state"),
  gatepost_database_commit_batches: histogram(
    "Batches of writes that one commit made durable together.",
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
  gatepost_database_commit_duration_seconds: histogram(
    "Time of one commit, waits for locks included.",
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2]),
  gatepost_database_node_up: gauge(
    "1 if a node of the cluster works, 0 if the log warns of it; only on a cluster.",
    ({ cluster }) => cluster?.nodes().map(([node, isUp]) => [[node], Number(isUp)]) ?? [], "node"),
  gatepost_database_clock_difference_seconds: gauge(
    "By how much this machine's clock differs from the cluster's clocks; only on a cluster.",
    ({ cluster }) => cluster ? cluster.skewMs() / 1000 : []),
  gatepost_log_lines_dropped_total: total(
    "Lines that stdout or stderr did not take: its disk is full, its reader gone or slow.",
    ({ droppedLogLines }) => droppedLogLines()),
  process_cpu_seconds_total: total("CPU time spent.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }),
  process_resident_memory_bytes: gauge("Resident memory.", () => process.memoryUsage.rss()),
  process_start_time_seconds: gauge("Start of the process, since 1970.",
    () => Math.round(performance.timeOrigin) / 1000),
  process_open_fds: gauge(
    "Open file descriptors; only on Linux, and not under Node's permission model.",
    async () => (await readdir("/proc/self/fd")).length),
  nodejs_heap_size_used_bytes: gauge("Used part of V8's heap.",
    () => process.memoryUsage().heapUsed),
  nodejs_eventloop_lag_p99_seconds: lag("percentile 99", (delay) => delay.percentile(99)),
  nodejs_eventloop_lag_max_seconds: lag("maximum", (delay) => {
    const { max } = delay;
    delay.reset(); // here, since this metric is read after the other
    return max;
  }),
  nodejs_version_info: gauge("Version of Node.js.", () => [[[process.version], 1]], "version"),
};

export type ServiceMetrics = ReturnType<typeof createServiceMetrics>;

/** Makes the metrics of this process. */
export function createServiceMetrics() {
  return createMetrics<MetricSources, typeof METRICS>(METRICS);
}

const HTTP_METHODS: readonly string[] = [...METHODS, "HEAD", "OPTIONS"];

/** Counts a response. Labels never hold client input: `route` is a pattern, "" if unknown. */
export function observeRequest(
  metrics: ServiceMetrics,
  route: string,
  method: string,
  status: number,
  ms: number,
): void {
  const knownMethod = HTTP_METHODS.includes(method) ? method : "other";
  const knownRoute = route === "" ? "unknown" : route;
  metrics.count("gatepost_http_requests_total", [knownMethod, knownRoute, String(status)]);
  metrics.observe("gatepost_http_request_duration_seconds", [knownMethod, knownRoute], ms / 1000);
}

/** Begins to measure the delay of the event loop, in nanoseconds; `disable` ends it. */
export function watchEventLoop() {
  const delay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  delay.enable();
  return delay;
}

/** Returns the seconds since a time; 0 if it is undefined. */
export function ageSeconds(sinceMs: number | undefined, now: () => number): number {
  return sinceMs === undefined ? 0 : Math.max(0, now() - sinceMs) / 1000;
}
