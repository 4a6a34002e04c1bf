import { createMetrics, type Metrics } from "../base/metrics.ts";
import { Problem } from "../base/problem.ts";
import type { PasswordLogin } from "../api/password_login.ts";
import type { Backlog } from "../store/backlog.ts";
import { revision, version } from "../version.ts";
import { addProcessMetrics } from "./process_metrics.ts";

/** What the parts of the service tell of what they do. */
export interface ServiceMetrics {
  readonly registry: Metrics;
  /** An answer; `route` is the route's pattern, "" where the path is unknown. */
  observeRequest(route: string, method: string, status: number, ms: number): void;
  /** A refusal of what never became a request. */
  countRefusal(status: number): void;
  countToken(grant: string): void;
  countLogin(outcome: string): void;
  countEvents(events: number): void;
  observeAttempt(isSuccess: boolean, ms: number): void;
  /** One commit of so many batches of writes. */
  observeCommit(batches: number, ms: number): void;
  stop(): void;
}

/** What is looked up when the metrics are asked for. */
export interface ServiceReadings {
  readonly connections: () => Promise<number>;
  readonly inFlight: () => number;
  readonly distributorState: () => "on" | "off" | "stuck";
  readonly backlog: () => Promise<Backlog>;
  /** When the key that signs access tokens began to, in milliseconds since 1970. */
  readonly signsSinceMs: () => number | undefined;
  readonly droppedLogLines: () => number;
  readonly now: () => number;
}

const HTTP_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const UNKNOWN_ROUTE = "unknown";
const REQUEST_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const ATTEMPT_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const COMMIT_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2];
const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Makes the metrics of the service; what is counted begins at 0. */
export function createServiceMetrics(): ServiceMetrics {
  const registry = createMetrics();
  registry.reading(
    { type: "gauge", name: "gatepost_build_info", help: "What is running." },
    () => [{ labels: { version, revision }, value: 1 }],
  );
  const requests = registry.counter({
    name: "gatepost_http_requests_total",
    help: "Answered requests; route is the pattern that the path matched.",
    labels: ["method", "route", "status"],
  });
  const durations = registry.histogram({
    name: "gatepost_http_request_duration_seconds",
    help: "Time from the head of a request to its answer.",
    labels: ["method", "route"],
    bounds: REQUEST_BOUNDS,
  });
  const refusals = registry.counter({
    name: "gatepost_http_refusals_total",
    help: "Refusals of what was no well-formed request, or did not arrive in time.",
    labels: ["status"],
  });
  const tokens = registry.counter({
    name: "gatepost_tokens_issued_total",
    help: "Access tokens issued, by grant type; login is the login endpoint.",
    labels: ["grant"],
  });
  const logins = registry.counter({
    name: "gatepost_logins_total",
    help: "Checks of a user name and a password, wherever they came in.",
    labels: ["outcome"],
  });
  const events = registry.counter({
    name: "gatepost_events_dispatched_total",
    help: "Events stored for distribution by this process.",
  });
  const attempts = registry.counter({
    name: "gatepost_delivery_attempts_total",
    help: "Callbacks sent by this process; success is an answer of 2xx.",
    labels: ["outcome"],
  });
  const attemptDurations = registry.histogram({
    name: "gatepost_delivery_attempt_duration_seconds",
    help: "Time of one callback, its answer included.",
    labels: ["outcome"],
    bounds: ATTEMPT_BOUNDS,
  });
  const batchSizes = registry.histogram({
    name: "gatepost_database_commit_batches",
    help: "Batches of writes that one commit made durable together.",
    bounds: BATCH_BOUNDS,
  });
  const commitDurations = registry.histogram({
    name: "gatepost_database_commit_duration_seconds",
    help: "Time of one commit, the waiting for locks included.",
    bounds: COMMIT_BOUNDS,
  });
  // A series that is there from the beginning can be alerted on before the first failure.
  for (const outcome of ["success", "failure"]) attempts.add([outcome], 0);
  for (const outcome of ["ok", "wrong", "throttled", "busy"]) logins.add([outcome], 0);
  const stopProcessMetrics = addProcessMetrics(registry);

  return {
    registry,
    observeRequest(route, method, status, ms) {
      const knownMethod = HTTP_METHODS.includes(method) ? method : "other";
      const knownRoute = route === "" ? UNKNOWN_ROUTE : route;
      requests.add([knownMethod, knownRoute, String(status)]);
      durations.observe([knownMethod, knownRoute], ms / 1000);
    },
    countRefusal: (status) => refusals.add([String(status)]),
    countToken: (grant) => tokens.add([grant]),
    countLogin: (outcome) => logins.add([outcome]),
    countEvents: (count) => events.add([], count),
    observeAttempt(isSuccess, ms) {
      const outcome = [isSuccess ? "success" : "failure"];
      attempts.add(outcome);
      attemptDurations.observe(outcome, ms / 1000);
    },
    observeCommit(batches, ms) {
      batchSizes.observe([], batches);
      commitDurations.observe([], ms / 1000);
    },
    stop: stopProcessMetrics,
  };
}

/** Adds what is looked up when the metrics are asked for. */
export function addReadings({ registry }: ServiceMetrics, readings: ServiceReadings): void {
  const { backlog, now } = readings;
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    registry.reading({ type: "gauge", name: `gatepost_${name}`, help }, read);
  const ageSeconds = (sinceMs: number | undefined) =>
    sinceMs === undefined ? 0 : Math.max(0, now() - sinceMs) / 1000;

  gauge("http_connections", "Open connections.", readings.connections);
  gauge("deliveries_in_flight", "Callbacks of this process under way.", readings.inFlight);
  gauge(
    "events_pending",
    "Events of the database whose deliveries have not been made yet; counted up to a million.",
    async () => (await backlog()).events,
  );
  gauge(
    "deliveries_pending",
    "Deliveries of the database that are due, in flight, waiting for a resend or paused; " +
      "counted up to a million.",
    async () => (await backlog()).deliveries,
  );
  gauge(
    "oldest_pending_age_seconds",
    "Time since the oldest pending event or delivery was dispatched, paused ones left out; " +
      "0 where there is none.",
    async () => ageSeconds((await backlog()).oldestMs),
  );
  gauge(
    "overdue_seconds",
    "How long the delivery or event that is most overdue might have been sent already.",
    async () => ageSeconds((await backlog()).overdueSinceMs),
  );
  gauge(
    "signing_key_age_seconds",
    "How long the key that signs access tokens has done so.",
    () => ageSeconds(readings.signsSinceMs()),
  );
  registry.reading(
    {
      type: "counter",
      name: "gatepost_log_lines_dropped_total",
      help: "Lines of the log that stdout did not take: its disk is full, its reader gone or slow.",
    },
    readings.droppedLogLines,
  );
  registry.reading(
    {
      type: "gauge",
      name: "gatepost_distributor_state",
      help: "1 for the state that the distributor is in.",
    },
    () => {
      const current = readings.distributorState();
      const states = ["on", "off", "stuck"];
      return states.map((state) => ({ labels: { state }, value: Number(state === current) }));
    },
  );
}

/** The same login, with its outcomes counted. */
export function countLogins(login: PasswordLogin, { countLogin }: ServiceMetrics): PasswordLogin {
  return {
    async check(attempt) {
      try {
        const outcome = await login.check(attempt);
        countLogin(outcome.kind);
        return outcome;
      } catch (error) {
        if (error instanceof Problem && error.code === "busy") countLogin("busy");
        throw error;
      }
    },
  };
}
