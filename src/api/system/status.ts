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
import type { Services } from "../../services.ts";
import { revision, version } from "../../version.ts";
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
    "For the metrics token or scope backend alone.",
    record({
      database: oneOf("ok", "locked", "read_only", "full", "replaced", "damaged", "failing",
        "unavailable", "clock_skewed", "sealed"),
      distributor: oneOf(...DISTRIBUTOR_STATES),
      callbacks: described("ok, or the code of what the process lacks to send them.", TEXT),
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

/** GET /system/health, /system/ready and /system/about: for those who watch over the process. */
export function statusOperations(
  { readiness, checkInspector }: Pick<Services, "readiness" | "checkInspector">,
): Operation[] {
  return [
    system("GET", "/system/health", "getHealth", "Whether the process lives", {
      responses: { 200: Health },
      handle: () => Promise.resolve(jsonResponse(200, { status: "ok" })),
    }),
    system("GET", "/system/ready", "getReadiness",
      "Whether requests and deliveries are being done", {
      security: "inspector",
      responses: { 200: ReadinessRecord, 503: ReadinessRecord },
      async handle({ request }) {
        // Whoever cannot be checked, because the database is down, is told whether it is ready.
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
  ];
}
