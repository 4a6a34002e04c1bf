import type { HttpRequest } from "../../base/http_message.ts";
import { METRICS_TYPE } from "../../base/metrics.ts";
import { equalText } from "../../base/secret.ts";
import { NO_STORE } from "../../http/respond.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { type Bearer, bearerToken } from "../bearer.ts";
import { type Operation, system } from "../operation.ts";

/** Lets in those who watch over the service. */
export type InspectorCheck = ReturnType<typeof createInspectorCheck>;

/** Makes the check: the metrics token, where there is one, or a token with scope `backend`. */
export function createInspectorCheck(bearer: Bearer, metricsToken: string | undefined) {
  const isMetricsToken = (token: string | undefined) =>
    token !== undefined && metricsToken !== undefined && equalText(token, metricsToken);
  return {
    /** Throws Problem 401 or 403 for anyone else. */
    async check(request: HttpRequest): Promise<void> {
      if (isMetricsToken(bearerToken(request))) return;
      await bearer.authenticate(request, [BACKEND_SCOPE]);
    },

    /** Whether it is one of them. */
    async allows(request: HttpRequest): Promise<boolean> {
      const token = bearerToken(request);
      if (token === undefined) return false;
      if (isMetricsToken(token)) return true;
      const caller = await bearer.verify(token);
      return caller?.audience === undefined && caller?.scopes.includes(BACKEND_SCOPE) === true;
    },
  };
}

/** GET /system/metrics: Prometheus' text format. */
export function metricsOperation(
  { formatMetrics, inspectors }: Pick<Services, "formatMetrics" | "inspectors">,
): Operation {
  return system("GET", "/system/metrics", "getMetrics", "Metrics, for Prometheus", {
    security: "inspector", // beside access tokens it takes the metrics token
    responses: { 200: "text/plain" },
    refuses: [401, 403],
    async handle({ request }) {
      await inspectors.check(request);
      const headers = { "Content-Type": METRICS_TYPE, ...NO_STORE };
      return { status: 200, headers, body: await formatMetrics() };
    },
  });
}
