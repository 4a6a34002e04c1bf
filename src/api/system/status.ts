import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { PublicRoute } from "../route.ts";
import type { InspectorCheck } from "./metrics.ts";

/** Whether each part can do its work. */
export interface Readiness {
  readonly isReady: boolean;
  /** For operators alone. */
  readonly parts: Readonly<Record<string, unknown>>;
}

/** What the status routes tell. */
export interface StatusOptions {
  readonly version: string;
  readonly revision: string;
  readonly readiness: (withParts: boolean) => Promise<Readiness>;
  readonly inspectors: InspectorCheck;
}

/** GET /system/health, /system/ready and /system/about: for those who watch over the process. */
export function statusRoutes(options: StatusOptions): PublicRoute[] {
  const { version, revision, readiness, inspectors } = options;
  const base = { method: "GET", access: "public", cors: false } as const;
  return [
    {
      ...base,
      path: "/system/health",
      summary: "Whether the process lives",
      handle: () => Promise.resolve(jsonResponse(200, { status: "ok" }, NO_STORE)),
    },
    {
      ...base,
      path: "/system/ready",
      summary: "Whether requests and deliveries are being done",
      async handle({ request }) {
        const withParts = await inspectors.allows(request);
        const { isReady, parts } = await readiness(withParts);
        const body = {
          status: isReady ? "ready" : "unavailable",
          ...(withParts && { parts }),
        };
        const retry = isReady ? {} : { "Retry-After": "2" };
        return jsonResponse(isReady ? 200 : 503, body, { ...NO_STORE, ...retry });
      },
    },
    {
      ...base,
      path: "/system/about",
      summary: "What is running",
      handle: () => Promise.resolve(jsonResponse(200, { name: "Gatepost", version, revision })),
    },
  ];
}
