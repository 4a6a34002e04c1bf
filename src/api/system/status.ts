import type { HttpRequest } from "../../base/http_message.ts";
import { METRICS_TYPE } from "../../base/metrics.ts";
import { equalText } from "../../base/secret.ts";
import {
  COUNT,
  described,
  named,
  nullable,
  NUMBER,
  oneOf,
  optional,
  record,
  shown,
  TEXT,
} from "../../base/shape.ts";
import { DISTRIBUTOR_STATES } from "../../event/distributor_state.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { revision, version } from "../../version.ts";
import { type Bearer, bearerToken } from "../bearer.ts";
import { type Operation, system } from "../operation.ts";

/** The states of parts that can do their work. */
export const READY_STATES: ReadonlySet<string> = new Set(["ok", "on", "off"]);

/** Whether each part can do its work. */
export interface Readiness {
  readonly isReady: boolean;
  /** For operators alone. */
  readonly parts: Readonly<Record<string, unknown>>;
}

const Health = named("Health", record({ status: shown({ const: "ok" }) }));

const ReadinessRecord = named("Readiness", record({
  status: oneOf("ready", "unavailable"),
  parts: optional(described(
    "Only for the metrics token or scope backend.",
    record({
      database: oneOf("ok", "locked", "read_only", "full", "replaced", "damaged", "failing",
        "unavailable", "clock_skewed", "sealed"),
      distributor: oneOf(...DISTRIBUTOR_STATES),
      callbacks: described("ok, or the code of the resource that the process lacks.", TEXT),
      backlog: nullable(COUNT),
      oldest_pending_age_seconds: nullable(NUMBER),
    }),
  )),
}));

const About = named("About", record({
  name: shown({ const: "Gatepost" }),
  version: TEXT,
  revision: TEXT,
}));

/** Checks that a request may read what operators monitor. */
export type CheckInspector = ReturnType<typeof createInspectorCheck>;

/** Makes the check. It accepts the metrics token, if one is set, and tokens of scope `backend`. */
export function createInspectorCheck(bearer: Bearer, metricsToken: string | undefined) {
  /** Throws Problem 401 or 403 for anyone else. */
  return async (request: HttpRequest): Promise<void> => {
    const token = bearerToken(request);
    const isMetricsToken = token && metricsToken && equalText(token, metricsToken);
    if (!isMetricsToken) await bearer.authenticate(request, [BACKEND_SCOPE]);
  };
}

/** GET of the paths below /system, for monitoring. */
export function statusOperations(
  { readiness, checkInspector, formatMetrics }:
    Pick<Services, "readiness" | "checkInspector" | "formatMetrics">,
): Operation[] {
  return [
    system("GET", "/system/health", "getHealth", "Whether the process lives", {
      responses: { 200: Health },
      handle: () => Promise.resolve(jsonResponse(200, { status: "ok" })),
    }),
    system("GET", "/system/ready", "getReadiness",
      "Whether requests and deliveries can be handled", {
      security: "inspector",
      responses: { 200: ReadinessRecord, 503: ReadinessRecord },
      async handle({ request }) {
        // A caller that cannot be checked, as the database is down, still learns `status`.
        const withParts = await checkInspector(request).then(() => true, () => false);
        const { isReady, parts } = await readiness(withParts);
        const body = { status: isReady ? "ready" : "unavailable", ...(withParts && { parts }) };
        const retry = isReady ? {} : { "Retry-After": "2" };
        return jsonResponse(isReady ? 200 : 503, body, { ...NO_STORE, ...retry });
      },
    }),
    system("GET", "/system/about", "getAbout", "What is running", {
      responses: { 200: About },
      handle: () => Promise.resolve(jsonResponse(200, { name: "Gatepost", version, revision }, {})),
    }),
    system("GET", "/system/metrics", "getMetrics", "Metrics, for Prometheus", {
      security: "inspector", // beside access tokens it takes the metrics token
      responses: { 200: "text/plain" },
      refuses: [401, 403],
      async handle({ request }) {
        await checkInspector(request);
        const headers = { "Content-Type": METRICS_TYPE, ...NO_STORE };
        return { status: 200, headers, body: await formatMetrics() };
      },
    }),
  ];
}
