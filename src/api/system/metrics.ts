import type { HttpRequest } from "../../base/http_message.ts";
import { METRICS_TYPE } from "../../base/metrics.ts";
import { equalText } from "../../base/secret.ts";
import { NO_STORE } from "../../http/respond.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { type Bearer, bearerToken } from "../bearer.ts";
import { type Operation, system } from "../operation.ts";

/** Lets in those who watch over the service. */
export type CheckInspector = ReturnType<typeof createInspectorCheck>;

/** Makes the check: the metrics token, where there is one, or a token with scope `backend`. */
export function createInspectorCheck(bearer: Bearer, metricsToken: string | undefined) {
  const isMetricsToken = (token: string | undefined) =>
    token !== undefined && metricsToken !== undefined && equalText(token, metricsToken);
  /** Throws Problem 401 or 403 for anyone else. */
  return async (request: HttpRequest): Promise<void> => {
    if (isMetricsToken(bearerToken(request))) return;
    await bearer.authenticate(request, [BACKEND_SCOPE]);
  };
}

/** GET /system/metrics: Prometheus' text format. */
export function metricsOperation(
  { formatMetrics, checkInspector }: Pick<Services, "formatMetrics" | "checkInspector">,
): Operation {
  return system("GET", "/system/metrics", "getMetrics", "Metrics, for Prometheus", {
    security: "inspector", // beside access tokens it takes the metrics token
    responses: { 200: "text/plain" },
    refuses: [401, 403],
    async handle({ request }) {
      await checkInspector(request);
      const headers = { "Content-Type": METRICS_TYPE, ...NO_STORE };
      return { status: 200, headers, body: await formatMetrics() };
    },
  });
}
